//! Rows of any length: the body of slab tables and the stage in front of it.
//!
//! ```text
//!  slab     0          K        K+L            K+L+n
//!           ┌──────────┬────────┬──────────────┐
//!           │ key      │ link   │ value        │    link: the slab below in its chain, a position
//!           │ K bytes  │ L bytes│ n bytes      │    all ones: none; one less: not committed
//!           └──────────┴────────┴──────────────┘
//!  body     slabs one after another in a log of plain bytes, `NAME-NUMBER`; one that does not fit
//!           into the rest of a file starts the next
//! ```
//!
//! A slab's link is its position in the body, known before it gets there. The length of a value is
//! not stored beside it: its first bytes encode it, by the table's [`Measure`].
//!
//! The stage works like that of `records`, with one difference: positions are assigned under a
//! lock, because a position depends on the length of the slab before it. Readers take no lock: they
//! search for a position among the filled slots, which are in order.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use varve_io::{GlobalOffset, LogCheckpoint, LogReader, LogSnapshot, MappedLog, Storage};

use super::error::{Error, Result};
use super::mark::Mark;
use super::stage::{Slot, Stage, UNLINKED};
use super::table::TableConfig;

/// The position of a slab in its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlabLink(pub u64);

/// The length of a value, encoded in its first bytes.
pub trait Measure: Send + Sync {
    /// How many of the first bytes it takes; no value is shorter.
    const PREFIX: usize;

    /// The length of the value that begins with these [`Measure::PREFIX`] bytes.
    fn len(prefix: &[u8]) -> usize;
}

/// A slab in the stage: its place, and its bytes with a gap for the link.
#[derive(Debug)]
pub(crate) struct Slab {
    at: u64,
    pub(crate) bytes: Box<[u8]>,
}

/// The body and the stage of one moment.
#[derive(Debug)]
pub(crate) struct State {
    body: LogSnapshot,
    pub(crate) stage: Stage<Slab>,
}

/// What is in front of a value: the key and the link.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Front {
    pub(crate) key: usize,
    pub(crate) link: usize,
}

impl Front {
    pub(crate) const fn len(self) -> usize {
        self.key + self.link
    }
}

/// What readers and the owner share.
#[derive(Debug)]
pub(crate) struct Slabs {
    pub(crate) name: String,
    front: Front,
    capacity: u64,
    pub(crate) state: ArcSwap<State>,
    /// The position behind the last slab given out.
    end: Mutex<u64>,
}

/// The bytes of a slab, and its link when it is still in the stage.
pub(crate) struct Found<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) staged_next: Option<u64>,
}

impl Slabs {
    /// The body of a table at rest, as it was at `mark`.
    pub(crate) fn at_rest(
        storage: Arc<dyn Storage>,
        config: &TableConfig,
        front: Front,
        mark: Mark,
    ) -> Self {
        let (log, end) = (config.log(capacity(config, front)), mark.log.end.get());
        let body = LogReader::at_rest(storage, log, mark.log).snapshot();
        Self::new(config, front, State { body, stage: Stage::new(mark.len) }, end)
    }

    fn new(config: &TableConfig, front: Front, state: State, end: u64) -> Self {
        let (name, state) = (config.name.clone(), ArcSwap::from_pointee(state));
        Self { name, front, capacity: capacity(config, front).into(), state, end: Mutex::new(end) }
    }

    /// Gives a slab its position and its bytes: the key, a gap for the link, and the value. Returns
    /// its number and its position.
    pub(crate) fn set<M: Measure>(
        &self,
        key: &[u8],
        value: &[u8],
        limit: u64,
    ) -> Result<(u64, SlabLink)> {
        self.check::<M>(value)?;
        let gap = std::iter::repeat_n(0, self.front.link);
        let bytes: Box<[u8]> =
            key.iter().copied().chain(gap).chain(value.iter().copied()).collect();
        let len = bytes.len() as u64;
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let room = self.capacity - *end % self.capacity;
        let at = if len <= room { *end } else { *end + room };
        let state = self.state.load();
        let full = || Error::Full { table: self.name.clone(), rows: state.stage.end() };
        if at >= limit {
            return Err(full());
        }
        let number = state.stage.allocate(1, u64::MAX).ok_or_else(full)?;
        // Only this thread was given the number.
        let _ = state.stage.fill(number).row.set(Slab { at, bytes });
        *end = at + len;
        Ok((number, SlabLink(at)))
    }

    /// Bytes of memory of the stage.
    pub(crate) fn memory(&self) -> usize {
        let state = self.state.load();
        let end = *self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = end.saturating_sub(state.body.end().get());
        state.stage.memory() + usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    fn check<M: Measure>(&self, value: &[u8]) -> Result<()> {
        let most = usize::try_from(self.capacity).unwrap_or(usize::MAX) - self.front.len();
        let measured = value.get(..M::PREFIX).map(M::len);
        if measured == Some(value.len()) && value.len() <= most && !value.is_empty() {
            return Ok(());
        }
        let (least, most) = (M::PREFIX.max(1), measured.unwrap_or(most).min(most));
        Err(Error::SlabLength { table: self.name.clone(), len: value.len(), least, most })
    }

    /// The slab at a position.
    pub(crate) fn get<'a, M: Measure>(
        &self,
        state: &'a State,
        link: SlabLink,
    ) -> Result<Found<'a>> {
        if link.0 >= state.body.end().get() {
            let slot = find(&state.stage, link.0);
            let found = slot.and_then(|slot| {
                Some(Found { bytes: &slot.row.get()?.bytes, staged_next: Some(slot.next()) })
            });
            return found.ok_or_else(|| self.no_row(link, state.body.end().get()));
        }
        let (at, front) = (GlobalOffset::new(link.0), self.front.len());
        let start = state.body.get(at, front + M::PREFIX)?;
        let len = M::len(start.get(front..).unwrap_or_default());
        let bytes = state.body.get(at, front.saturating_add(len))?;
        Ok(Found { bytes, staged_next: None })
    }

    pub(crate) fn no_row(&self, link: SlabLink, end: u64) -> Error {
        Error::NoRow { table: self.name.clone(), link: link.0, end }
    }

    /// The link in the front of a settled slab.
    pub(crate) fn stored_next(&self, bytes: &[u8]) -> u64 {
        let link = bytes.get(self.front.key..self.front.len()).unwrap_or_default();
        let value = link.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        let ones = ones(self.front.link);
        match value {
            value if value == ones - 1 => UNLINKED,
            value if value == ones => TERMINAL,
            value => value,
        }
    }
}

/// The link that ends every chain, in memory.
pub(crate) const TERMINAL: u64 = (1 << super::slab_map::LINK_BITS) - 1;

/// All ones in `len` bytes.
pub(crate) const fn ones(len: usize) -> u64 {
    if len >= size_of::<u64>() { u64::MAX } else { (1 << (8 * len)) - 1 }
}

/// The slot of the slab at a position. Slots are filled in order, so an empty one is behind it.
fn find(stage: &Stage<Slab>, at: u64) -> Option<&Slot<Slab>> {
    let place = |number| stage.slot(number).and_then(|slot| slot.row.get()).map(|slab| slab.at);
    let (mut low, mut high) = (stage.base(), stage.end());
    while low < high {
        let middle = low + (high - low) / 2;
        match place(middle) {
            Some(found) if found < at => low = middle + 1,
            Some(found) if found == at => return stage.slot(middle),
            _ => high = middle,
        }
    }
    None
}

/// The bytes of a file of the body.
fn capacity(config: &TableConfig, front: Front) -> u32 {
    let least = u32::try_from(front.len() + 1).expect("keys are short");
    config.segment_len.max(least)
}

/// The owner of a body of slabs.
#[derive(Debug)]
pub(crate) struct SlabsOwner {
    pub(crate) shared: Arc<Slabs>,
    log: MappedLog,
}

impl SlabsOwner {
    /// Opens the body as it was at `mark`.
    pub(crate) fn open(
        storage: Arc<dyn Storage>,
        config: &TableConfig,
        front: Front,
        mark: Mark,
    ) -> Result<Self> {
        let log = MappedLog::open(storage, config.log(capacity(config, front)), mark.log)?;
        let state = State { body: log.reader().snapshot(), stage: Stage::new(mark.len) };
        let shared = Slabs::new(config, front, state, log.end().get());
        Ok(Self { shared: Arc::new(shared), log })
    }

    /// Compares the body with its checksums.
    pub(crate) fn verify(&self) -> Result<()> {
        Ok(self.log.reader().snapshot().verify()?)
    }

    /// Moves the stage into the body and makes it durable; returns the number of slabs too. After a
    /// failure it may be called again; nothing is lost.
    pub(crate) fn settle(&mut self) -> Result<(LogCheckpoint, u64)> {
        let state = self.shared.state.load_full();
        let Front { key, .. } = self.shared.front;
        let front = self.shared.front.len();
        for number in state.stage.base()..state.stage.end() {
            let Some(slot) = state.stage.slot(number) else { continue };
            let Some(slab) = slot.row.get().filter(|slab| slab.at >= self.log.end().get()) else {
                continue;
            };
            let next = match slot.next() {
                UNLINKED => ones(self.shared.front.link).wrapping_sub(1),
                TERMINAL => u64::MAX,
                next => next,
            };
            let mut bytes = slab.bytes.clone();
            let gap = bytes.get_mut(key..front).unwrap_or_default();
            gap.iter_mut().zip(next.to_le_bytes()).for_each(|(place, byte)| *place = byte);
            let written = self.log.append(&bytes)?;
            if written.get() != slab.at {
                let table = self.shared.name.clone();
                return Err(Error::Misplaced { table, link: slab.at, written });
            }
        }
        let end = state.stage.end();
        if end > state.stage.base() {
            let body = self.log.reader().snapshot();
            self.shared.state.store(Arc::new(State { body, stage: Stage::new(end) }));
        }
        Ok((self.log.sync()?, end))
    }
}
