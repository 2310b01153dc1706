//! Which pushes each rule lists, and with which flags.

use super::PushdataRule::{Conduit, Documented};
use super::*;

fn push(length: u8) -> Vec<u8> {
    [vec![length], vec![length; length.into()]].concat()
}

fn outputs(rule: PushdataRule, script: &[u8]) -> Vec<(usize, u8)> {
    rule.of_output(script).map(|item| (item.data.len(), item.flags.bits())).collect()
}

fn inputs(rule: PushdataRule, script: &[u8]) -> Vec<(usize, u8)> {
    rule.of_input(script).map(|item| (item.data.len(), item.flags.bits())).collect()
}

#[test]
fn lengths_of_each_rule() {
    let script: Vec<u8> = [1, 19, 20, 21, 32, 33, 64, 65, 75].into_iter().flat_map(push).collect();
    assert_eq!(outputs(Conduit, &script), [(20, 1), (33, 1), (65, 1)]);
    let documented = [20, 21, 32, 33, 64, 65, 75].map(|length| (length, 1));
    assert_eq!(outputs(Documented, &script), documented);
    assert_eq!(inputs(Conduit, &script), []);
    assert_eq!(inputs(Documented, &script), [(20, 2), (33, 2), (65, 2)]);
}

#[test]
fn a_length_of_its_own_is_for_the_documented_rule_alone() {
    let data = [7; 65];
    let coded = [
        [&[OP_PUSHDATA1, 65][..], &data].concat(),
        [&[OP_PUSHDATA2, 65, 0][..], &data].concat(),
        [&[OP_PUSHDATA4, 65, 0, 0, 0][..], &data].concat(),
    ];
    for script in coded {
        assert_eq!(outputs(Conduit, &script), []);
        assert_eq!(outputs(Documented, &script), [(65, 1)]);
        assert_eq!(inputs(Documented, &script), [(65, 2)]);
    }
}

#[test]
fn data_behind_a_return_until_an_else() {
    let key = push(33);
    let script = [&key, &[OP_RETURN][..], &key, &[OP_ELSE], &key, &[OP_RETURN], &key].concat();
    assert_eq!(outputs(Conduit, &script), [(33, 1), (33, 1)]);
    assert_eq!(outputs(Documented, &script), [(33, 1), (33, 5), (33, 1), (33, 5)]);
    assert_eq!(outputs(Documented, &[&[0, OP_RETURN][..], &push(20)].concat()), [(20, 5)]);
}

#[test]
fn a_cut_push_gives_what_is_left_of_it() {
    let cut = [&push(20), &[33, 1, 2, 3][..]].concat();
    assert_eq!(outputs(Conduit, &cut), [(20, 1), (3, 1)]);
    assert_eq!(outputs(Documented, &cut), [(20, 1), (3, 1)]);
    assert_eq!(inputs(Documented, &cut), [(20, 2), (3, 2)]);
    // It is listed according to the length that it claims.
    assert_eq!(outputs(Documented, &[19, 1, 2, 3]), []);
    assert_eq!(outputs(Documented, &[OP_PUSHDATA4, 0xff, 0xff, 0xff, 0xff, 9]), [(1, 1)]);
    // These have no bytes left.
    let nothing: [&[u8]; 4] = [&[33], &[OP_PUSHDATA1], &[OP_PUSHDATA2, 99], &[OP_PUSHDATA1, 40]];
    for script in nothing {
        assert_eq!(outputs(Documented, script), [], "{script:?}");
    }
}

#[test]
fn names_round_trip() {
    for rule in PushdataRule::ALL {
        assert_eq!(rule.to_string().parse(), Ok(rule));
    }
    assert!("both".parse::<PushdataRule>().is_err());
}
