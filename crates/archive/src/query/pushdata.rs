//! Who pushes an item, where pushdata is indexed.
//!
//! ```text
//! pushdata hash ──search──► rows that may push it ──confirmed?──► bytes ──► inputs and outputs
//! ```
//!
//! Rows are made for every block, once a transaction; which of them count is decided by the
//! confirmed chain at the moment of the question, so a reorganisation writes nothing. Rows in other
//! blocks are left out before their bytes are read. Which input or output it was, and under which
//! flags, the bytes say, under the rule by which the rows were made.

use varve_types::pushdata::{PushdataFlags, PushdataRule, PushedItem};
use varve_types::{PushdataHash, Tx};

use super::TxPlace;
use crate::backend::Tables;
use crate::error::{ArchiveError, Result};
use crate::link::{HeaderLink, TxLink};
use crate::source::BlockSource;
use crate::view::View;

/// Candidates that are looked up at once.
const CHUNK: usize = 256;

/// An input or output that pushes an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// The transaction, in a confirmed block.
    pub tx: TxPlace,
    /// Whether it is an input or an output, and whether the item is data.
    pub flags: PushdataFlags,
    /// The number of the input or output.
    pub index: u32,
}

/// A part of the matches of an item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushedPage {
    /// The matches, in the order in which their transactions were archived.
    pub rows: Vec<Pushed>,
    /// Where the next page begins; `None` when this is the last.
    pub next: Option<TxLink>,
}

impl<T: Tables, S: BlockSource> View<T, S> {
    /// The confirmed inputs and outputs that push an item with this hash, in transactions from
    /// `from` on. A page ends with the first transaction that brings it to `limit` matches.
    pub fn pushed(&self, hash: PushdataHash, from: TxLink, limit: usize) -> Result<PushedPage> {
        let rule = self.indexes().pushdata;
        let rule = rule.ok_or(ArchiveError::NoIndex { index: "pushdata" })?;
        if let Some(height) = self.base() {
            return Err(ArchiveError::BelowBase { height });
        }
        let (mut rows, mut next) = (Vec::new(), from);
        let mut links = Vec::with_capacity(CHUNK);
        loop {
            links.clear();
            self.tables.find_pushes(hash, next, CHUNK, &mut links)?;
            for link in &links {
                if rows.len() >= limit {
                    return Ok(PushedPage { rows, next: Some(*link) });
                }
                self.pushed_by(rule, hash, *link, &mut rows)?;
            }
            match links.last().filter(|_| links.len() >= CHUNK) {
                Some(last) => next = last.plus(1),
                None => return Ok(PushedPage { rows, next: None }),
            }
        }
    }

    /// An item that a block pushes and that no row leads to. `None` when all is in order, and when
    /// pushdata is not indexed.
    pub fn missing_push(&self, block: HeaderLink) -> Result<Option<PushdataHash>> {
        let Some(rule) = self.indexes().pushdata else { return Ok(None) };
        let Some(txs) = self.block_txs(block)? else { return Ok(None) };
        let pushed = self.with_block(block, |block| {
            let txs = (0..).zip(block.txs());
            let of_tx = |(position, tx): (u32, &Tx<'_>)| {
                pushes(rule, tx).map(move |(_, item)| (item.hash(), position)).collect::<Vec<_>>()
            };
            txs.flat_map(of_tx).collect::<Vec<_>>()
        })?;
        let mut found = Vec::with_capacity(1);
        for (hash, position) in pushed.unwrap_or_default() {
            let link = txs.start.plus(position);
            found.clear();
            self.tables.find_pushes(hash, link, 1, &mut found)?;
            if found.first() != Some(&link) {
                return Ok(Some(hash));
            }
        }
        Ok(None)
    }

    /// Adds the inputs and outputs of one row that push the item, if its block is confirmed.
    fn pushed_by(
        &self,
        rule: PushdataRule,
        hash: PushdataHash,
        link: TxLink,
        rows: &mut Vec<Pushed>,
    ) -> Result<()> {
        let Some(row) = self.row_place(link)?.filter(|row| row.confirmed) else { return Ok(()) };
        self.with_tx(row.block, &row.slice, |tx| {
            // Inputs first; an item that one of them pushes twice counts once.
            let is_output = |flags: PushdataFlags| flags.bits() & PushdataFlags::OUTPUT.bits() != 0;
            let same = pushes(rule, tx).filter(|(_, item)| item.hash() == hash);
            let mut found: Vec<(bool, u32, PushdataFlags)> =
                same.map(|(index, item)| (is_output(item.flags), index, item.flags)).collect();
            found.sort_unstable();
            found.dedup();
            if let Some(tx) = (!found.is_empty()).then(|| row.with(tx.txid())) {
                let row = |(_, index, flags)| Pushed { tx, flags, index };
                rows.extend(found.into_iter().map(row));
            }
        })
    }
}

/// The items that a transaction pushes, with the number of the input or output: inputs first. The
/// script of a coinbase is free text and is left out.
pub(crate) fn pushes<'a>(
    rule: PushdataRule,
    tx: &Tx<'a>,
) -> impl Iterator<Item = (u32, PushedItem<'a>)> {
    let inputs = (0..).zip(tx.inputs()).filter({
        let is_coinbase = tx.is_coinbase();
        move |_| !is_coinbase
    });
    let of_inputs = inputs
        .flat_map(move |(index, input)| rule.of_input(input.script).map(move |item| (index, item)));
    let of_outputs = (0..).zip(tx.outputs()).flat_map(move |(index, output)| {
        rule.of_output(output.script).map(move |item| (index, item))
    });
    of_inputs.chain(of_outputs)
}
