//! The solution in the script of the coinbase. Real solutions are in the tests on real data.

use super::*;
use crate::contract::draft::{BlockDraft, OutputDraft, TxDraft};
use crate::verifier::{PreparedTx, VerifyError};

#[test]
fn the_first_push_with_data_is_cut() {
    let pushed = |data: &[u8]| {
        let mut script = Vec::new();
        push(data, &mut script);
        script
    };
    let signed = |rest: &[u8]| pushed(&[&HEADER[..], rest].concat());
    let script = [&[OP_RETURN][..], &pushed(&[7; 36]), &signed(&[1, 2]), &signed(&[3])].concat();
    let (without, solution) = cut_solution(&script);
    assert_eq!(solution, [1, 2]);
    let expected = [&[OP_RETURN][..], &pushed(&[7; 36]), &signed(&[]), &signed(&[3])].concat();
    assert_eq!(without, expected);
    // A header alone is no solution, and such a script is unchanged, even where a push is longer
    // than necessary.
    let script = [&[OP_RETURN][..], &signed(&[]), &[OP_PUSHDATA1, 1, 9]].concat();
    assert_eq!(cut_solution(&script), (script.clone(), Vec::new()));
    // Otherwise pushes are shortened as far as possible, and a truncated one at the end is dropped.
    let script = [&[OP_RETURN, OP_PUSHDATA1, 1, 9][..], &signed(&[5]), &[OP_0, 3, 1]].concat();
    let expected = [&[OP_RETURN, 1, 9][..], &signed(&[]), &[OP_0]].concat();
    assert_eq!(cut_solution(&script), (expected, vec![5]));
}

#[test]
fn pushes_of_every_width() {
    for (length, head) in [
        (0x4b, &[0x4b][..]),
        (0x4c, &[OP_PUSHDATA1, 0x4c]),
        (0x100, &[OP_PUSHDATA2, 0, 1]),
        (0x10000, &[OP_PUSHDATA4, 0, 0, 1, 0]),
    ] {
        let mut script = Vec::new();
        push(&vec![1; length], &mut script);
        assert_eq!(script[..head.len()], *head);
        assert_eq!(script.len(), head.len() + length);
    }
}

#[test]
fn solutions_that_do_not_parse() {
    assert!(Solution::parse(&[]).is_some());
    assert!(Solution::parse(&[0, 0]).is_some());
    assert!(Solution::parse(&[1, 0x51, 1, 2, 7, 7]).is_some());
    for bytes in [&[0][..], &[0, 0, 0], &[2, 0x51], &[0, 1], &[0, 1, 3, 7], &[0, 0xff]] {
        assert!(Solution::parse(bytes).is_none(), "{bytes:?}");
    }
}

/// Decides by the script alone, as for a challenge of one opcode.
struct AnyoneCanSign;

/// Whether it is signed.
struct Signed(bool);

impl ScriptVerifier for AnyoneCanSign {
    type Prepared = Signed;

    fn prepare(&self, tx: &SpendingTx<'_>) -> Result<Signed, VerifyError> {
        Ok(Signed(tx.spent.iter().all(|output| output.script == [0x51])))
    }
}

impl PreparedTx for Signed {
    fn verify(&self, _input: usize, _flags: ScriptFlags) -> Result<(), VerifyError> {
        self.0.then_some(()).ok_or(VerifyError::Script)
    }
}

#[test]
fn an_easy_challenge_needs_no_solution() {
    let mut draft = BlockDraft::new(vec![TxDraft::coinbase(Height::new(1), 0)]);
    draft.txs[0].outputs.push(OutputDraft::with_script([&COMMITMENT[..], &[0; 32]].concat()));
    let bytes = draft.bytes();
    let block = varve_types::Block::parse(&bytes, Format::Segwit).unwrap();
    let block = BlockAt::new(Height::new(1), &block);
    let mut params = Params::new(varve_types::Network::Signet);
    assert!(check_signet_solution(&params, &block, &AnyoneCanSign).is_err());
    params.signet_challenge = Some(vec![0x51]);
    assert_eq!(check_signet_solution(&params, &block, &AnyoneCanSign), Ok(()));
    params.signet_challenge = None;
    assert_eq!(check_signet_solution(&params, &block, &AnyoneCanSign), Ok(()));
}
