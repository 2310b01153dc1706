//! Failures of the view, and blocks that only a careless caller would pass in. The rules themselves
//! are broken one by one in the tests on real data.

use std::convert::Infallible;

use varve_types::{Block, Format, Network};

use super::*;
use crate::ancestors::Ancestor;
use crate::contract::draft::{BlockDraft, TxDraft};
use crate::memory::{MemorySet, OwnedCoin};
use crate::view::Spend;

/// A set whose disk is broken in one place.
struct Broken(&'static str);

impl Broken {
    fn answer<T>(&self, place: &str, answer: T) -> Result<T, &'static str> {
        if self.0 == place { Err("page 7 has a wrong checksum") } else { Ok(answer) }
    }
}

impl UnspentOutputsView for Broken {
    type Error = &'static str;

    fn query_prevouts_unspent(
        &self,
        _block: &BlockAt<'_>,
    ) -> Result<(), CheckError<PrevoutError, &'static str>> {
        self.answer("query", ()).map_err(CheckError::View)
    }

    fn for_each_spend<'v, B, F>(
        &'v self,
        _block: &'v BlockAt<'v>,
        _each: F,
    ) -> Result<ControlFlow<B>, CheckError<PrevoutError, &'static str>>
    where
        F: FnMut(Spend<'v>) -> ControlFlow<B>,
    {
        self.answer("walk", ControlFlow::Continue(())).map_err(CheckError::View)
    }

    fn find_repeated_output(&self, _block: &BlockAt<'_>) -> Result<Option<Outpoint>, &'static str> {
        self.answer("repeated", None)
    }
}

fn check<V: UnspentOutputsView>(
    txs: Vec<TxDraft>,
    view: &V,
) -> Result<Spending, CheckError<SpendError, V::Error>> {
    let bytes = BlockDraft::new(txs).bytes();
    let block = Block::parse(&bytes, Format::Segwit).unwrap();
    let block = BlockAt::new(Height::new(1), &block);
    let genesis = [Ancestor { hash: varve_types::BlockHash::ZERO, time: 0, bits: 0 }];
    check_spends(&Params::new(Network::Regtest), &block, &genesis[..], view)
}

#[test]
fn a_failure_of_the_view_is_no_verdict() {
    let coinbase = || vec![TxDraft::coinbase(Height::new(1), 0)];
    for place in ["query", "walk", "repeated"] {
        let error = check(coinbase(), &Broken(place)).unwrap_err();
        assert_eq!(error, CheckError::View("page 7 has a wrong checksum"), "{place}");
        assert!(error.to_string().contains("page 7"), "{error}");
    }
    assert!(check(coinbase(), &Broken("nowhere")).is_ok());
}

#[test]
#[should_panic(expected = "once, in block order")]
fn a_view_that_leaves_out_spends_is_a_bug() {
    let spend = TxDraft::spending(&[Outpoint::NULL, Outpoint::new(Txid::ZERO, 0)], 1);
    let _ = check(vec![TxDraft::coinbase(Height::new(1), 0), spend], &Broken("nowhere"));
}

#[test]
fn blocks_that_have_no_right_form_do_not_panic() {
    let set = MemorySet::new(Network::Regtest);
    let nothing = Spending { fees: Amount::ZERO, sigop_cost: 0, inputs: 0 };
    assert_eq!(check(vec![], &set), Ok(nothing));
    let coinbase = TxDraft::coinbase(Height::new(1), 1);
    assert!(check(vec![coinbase.clone(), coinbase.clone(), coinbase.clone()], &set).is_ok());
    // Two outputs whose sum overflows.
    let mut rich = TxDraft::spending(&[], 2);
    rich.outputs.iter_mut().for_each(|output| output.value = u64::MAX);
    let verdict = |txs| match check(txs, &set) {
        Err(CheckError::<_, Infallible>::Invalid(error)) => error.reject_reason().unwrap(),
        other => panic!("{other:?}"),
    };
    let mut spend = rich.clone();
    spend.inputs = TxDraft::spending(&[Outpoint::new(coinbase.txid(), 0)], 1).inputs;
    let immature = "bad-txns-premature-spend-of-coinbase";
    assert_eq!(verdict(vec![coinbase.clone(), spend]), immature);
    let mut greedy = coinbase;
    greedy.outputs = rich.outputs;
    assert_eq!(verdict(vec![greedy]), "bad-cb-amount");
}

/// BSV counts what a spent script hash hides, for the block and for the transaction.
#[test]
fn hidden_operations_on_bsv() {
    let p2sh = [&[0xa9, 20][..], &[7; 20], &[0x87]].concat();
    let outpoints = [0, 1].map(|vout| Outpoint::new(Txid::ZERO, vout));
    let network = Network::BsvRegtest;
    let upgrade = network.genesis_upgrade().unwrap().to_u32();
    let verdict = |height: u32, txs: Vec<TxDraft>| {
        let mut set = MemorySet::new(network);
        for outpoint in outpoints {
            let (value, script) = (Amount::COIN, p2sh.clone());
            let coin = OwnedCoin { height: Height::new(1), coinbase: false, value, script };
            set.insert(outpoint, coin);
        }
        let coinbase = TxDraft::coinbase(Height::new(height), 0);
        let bytes = BlockDraft::new([vec![coinbase], txs].concat()).bytes();
        let block = Block::parse(&bytes, Format::Legacy).unwrap();
        let block = BlockAt::new(Height::new(height), &block);
        let time = 1_333_234_914;
        let header = Ancestor { hash: varve_types::BlockHash::ZERO, time, bits: 0 };
        let headers = vec![header; height as usize];
        let result = check_spends(&Params::new(network), &block, &headers, &set);
        result.err().map(|error| match error {
            CheckError::Invalid(error) => error.reject_reason().unwrap(),
            CheckError::View(never) => match never {},
        })
    };
    // 520 times 20 operations an input.
    let spend = |outpoints: &[Outpoint]| {
        let mut tx = TxDraft::spending(outpoints, 1);
        for input in &mut tx.inputs {
            input.script = [&[0x4d, 0x08, 0x02][..], &[0xae; 520]].concat();
        }
        tx
    };
    assert_eq!(verdict(2, vec![spend(&outpoints[..1])]), None);
    assert_eq!(verdict(2, vec![spend(&outpoints)]).unwrap(), "bad-txn-sigops");
    let each = outpoints.map(|outpoint| spend(&[outpoint])).to_vec();
    assert_eq!(verdict(2, each.clone()).unwrap(), "bad-blk-sigops");
    assert_eq!(verdict(upgrade, each), None);
    assert_eq!(verdict(upgrade, vec![spend(&outpoints)]), None);
}

#[test]
fn a_missing_header_is_no_verdict() {
    let error = SpendError::from(MissingAncestorError { height: Height::new(7) });
    assert_eq!(error.reject_reason(), None);
    assert!(error.to_string().contains("height 7"), "{error}");
}
