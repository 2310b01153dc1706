//! Failures of the view, and blocks that only a careless caller would pass. The rules themselves
//! are broken one by one in the tests on real data.

use std::convert::Infallible;

use varve_types::{Block, Format, Network};

use super::*;
use crate::ancestors::Ancestor;
use crate::contract::draft::{BlockDraft, TxDraft};
use crate::memory::MemorySet;
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

#[test]
fn a_missing_header_is_no_verdict() {
    let error = SpendError::from(MissingAncestorError { height: Height::new(7) });
    assert_eq!(error.reject_reason(), None);
    assert!(error.to_string().contains("height 7"), "{error}");
}
