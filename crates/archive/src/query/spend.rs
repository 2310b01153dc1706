//! What an input spends, and who spends an output.
//!
//! ```text
//! get_prevout     input ── its point ──► txid ──search──► rows ── the one on the input's branch
//! get_spenders    point ──search──► candidate rows ── those whose bytes name the point
//! ```
//!
//! A spend row keeps a fingerprint of its point, so that it costs 16 bytes and no read when it is
//! written. The search gives candidates; the transaction's bytes decide, and tell which input it
//! is. When those bytes are pruned, so is the answer.

use std::collections::BTreeMap;

use varve_types::{DecodeError, Format, Height, Outpoint, Reader, Txid, compact_size};

use super::{Branch, Output, TxPlace, View};
use crate::backend::{Match, Tables};
use crate::error::{ArchiveError, Result};
use crate::link::{HeaderLink, TxLink};
use crate::source::BlockSource;

/// An input that spends some output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spender {
    /// The transaction.
    pub tx: TxPlace,
    /// The place of the input in it.
    pub vin: u32,
}

impl<T: Tables, S: BlockSource> View<T, S> {
    /// Every input that spends the output, on every branch and in every block, newest first.
    pub fn spenders(&self, point: Outpoint) -> Result<Vec<Spender>> {
        let mut spenders = self.spenders_of(&[point])?;
        Ok(spenders.pop().unwrap_or_default())
    }

    /// The spenders of each output. A transaction is read once, however many of them it spends.
    pub fn spenders_of(&self, points: &[Outpoint]) -> Result<Vec<Vec<Spender>>> {
        let mut found: Vec<Match> = Vec::new();
        self.tables.find_spenders(points, &mut found)?;
        found.dedup();
        let mut candidates = Vec::with_capacity(found.len());
        for (number, (index, link)) in found.iter().enumerate() {
            let Some(point) = points.get(*index) else {
                return Err(ArchiveError::Damaged { what: "an answer to no question" });
            };
            candidates.push(Candidate { tx: *link, point: *point, number });
        }
        candidates.sort_unstable_by_key(|candidate| (candidate.tx, candidate.point));
        let mut spending: Vec<Option<Spender>> = vec![None; found.len()];
        for of_tx in candidates.chunk_by(|one, next| one.tx == next.tx) {
            let Some(link) = of_tx.first().map(|candidate| candidate.tx) else { continue };
            let Some(tx) = self.place(link)? else { continue };
            let bytes = self.bytes(tx.block, &tx.stored, self.tx_range(&tx)?)?;
            let set = |number: usize, vin| {
                let spender = spending.get_mut(number).filter(|spender| spender.is_none());
                spender.map(|spender| *spender = Some(Spender { tx, vin })).is_some()
            };
            find_vins(bytes.as_ref(), self.network().format(), of_tx, set)
                .map_err(|source| ArchiveError::Decode { height: tx.height, source })?;
        }
        let mut spenders = vec![Vec::new(); points.len()];
        for ((index, _), spender) in found.iter().zip(spending) {
            if let Some(list) = spenders.get_mut(*index) {
                list.extend(spender);
            }
        }
        Ok(spenders)
    }

    /// The spenders of an output, each transaction once: its confirmed row where it has one, else
    /// its newest.
    pub fn get_spenders(&self, point: Outpoint) -> Result<Vec<Spender>> {
        let mut unique: BTreeMap<Txid, Spender> = BTreeMap::new();
        let mut order = Vec::new();
        for spender in self.spenders(point)? {
            let kept = unique.entry(spender.tx.txid).or_insert_with(|| {
                order.push(spender.tx.txid);
                spender
            });
            if spender.tx.confirmed && !kept.tx.confirmed {
                *kept = spender;
            }
        }
        Ok(order.iter().filter_map(|txid| unique.get(txid).copied()).collect())
    }

    /// The input of the confirmed chain that spends the output.
    pub fn confirmed_spender(&self, point: Outpoint) -> Result<Option<Spender>> {
        let spenders = self.spenders(point)?.into_iter();
        Ok(spenders.filter(|spender| spender.tx.confirmed).max_by_key(|spender| spender.tx.height))
    }

    /// The height at which the output was spent on the confirmed chain.
    pub fn spender_height(&self, point: Outpoint) -> Result<Option<Height>> {
        Ok(self.confirmed_spender(point)?.map(|spender| spender.tx.height))
    }

    /// The point that an input names; `None` when there is no such input.
    pub fn point(&self, tx: TxLink, vin: u32) -> Result<Option<Outpoint>> {
        Ok(self.points(tx)?.get(vin as usize).copied())
    }

    /// The points that the inputs of a transaction name, that of a coinbase being the null point.
    pub fn points(&self, tx: TxLink) -> Result<Vec<Outpoint>> {
        let Some(place) = self.place(tx)? else { return Ok(Vec::new()) };
        self.with_tx(&place, |tx| tx.inputs().map(|input| input.outpoint).collect())
    }

    /// The points that a block spends, in block order, without the null point of the coinbase.
    pub fn block_points(&self, link: HeaderLink) -> Result<Option<Vec<Outpoint>>> {
        self.with_block(link, |block| {
            let inputs = block.txs().iter().skip(1).flat_map(|tx| tx.inputs());
            inputs.map(|input| input.outpoint).collect()
        })
    }

    /// The output that an input spends, as it is on the input's branch; `None` for a coinbase and
    /// when the output is not on that branch.
    pub fn get_prevout(&self, tx: TxLink, vin: u32) -> Result<Option<Output>> {
        let Some(place) = self.place(tx)? else { return Ok(None) };
        let Some(point) = self.point(tx, vin)? else { return Ok(None) };
        let branch = self.branch(place.block)?;
        Ok(self.prevouts(&branch, &[point])?.pop().flatten())
    }

    /// The outputs that all inputs of a transaction spend, in the same way.
    pub fn tx_prevouts(&self, tx: TxLink) -> Result<Vec<Option<Output>>> {
        let Some(place) = self.place(tx)? else { return Ok(Vec::new()) };
        let branch = self.branch(place.block)?;
        self.prevouts(&branch, &self.points(tx)?)
    }

    /// The outputs that a block spends, in block order, with those it made itself.
    pub fn block_prevouts(&self, link: HeaderLink) -> Result<Option<Vec<Option<Output>>>> {
        let Some(points) = self.block_points(link)? else { return Ok(None) };
        let branch = self.branch(link)?;
        self.prevouts(&branch, &points).map(Some)
    }

    /// The outputs at these points, each from the highest block of the branch that holds it. (Only
    /// two transactions of mainnet are in two blocks of one chain.)
    pub(crate) fn prevouts(
        &self,
        branch: &Branch<'_, T>,
        points: &[Outpoint],
    ) -> Result<Vec<Option<Output>>> {
        let places = self.places_on(branch, points)?;
        let mut wanted = Vec::with_capacity(points.len());
        for (index, (point, place)) in points.iter().zip(places).enumerate() {
            match (place, self.base()) {
                (Some(place), _) => wanted.push((place, point.vout, index)),
                (None, Some(height)) if !point.is_null() => {
                    return Err(ArchiveError::BelowBase { height });
                }
                (None, _) => {}
            }
        }
        wanted.sort_unstable_by_key(|(place, vout, _)| (place.link, *vout));
        let mut outputs = vec![None; points.len()];
        for of_tx in wanted.chunk_by(|(one, ..), (next, ..)| one.link == next.link) {
            let Some((place, ..)) = of_tx.first() else { continue };
            self.with_tx(place, |tx| {
                let mut made = (0..).zip(tx.outputs()).peekable();
                for (_, vout, index) in of_tx {
                    while made.next_if(|(at, _)| at < vout).is_some() {}
                    let output = made.peek().filter(|(at, _)| at == vout);
                    let output = output.map(|(_, output)| Output::new(place, *vout, output));
                    if let Some(found) = outputs.get_mut(*index) {
                        *found = output;
                    }
                }
            })?;
        }
        Ok(outputs)
    }

    /// For each point the transaction that made it, from the highest block of the branch.
    pub(crate) fn places_on(
        &self,
        branch: &Branch<'_, T>,
        points: &[Outpoint],
    ) -> Result<Vec<Option<TxPlace>>> {
        let txids: Vec<_> = points.iter().map(|point| point.txid).collect();
        let mut found = Vec::with_capacity(points.len());
        self.tables.find_txs(&txids, &mut found)?;
        let mut places = vec![None; points.len()];
        for (index, link) in found {
            let Some(place) = self.place(link)? else { continue };
            let on_branch = branch.at(place.height) == Some(place.block);
            if let Some(best) = places.get_mut(index).filter(|_| on_branch)
                && best.is_none_or(|best: TxPlace| best.height < place.height)
            {
                *best = Some(place);
            }
        }
        Ok(places)
    }
}

/// A row that may spend a point.
struct Candidate {
    tx: TxLink,
    point: Outpoint,
    /// Its place in the answer of the search.
    number: usize,
}

/// Gives `set` the number of each candidate that a serialised transaction spends, and the input
/// that does; it says whether that is the first. The candidates are those of this transaction,
/// in the order of their points.
///
/// Reads no further than to the last of them, and neither outputs nor witnesses, which is most of
/// what a lookup would otherwise cost.
fn find_vins(
    bytes: &[u8],
    format: Format,
    candidates: &[Candidate],
    mut set: impl FnMut(usize, u32) -> bool,
) -> std::result::Result<(), DecodeError> {
    let mut reader = Reader::new(bytes);
    reader.take(size_of::<u32>() as u64, "a version")?;
    if format == Format::Segwit && reader.rest().starts_with(&[0, 1]) {
        reader.take(2, "marker and flag")?;
    }
    let count = compact_size::read(&mut reader, u32::MAX.into(), "inputs")?;
    let mut left = candidates.len();
    for vin in 0..u32::try_from(count).expect("limited above") {
        let point = Outpoint::from_bytes(reader.array("an outpoint")?);
        let first = candidates.partition_point(|candidate| candidate.point < point);
        let equal = candidates.get(first..).unwrap_or_default().iter();
        for candidate in equal.take_while(|candidate| candidate.point == point) {
            left -= usize::from(set(candidate.number, vin));
        }
        if left == 0 {
            return Ok(());
        }
        let script = compact_size::read(&mut reader, u64::MAX, "an input script")?;
        reader.take(script, "an input script")?;
        reader.take(size_of::<u32>() as u64, "a sequence")?;
    }
    Ok(())
}
