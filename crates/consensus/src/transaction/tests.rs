//! Each rule of a lone transaction broken once, on Bitcoin and on BSV.

use varve_types::{Network, Txid};

use super::*;
use crate::contract::draft::{OutputDraft, TxDraft};

const MAX_MONEY: u64 = Amount::MAX_MONEY.to_sat();

fn draft() -> TxDraft {
    TxDraft::spending(&[Outpoint::new(Txid::ZERO, 0)], 2)
}

fn reason_on(network: Network, height: u32, draft: &TxDraft) -> Option<Cow<'static, str>> {
    let bytes = draft.bytes();
    let tx = Tx::parse(&bytes, network.format()).unwrap();
    let result = check_transaction(&Params::new(network), Height::new(height), &tx);
    result.err().map(|error| error.reject_reason().unwrap())
}

fn reason(change: impl FnOnce(&mut TxDraft)) -> Option<Cow<'static, str>> {
    let mut draft = draft();
    change(&mut draft);
    reason_on(Network::Mainnet, 1, &draft)
}

#[test]
fn each_rule_has_its_reason() {
    let expect = |reason: &'static str| Some(Cow::Borrowed(reason));
    assert_eq!(reason(|_| {}), None);
    // Without inputs the bytes would read as a witness marker, except without outputs too.
    let empty = |tx: &mut TxDraft| {
        tx.inputs.clear();
        tx.outputs.clear();
    };
    assert_eq!(reason(empty), expect("bad-txns-vin-empty"));
    assert_eq!(reason(|tx| tx.outputs.clear()), expect("bad-txns-vout-empty"));
    assert_eq!(reason(|tx| tx.outputs[1].value = MAX_MONEY + 1), expect("bad-txns-vout-toolarge"));
    assert_eq!(reason(|tx| tx.outputs[1].value = MAX_MONEY - 1000), None);
    let total = expect("bad-txns-txouttotal-toolarge");
    assert_eq!(reason(|tx| tx.outputs[1].value = MAX_MONEY - 999), total);
    assert_eq!(reason(|tx| tx.outputs[1].value = 1 << 63), expect("bad-txns-vout-negative"));
    let twice = |tx: &mut TxDraft| tx.inputs.push(tx.inputs[0].clone());
    assert_eq!(reason(twice), expect("bad-txns-inputs-duplicate"));
    let null = |tx: &mut TxDraft| {
        tx.inputs.push(tx.inputs[0].clone());
        tx.inputs[1].outpoint = Outpoint::NULL;
    };
    assert_eq!(reason(null), expect("bad-txns-prevout-null"));
    let long = |length| move |tx: &mut TxDraft| tx.outputs[0].script = vec![0x51; length];
    // 1,000,000 bytes without witness are the most; all else takes 75 of them.
    let all_else = draft().bytes().len() as u64 - 1 + 4;
    let most = usize::try_from(1_000_000 - all_else).unwrap();
    assert_eq!(reason(long(most)), None);
    assert_eq!(reason(long(most + 1)), expect("bad-txns-oversize"));
    // A witness does not count.
    let witness = |tx: &mut TxDraft| {
        long(most)(tx);
        tx.inputs[0].witness = vec![vec![1; 70_000], vec![]];
    };
    assert_eq!(reason(witness), None);
}

/// Few inputs are compared with one another, many by a table.
#[test]
fn an_output_is_spent_twice_by_any_two_inputs() {
    for count in [2, 3, FEW_INPUTS, FEW_INPUTS + 1, 20] {
        let outpoints: Vec<_> = (0..).take(count).map(|n| Outpoint::new(Txid::ZERO, n)).collect();
        assert_eq!(reason(|tx| *tx = TxDraft::spending(&outpoints, 1)), None);
        for (first, second) in [(0, 1), (0, count - 1), (count - 2, count - 1)] {
            let mut outpoints = outpoints.clone();
            outpoints[second] = outpoints[first];
            let twice = reason(|tx| *tx = TxDraft::spending(&outpoints, 1));
            assert_eq!(twice.as_deref(), Some("bad-txns-inputs-duplicate"), "{count}: {first}");
        }
    }
}

#[test]
fn scripts_of_coinbases() {
    for (length, allowed) in [(1, false), (2, true), (100, true), (101, false)] {
        let mut coinbase = TxDraft::coinbase(Height::new(1), 1);
        coinbase.inputs[0].script = vec![0; length];
        let reason = reason_on(Network::Mainnet, 1, &coinbase);
        assert_eq!(reason, (!allowed).then_some("bad-cb-length".into()), "{length}");
    }
}

#[test]
fn rules_of_bsv() {
    let network = Network::Bsv;
    let upgrade = network.genesis_upgrade().unwrap().to_u32();
    let mut p2sh = draft();
    p2sh.outputs.push(OutputDraft::with_script([&[0xa9, 20][..], &[7; 20], &[0x87]].concat()));
    assert_eq!(reason_on(network, upgrade - 1, &p2sh), None);
    assert_eq!(reason_on(network, upgrade, &p2sh), Some("bad-txns-vout-p2sh".into()));
    assert_eq!(reason_on(Network::Mainnet, upgrade, &p2sh), None);

    let mut large = draft();
    large.outputs[0].script = vec![0x51; 1_000_000];
    assert_eq!(reason_on(network, upgrade - 1, &large), Some("bad-txns-oversize".into()));
    assert_eq!(reason_on(network, upgrade, &large), None);

    let mut busy = draft();
    busy.outputs[0].script = vec![0xac; 20_001];
    assert_eq!(reason_on(network, upgrade - 1, &busy), Some("bad-txn-sigops".into()));
    assert_eq!(reason_on(network, upgrade, &busy), None);
    busy.outputs[0].script = vec![0xac; 20_000];
    assert_eq!(reason_on(network, upgrade - 1, &busy), None);
}

proptest::proptest! {
    #[test]
    fn base_size_is_that_of_the_legacy_bytes(
        items in proptest::collection::vec(0_usize..600, 0..5),
    ) {
        let mut draft = draft();
        draft.inputs[0].witness = items.iter().map(|length| vec![1; *length]).collect();
        let bytes = draft.bytes();
        let tx = Tx::parse(&bytes, varve_types::Format::Segwit).unwrap();
        proptest::prop_assert_eq!(base_size(&tx), tx.to_legacy().len() as u64);
    }
}
