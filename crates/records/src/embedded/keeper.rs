//! Keeps the index on disk: checkpoints and merges, beside the store's work.
//!
//! **A checkpoint** takes shard after shard (`index`), writes what leaves memory to a run and what
//! stays to frames, then the manifest, and publishes the run. Writers and readers are held up for
//! as long as some thousand slots are copied, never for a disk.
//!
//! **A merge** replaces neighbouring runs by one. Which ones is a pure function of what the
//! manifest says about them: see [`choose`].
//!
//! Both may run at the same time, each in its lane (`maintain`). The one that ends first changes
//! the manifest first; files that it no longer names are removed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

use varve_io::{GlobalOffset, Storage};
use varve_runs::{
    Buffers, Choice, Manifest, MergeInto, NewRun, Run, RunError, RunInfo, RunNumber, RunWriter,
    Sequence, Span, Stop, Tiers, Width, merge_runs,
};

use super::checkpoint::{Checkpoint, IndexLog, MANIFEST};
use super::commit::{panicked, storage};
use super::index::{Index, Row, RowCodec, RowError, SLOT_LEN};
use super::key::SHARDS;
use crate::engine::EngineError;

/// Slots that are copied at once: the lock is held for some 50 µs.
const TOGETHER: usize = 8_192;

/// The most runs there should be: a lookup of what is not there asks the filter of each.
pub(super) const RUNS_MAX: usize = 10;
const TIERS: Tiers = Tiers { fan_in: 4, max_probed: RUNS_MAX };

/// Runs with fewer rows get fingerprints of two bytes: there are many of them, and all together
/// they are a small part.
const WIDE_BELOW: u64 = 1 << 20;

/// Places of a filter a row, in hundredths of a fingerprint.
const PLACES: u64 = 117;

/// What lanes share.
#[derive(Debug)]
pub(super) struct Keeper {
    storage: Arc<dyn Storage>,
    index: Arc<RwLock<Index>>,
    state: Mutex<State>,
    log: Mutex<IndexLog>,
    /// Recovery needs the log from here on.
    replay_from: AtomicU64,
    /// The log is known to be durable to here.
    durable: AtomicU64,
    /// Bytes for the filter of the largest run.
    filter_memory: u64,
    pub(super) stop: Stop,
}

/// What is on disk.
#[derive(Debug)]
pub(super) struct State {
    pub(super) manifest: Manifest,
    pub(super) checkpoint: Checkpoint,
}

/// Everything of a round but its place in the manifest.
struct Written {
    run: Option<Run<RowCodec>>,
    checkpoint: Checkpoint,
}

impl Keeper {
    pub(super) fn new(
        storage: Arc<dyn Storage>,
        index: Arc<RwLock<Index>>,
        state: State,
        log: IndexLog,
        filter_memory: u64,
    ) -> Self {
        let Checkpoint { replay_from, durable, .. } = state.checkpoint;
        Self {
            storage,
            index,
            state: Mutex::new(state),
            log: Mutex::new(log),
            replay_from: AtomicU64::new(replay_from.get()),
            durable: AtomicU64::new(durable.get()),
            filter_memory,
            stop: Stop::default(),
        }
    }

    /// Recovery needs the log from here on.
    pub(super) fn replay_from(&self) -> GlobalOffset {
        GlobalOffset::new(self.replay_from.load(Ordering::Acquire))
    }

    /// The log up to here was durable when the last checkpoint was made.
    pub(super) fn durable(&self) -> GlobalOffset {
        GlobalOffset::new(self.durable.load(Ordering::Acquire))
    }

    pub(super) fn index(&self) -> Result<RwLockReadGuard<'_, Index>, EngineError> {
        self.index.read().map_err(|_| panicked())
    }

    fn index_mut(&self) -> Result<RwLockWriteGuard<'_, Index>, EngineError> {
        self.index.write().map_err(|_| panicked())
    }

    fn state(&self) -> Result<MutexGuard<'_, State>, EngineError> {
        self.state.lock().map_err(|_| panicked())
    }

    /// Makes a checkpoint of the whole index.
    pub(super) fn checkpoint(&self) -> Result<(), EngineError> {
        let mut log = self.log.lock().map_err(|_| panicked())?;
        let written = self.write_round(&mut log);
        let installed = written.and_then(|written| self.install(written));
        for number in 0..SHARDS {
            let mut index = self.index_mut()?;
            if installed.is_ok() {
                index.drop_taken(number);
            } else {
                index.keep_taken(number);
            }
        }
        let Checkpoint { frames: (first, _), .. } = installed?;
        Ok(log.prune(first).map_err(RowError::from)?)
    }

    /// Writes the run and the frames of a round.
    fn write_round(&self, log: &mut IndexLog) -> Result<Written, EngineError> {
        let (number, round) = {
            let mut state = self.state()?;
            (take_number(&mut state.manifest), state.checkpoint.round + 1)
        };
        let mut rows = Rows { keeper: self, number, round, writer: None };
        let mut frames = log.begin(round);
        let (mut next, mut first, mut last) = (0, None, None);
        while next < SHARDS {
            if self.stop.is_set() {
                return Err(RowError::from(RunError::Stopped).into());
            }
            let mut taken = self.index_mut()?.take(next, TOGETHER);
            taken.rows.sort_unstable_by_key(|row| row.order());
            rows.push(&taken.rows)?;
            frames.push(&taken).map_err(RowError::from)?;
            next += taken.stays.len();
            first = first.or(Some(taken.moment));
            last = Some(taken.moment);
        }
        let run = rows.writer.map(RunWriter::finish).transpose()?;
        let frames = frames.finish().map_err(RowError::from)?;
        let (first, last) = (first.unwrap_or_default(), last.unwrap_or_default());
        let (replay_from, durable, group) = (first.end, last.end, last.group);
        Ok(Written { run, checkpoint: Checkpoint { round, frames, replay_from, durable, group } })
    }

    /// Names a round in the manifest, and publishes its run.
    fn install(&self, written: Written) -> Result<Checkpoint, EngineError> {
        let Written { run, checkpoint } = written;
        assert!(checkpoint.replay_from <= checkpoint.durable, "shards are taken in turn");
        let mut state = self.state()?;
        assert_eq!(checkpoint.round, state.checkpoint.round + 1, "one checkpoint at a time");
        let mut manifest = Manifest { owner: checkpoint.encode(), ..state.manifest.clone() };
        manifest.runs.splice(0..0, run.as_ref().map(Run::info));
        self.store(&manifest, run.as_ref())?;
        *state = State { manifest, checkpoint };
        let mut index = self.index_mut()?;
        let cold = index.cold().with_youngest(run.map(Arc::new));
        index.publish(cold);
        drop((index, state));
        self.replay_from.store(checkpoint.replay_from.get(), Ordering::Release);
        self.durable.store(checkpoint.durable.get(), Ordering::Release);
        Ok(checkpoint)
    }

    /// Replaces the manifest. When that fails, the new run goes, unless the manifest that names it
    /// is there all the same: a full disk must not become fuller by every attempt.
    fn store(&self, manifest: &Manifest, new: Option<&Run<RowCodec>>) -> Result<(), EngineError> {
        let Err(error) = manifest.store(&*self.storage, MANIFEST) else { return Ok(()) };
        if let Some(RunInfo { number, .. }) = new.map(Run::info) {
            let names = |found: Manifest| Ok(found.runs.iter().any(|run| run.number == number));
            if let Ok(Some(false)) = Manifest::load(&*self.storage, MANIFEST, names) {
                let _ = self.storage.remove(&number.file_name());
            }
        }
        Err(RowError::from(error).into())
    }

    /// Whether runs should be merged.
    pub(super) fn wants_merge(&self) -> Result<bool, EngineError> {
        Ok(choose(&self.index()?.cold().runs().infos()) != Choice::Nothing)
    }

    /// Merges runs, if some should be.
    pub(super) fn merge(&self) -> Result<(), EngineError> {
        let (number, runs) = {
            let mut state = self.state()?;
            let runs = self.index()?.cold().runs().clone();
            (take_number(&mut state.manifest), runs)
        };
        let infos = runs.infos();
        let Choice::Merge(range) = choose(&infos) else { return Ok(()) };
        let whole = range.end == infos.len();
        let chosen = runs.as_slice().get(range.clone()).unwrap_or_default();
        let rows = chosen.iter().map(|run| run.info()).map(|info| info.adds + info.deletes).sum();
        let filter = self.width(rows);
        let into = MergeInto { number, whole, filter, buffers: Buffers::SMALL };
        let merged = merge_runs(&self.stop, &self.storage, *runs.key(), chosen, &into)?;
        self.replace(infos.get(range).unwrap_or_default(), merged)
    }

    /// Puts a merge in place of its runs, which are neighbours still: only younger ones came.
    fn replace(&self, old: &[RunInfo], merged: Option<Run<RowCodec>>) -> Result<(), EngineError> {
        let mut state = self.state()?;
        let mut manifest = state.manifest.clone();
        let start = manifest.runs.iter().position(|run| old.first() == Some(run));
        let start = start.expect("runs are replaced by merges alone, one at a time");
        let range = start..start + old.len();
        manifest.runs.splice(range.clone(), merged.as_ref().map(Run::info));
        self.store(&manifest, merged.as_ref())?;
        state.manifest = manifest;
        let mut index = self.index_mut()?;
        let cold = index.cold().with_merged(range, merged.map(Arc::new));
        index.publish(cold);
        drop((index, state));
        for run in old {
            // A file that cannot be removed now is swept away when the store is opened.
            let _ = self.storage.remove(&run.number.file_name());
        }
        Ok(())
    }

    /// The filter of a run with this many rows. A lookup of a missing key, with which every
    /// creation begins, reads a page for a false positive: one in 65,536, in 256, in 16, or,
    /// without memory for a filter, always.
    fn width(&self, rows: u64) -> Option<Width> {
        let places = rows * PLACES / 100;
        match self.filter_memory {
            _ if rows < WIDE_BELOW => Some(Width::Two),
            memory if places <= memory => Some(Width::One),
            memory if places / 2 <= memory => Some(Width::Half),
            _ => None,
        }
    }
}

/// Rows on their way to a run, which is begun with the first.
struct Rows<'a> {
    keeper: &'a Keeper,
    number: RunNumber,
    round: u64,
    writer: Option<RunWriter<RowCodec>>,
}

impl Rows<'_> {
    fn push(&mut self, rows: &[Row]) -> Result<(), EngineError> {
        if rows.is_empty() {
            return Ok(());
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(self.begin()?),
        };
        rows.iter().try_for_each(|row| writer.push(row)).map_err(EngineError::from)
    }

    fn begin(&self) -> Result<RunWriter<RowCodec>, EngineError> {
        let step = u32::try_from(self.round).map(Sequence::new).unwrap_or(Sequence::MAX);
        let span = Span { first: step, last: step };
        let (key, expected) = {
            let index = self.keeper.index()?;
            (*index.cold().runs().key(), index.leaving() / SLOT_LEN as u64)
        };
        let filter = self.keeper.width(expected);
        let (number, chunk_keys) = (self.number, Buffers::SMALL.chunk_keys);
        let new = NewRun { number, span, expected, filter, chunk_keys };
        Ok(RunWriter::create(&self.keeper.storage, key, &new)?)
    }
}

fn take_number(manifest: &mut Manifest) -> RunNumber {
    let number = manifest.next;
    manifest.next.0 += 1;
    number
}

/// Which runs to merge, youngest first. When the younger runs delete a third of what the oldest
/// adds, all of them, so that the runs have at most half as many rows again as there are keys.
/// Otherwise neighbours that are alike.
fn choose(runs: &[RunInfo]) -> Choice {
    if let Some((oldest, younger)) = runs.split_last()
        && !younger.is_empty()
        && younger.iter().map(|run| run.deletes).sum::<u64>() * 3 >= oldest.adds
    {
        return Choice::Merge(0..runs.len());
    }
    TIERS.choose(runs)
}

impl From<RowError> for EngineError {
    fn from(error: RowError) -> Self {
        match error {
            RowError::Run(RunError::Storage(error)) => storage(error),
            error => Self::storage(error),
        }
    }
}

#[cfg(test)]
mod tests;
