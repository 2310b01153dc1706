//! The whole set at one moment.
//!
//! A version is what readers hold: window, runs, sequence and tip of one step. It never changes,
//! and the panes and files that it needs live as long as it does, whatever the writer does
//! meanwhile.
//!
//! - [`Version::get`] looks keys up: in the window, and what is not there in the runs, with the
//!   births that the window knows to be deleted.
//! - [`Version::coins`] walks all coins in the order of their outpoints: a merge of the runs and of
//!   the window's entries, sorted.

use std::ops::Range;

use varve_io::BatchReader;
use varve_runs::{PageBuffers, Sequence, Source};
use varve_types::{BlockHash, Height, Outpoint};

use crate::codec::{CoinCodec, Cursor, Merge, Record, Run, Runs};
use crate::coins::Coins;
use crate::entry::Entry;
use crate::error::Error;
use crate::layers::{Layers, Noted};
use crate::packed::{PackedCoin, pack};
use crate::run_error::RunError;
use crate::search::Search;
use crate::sync::Arc;
use crate::window::WindowVersion;

/// Reads in flight at once, for runs that are read past the cache.
pub(crate) const READ_DEPTH: u16 = 256;

/// The set after one step.
#[derive(Clone, Debug)]
pub struct Version {
    sequence: Sequence,
    tip: Option<(Height, BlockHash)>,
    window: Arc<WindowVersion>,
    pub(crate) runs: Runs,
    noted: Noted,
}

impl Version {
    pub(crate) const fn new(
        sequence: Sequence,
        tip: Option<(Height, BlockHash)>,
        window: Arc<WindowVersion>,
        runs: Runs,
        noted: Noted,
    ) -> Self {
        Self { sequence, tip, window, runs, noted }
    }

    /// The step after which the set is in this state.
    #[must_use]
    pub const fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// The last block connected; `None` for the empty set.
    #[must_use]
    pub const fn tip(&self) -> Option<(Height, BlockHash)> {
        self.tip
    }

    /// The step that will connect the block at `height`, if only the blocks below it are connected
    /// before.
    pub(crate) fn step_of(&self, height: Height) -> Sequence {
        let tip = self.tip.map_or(0, |(tip, _)| tip.to_u32());
        let steps = height.to_u32().saturating_sub(tip).max(1);
        Sequence::new(self.sequence.to_u32().saturating_add(steps))
    }

    /// How many runs there are; a lookup that the window cannot answer probes all of them.
    #[must_use]
    pub fn run_count(&self) -> usize {
        self.runs.as_slice().len()
    }

    /// How the coins are laid down, and what was being done about it.
    #[must_use]
    pub fn layers(&self) -> Layers {
        Layers::new(&self.noted, &self.runs.infos())
    }

    /// The runs.
    #[cfg(feature = "test-suite")]
    #[must_use]
    pub const fn runs(&self) -> &Runs {
        &self.runs
    }

    /// The window.
    pub(crate) const fn window(&self) -> &Arc<WindowVersion> {
        &self.window
    }

    /// Looks up the coins of these outpoints, in any order.
    pub fn get(&self, keys: &[Outpoint]) -> Result<Coins, Error> {
        let mut search = Search::new(self, keys);
        let mut buffers = PageBuffers::default();
        if search.unread() > 0 {
            search.fetch(&mut BatchReader::new(READ_DEPTH), &mut buffers)?;
        }
        Ok(search.finish(&mut buffers)?)
    }

    /// The number of coins, without a walk over the runs: a living coin has one more add than
    /// deletes, wherever its entries are.
    #[must_use]
    pub fn coin_count(&self) -> u64 {
        let (mut adds, mut deletes) = (0_u64, 0_u64);
        for entry in self.window.entries() {
            *(if entry.coin.is_some() { &mut adds } else { &mut deletes }) += 1;
        }
        for run in self.runs.infos() {
            adds = adds.saturating_add(run.adds);
            deletes = deletes.saturating_add(run.deletes);
        }
        adds.saturating_sub(deletes)
    }

    /// All coins in the order of outpoints. Takes memory for the window's entries, packed.
    pub fn coins(&self) -> Result<CoinWalk, Error> {
        Ok(CoinWalk { merge: self.records()?, script: Vec::new() })
    }

    /// All coins in the order of their outpoints, still packed.
    pub(crate) fn records(&self) -> Result<Merge<PartSource>, Error> {
        let window = PartSource::Window(SortedEntries::new(&self.window));
        let runs = self
            .runs
            .as_slice()
            .iter()
            .map(|run| Run::cursor(run).map(|cursor| PartSource::Run(Box::new(cursor))));
        let parts = std::iter::once(Ok(window)).chain(runs);
        Ok(Merge::new(parts.collect::<Result<_, _>>()?, true)?)
    }
}

/// A walk over all coins.
#[derive(Debug)]
pub struct CoinWalk {
    merge: Merge<PartSource>,
    script: Vec<u8>,
}

impl CoinWalk {
    /// The next coin; `None` after the last. After an error the walk must not be continued.
    pub fn next_coin(&mut self) -> Result<Option<(Outpoint, varve_types::Coin<'_>)>, Error> {
        let Some(record) = self.merge.head() else { return Ok(None) };
        let (outpoint, birth) = (record.outpoint, record.birth);
        self.script.clear();
        let coin = record.coin.and_then(|coin| coin.unpack(&mut self.script).ok());
        let head = coin.ok_or(RunError::Count { outpoint, birth, count: -1 })?;
        self.merge.advance()?;
        Ok(Some((outpoint, head.with_script(&self.script))))
    }
}

/// A part of the set as a source of records.
#[derive(Debug)]
pub(crate) enum PartSource {
    Window(SortedEntries),
    Run(Box<Cursor>),
}

impl Source<CoinCodec> for PartSource {
    fn head(&self) -> Option<Record<'_>> {
        match self {
            Self::Window(entries) => entries.head(),
            Self::Run(cursor) => cursor.head(),
        }
    }

    fn advance(&mut self) -> Result<(), RunError> {
        match self {
            Self::Window(entries) => {
                entries.next += 1;
                Ok(())
            }
            Self::Run(cursor) => cursor.advance(),
        }
    }
}

/// The window's entries, sorted, without those that cancel.
#[derive(Debug)]
pub(crate) struct SortedEntries {
    entries: Vec<(Outpoint, Sequence, Option<Range<usize>>)>,
    packed: Vec<u8>,
    next: usize,
}

impl SortedEntries {
    fn new(window: &WindowVersion) -> Self {
        let mut sorted: Vec<Entry<'_>> = window.entries().collect();
        sorted.sort_unstable_by_key(Entry::key);
        let (mut entries, mut packed) = (Vec::with_capacity(sorted.len()), Vec::new());
        for same in sorted.chunk_by(|a, b| a.key() == b.key()) {
            let adds = same.iter().filter(|entry| entry.coin.is_some()).count();
            let deletes = same.len() - adds;
            debug_assert!(adds.abs_diff(deletes) <= 1, "adds and deletes of a birth take turns");
            let kept = match adds.cmp(&deletes) {
                std::cmp::Ordering::Equal => None,
                std::cmp::Ordering::Greater => same.iter().find(|entry| entry.coin.is_some()),
                std::cmp::Ordering::Less => same.iter().find(|entry| entry.coin.is_none()),
            };
            let Some(Entry { outpoint, birth, coin }) = kept else { continue };
            let coin = coin.map(|coin| {
                let start = packed.len();
                pack(&coin, &mut packed);
                start..packed.len()
            });
            entries.push((*outpoint, *birth, coin));
        }
        Self { entries, packed, next: 0 }
    }

    fn head(&self) -> Option<Record<'_>> {
        let (outpoint, birth, coin) = self.entries.get(self.next)?;
        let coin = match coin {
            Some(range) => Some(PackedCoin::new(self.packed.get(range.clone())?)),
            None => None,
        };
        Some(Record { outpoint: *outpoint, birth: *birth, coin })
    }
}
