//! The cases of Core's sigopcount_tests.cpp, and the odd ones.

use varve_types::{Format, Outpoint, Txid};

use super::*;
use crate::contract::draft::TxDraft;

const KEY: [u8; 34] = [33; 34];
const OP_CHECKMULTISIG_OF_3: [u8; 2] = [0x53, OP_CHECKMULTISIG];

fn multisig() -> Vec<u8> {
    [&[0x51][..], &KEY, &KEY, &KEY, &OP_CHECKMULTISIG_OF_3].concat()
}

#[test]
fn most_and_exact() {
    assert_eq!(count(&[], Multisig::Most), 0);
    let mut script = vec![OP_1, 20];
    script.extend([0; 20]);
    script.extend([20]);
    script.extend([0; 20]);
    script.extend([0x52, OP_CHECKMULTISIG]);
    assert_eq!(count(&script, Multisig::Exact), 2);
    script.extend([0x63, OP_CHECKSIG, 0x68]);
    assert_eq!(count(&script, Multisig::Exact), 3);
    assert_eq!(count(&script, Multisig::Most), 21);
    assert_eq!(count(&multisig(), Multisig::Exact), 3);
    assert_eq!(count(&multisig(), Multisig::Most), 20);
    // Not a small number before it, or nothing at all.
    assert_eq!(count(&[1, 3, OP_CHECKMULTISIG], Multisig::Exact), 20);
    assert_eq!(count(&[OP_CHECKMULTISIGVERIFY], Multisig::Exact), 20);
    // Data in a push does not count, and a truncated push ends the count.
    assert_eq!(count(&[2, OP_CHECKSIG, OP_CHECKSIG, OP_CHECKSIGVERIFY], Multisig::Most), 1);
    assert_eq!(count(&[OP_CHECKSIG, 5, OP_CHECKSIG], Multisig::Most), 1);
}

/// What one input costs, with these items in its witness.
fn cost(script: &[u8], witness: &[&[u8]], spent: &[u8], flags: ScriptFlags) -> u64 {
    let mut draft = TxDraft::spending(&[Outpoint::new(Txid::ZERO, 0)], 1);
    draft.inputs[0].witness = witness.iter().map(|item| item.to_vec()).collect();
    let bytes = draft.bytes();
    let tx = Tx::parse(&bytes, Format::Segwit).unwrap();
    input_cost(script, &tx.witnesses().next().unwrap(), spent, flags)
}

#[test]
fn p2sh_and_witness() {
    let all = ScriptFlags::P2SH | ScriptFlags::WITNESS;
    let p2sh = [&[0xa9, 20][..], &[7; 20], &[0x87]].concat();
    let redeem = multisig();
    let push = [&[0x4c, u8::try_from(redeem.len()).unwrap()][..], &redeem].concat();
    assert_eq!(cost(&push, &[], &p2sh, all), 4 * 3);
    assert_eq!(cost(&push, &[], &p2sh, ScriptFlags::NONE), 0);
    let not_push_only = [&[0x61][..], &push].concat();
    assert_eq!(cost(&not_push_only, &[], &p2sh, all), 0);
    let number_last = [&push[..], &[0x51]].concat();
    assert_eq!(cost(&number_last, &[], &p2sh, all), 0);
    assert_eq!(cost(&push[..20], &[], &p2sh, all), 0, "cut within the push");

    let p2wpkh = [&[0, 20][..], &[7; 20]].concat();
    let p2wsh = [&[0, 32][..], &[7; 32]].concat();
    let p2tr = [&[0x51, 32][..], &[7; 32]].concat();
    assert_eq!(cost(&[], &[], &p2wpkh, all), 1);
    assert_eq!(cost(&[], &[], &p2wpkh, ScriptFlags::P2SH), 0);
    assert_eq!(cost(&[], &[&[0x51], &redeem], &p2wsh, all), 3);
    assert_eq!(cost(&[], &[&redeem, &[0x51]], &p2wsh, all), 0);
    assert_eq!(cost(&[], &[], &p2wsh, all), 0);
    assert_eq!(cost(&[], &[&redeem], &p2tr, all), 0);
    let nested = [&[22][..], &p2wpkh].concat();
    assert_eq!(cost(&nested, &[], &p2sh, all), 1);
    let nested = [&[34][..], &p2wsh].concat();
    assert_eq!(cost(&nested, &[&redeem], &p2sh, all), 3);
}
