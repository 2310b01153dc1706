//! A missing prevout names the transaction that spent it before.

use varve_consensus::contract::draft::{BlockDraft, TxDraft};
use varve_consensus::{BlockAt, CheckError, PrevoutError, UnspentOutputsView as _};
use varve_testdata::Random;
use varve_types::{Block, Height, Network, Outpoint};
use varve_utxo::{Error, Options};

use crate::twin::{Twin, small};

/// Appends a block of these transactions.
fn append(twin: &mut Twin, txs: Vec<TxDraft>) -> Result<(), Error> {
    let bytes = draft(twin, txs);
    twin.append(&bytes)
}

fn draft(twin: &Twin, txs: Vec<TxDraft>) -> Vec<u8> {
    let coinbase = TxDraft::coinbase(Height::new(1_000 + twin.height()), 1);
    let txs = [coinbase].into_iter().chain(txs).collect();
    BlockDraft { previous: twin.tip_hash(), ..BlockDraft::new(txs) }.bytes()
}

#[test]
fn both_transactions_are_named() {
    for options in [small(), Options { memory: 0, ..small() }] {
        let mut twin = Twin::new(1, options);
        let coinbase = TxDraft::coinbase(Height::new(77), 5);
        append(&mut twin, vec![coinbase.clone()]).unwrap();
        let outpoint = Outpoint::new(coinbase.txid(), 0);
        let other = Outpoint::new(TxDraft::coinbase(Height::new(1_001), 1).txid(), 0);
        // Two spenders in one block, so that the right one has to be found.
        let (first, second) = (TxDraft::spending(&[other], 2), TxDraft::spending(&[outpoint], 3));
        append(&mut twin, vec![first, second.clone()]).unwrap();
        let mut chance = Random::new(1);
        (0..20).for_each(|_| twin.append_draft(&mut chance).unwrap());
        twin.reopen(None);
        let thief = TxDraft::spending(&[outpoint], 1);
        let bytes = draft(&twin, vec![thief.clone()]);
        let error = twin.append(&bytes).unwrap_err();
        let (spender, spent_by) = (thief.txid(), second.txid());
        let expected = PrevoutError::Missing { outpoint, spender, spent_by: Some(spent_by) };
        assert!(matches!(&error, Error::Prevout(reason) if *reason == expected), "{error}");
        let sentence = format!(
            "the block cannot be connected: {spender} spends {outpoint}, which {spent_by} has \
             spent before; refuse it"
        );
        assert_eq!(error.to_string(), sentence);
        // The view gives the same reason.
        let height = Height::new(twin.height());
        let block = Block::parse(&bytes, Network::Regtest.format()).unwrap();
        let block = BlockAt::new(height, &block);
        let refused = twin.database().view(&block).unwrap().query_prevouts_unspent(&block);
        assert!(matches!(refused, Err(CheckError::Invalid(reason)) if reason == expected));
    }
}

/// On another branch nobody has spent it.
#[test]
fn a_spender_of_another_branch_is_not_named() {
    let mut twin = Twin::new(1, small());
    let coinbase = TxDraft::coinbase(Height::new(77), 5);
    append(&mut twin, vec![coinbase.clone()]).unwrap();
    let outpoint = Outpoint::new(coinbase.txid(), 0);
    append(&mut twin, vec![TxDraft::spending(&[outpoint], 3)]).unwrap();
    twin.rewind().unwrap();
    twin.rewind().unwrap();
    let thief = TxDraft::spending(&[outpoint], 1);
    let error = append(&mut twin, vec![thief.clone()]).unwrap_err();
    let expected = PrevoutError::Missing { outpoint, spender: thief.txid(), spent_by: None };
    assert!(matches!(&error, Error::Prevout(reason) if *reason == expected), "{error}");
}
