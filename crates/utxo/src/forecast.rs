//! What the set will write in the long run, computed from counts alone.
//!
//! Measuring a hundred thousand blocks on top of the whole set for every change of a parameter
//! would take days. So the life of a set is simulated with counts instead of entries: panes become
//! runs, [`Tiers::choose_with_rewrites`] decides about merges, checkpoints write the window, blocks
//! write undo records, and the bytes of each are added up.
//!
//! **The chain.** A block of 1.5 MB has 2,800 transactions and makes 7,500 outputs. A coin outlives
//! n blocks with the chance (1 + n/1.4)^-0.3: a quarter outlives 144 blocks, a fifteenth 10,000, as
//! on mainnet. 170 million coins are there at the start, in one run.
//!
//! **The sizes** of entries are those of coins of the common kinds ([`ADD`] and the others); a test
//! compares them with files that are really written.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "coins are counted in fractions, and rounded down"
)]

use varve_runs::{Choice, RunInfo, RunNumber, Sequence, Span, Tiers};

use crate::manifest::Parameters;

/// Bytes of a coin in a run, with its share of directory and filter.
const ADD: f64 = 66.0;
/// Bytes of a delete in a run, with its share of directory and filter.
const DELETE: f64 = 41.0;
/// Bytes of a coin in a window file, and of a spent coin in an undo record.
const LISTED_ADD: f64 = 68.0;
/// Bytes of a delete in a window file.
const LISTED_DELETE: f64 = 37.0;
/// Bytes of a transaction in an undo record, beside those of its outputs, and of an output.
const CREATED_TX: f64 = 34.0;
const CREATED_OUTPUT: f64 = 1.0;

const BLOCK_BYTES: f64 = 1_500_000.0;
const BLOCK_TXS: f64 = 2_800.0;
const BLOCK_OUTPUTS: f64 = 7_500.0;
/// Coins at the start.
const COINS: f64 = 170e6;

/// What the set writes for every byte of block data, part by part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Forecast {
    /// Runs made of panes.
    pub flushed: f64,
    /// Runs made of runs.
    pub merged: f64,
    /// Window files of checkpoints.
    pub windows: f64,
    /// Undo records.
    pub undo: f64,
    /// The most runs that there were at once.
    pub most_runs: usize,
    /// How often the oldest run was rewritten.
    pub oldest_rewrites: usize,
}

impl Forecast {
    /// Simulates `blocks` blocks on top of 170 million coins that are `age` blocks old on average.
    #[must_use]
    pub fn of(parameters: &Parameters, blocks: u32, age: u32) -> Self {
        let mut life = Life::new(parameters, f64::from(age));
        let interval = parameters.flush_interval.max(1);
        (1..=(blocks / interval) as usize).for_each(|flush| life.interval(flush));
        let data = f64::from(blocks / interval * interval) * BLOCK_BYTES;
        let Self { flushed, merged, windows, undo, .. } = life.bytes;
        Self {
            flushed: flushed / data,
            merged: merged / data,
            windows: windows / data,
            undo: undo / data,
            ..life.bytes
        }
    }

    /// All parts together: `utxo.write_amp`.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.flushed + self.merged + self.windows + self.undo
    }
}

/// The probability that a coin outlives `blocks` blocks.
fn outlive(blocks: f64) -> f64 {
    (1.0 + blocks / 1.4).powf(-0.3)
}

/// A run: its coins by the flush that made them, its deletes by their coins' flush.
#[derive(Clone, Default)]
struct Model {
    adds: Vec<(usize, f64)>,
    deletes: Vec<(usize, f64)>,
}

impl Model {
    fn info(&self) -> RunInfo {
        let sum = |counts: &[(usize, f64)]| counts.iter().map(|(_, count)| count).sum::<f64>();
        let (adds, deletes) = (sum(&self.adds), sum(&self.deletes));
        let pages = ((adds * ADD + deletes * DELETE) / 4096.0) as u64 + 2;
        let span = Span { first: Sequence::new(1), last: Sequence::new(1) };
        let (adds, deletes) = (adds as u64, deletes as u64);
        RunInfo { number: RunNumber(1), span, adds, deletes, pages, digest: 0 }
    }

    fn bytes(&self) -> f64 {
        self.info().pages as f64 * 4096.0
    }

    /// Merges runs: deletes cancel coins of the flushes that take part.
    fn merge(runs: &[Self]) -> Self {
        let mut merged = Self::default();
        for run in runs {
            merged.adds.extend(&run.adds);
        }
        merged.adds.sort_unstable_by_key(|(flush, _)| *flush);
        for (flush, count) in runs.iter().flat_map(|run| &run.deletes) {
            let place = merged.adds.binary_search_by_key(flush, |(flush, _)| *flush);
            match place.ok().and_then(|index| merged.adds.get_mut(index)) {
                Some((_, adds)) => *adds -= count,
                None => merged.deletes.push((*flush, *count)),
            }
        }
        merged
    }
}

/// The set in the middle of its life.
struct Life {
    tiers: Tiers,
    interval: f64,
    window: f64,
    /// The age of the initial coins at the start.
    age: f64,
    /// Coins that live, by the flush that wrote them; flush 0 stands for the start.
    living: Vec<f64>,
    /// Youngest first.
    runs: Vec<Model>,
    /// Not yet divided by the bytes of the blocks.
    bytes: Forecast,
}

impl Life {
    fn new(parameters: &Parameters, age: f64) -> Self {
        Self {
            tiers: parameters.tiers(),
            interval: f64::from(parameters.flush_interval.max(1)),
            window: f64::from(parameters.window),
            age,
            living: vec![COINS],
            runs: vec![Model { adds: vec![(0, COINS)], deletes: Vec::new() }],
            bytes: Forecast::default(),
        }
    }

    /// One flush interval: blocks, the flush of a pane, merges, a checkpoint.
    fn interval(&mut self, flush: usize) {
        let deletes = self.die(flush);
        let died: f64 = deletes.iter().map(|(_, count)| count).sum();
        let survivors = BLOCK_OUTPUTS * self.interval * outlive(self.window + self.interval / 2.0);
        self.living.push(survivors);
        let young = Model { adds: vec![(flush, survivors)], deletes };
        self.bytes.flushed += young.bytes();
        self.runs.insert(0, young);
        self.merge();
        let spent = died + BLOCK_OUTPUTS * self.interval - survivors;
        let created = self.interval * (BLOCK_TXS * CREATED_TX + BLOCK_OUTPUTS * CREATED_OUTPUT);
        self.bytes.undo += spent * LISTED_ADD + created;
        // The blocks that are not deep yet are all that a checkpoint finds in the window.
        let coins: f64 = (0..self.window as u32).map(|age| outlive(age.into())).sum();
        let deletes = died / self.interval * self.window;
        self.bytes.windows += coins * BLOCK_OUTPUTS * LISTED_ADD + deletes * LISTED_DELETE;
    }

    /// What died since the last flush of the coins that every earlier flush wrote.
    fn die(&mut self, flush: usize) -> Vec<(usize, f64)> {
        let mut deletes = Vec::new();
        for (made, alive) in self.living.iter_mut().enumerate() {
            let ago = (flush - made) as f64 * self.interval;
            let age = if made == 0 { self.age + ago } else { self.window + ago };
            let died = *alive * (1.0 - outlive(age) / outlive(age - self.interval));
            *alive -= died;
            deletes.push((made, died));
        }
        deletes
    }

    fn merge(&mut self) {
        loop {
            let infos: Vec<RunInfo> = self.runs.iter().map(Model::info).collect();
            let Choice::Merge(range) = self.tiers.choose_with_rewrites(&infos) else { break };
            self.bytes.oldest_rewrites += usize::from(range.end == infos.len());
            let merged = Model::merge(self.runs.get(range.clone()).unwrap_or_default());
            self.bytes.merged += merged.bytes();
            self.runs.splice(range, [merged]);
        }
        self.bytes.most_runs = self.bytes.most_runs.max(self.runs.len());
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
