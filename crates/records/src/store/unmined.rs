//! Transactions that are in no block of the longest chain.

use std::collections::HashMap;

use varve_types::{Amount, Height, Outpoint, Txid};

use super::{Result, Store};
use crate::engine::{Cursor, Scan};
use crate::fields::Fields;
use crate::record::{BlockRef, Record};

/// Records that are read together.
const PAGE: usize = 1_000;

/// A transaction that waits for a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnminedTx {
    /// The transaction.
    pub txid: Txid,
    /// Its fee.
    pub fee: Amount,
    /// The length of its standard form.
    pub size: u64,
    /// What it spends, in the order of its inputs.
    pub inputs: Vec<Outpoint>,
    /// When its record was created, in milliseconds.
    pub created_at: u64,
    /// The height since which it waits.
    pub unmined_since: Height,
    /// Blocks of other branches that have it.
    pub blocks: Vec<BlockRef>,
    /// Whether its outputs cannot be spent yet.
    pub locked: bool,
    /// Whether it is a coinbase, which can be in no other block.
    pub is_coinbase: bool,
}

/// Walks over unmined transactions, conflicting ones left out, in an order of the engine's.
#[derive(Debug)]
pub struct Unmined<'a> {
    store: &'a Store,
    cursor: Option<Cursor>,
    page: std::vec::IntoIter<UnminedTx>,
    done: bool,
}

impl Store {
    /// All transactions that wait for a block.
    #[must_use]
    pub fn unmined(&self) -> Unmined<'_> {
        Unmined { store: self, cursor: None, page: Vec::new().into_iter(), done: false }
    }

    /// The transactions that wait since this height or longer.
    pub fn query_old_unmined(&self, cutoff: Height) -> Result<Vec<Txid>> {
        let mut found = Vec::new();
        self.scan(Scan::UnminedSince(cutoff), |txids| {
            found.extend_from_slice(txids);
            Ok(())
        })?;
        Ok(found)
    }

    /// All conflicting transactions.
    pub fn conflicting(&self) -> Result<Vec<Txid>> {
        let mut found = Vec::new();
        self.scan(Scan::Conflicting, |txids| {
            found.extend_from_slice(txids);
            Ok(())
        })?;
        Ok(found)
    }
}

impl UnminedTx {
    /// Puts transactions in the order of their creation. Many are created in one millisecond; of
    /// those, parents come before their children.
    #[must_use]
    pub fn by_creation(mut found: Vec<Self>) -> Vec<Self> {
        found.sort_by_key(|tx| (tx.created_at, tx.txid));
        let places: HashMap<Txid, usize> =
            found.iter().enumerate().map(|(place, tx)| (tx.txid, place)).collect();
        let mut found: Vec<Option<Self>> = found.into_iter().map(Some).collect();
        let mut ordered = Vec::with_capacity(found.len());
        for place in 0..found.len() {
            // A transaction that was taken waits here until the parents before it are in order.
            let mut waiting = Vec::new();
            waiting.extend(found.get_mut(place).and_then(Option::take).map(|tx| (0, tx)));
            while let Some((input, tx)) = waiting.last_mut() {
                let Some(parent) = tx.inputs.get(*input) else {
                    ordered.extend(waiting.pop().map(|(_, tx)| tx));
                    continue;
                };
                *input += 1;
                let created_at = tx.created_at;
                let parent = places.get(&parent.txid).and_then(|place| found.get_mut(*place));
                let parent = parent.and_then(|tx| tx.take_if(|tx| tx.created_at == created_at));
                waiting.extend(parent.map(|tx| (0, tx)));
            }
        }
        ordered
    }
}

impl Unmined<'_> {
    fn next_page(&mut self) -> Result<()> {
        let engine = self.store.engine();
        let page = engine.scan(Scan::Unmined, self.cursor.take(), PAGE)?;
        let records = engine.read(&page.txids, Fields::INPOINTS)?;
        let found: Vec<UnminedTx> = records.into_iter().flatten().filter_map(unmined).collect();
        self.page = found.into_iter();
        self.cursor = page.next;
        self.done = self.cursor.is_none();
        Ok(())
    }
}

impl Iterator for Unmined<'_> {
    type Item = Result<UnminedTx>;

    fn next(&mut self) -> Option<Result<UnminedTx>> {
        loop {
            if let Some(tx) = self.page.next() {
                return Some(Ok(tx));
            }
            if self.done {
                return None;
            }
            if let Err(error) = self.next_page() {
                self.done = true;
                return Some(Err(error));
            }
        }
    }
}

fn unmined(record: Record) -> Option<UnminedTx> {
    let unmined_since = record.unmined_since.filter(|_| !record.conflicting)?;
    Some(UnminedTx {
        txid: record.txid,
        fee: record.fee,
        size: record.size,
        inputs: record.inputs,
        created_at: record.created_at,
        unmined_since,
        blocks: record.blocks,
        locked: record.locked,
        is_coinbase: record.is_coinbase,
    })
}
