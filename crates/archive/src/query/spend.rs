//! What an input spends, and who spends an output.
//!
//! ```text
//! tx_prevouts     input ── its point ──► txid ──search──► rows ── the one on the input's branch
//! get_spenders    point ──search──► candidate rows ── those whose bytes name the point
//! ```
//!
//! The search returns candidates; the transaction's bytes decide, and show which input it is. When
//! the bytes of a candidate are pruned, so is the answer, unless the candidate's block is
//! irrelevant.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use varve_types::{DecodeError, Format, Height, Outpoint, Reader, Txid, compact_size};

use super::candidate::Candidate;
use super::{Branch, Output, RowPlace};
use crate::backend::Tables;
use crate::error::{ArchiveError, Result};
use crate::link::{HeaderLink, TxLink};
use crate::source::BlockSource;
use crate::view::View;

/// An input that spends some output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spender {
    /// The transaction. [`View::txid`] hashes its bytes: most callers only ask whether and where.
    pub tx: RowPlace,
    /// The position of the input in it.
    pub vin: u32,
}

impl<T: Tables, S: BlockSource> View<T, S> {
    /// Every input that spends the output, on every branch and in every block, newest first.
    pub fn spenders(&self, point: Outpoint) -> Result<Vec<Spender>> {
        self.spenders_of_one(point, |_| true)
    }

    /// The spenders of each output. A transaction is read once, however many of them it spends.
    pub fn spenders_of(&self, points: &[Outpoint]) -> Result<Vec<Vec<Spender>>> {
        self.spenders_where(points, |_, _| true)
    }

    /// The input of one block that spends each of these outputs.
    pub fn spenders_in(
        &self,
        block: HeaderLink,
        points: &[Outpoint],
    ) -> Result<Vec<Option<Spender>>> {
        let spenders = self.spenders_where(points, |_, row| row.block == block)?;
        Ok(spenders.into_iter().map(|mut spenders| spenders.pop()).collect())
    }

    /// The input that spends the output in a block of the branch that is not below `from`.
    pub fn spender_on(
        &self,
        branch: &Branch<'_, T>,
        from: Height,
        point: Outpoint,
    ) -> Result<Option<Spender>> {
        let is_wanted = |row: &RowPlace| row.is_on(branch) && row.height >= from;
        Ok(self.spenders_of_one(point, is_wanted)?.into_iter().next())
    }

    /// The input of the confirmed chain that spends the output.
    pub fn confirmed_spender(&self, point: Outpoint) -> Result<Option<Spender>> {
        let spenders = self.spenders_of_one(point, |row| row.confirmed)?;
        Ok(spenders.into_iter().max_by_key(|spender| spender.tx.height))
    }

    /// The spenders of one output, newest first, among the rows that are wanted. The same as
    /// [`View::spenders_where`] for one key, without the lists that many keys take.
    fn spenders_of_one(
        &self,
        point: Outpoint,
        is_wanted: impl Fn(&RowPlace) -> bool,
    ) -> Result<Vec<Spender>> {
        let mut matches = Vec::new();
        self.tables.find_spenders(&[point], &mut matches)?;
        matches.dedup();
        let mut spenders = Vec::new();
        for (_, link) in matches {
            let Some(tx) = self.row_place(link)?.filter(&is_wanted) else { continue };
            let vin = self.with_spender_bytes(&tx, |bytes, format| {
                find_vin(bytes, format, &point.to_bytes())
            })?;
            spenders.extend(vin.map(|vin| Spender { tx, vin }));
        }
        Ok(spenders)
    }

    /// The spenders of each output, newest first, among the wanted rows. The bytes of
    /// other rows are not read, so it does not matter whether they are pruned.
    pub(crate) fn spenders_where(
        &self,
        points: &[Outpoint],
        is_wanted: impl Fn(usize, &RowPlace) -> bool,
    ) -> Result<Vec<Vec<Spender>>> {
        let mut matches = Vec::new();
        self.tables.find_spenders(points, &mut matches)?;
        let candidates = self.candidates(&matches, is_wanted)?;
        let mut spenders = vec![Vec::new(); points.len()];
        let (mut asked, mut spent) = (Vec::new(), Vec::new());
        for of_row in candidates.chunk_by(|one, next| one.row.link == next.row.link) {
            let Some(Candidate { row, .. }) = of_row.first() else { continue };
            asked.clear();
            let point = |key: usize| Some((*points.get(key)?, key));
            asked.extend(of_row.iter().filter_map(|candidate| point(candidate.key)));
            asked.sort_unstable();
            self.with_spender_bytes(row, |bytes, format| {
                find_vins(bytes, format, &asked, &mut spent)
            })?;
            for (key, vin) in spent.drain(..) {
                if let Some(spenders) = spenders.get_mut(key) {
                    spenders.push(Spender { tx: *row, vin });
                }
            }
        }
        spenders.iter_mut().for_each(|spenders| spenders.reverse());
        Ok(spenders)
    }

    fn with_spender_bytes<R>(
        &self,
        row: &RowPlace,
        read: impl FnOnce(&[u8], Format) -> std::result::Result<R, DecodeError>,
    ) -> Result<R> {
        let bytes = self.bytes(row.block, row.slice.number, row.slice.range())?;
        read(bytes.as_ref(), self.network().format())
            .map_err(|source| ArchiveError::Decode { height: row.height, source })
    }

    /// The spenders of an output, each transaction once: its confirmed row where it has one, else
    /// its newest.
    pub fn get_spenders(&self, point: Outpoint) -> Result<Vec<Spender>> {
        let spenders = self.spenders(point)?;
        if spenders.len() < 2 {
            return Ok(spenders);
        }
        let mut unique: BTreeMap<Txid, Spender> = BTreeMap::new();
        let mut order = Vec::new();
        for spender in spenders {
            let txid = self.txid(&spender.tx)?;
            let kept = unique.entry(txid).or_insert_with(|| {
                order.push(txid);
                spender
            });
            if spender.tx.confirmed && !kept.tx.confirmed {
                *kept = spender;
            }
        }
        Ok(order.iter().filter_map(|txid| unique.get(txid).copied()).collect())
    }

    /// The points that the inputs of a transaction name, that of a coinbase being the null point.
    fn points(&self, tx: TxLink) -> Result<Vec<Outpoint>> {
        self.with_row(tx, |_, tx| tx.inputs().map(|input| input.outpoint).collect())
    }

    /// The points that a block spends, in block order, without the null point of the coinbase.
    pub fn block_points(&self, link: HeaderLink) -> Result<Option<Vec<Outpoint>>> {
        self.with_block(link, |block| {
            let inputs = block.txs().iter().skip(1).flat_map(|tx| tx.inputs());
            inputs.map(|input| input.outpoint).collect()
        })
    }

    /// The outputs that all inputs of a transaction spend, in the same way.
    pub fn tx_prevouts(&self, tx: TxLink) -> Result<Vec<Option<Output>>> {
        let Some(row) = self.row_place(tx)? else { return Ok(Vec::new()) };
        let branch = self.branch(row.block)?;
        self.prevouts(&branch, &self.points(tx)?)
    }

    /// The outputs that a block spends, in block order, with those it made itself.
    pub fn block_prevouts(&self, link: HeaderLink) -> Result<Option<Vec<Option<Output>>>> {
        let Some(points) = self.block_points(link)? else { return Ok(None) };
        let branch = self.branch(link)?;
        self.prevouts(&branch, &points).map(Some)
    }
}

/// The first input of a serialised transaction that spends the point.
fn find_vin(
    bytes: &[u8],
    format: Format,
    point: &[u8; Outpoint::LEN],
) -> std::result::Result<Option<u32>, DecodeError> {
    walk_inputs(bytes, format, |vin, spent| {
        if spent == point { ControlFlow::Break(vin) } else { ControlFlow::Continue(()) }
    })
}

/// Adds to `spent` the keys of the points that a serialised transaction spends, with the input that
/// does. The points are in order; one that is asked for by several keys is there several times.
fn find_vins(
    bytes: &[u8],
    format: Format,
    asked: &[(Outpoint, usize)],
    spent: &mut Vec<(usize, u32)>,
) -> std::result::Result<(), DecodeError> {
    let all_found = walk_inputs(bytes, format, |vin, point| {
        let point = Outpoint::from_bytes(point);
        let first = asked.partition_point(|(asked, _)| *asked < point);
        let equal = asked.get(first..).unwrap_or_default().iter();
        spent.extend(equal.take_while(|(asked, _)| *asked == point).map(|(_, key)| (*key, vin)));
        if spent.len() < asked.len() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    all_found.map(|_| ())
}

/// Visits the inputs of a serialised transaction until `visit` breaks. Reads neither outputs nor
/// witnesses, which is most of what a false candidate would otherwise cost.
fn walk_inputs<B>(
    bytes: &[u8],
    format: Format,
    mut visit: impl FnMut(u32, &[u8; Outpoint::LEN]) -> ControlFlow<B>,
) -> std::result::Result<Option<B>, DecodeError> {
    let mut reader = Reader::new(bytes);
    reader.take(size_of::<u32>() as u64, "a version")?;
    if format == Format::Segwit && reader.rest().starts_with(&[0, 1]) {
        reader.take(2, "marker and flag")?;
    }
    let count = compact_size::read(&mut reader, u32::MAX.into(), "inputs")?;
    for vin in 0..u32::try_from(count).expect("limited above") {
        let point = reader.array("an outpoint")?;
        if let ControlFlow::Break(found) = visit(vin, point) {
            return Ok(Some(found));
        }
        let script = compact_size::read(&mut reader, u64::MAX, "an input script")?;
        reader.take(script, "an input script")?;
        reader.take(size_of::<u32>() as u64, "a sequence")?;
    }
    Ok(None)
}
