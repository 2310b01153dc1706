//! Flushing: rows that may leave the memory are written, in order, to new runs.

use std::ops::Range;
use std::sync::Arc;

use varve_io::Storage;
use varve_runs::{
    Buffers, Merge, NewRun, Run, RunError, RunInfo, RunNumber, RunWriter, Sequence, Source, Span,
    Stop, StoreKey, Width,
};

use super::SearchTable;
use super::load::{CHAIN, Saved};
use crate::layers::{Layers, Upkeep};
use crate::link::TxLink;
use crate::search::codec::Search;
use crate::search::error::{Result, SearchError};
use crate::search::pane::Pane;
use crate::search::row::Row;
use crate::search::version::Version;

/// A flush under way.
#[derive(Debug)]
pub(crate) struct Flushing {
    /// Rows with links below go.
    limit: TxLink,
    owner: Vec<u8>,
    /// How many of the promised stale ranges the flush uses.
    stale: usize,
    chain: RunNumber,
    side: RunNumber,
}

impl Flushing {
    /// The files that are being written.
    pub(super) fn numbers(&self) -> [RunNumber; 2] {
        [self.chain, self.side]
    }
}

/// The runs that a flush wrote.
#[derive(Debug)]
pub(crate) struct Flushed {
    /// Rows of the confirmed chain; `None` when there were none.
    chain: Option<Run<Search>>,
    /// Rows of stale branches.
    side: Option<Run<Search>>,
}

impl Upkeep for SearchTable {
    type Codec = Search;
    type Flushing = Flushing;
    type Flushed = Flushed;

    fn layers(&mut self) -> &mut Layers<Search, Flushing, Flushed> {
        &mut self.layers
    }

    fn start_flush(&mut self) {
        if !self.layers.flush.is_free() {
            return;
        }
        let Some(limit) = self.flush_limit() else { return };
        let (chain, side) = (self.layers.next_number(), self.layers.next_number());
        let panes = self.young.freeze(limit);
        let stale = self.settled.stale.clone();
        let owner = self.settled.owner.clone();
        let flushing = Flushing { limit, owner, stale: stale.len(), chain, side };
        let rows = panes.iter().map(|pane| pane.len() as u64).sum();
        let job = FlushJob {
            stop: self.layers.stop().clone(),
            storage: Arc::clone(&self.layers.storage),
            key: *self.layers.runs.key(),
            buffers: self.layers.budget().buffers(),
            filter: self.layers.policy().flush_filter(rows, &self.layers.infos()),
            step: self.step,
            limit,
            stale,
            rows,
            chain,
            side,
        };
        self.layers.start_flush(flushing, move || job.run(panes));
    }

    /// The manifest names the runs of the flush, and the rows leave the panes.
    fn take_flush(&mut self, wait: bool) -> Result<()> {
        let Some((flushing, flushed)) = self.layers.flush.take(wait) else { return Ok(()) };
        let before = self.layers.runs.clone();
        let taken = flushed.and_then(|flushed| self.name_flushed(&flushing, flushed));
        if let Err(error) = taken {
            // The rows are still in the panes; a later sweep removes the files.
            self.layers.runs = before;
            self.young.thaw();
            return Err(error);
        }
        self.step += 1;
        self.settled.stale.drain(..flushing.stale);
        self.young.remove_flushed(flushing.limit);
        self.publish();
        self.sweep()
    }

    fn publish(&self) {
        let (panes, runs) = (self.young.panes().into(), self.layers.runs.clone());
        self.shared.version.store(Arc::new(Version { panes, runs, end: self.end }));
    }

    fn is_stopped(error: &SearchError) -> bool {
        error.is_stopped()
    }
}

impl SearchTable {
    /// Up to which link rows are to be flushed now.
    fn flush_limit(&self) -> Option<TxLink> {
        let (watermark, index) = (self.saved.watermark, self.layers.runs.memory());
        let budget = self.layers.budget();
        let most = budget.flush_rows(index).min(self.options.flush_rows);
        let deep = self.settled.deep;
        let links = deep.to_u64().saturating_sub(watermark.to_u64());
        if links > 0 && (self.young.rows_below(deep) >= most || links >= self.options.flush_links) {
            return Some(deep);
        }
        let is_full = self.young.memory() >= budget.young(index) / 4 * 3;
        (is_full && self.settled.durable > watermark).then_some(self.settled.durable)
    }

    fn name_flushed(&mut self, flushing: &Flushing, flushed: Flushed) -> Result<()> {
        let Flushed { chain, side } = flushed;
        for run in chain.iter().chain(&side) {
            self.layers.count(run.info());
        }
        if let Some(run) = side {
            let place = self.layers.infos().len();
            self.layers.runs = self.layers.runs.with_replaced(place..place, Some(Arc::new(run)));
        }
        if let Some(run) = chain {
            self.layers.runs = self.layers.runs.with_youngest(Arc::new(run));
        }
        let (watermark, owner) = (flushing.limit, flushing.owner.clone());
        // Younger rows of the last rest stay on disk: their blocks may be pruned by now.
        let end = self.saved.end.max(watermark);
        let rested = self.rested.clone().filter(|_| end > watermark);
        self.save(Saved { watermark, end, owner }, rested)
    }
}

/// How many of the runs are of the confirmed chain.
pub(in crate::search) fn chain_len(infos: &[RunInfo]) -> usize {
    infos.iter().take_while(|info| info.span.first.to_u32() >= CHAIN).count()
}

/// The number of the next flush.
pub(super) fn next_step(infos: &[RunInfo]) -> u32 {
    let steps = infos.iter().map(|info| info.span.last.to_u32() % CHAIN);
    steps.max().map_or(1, |last| last + 1)
}

/// What a flush needs.
#[derive(Debug)]
struct FlushJob {
    stop: Stop,
    storage: Arc<dyn Storage>,
    key: StoreKey,
    buffers: Buffers,
    filter: Option<Width>,
    step: u32,
    limit: TxLink,
    stale: Vec<Range<u64>>,
    rows: u64,
    chain: RunNumber,
    side: RunNumber,
}

impl FlushJob {
    fn run(&self, panes: Vec<Arc<Pane>>) -> Result<Flushed> {
        let mut chain = self.writer(self.chain, CHAIN + self.step, self.filter);
        let mut side = self.writer(self.side, self.step, Some(Width::One));
        let mut rows = merge_panes(panes, self.limit)?;
        while let Some(row) = rows.head() {
            if self.stop.is_set() {
                return Err(RunError::Stopped.into());
            }
            let writer = if is_in(&self.stale, row.link) { &mut side } else { &mut chain };
            writer.push(&row)?;
            rows.advance()?;
        }
        Ok(Flushed { chain: chain.finish()?, side: side.finish()? })
    }

    fn writer(&self, number: RunNumber, step: u32, filter: Option<Width>) -> LazyWriter {
        let step = Sequence::new(step);
        let (span, chunk_keys) = (Span { first: step, last: step }, self.buffers.chunk_keys);
        let new = NewRun { number, span, expected: self.rows, filter, chunk_keys };
        LazyWriter::new(&self.storage, self.key, new)
    }
}

/// Whether a link is in one of the ranges, which ascend.
fn is_in(ranges: &[Range<u64>], link: TxLink) -> bool {
    let link = link.to_u64();
    let next = ranges.partition_point(|range| range.end <= link);
    ranges.get(next).is_some_and(|range| range.contains(&link))
}

/// A run that is created with its first row.
#[derive(Debug)]
pub(super) struct LazyWriter {
    storage: Arc<dyn Storage>,
    key: StoreKey,
    new: NewRun,
    writer: Option<RunWriter<Search>>,
}

impl LazyWriter {
    pub(super) fn new(storage: &Arc<dyn Storage>, key: StoreKey, new: NewRun) -> Self {
        Self { storage: Arc::clone(storage), key, new, writer: None }
    }

    #[inline]
    pub(super) fn push(&mut self, row: &Row) -> Result<()> {
        if let Some(writer) = &mut self.writer {
            return writer.push(row);
        }
        self.writer.insert(RunWriter::create(&self.storage, self.key, &self.new)?).push(row)
    }

    pub(super) fn finish(self) -> Result<Option<Run<Search>>> {
        self.writer.map(RunWriter::finish).transpose()
    }
}

/// The rows of panes with links below `limit`, in order.
pub(super) fn merge_panes(
    panes: Vec<Arc<Pane>>,
    limit: TxLink,
) -> Result<Merge<Search, PaneSource>> {
    Merge::new(panes.into_iter().map(|pane| PaneSource::new(pane, limit)).collect(), true)
}

/// The rows of a pane as a merge source.
#[derive(Debug)]
pub(super) struct PaneSource {
    pane: Arc<Pane>,
    place: usize,
    limit: TxLink,
    head: Option<Row>,
}

impl PaneSource {
    fn new(pane: Arc<Pane>, limit: TxLink) -> Self {
        let mut source = Self { pane, place: 0, limit, head: None };
        source.settle();
        source
    }

    /// Skips to a row with a link below the limit.
    #[inline]
    fn settle(&mut self) {
        self.head = self.pane.row(self.place);
        while self.head.is_some_and(|row| row.link >= self.limit) {
            self.place += 1;
            self.head = self.pane.row(self.place);
        }
    }
}

impl Source<Search> for PaneSource {
    #[inline]
    fn head(&self) -> Option<Row> {
        self.head
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        self.place += 1;
        self.settle();
        Ok(())
    }
}
