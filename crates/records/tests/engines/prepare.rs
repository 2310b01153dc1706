//! From a transaction to a unit: what is refused, and what is computed.

use bytes::Bytes;
use varve_records::contract::MAX_IMPORTED_INDEX;
use varve_records::contract::draft::{Coin, TxDraft};
use varve_records::exchange::{WrappedOutput, WrapperHead, write_wrapper};
use varve_records::operation::{NewRecord, SpendPart, Unit};
use varve_records::record::BatchSize;
use varve_records::{CreateOptions, ErrorCode, RecordError, Settings, SpendRules, Transaction};
use varve_types::{Amount, Format, Height, TxOut, Txid};

fn options() -> CreateOptions {
    CreateOptions { height: Height::new(7), ..CreateOptions::default() }
}

fn new_record(tx: &Transaction) -> Result<NewRecord, RecordError> {
    NewRecord::new(tx, &options(), &Settings::default())
}

/// A transaction that spends an output of a million.
fn child(outputs: u32) -> TxDraft {
    TxDraft::spending(&[Coin::of(&TxDraft::root(1, 1).build(), 0)], outputs)
}

fn reason<T: std::fmt::Debug>(result: Result<T, RecordError>) -> &'static str {
    match result.expect_err("it is refused") {
        RecordError::Processing { reason, .. } => reason,
        other => panic!("{other}"),
    }
}

#[test]
fn a_record_needs_outputs() {
    assert_eq!(reason(new_record(&child(0).build())), "the transaction has no outputs");
}

#[test]
fn a_record_needs_extended_inputs() {
    let standard = child(1).build().view().to_legacy();
    let tx = Transaction::parse(standard.into(), Format::Legacy).expect("it parses");
    assert_eq!(reason(new_record(&tx)), "the transaction is not extended");
    let rules = SpendRules::at(Height::new(8));
    assert_eq!(reason(SpendPart::new(&tx, rules)), "the locking script is not known");
    let imported = CreateOptions { is_coinbase: Some(true), ..options() };
    assert!(NewRecord::new(&tx, &imported, &Settings::default()).is_ok());
}

#[test]
fn a_spend_needs_a_height() {
    let spend = SpendPart::new(&child(1).build(), SpendRules::at(Height::GENESIS));
    let error = spend.expect_err("it is refused");
    assert_eq!(error.code(), ErrorCode::Processing);
}

#[test]
fn the_fee_is_what_is_left() {
    let mut draft = child(1);
    assert_eq!(new_record(&draft.build()).map(|new| new.fee), Ok(Amount::from_sat(500_000)));
    draft.outputs[0].0 = 1_000_000;
    assert_eq!(new_record(&draft.build()).map(|new| new.fee), Ok(Amount::ZERO));
    draft.outputs[0].0 = 1_000_001;
    let more = new_record(&draft.build()).map(|new| new.fee);
    assert_eq!(more, Ok(Amount::ZERO), "what it may pay out is a rule of others");
    let coinbase = new_record(&TxDraft::coinbase(1, 1).build());
    assert_eq!(coinbase.map(|new| new.fee), Ok(Amount::ZERO));
}

#[test]
fn a_unit_has_the_hashes_of_what_it_spends() {
    let parent = TxDraft::root(1, 3).build();
    let coins = [2, 0].map(|vout| Coin::of(&parent, vout));
    let tx = TxDraft::spending(&coins, 1).build();
    let rules = SpendRules::at(Height::new(8));
    let unit = Unit::spend_and_create(&tx, rules, &options(), &Settings::default());
    let unit = unit.expect("it is extended");
    let spends = unit.spend.expect("it spends").spends;
    let seen: Vec<_> = spends.iter().map(|spend| (spend.outpoint, spend.hash, spend.vin)).collect();
    let expected =
        [(coins[0].outpoint, coins[0].hash(), 0), (coins[1].outpoint, coins[1].hash(), 1)];
    assert_eq!(seen, expected);
    assert_eq!(*unit.create.expect("it creates").utxos, [Some(Coin::of(&tx, 0).hash())]);
}

#[test]
fn a_blob_is_needed_for_what_is_large() {
    let tx = child(4).build();
    let size = tx.extended_size();
    let needs = |settings: Settings| {
        let new = NewRecord::new(&tx, &options(), &settings).expect("it can be created");
        new.needs_blob(&settings)
    };
    let settings = Settings {
        external_limit: size,
        batch: BatchSize::new(4).expect("not zero"),
        ..Settings::default()
    };
    assert!(!needs(settings.clone()), "exactly the limit, exactly a batch");
    assert!(needs(Settings { external_limit: size - 1, ..settings.clone() }));
    assert!(needs(Settings { batch: BatchSize::new(3).expect("not zero"), ..settings.clone() }));
    assert!(needs(Settings { externalize_all: true, ..settings }));
}

/// A wrapper with one output of this number.
fn wrapper(indexes: &[u32]) -> Bytes {
    let head =
        WrapperHead { txid: Txid::from_bytes([5; 32]), height: Height::new(9), coinbase: false };
    let output = TxOut { value: Amount::COIN, script: &[0x51] };
    let outputs = indexes.iter().map(|index| WrappedOutput { index: *index, output });
    let mut bytes = Vec::new();
    write_wrapper(&head, outputs, &mut bytes);
    bytes.into()
}

#[test]
fn an_import_is_not_believed() {
    let import = |bytes| NewRecord::outputs_only(bytes, &options(), &Settings::default());
    assert_eq!(reason(import(wrapper(&[]))), "the transaction has no outputs");
    let beyond = wrapper(&[MAX_IMPORTED_INDEX + 1]);
    assert_eq!(reason(import(beyond)), "an output number beyond those that can be imported");
    assert_eq!(reason(import(wrapper(&[1]).slice(1..))), "the outputs do not decode");
    let (txid, record) = import(wrapper(&[3, 1])).expect("it decodes");
    assert_eq!((txid, record.utxos.len()), (Txid::from_bytes([5; 32]), 4));
    let there: Vec<_> = record.utxos.iter().map(Option::is_some).collect();
    assert_eq!(there, [false, true, false, true]);
}

#[test]
fn a_coinbase_matures_after_its_height() {
    let coinbase = TxDraft::coinbase(1, 1).build();
    let height = |maturity, height| {
        let options = CreateOptions { height: Height::new(height), ..CreateOptions::default() };
        let settings = Settings { coinbase_maturity: maturity, ..Settings::default() };
        let new = NewRecord::new(&coinbase, &options, &settings).expect("it can be created");
        new.spending_height.map(Height::to_u32)
    };
    assert_eq!(height(100, 7), Some(107));
    assert_eq!(height(0, 0), None, "0 stands for not set");
    assert_eq!(height(100, u32::MAX), Some(u32::MAX));
}
