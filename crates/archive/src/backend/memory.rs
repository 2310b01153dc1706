//! The plainest back end: maps and vectors.
//!
//! It is the oracle that the others are compared with, so nothing in it is clever: whole keys, no
//! fingerprints, no links between rows. A reader and the writer share the tables under one lock.
//! [`MemoryDisk`] stands for the disk: a checkpoint copies everything to it, opening copies it
//! back.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

use varve_types::{BlockHash, Outpoint, PushdataHash, Txid};

use super::{
    Backend, BackendError, Chain, MakeRows, Mark, Match, Result, Saved, TableSize, Tables,
    Unindexed,
};
use crate::link::{Bounds, HeaderLink, TxLink};
use crate::row::{BlockKeys, BlockRow, BlockState, FilterRow, HeaderRow, NewBlock, TxRow, TxState};

/// Everything that is kept.
#[derive(Clone, Debug, Default)]
struct Rows {
    headers: Vec<HeaderRow>,
    by_hash: HashMap<BlockHash, HeaderLink>,
    blocks: BTreeMap<HeaderLink, BlockRow>,
    txs: Vec<TxRow>,
    by_txid: HashMap<Txid, Vec<TxLink>>,
    spenders: HashMap<Outpoint, Vec<TxLink>>,
    pushes: HashMap<PushdataHash, Vec<TxLink>>,
    filters: BTreeMap<HeaderLink, FilterRow>,
    tx_states: BTreeMap<TxLink, TxState>,
    saved: Saved,
}

/// What survives when a [`MemoryBackend`] is dropped: its last checkpoint.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk(Arc<Mutex<Rows>>);

impl MemoryDisk {
    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.0.lock().expect("nothing panics while it holds the lock")
    }
}

/// The tables in memory, as their writer sees them.
#[derive(Debug)]
pub struct MemoryBackend {
    tables: MemoryTables,
    disk: MemoryDisk,
}

/// The tables in memory, as a reader sees them.
#[derive(Clone, Debug)]
pub struct MemoryTables(Arc<RwLock<Rows>>);

impl MemoryBackend {
    /// Opens what the disk holds.
    #[must_use]
    pub fn open(disk: MemoryDisk) -> Self {
        let rows = disk.rows().clone();
        Self { tables: MemoryTables(Arc::new(RwLock::new(rows))), disk }
    }

    fn rows(&self) -> RwLockWriteGuard<'_, Rows> {
        self.tables.0.write().expect("nothing panics while it holds the lock")
    }
}

impl MemoryTables {
    fn rows(&self) -> RwLockReadGuard<'_, Rows> {
        self.0.read().expect("nothing panics while it holds the lock")
    }
}

/// Appends the rows under each key, newest first.
fn find<K: Eq + Hash>(map: &HashMap<K, Vec<TxLink>>, keys: &[K], out: &mut Vec<Match>) {
    for (index, key) in keys.iter().enumerate() {
        let links = map.get(key).into_iter().flatten();
        out.extend(links.rev().map(|link| (index, *link)));
    }
}

impl Tables for MemoryTables {
    fn headers(&self, links: &[HeaderLink], out: &mut Vec<HeaderRow>) -> Result<()> {
        let rows = self.rows();
        for link in links {
            let row = rows.headers.get(link.index());
            out.push(*row.ok_or_else(|| BackendError::dangling(link))?);
        }
        Ok(())
    }

    fn find_headers(&self, hashes: &[BlockHash], out: &mut Vec<Option<HeaderLink>>) -> Result<()> {
        let rows = self.rows();
        out.extend(hashes.iter().map(|hash| rows.by_hash.get(hash).copied()));
        Ok(())
    }

    fn blocks(&self, links: &[HeaderLink], out: &mut Vec<Option<BlockRow>>) -> Result<()> {
        let rows = self.rows();
        out.extend(links.iter().map(|link| rows.blocks.get(link).copied()));
        Ok(())
    }

    fn txs(&self, links: &[TxLink], out: &mut Vec<TxRow>) -> Result<()> {
        let rows = self.rows();
        for link in links {
            let index = usize::try_from(link.to_u64()).ok();
            let row = index.and_then(|index| rows.txs.get(index));
            out.push(*row.ok_or_else(|| BackendError::dangling(link))?);
        }
        Ok(())
    }

    fn find_txs(&self, txids: &[Txid], out: &mut Vec<Match>) -> Result<()> {
        find(&self.rows().by_txid, txids, out);
        Ok(())
    }

    fn find_spenders(&self, points: &[Outpoint], out: &mut Vec<Match>) -> Result<()> {
        find(&self.rows().spenders, points, out);
        Ok(())
    }

    fn find_pushes(
        &self,
        hash: PushdataHash,
        from: TxLink,
        limit: usize,
        out: &mut Vec<TxLink>,
    ) -> Result<()> {
        let rows = self.rows();
        let links = rows.pushes.get(&hash).into_iter().flatten();
        out.extend(links.filter(|link| **link >= from).take(limit));
        Ok(())
    }

    fn filters(&self, links: &[HeaderLink], out: &mut Vec<Option<FilterRow>>) -> Result<()> {
        let rows = self.rows();
        out.extend(links.iter().map(|link| rows.filters.get(link).cloned()));
        Ok(())
    }

    fn tx_states(&self, links: &[TxLink], out: &mut Vec<Option<TxState>>) -> Result<()> {
        let rows = self.rows();
        out.extend(links.iter().map(|link| rows.tx_states.get(link).copied()));
        Ok(())
    }
}

/// The keys of a block, as they are.
#[derive(Clone, Debug)]
pub struct MemoryRows {
    txids: Vec<Txid>,
    spends: Vec<(Outpoint, u32)>,
    pushes: Vec<(PushdataHash, u32)>,
}

/// Copies the keys of blocks.
#[derive(Clone, Copy, Debug)]
pub struct MemoryRowMaker;

impl MakeRows for MemoryRowMaker {
    type Rows = MemoryRows;

    fn rows(&self, keys: &BlockKeys<'_>) -> MemoryRows {
        let (txids, spends) = (keys.txids.to_vec(), keys.spends.to_vec());
        MemoryRows { txids, spends, pushes: keys.pushes.to_vec() }
    }
}

impl Backend for MemoryBackend {
    type Tables = MemoryTables;
    type Maker = MemoryRowMaker;

    const ADDS_PUSHDATA: bool = false;

    fn maker(&self) -> MemoryRowMaker {
        MemoryRowMaker
    }

    /// A checkpoint has everything.
    fn unindexed(&self, _: usize) -> Result<Unindexed> {
        Ok(Unindexed::default())
    }

    fn index_block(&mut self, _: MemoryRows) -> Result<()> {
        Ok(())
    }

    fn tables(&self) -> MemoryTables {
        self.tables.clone()
    }

    /// Nothing is on disk.
    fn verify(&self) -> Result<()> {
        Ok(())
    }

    fn saved(&self) -> Result<Saved> {
        Ok(self.tables.rows().saved.clone())
    }

    fn bounds(&self) -> Bounds {
        self.tables.rows().saved.bounds
    }

    fn append_headers(&mut self, new: &[HeaderRow]) -> Result<HeaderLink> {
        let mut rows = self.rows();
        let first = rows.saved.bounds.headers;
        for (number, row) in (first..).zip(new) {
            rows.by_hash.insert(row.hash, HeaderLink::new(number));
            rows.headers.push(*row);
            rows.saved.bounds.headers = number + 1;
        }
        Ok(HeaderLink::new(first))
    }

    fn append_block(&mut self, block: &NewBlock<'_>, new: MemoryRows) -> Result<BlockRow> {
        let mut rows = self.rows();
        let first = TxLink::new(rows.saved.bounds.txs);
        rows.txs.extend(block.tx_rows());
        for (number, txid) in (0..).zip(new.txids) {
            rows.by_txid.entry(txid).or_default().push(first.plus(number));
        }
        for (point, position) in new.spends {
            rows.spenders.entry(point).or_default().push(first.plus(position));
        }
        for (hash, position) in new.pushes {
            rows.pushes.entry(hash).or_default().push(first.plus(position));
        }
        let row = block.row(first);
        rows.blocks.insert(block.header, row);
        rows.saved.bounds.txs += u64::from(row.tx_count);
        Ok(row)
    }

    fn set_chain(&mut self, chain: Chain, keep: u32, links: &[HeaderLink]) -> Result<()> {
        let mut rows = self.rows();
        let heights = match chain {
            Chain::Candidate => &mut rows.saved.candidate,
            Chain::Confirmed => &mut rows.saved.confirmed,
        };
        heights.truncate(keep as usize);
        heights.extend_from_slice(links);
        Ok(())
    }

    fn set_block_states(&mut self, states: &[(HeaderLink, BlockState)]) -> Result<()> {
        let mut rows = self.rows();
        for (link, state) in states {
            let known = &mut rows.saved.states;
            known.resize(known.len().max(link.index() + 1), BlockState::Unknown);
            if let Some(place) = known.get_mut(link.index()) {
                *place = *state;
            }
        }
        Ok(())
    }

    fn set_tx_states(&mut self, states: &[(TxLink, TxState)]) -> Result<()> {
        self.rows().tx_states.extend(states.iter().copied());
        Ok(())
    }

    fn set_filters(&mut self, filters: &[(HeaderLink, FilterRow)]) -> Result<()> {
        self.rows().filters.extend(filters.iter().cloned());
        Ok(())
    }

    fn checkpoint(&mut self, mark: &Mark) -> Result<()> {
        let mut rows = self.rows();
        rows.saved.mark = Some(*mark);
        *self.disk.rows() = rows.clone();
        Ok(())
    }

    fn rest(&mut self, mark: &Mark) -> Result<()> {
        self.checkpoint(mark)
    }

    fn sizes(&self) -> Result<Vec<TableSize>> {
        let rows = self.tables.rows();
        let table = |name, rows: usize, width: usize| TableSize {
            name,
            rows: rows as u64,
            body: (rows * width) as u64,
            head: 0,
            buckets: 0,
        };
        let spends: usize = rows.spenders.values().map(Vec::len).sum();
        let pushes: usize = rows.pushes.values().map(Vec::len).sum();
        Ok(vec![
            table("header", rows.headers.len(), size_of::<HeaderRow>()),
            table("block", rows.blocks.len(), size_of::<BlockRow>()),
            table("tx", rows.txs.len(), size_of::<(Txid, TxRow)>()),
            table("spend", spends, size_of::<(Outpoint, TxLink)>()),
            table("pushdata", pushes, size_of::<(PushdataHash, TxLink)>()),
            table("filter", rows.filters.len(), size_of::<FilterRow>()),
            table("tx_state", rows.tx_states.len(), size_of::<TxState>()),
        ])
    }
}

#[cfg(all(test, feature = "test-suite"))]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_contract() {
        crate::contract::check(MemoryDisk::default);
    }
}
