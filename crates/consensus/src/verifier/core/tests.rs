//! Calls that would make the C++ code abort, or not return.

use varve_types::{Amount, Format, Outpoint, Tx, TxOut, Txid};

use super::*;
use crate::contract::draft::TxDraft;

/// A transaction with three inputs.
fn three() -> Vec<u8> {
    TxDraft::spending(&[1, 2, 3].map(|vout| Outpoint::new(Txid::ZERO, vout)), 1).bytes()
}

#[test]
fn questions_that_would_end_the_process_are_refused() {
    let bytes = three();
    let tx = Tx::parse(&bytes, Format::Segwit).unwrap();
    let spent = [TxOut { value: Amount::COIN, script: &[0x51] }; 3];
    let ask = |input, flags| {
        CoreVerifier.prepare(&SpendingTx { tx: &tx, spent: &spent })?.verify(input, flags)
    };
    let segwit = ScriptFlags::P2SH | ScriptFlags::WITNESS;
    assert_eq!(ask(2, segwit), Ok(()));
    assert!(matches!(ask(2, ScriptFlags::WITNESS), Err(VerifyError::Refused(_))));
    assert!(matches!(ask(3, segwit), Err(VerifyError::Refused(_))));
}

#[test]
fn a_transaction_needs_every_output_that_it_spends() {
    let bytes = three();
    let tx = Tx::parse(&bytes, Format::Segwit).unwrap();
    let spent = [TxOut { value: Amount::COIN, script: &[0x51] }; 4];
    for count in [0, 1, 2, 4] {
        let asked = CoreVerifier.prepare(&SpendingTx { tx: &tx, spent: &spent[..count] });
        assert!(matches!(asked, Err(VerifyError::Refused(_))), "{count}");
    }
}

#[test]
fn an_amount_out_of_range_is_refused() {
    let bytes = three();
    let tx = Tx::parse(&bytes, Format::Segwit).unwrap();
    let mut spent = [TxOut { value: Amount::COIN, script: &[0x51] }; 3];
    spent[1].value = Amount::from_sat(u64::MAX);
    let asked = CoreVerifier.prepare(&SpendingTx { tx: &tx, spent: &spent });
    assert!(matches!(asked, Err(VerifyError::Refused(_))));
}
