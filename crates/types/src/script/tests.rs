//! Classes, the walk, and what cannot be spent.

use proptest::prelude::*;

use super::*;

fn push(data: &[u8]) -> Vec<u8> {
    [&[u8::try_from(data.len()).unwrap()][..], data].concat()
}

fn key(first: u8, length: usize) -> Vec<u8> {
    let mut key = vec![7; length];
    key[0] = first;
    push(&key)
}

fn script(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

#[test]
fn classes() {
    let multisig = |m: &[u8], keys: usize, n: &[u8]| {
        script(&[m, &key(2, 33).repeat(keys), n, &[opcode::OP_CHECKMULTISIG]])
    };
    let cases = [
        (script(&[&key(2, 33), &[0xac]]), Class::P2pk),
        (script(&[&key(4, 65), &[0xac]]), Class::P2pk),
        (script(&[&key(7, 65), &[0xac]]), Class::P2pk),
        (script(&[&key(5, 65), &[0xac]]), Class::Nonstandard),
        (script(&[&key(4, 33), &[0xac]]), Class::Nonstandard),
        (script(&[&[0x76, 0xa9], &push(&[1; 20]), &[0x88, 0xac]]), Class::P2pkh),
        (script(&[&[0x76, 0xa9], &push(&[1; 21]), &[0x88, 0xac]]), Class::Nonstandard),
        (script(&[&[0xa9], &push(&[1; 20]), &[0x87]]), Class::P2sh),
        (script(&[&[0], &push(&[1; 20])]), Class::P2wpkh),
        (script(&[&[0], &push(&[1; 32])]), Class::P2wsh),
        (script(&[&[0], &push(&[1; 31])]), Class::Nonstandard),
        (script(&[&[0x51], &push(&[1; 32])]), Class::P2tr),
        (vec![0x51, 2, 0x4e, 0x73], Class::P2a),
        (vec![0x52, 2, 0x4e, 0x73], Class::OtherWitness),
        (script(&[&[0x51], &push(&[1; 40])]), Class::OtherWitness),
        (script(&[&[0x51], &push(&[1; 41])]), Class::Nonstandard),
        (script(&[&[0x51], &push(&[1; 1])]), Class::Nonstandard),
        (script(&[&[0x60], &push(&[1; 32])]), Class::OtherWitness),
        (script(&[&[0x61], &push(&[1; 32])]), Class::Nonstandard),
        (vec![0x6a], Class::OpReturn),
        (vec![0x6a, 0x4c], Class::OpReturn),
        (multisig(&[0x51], 1, &[0x51]), Class::Multisig),
        (multisig(&[0x52], 3, &[0x53]), Class::Multisig),
        (multisig(&[0x53], 2, &[0x52]), Class::Nonstandard),
        (multisig(&[0x51], 2, &[0x53]), Class::Nonstandard),
        (multisig(&[0x51], 20, &[1, 20]), Class::Multisig),
        (multisig(&[0x51], 21, &[1, 21]), Class::Nonstandard),
        (multisig(&[0x51], 16, &[1, 16]), Class::Nonstandard),
        (multisig(&[0x00], 1, &[0x51]), Class::Nonstandard),
        (script(&[&[0x51], &key(4, 65), &[0x51, 0xae]]), Class::Multisig),
        (vec![0xae], Class::Nonstandard),
        (vec![], Class::Nonstandard),
        (vec![0x51], Class::Nonstandard),
    ];
    for (script, class) in cases {
        assert_eq!(Class::of(&script), class, "{script:02x?}");
    }
}

#[test]
fn the_walk_ends_at_a_cut_push() {
    let walk: Vec<_> = Instructions::new(&[0x51, 0x02, 0xaa, 0xbb, 0x00, 0xac]).collect();
    let op = |opcode| Ok(Instruction { opcode, data: None });
    let pushed = |opcode, data| Ok(Instruction { opcode, data: Some(data) });
    assert_eq!(walk, [op(0x51), pushed(2, &[0xaa, 0xbb][..]), pushed(0, &[]), op(0xac)]);

    let cut: [&[u8]; 7] = [
        &[0x51, 0x02, 0xaa],
        &[0x51, 0x4c],
        &[0x51, 0x4c, 0x01],
        &[0x51, 0x4d, 0x01],
        &[0x51, 0x4d, 0x01, 0x00],
        &[0x51, 0x4e, 0x00, 0x00, 0x00],
        &[0x51, 0x4e, 0xff, 0xff, 0xff, 0xff, 0xaa],
    ];
    for script in cut {
        let walk: Vec<_> = Instructions::new(script).collect();
        assert_eq!(walk, [op(0x51), Err(TruncatedPushError { offset: 1 })]);
    }
}

#[test]
fn what_never_enters_the_set() {
    let at = |network, height, script: &[u8]| unspendable(network, Height::new(height), script);
    let (op_return, false_return) = ([0x6a, 0x01, 0x00], [0x00, 0x6a]);
    let (long, longest) = (vec![0x51; 10_001], vec![0x51; 10_000]);
    for network in [Network::Mainnet, Network::Signet, Network::Regtest] {
        assert!(at(network, 700_000, &op_return));
        assert!(at(network, 700_000, &long));
        assert!(!at(network, 700_000, &longest));
        assert!(!at(network, 700_000, &false_return));
        assert!(!at(network, 700_000, &[]));
    }
    for (network, upgrade) in [(Network::Bsv, 620_538), (Network::BsvRegtest, 10_000)] {
        assert!(at(network, upgrade - 1, &op_return));
        assert!(at(network, upgrade - 1, &false_return));
        assert!(at(network, upgrade - 1, &long));
        assert!(!at(network, upgrade, &op_return));
        assert!(at(network, upgrade, &false_return));
        assert!(!at(network, upgrade, &long));
        assert!(!at(network, upgrade, &[]));
    }
}

proptest! {
    #[test]
    fn any_bytes_walk_and_classify(
        script in prop::collection::vec(prop_oneof![any::<u8>(), 0x4c_u8..0x70, 0_u8..4], 0..300),
    ) {
        let _ = Class::of(&script);
        let mut walk = Instructions::new(&script);
        let mut last = 0;
        while let Some(instruction) = walk.next() {
            match instruction {
                Ok(_) => prop_assert!(walk.offset() > last && walk.offset() <= script.len()),
                Err(error) => {
                    prop_assert_eq!(error.offset, last);
                    prop_assert!(walk.next().is_none());
                }
            }
            last = walk.offset();
        }
    }

    /// With one difference: any 33 or 65 bytes are a public key to the `bitcoin` crate. To us, as
    /// to Core's `Solver`, they are one only if the first byte matches a key of that length.
    #[test]
    fn classes_as_the_bitcoin_crate_sees_them(
        head in prop::sample::select(vec![
            vec![0x76, 0xa9, 0x14], vec![0xa9, 0x14], vec![0x00, 0x14], vec![0x00, 0x20],
            vec![0x51, 0x20], vec![0x21, 0x02], vec![0x21], vec![0x41, 0x04], vec![0x41],
            vec![0x6a], vec![]]),
        body in prop::collection::vec(any::<u8>(), 17..66),
        tail in prop::sample::select(vec![vec![0x88, 0xac], vec![0x87], vec![0xac], vec![]]),
    ) {
        let bytes = [head, body, tail].concat();
        let theirs = bitcoin::Script::from_bytes(&bytes);
        let class = Class::of(&bytes);
        let key_begins_well = matches!(bytes[..2], [33, 2 | 3] | [65, 4 | 6 | 7]);
        prop_assert_eq!(class == Class::P2pk, theirs.is_p2pk() && key_begins_well);
        prop_assert_eq!(class == Class::P2pkh, theirs.is_p2pkh());
        prop_assert_eq!(class == Class::P2sh, theirs.is_p2sh());
        prop_assert_eq!(class == Class::P2wpkh, theirs.is_p2wpkh());
        prop_assert_eq!(class == Class::P2wsh, theirs.is_p2wsh());
        prop_assert_eq!(class == Class::P2tr, theirs.is_p2tr());
        prop_assert_eq!(class == Class::OpReturn, theirs.is_op_return());
    }
}
