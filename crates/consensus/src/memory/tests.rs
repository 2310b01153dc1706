//! The oracle keeps the contract, and disconnecting is the inverse of connecting.

use proptest::prelude::*;
use varve_types::{Block, Format};

use super::*;
use crate::contract::draft::{BlockDraft, TxDraft};
use crate::contract::{SetUnderTest, check, check_bsv};

struct Oracle {
    set: MemorySet,
    undo: Vec<Undo>,
}

impl SetUnderTest for Oracle {
    fn connect(&mut self, block: &BlockAt<'_>) -> Result<(), PrevoutError> {
        self.undo.push(self.set.connect(block)?);
        Ok(())
    }

    fn disconnect(&mut self, block: &BlockAt<'_>) {
        let undo = self.undo.pop().unwrap();
        self.set.disconnect(block, undo);
    }

    fn view(&self, _block: &BlockAt<'_>) -> impl UnspentOutputsView<Error: std::fmt::Debug> {
        &self.set
    }
}

#[test]
fn keeps_the_contract() {
    let new = |network| Oracle { set: MemorySet::new(network), undo: Vec::new() };
    check(|| new(Network::Regtest));
    for height in [1, 9_999, 10_000] {
        check_bsv(new(Network::BsvRegtest), Height::new(height));
    }
}

#[test]
fn names_the_earlier_spender() {
    let mut set = MemorySet::new(Network::Regtest);
    let coinbase = TxDraft::coinbase(Height::new(1), 1);
    let outpoint = Outpoint::new(coinbase.txid(), 0);
    let (before, again) = (TxDraft::spending(&[outpoint], 1), TxDraft::spending(&[outpoint], 2));
    let mut result = Ok(Undo::default());
    for (height, tx) in (1..).zip([coinbase, before.clone(), again.clone()]) {
        let bytes = BlockDraft::new(vec![tx]).bytes();
        let block = Block::parse(&bytes, Format::Segwit).unwrap();
        result = set.connect(&BlockAt::new(Height::new(height), &block));
    }
    let (spender, spent_by) = (again.txid(), Some(before.txid()));
    let error = PrevoutError::Missing { outpoint, spender, spent_by };
    assert_eq!(result, Err(error));
    let text = error.to_string();
    assert!(text.contains(&outpoint.to_string()), "{text}");
    assert!(text.contains(&spender.to_string()), "{text}");
    assert!(text.contains(&before.txid().to_string()), "{text}");
}

/// A block in a random chain: for each transaction which of the known outputs it spends, and how
/// many it makes. `repeat` makes the coinbase that of the first block again.
#[derive(Clone, Debug)]
struct Plan {
    txs: Vec<(Vec<prop::sample::Index>, usize)>,
    repeat: bool,
}

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let picks = prop::collection::vec(any::<prop::sample::Index>(), 1..4);
    let txs = prop::collection::vec((picks, 0_usize..4), 0..5);
    let plan = (txs, prop::bool::weighted(0.1)).prop_map(|(txs, repeat)| Plan { txs, repeat });
    prop::collection::vec(plan, 1..8)
}

/// The block of a plan: every transaction spends outputs that are unspent at that point.
fn block(plan: &Plan, height: Height, unspent: &mut Vec<Outpoint>) -> Vec<u8> {
    let repeated = if plan.repeat { Height::new(1) } else { height };
    let mut txs = vec![TxDraft::coinbase(repeated, 50)];
    let add = |tx: &TxDraft, unspent: &mut Vec<Outpoint>| {
        let outpoints = (0..).zip(&tx.outputs).map(|(vout, _)| Outpoint::new(tx.txid(), vout));
        unspent.extend(outpoints);
        unspent.sort_unstable();
        unspent.dedup();
    };
    add(&txs[0], unspent);
    for (picks, outputs) in &plan.txs {
        let mut inputs = Vec::new();
        for pick in picks {
            if !unspent.is_empty() {
                inputs.push(unspent.remove(pick.index(unspent.len())));
            }
        }
        let tx = TxDraft::spending(&inputs, *outputs);
        if !inputs.is_empty() {
            add(&tx, unspent);
            txs.push(tx);
        }
    }
    BlockDraft::new(txs).bytes()
}

proptest! {
    #[test]
    fn disconnecting_is_the_inverse(plans in plans()) {
        let mut set = MemorySet::new(Network::Regtest);
        let mut unspent = Vec::new();
        let mut steps = Vec::new();
        for (height, plan) in (1..).map(Height::new).zip(&plans) {
            let bytes = block(plan, height, &mut unspent);
            let before = set.clone();
            let parsed = Block::parse(&bytes, Format::Segwit).unwrap();
            let undo = match set.connect(&BlockAt::new(height, &parsed)) {
                Ok(undo) => undo,
                // A repeated coinbase that the same block spends, and that was spent before.
                Err(error) => {
                    prop_assert_eq!(set.coins, before.coins);
                    prop_assert!(plan.repeat, "{}", error);
                    return Ok(());
                }
            };
            let keys: Vec<_> = set.coins.keys().copied().collect();
            prop_assert_eq!(&keys, &unspent);
            steps.push((height, bytes, undo, before));
        }
        while let Some((height, bytes, undo, before)) = steps.pop() {
            let parsed = Block::parse(&bytes, Format::Segwit).unwrap();
            set.disconnect(&BlockAt::new(height, &parsed), undo);
            prop_assert_eq!(&set.coins, &before.coins);
        }
        prop_assert!(set.is_empty());
    }
}
