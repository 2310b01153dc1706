//! A stand-in gives the same answer as the whole transaction.

use proptest::prelude::*;
use varve_types::{Amount, Format, Outpoint, Txid};

use super::*;
use crate::contract::draft::TxDraft;

/// A transaction with a large output and three inputs, of which the second is looked at.
fn large(script: Vec<u8>, sequence: u32, version: u32, lock_time: u32) -> Vec<u8> {
    let outpoints = [1, 2, 3].map(|vout| Outpoint::new(Txid::ZERO, vout));
    let mut draft = TxDraft::spending(&outpoints, 1);
    draft.outputs[0].script = vec![0x51; LARGE];
    (draft.inputs[1].script, draft.inputs[1].sequence) = (script, sequence);
    (draft.version, draft.lock_time) = (version, lock_time);
    draft.bytes()
}

/// Scripts that often come to something: pushes, conditions, comparisons, hashes, lock times, and
/// now and then a signature check.
fn script() -> impl Strategy<Value = Vec<u8>> {
    let lock_times = prop_oneof![Just(0xb1_u8), Just(0xb2)];
    let opcode = prop_oneof![
        6 => 0x51_u8..0x61,
        3 => lock_times,
        3 => prop_oneof![Just(0x00_u8), Just(0x63), Just(0x67), Just(0x68), Just(0x75), Just(0x76)],
        2 => prop_oneof![Just(0x87_u8), Just(0x93), Just(0x9c), Just(0xa9), Just(0x69)],
        1 => 0xac_u8..0xb0,
    ];
    prop::collection::vec(opcode, 0..8)
}

fn flags() -> impl Strategy<Value = ScriptFlags> {
    let all = [
        ScriptFlags::NONE,
        ScriptFlags::P2SH | ScriptFlags::CHECKLOCKTIMEVERIFY | ScriptFlags::CHECKSEQUENCEVERIFY,
        ScriptFlags::P2SH | ScriptFlags::WITNESS | ScriptFlags::TAPROOT | ScriptFlags::DERSIG,
    ];
    prop::sample::select(all.to_vec())
}

fn numbers() -> impl Strategy<Value = u32> {
    prop_oneof![0_u32..20, Just(u32::MAX), Just(1 << 22 | 3), any::<u32>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_stand_in_answers_like_the_whole(
        answer in script(), lock in script(), flags in flags(),
        (sequence, version, lock_time) in (numbers(), 0_u32..4, numbers()),
    ) {
        let bytes = large(answer, sequence, version, lock_time);
        let tx = Tx::parse(&bytes, Format::Segwit).unwrap();
        let output = TxOut { value: Amount::COIN, script: &lock };
        let bits = flags.bits() & !ScriptFlags::TAPROOT.bits();
        let whole = call(&bytes, 1, &output, None, bits);
        let spent = [output; 3];
        let ours = CoreVerifier.verify(&SpendingTx { tx: &tx, spent: &spent }, 1..2, flags);
        prop_assert_eq!(ours.map_err(|(_, error)| error), whole);
    }
}

#[test]
fn only_scripts_without_signatures_have_stand_ins() {
    let has = |answer: &[u8], lock: &[u8], length: usize| {
        let mut draft = TxDraft::spending(&[Outpoint::new(Txid::ZERO, 0)], 1);
        draft.inputs[0].script = answer.to_vec();
        draft.outputs[0].script = vec![0; length];
        let bytes = draft.bytes();
        let tx = Tx::parse(&bytes, Format::Segwit).unwrap();
        let (input, witness) = (tx.inputs().next().unwrap(), tx.witnesses().next().unwrap());
        let output = TxOut { value: Amount::COIN, script: lock };
        stand_in(&tx, &input, &witness, &output).is_some()
    };
    assert!(has(&[0x51], &[], LARGE));
    assert!(!has(&[0x51], &[], 100), "a small transaction");
    for check in 0xac..=0xaf {
        assert!(!has(&[0x51], &[check], LARGE));
        assert!(!has(&[1, check], &[], LARGE), "even within a push");
    }
}

#[test]
fn questions_that_would_end_the_process_are_refused() {
    let bytes = large(vec![], 0, 1, 0);
    let tx = Tx::parse(&bytes, Format::Segwit).unwrap();
    let spent = [TxOut { value: Amount::COIN, script: &[0x51] }; 3];
    let ask = |spent: &[TxOut<'_>], range, flags| {
        CoreVerifier.verify(&SpendingTx { tx: &tx, spent }, range, flags).is_ok()
    };
    assert!(ask(&spent, 0..3, ScriptFlags::P2SH | ScriptFlags::WITNESS));
    assert!(!ask(&spent, 0..3, ScriptFlags::WITNESS));
    assert!(!ask(&spent[..2], 0..2, ScriptFlags::NONE));
    assert!(!ask(&spent, 0..4, ScriptFlags::NONE));
}
