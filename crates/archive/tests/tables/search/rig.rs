//! An owner of a search table, as the archive is one: it numbers transactions, keeps the blocks,
//! and knows what it has saved. What is in the table is compared with a set.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use varve_archive::TxLink;
use varve_archive::search::{
    Batch, Fingerprint, Order, Result, SearchOptions, SearchReader, SearchTable, Settled,
};
use varve_io::{Storage, StoreId};
use varve_runs::{Compaction, Secret, StoreKey};

pub(crate) const KEY: StoreKey = StoreKey { id: StoreId([3; 16]), secret: Secret::new([4; 16]) };

/// Small panes, small runs, two of them merged at a time.
pub(crate) const TINY: SearchOptions = SearchOptions {
    memory: 1 << 20,
    fan_in: 2,
    flush_rows: 60,
    flush_links: 40,
    compaction: Compaction::Inline,
};

/// Blocks below the tip that may still be replaced.
pub(crate) const WINDOW: usize = 4;

/// A number for a number, in no order.
pub(crate) const fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// The fingerprint of a key: good, or of one byte, as the feature `weak-hash` makes them.
pub(crate) fn fingerprint(key: u64, weak: bool) -> Fingerprint {
    let hash = mix(key);
    Fingerprint::new(if weak { (hash & 0xff) * 0x0101_0101_0101_0101 } else { hash })
}

/// A block of the owner.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) first: u64,
    pub(crate) count: u32,
    pub(crate) rows: Vec<(Fingerprint, u32)>,
    /// It is on a branch that lost.
    pub(crate) stale: bool,
}

/// The owner's side.
#[derive(Clone, Debug, Default)]
pub(crate) struct Owner {
    pub(crate) blocks: Vec<Block>,
    /// So many blocks are saved.
    pub(crate) saved: usize,
    weak: bool,
    seed: u64,
}

impl Owner {
    pub(crate) fn new(seed: u64, weak: bool) -> Self {
        Self { seed, weak, ..Self::default() }
    }

    pub(crate) fn end(&self) -> TxLink {
        self.end_of(self.blocks.len())
    }

    /// The first link behind the first `blocks` blocks.
    pub(crate) fn end_of(&self, blocks: usize) -> TxLink {
        let last = blocks.checked_sub(1).and_then(|last| self.blocks.get(last));
        TxLink::new(last.map_or(0, |block| block.first + u64::from(block.count)))
    }

    /// Makes a block. Some have no rows; some keys are in most blocks, some twice in one.
    pub(crate) fn make_block(&mut self) {
        self.seed += 1;
        let number = |salt: u64| mix(self.seed.wrapping_mul(1_000) + salt);
        let count = (number(0) % 12) as u32;
        let rows = if number(1) % 8 == 0 { 0 } else { number(2) % 40 };
        let row = |row: u64| {
            let many = number(100 + row);
            let key = if many % 3 == 0 { many % 5 } else { many % 400 };
            (fingerprint(key, self.weak), (number(200 + row) % u64::from(count.max(1))) as u32)
        };
        let rows = if count == 0 { Vec::new() } else { (0..rows).map(row).collect() };
        let (first, stale) = (self.end().to_u64(), number(3) % 6 == 0);
        self.blocks.push(Block { first, count, rows, stale });
    }

    /// Forgets what is not saved, as a crash does. Other blocks will get those links.
    pub(crate) fn crash(&mut self) {
        self.blocks.truncate(self.saved);
        self.seed += 1_000_000;
    }

    /// The rows of all blocks.
    pub(crate) fn rows(&self) -> BTreeSet<(Fingerprint, u64)> {
        let rows = |block: &Block| {
            let first = block.first;
            let row = move |(key, at): (Fingerprint, u32)| (key, first + u64::from(at));
            block.rows.clone().into_iter().map(row)
        };
        self.blocks.iter().flat_map(rows).collect()
    }

    /// Appends the blocks that the table does not have.
    pub(crate) fn catch_up(&self, table: &mut SearchTable) -> Result<()> {
        let end = table.end().to_u64();
        for block in self.blocks.iter().filter(|block| block.first >= end) {
            let batch = Batch::new(block.rows.iter().copied());
            table.tend()?;
            table.append(TxLink::new(block.first), block.count, batch)?;
        }
        assert_eq!(table.end(), self.end());
        Ok(())
    }

    /// Saves everything and promises it. `settled` are the blocks that were promised deep before.
    pub(crate) fn settle(&mut self, table: &mut SearchTable, settled: &mut usize) -> Result<()> {
        self.saved = self.blocks.len();
        let deep = self.saved.saturating_sub(WINDOW).max(*settled);
        let stale = self.blocks[*settled..deep].iter().filter(|block| block.stale);
        let range =
            |block: &Block| TxLink::new(block.first)..TxLink::new(block.first).plus(block.count);
        let stale: Vec<Range<TxLink>> = stale.map(range).collect();
        let (durable, deep_link) = (self.end(), self.end_of(deep));
        let owner = (deep as u64).to_le_bytes();
        *settled = deep;
        table.settle(&Settled { durable, deep: deep_link, stale: &stale, owner: &owner })
    }

    /// The blocks that were deep at the table's watermark.
    pub(crate) fn settled(table: &SearchTable) -> usize {
        let (_, owner) = table.watermark();
        owner.try_into().map_or(0, |bytes| u64::from_le_bytes(bytes) as usize)
    }

    pub(crate) fn open(
        &self,
        storage: Arc<dyn Storage>,
        options: SearchOptions,
    ) -> Result<SearchTable> {
        SearchTable::open(storage, KEY, options, self.end_of(self.saved))
    }

    /// Compares all answers with the set.
    pub(crate) fn check(&self, reader: &SearchReader) -> Result<()> {
        let rows = self.rows();
        let universe = if self.weak { 256 } else { 410 };
        let mut keys: Vec<Fingerprint> =
            (0..universe).map(|key| fingerprint(key, self.weak)).collect();
        keys.sort_unstable_by_key(|key| mix(u64::from(key.to_string().len() as u32)));
        keys.dedup();
        let mut wanted = Vec::new();
        for (place, key) in keys.iter().enumerate() {
            let of_key = rows.range((*key, 0)..=(*key, u64::MAX)).rev();
            wanted.extend(of_key.map(|(_, link)| (place, TxLink::new(*link))));
        }
        let mut found = Vec::new();
        reader.find(&keys, &mut found)?;
        assert!(found == wanted, "{} rows of {}", found.len(), wanted.len());
        for key in keys.iter().take(5) {
            let mut found = Vec::new();
            reader.find(&[*key], &mut found)?;
            let links: Vec<u64> = found.iter().map(|(_, link)| link.to_u64()).collect();
            let of_key = rows.range((*key, 0)..=(*key, u64::MAX));
            let wanted: Vec<u64> = of_key.map(|(_, link)| *link).collect();
            assert!(links.iter().rev().eq(&wanted));
            check_cursor(reader, *key, &wanted, 0..u64::MAX)?;
            let middle = self.end().to_u64() / 2;
            check_cursor(reader, *key, &wanted, middle..middle + middle / 2)?;
        }
        Ok(())
    }
}

/// Compares what cursors give with the links of a key.
pub(crate) fn check_cursor(
    reader: &SearchReader,
    key: Fingerprint,
    links: &[u64],
    range: Range<u64>,
) -> Result<()> {
    let wanted: Vec<u64> = links.iter().copied().filter(|link| range.contains(link)).collect();
    let range = TxLink::new(range.start)..TxLink::new(range.end);
    for order in [Order::Ascending, Order::Descending] {
        let mut cursor = reader.cursor(key, range.clone(), order)?;
        let mut found = Vec::new();
        while let Some(link) = cursor.next()? {
            found.push(link.to_u64());
        }
        if order == Order::Descending {
            found.reverse();
        }
        assert_eq!(found, wanted, "{order:?}");
        assert_eq!(cursor.next()?, None);
    }
    Ok(())
}
