//! Rows of one width in chains: the body, the stage in front of it, and the head above both.
//!
//! ```text
//!  row      0          K        K+4            K+4+V
//!           ┌──────────┬────────┬──────────────┐
//!           │ key      │ link   │ value        │      link: the row below in its chain
//!           │ K bytes  │ u32    │ V bytes      │      0xFFFFFFFF: none; 0xFFFFFFFE: not committed
//!           └──────────┴────────┴──────────────┘
//!  body     row n at position n · (K+4+V) of a log of plain bytes, `NAME-NUMBER`
//! ```
//!
//! 1. **Set** gives a row its number and its bytes, in the stage. It is not reachable by search;
//!    its number may already be stored in other tables.
//! 2. **Commit** pushes it on its bucket. It cannot fail: set has loaded the page of the head. A
//!    row that is never committed stays in the body as a gap.
//! 3. **Settle** moves the stage into the body. It takes the table by `&mut`, and a row between set
//!    and commit borrows the table, so the compiler guarantees that no link is still open.
//!    Readers continue: they hold the old stage or get the new body, and find the same rows in
//!    both.
//!
//! **Which state a reader takes.** A row that is the top of a bucket was put there after the state
//! that holds it was published. So a reader loads the bucket first and the state next, and every
//! row down that chain is in that state.
//!
//! **After a crash** the body is truncated to its mark, and the rows after those that the saved
//! head knows are relinked. Rows hold the links they had, and commits need not have been in the
//! order of numbers, so a row waits until its bucket has reached the link it holds.

mod batch;
mod open;

use std::hint::black_box;
use std::ops::ControlFlow;
use std::sync::Arc;

use arc_swap::ArcSwap;
use varve_io::{GlobalOffset, LogSnapshot, MappedLog};

use super::cells::{Cell, CellSaver, Cells, memory_of};
use super::error::{Error, Result};
use super::head::{Geometry, Head};
use super::mark::Mark;
use super::stage::{Stage, UNLINKED};
use super::table::{Epoch, Heads, TableMemory};

/// The bits of a link; the other half of a cell is filter.
const LINK_BITS: u32 = 32;
const LINK_LEN: usize = size_of::<u32>();
type RecordHead<'a> = Head<'a, LINK_BITS>;

/// The next link of an uncommitted row, in the body.
const UNLINKED_STORED: u32 = u32::MAX - 1;
/// Links below this name rows.
const ROWS_MAX: u64 = UNLINKED_STORED as u64;

/// The number of a row in a table of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link(pub u32);

impl Link {
    fn of(number: u64) -> Self {
        Self(u32::try_from(number).expect("rows are below the greatest link"))
    }

    /// A link or the terminal one, as it is stored.
    fn stored(next: u64) -> u32 {
        u32::try_from(next).expect("links have 32 bits")
    }

    /// The row that a next link names, `None` at the end of a chain.
    #[cfg(feature = "test-suite")]
    pub(crate) fn from_next(next: u64) -> Option<Self> {
        u32::try_from(next).ok().filter(|link| u64::from(*link) < ROWS_MAX).map(Self)
    }

    /// The number as an index.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0 as u64
    }
}

/// A row as it is stored, without its link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<const K: usize, const V: usize> {
    /// The stored key.
    pub key: [u8; K],
    /// The value.
    pub value: [u8; V],
}

/// A row and what is below it.
pub(crate) struct Linked<const K: usize, const V: usize> {
    pub(crate) row: Row<K, V>,
    pub(crate) next: u64,
}

impl<const K: usize, const V: usize> Row<K, V> {
    /// The bytes of a row in the body.
    pub const LEN: usize = K + LINK_LEN + V;

    fn encode(&self, next: u64, out: &mut Vec<u8>) {
        let next = if next == UNLINKED { UNLINKED_STORED } else { Link::stored(next) };
        out.extend_from_slice(&self.key);
        out.extend_from_slice(&next.to_le_bytes());
        out.extend_from_slice(&self.value);
    }
}

/// Reads a row of `Row::LEN` bytes.
fn decode<const K: usize, const V: usize>(bytes: &[u8]) -> Option<Linked<K, V>> {
    let (key, rest) = bytes.split_first_chunk()?;
    let (next, rest) = rest.split_first_chunk()?;
    let row = Row { key: *key, value: *rest.first_chunk()? };
    let next = match u32::from_le_bytes(*next) {
        UNLINKED_STORED => UNLINKED,
        next => u64::from(next),
    };
    Some(Linked { row, next })
}

/// The body and the stage of one moment.
#[derive(Debug)]
struct State<const K: usize, const V: usize> {
    body: LogSnapshot,
    stage: Stage<Row<K, V>>,
}

/// What readers and the owner of a table share.
#[derive(Debug)]
pub(crate) struct Records<const K: usize, const V: usize> {
    name: String,
    cells: Arc<Cells>,
    geometry: Geometry,
    state: ArcSwap<State<K, V>>,
}

impl<const K: usize, const V: usize> Records<K, V> {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn head(&self) -> RecordHead<'_> {
        Head { cells: &self.cells, geometry: self.geometry }
    }

    /// The number of rows, committed or not.
    pub(crate) fn rows(&self) -> u64 {
        self.state.load().stage.end()
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> TableMemory {
        let stage = &self.state.load().stage;
        let coming = stage.end() + (stage.end() - stage.base());
        let heads = memory_of(self.geometry.cells(coming));
        TableMemory { heads, stage: stage.memory() }
    }

    /// The row at a link, committed or not.
    pub(crate) fn row(&self, link: Link) -> Result<Linked<K, V>> {
        self.row_in(&self.state.load(), link.number())
    }

    #[inline]
    fn row_in(&self, state: &State<K, V>, number: u64) -> Result<Linked<K, V>> {
        let found = if number < state.stage.base() {
            let at = GlobalOffset::new(number * Row::<K, V>::LEN as u64);
            decode(state.body.get(at, Row::<K, V>::LEN)?)
        } else {
            let slot = state.stage.slot(number);
            slot.and_then(|slot| Some(Linked { row: *slot.row.get()?, next: slot.next() }))
        };
        found.ok_or_else(|| self.no_row(number, state.stage.end()))
    }

    /// The top of the chain in a cell of the head.
    #[cfg(feature = "test-suite")]
    pub(crate) fn top(&self, cell: u64) -> Result<Option<Link>> {
        Ok(Link::from_next(RecordHead::link(self.cells.get(cell)?)))
    }

    /// Visits every row of the chains that may hold a key with this hash, newest first, until
    /// `visit` breaks.
    #[inline]
    pub(crate) fn search(
        &self,
        hash: u64,
        mut visit: impl FnMut(Link, &Row<K, V>) -> ControlFlow<()>,
    ) -> Result<()> {
        for top in self.head().tops(hash, self.rows()) {
            let mut link = top?;
            let state = self.state.load();
            let mut left = state.stage.end();
            while link != RecordHead::TERMINAL {
                let found = self.row_in(&state, link)?;
                if found.next == UNLINKED || left == 0 {
                    return Err(self.broken(link));
                }
                left -= 1;
                if visit(Link::of(link), &found.row).is_break() {
                    return Ok(());
                }
                link = found.next;
            }
        }
        Ok(())
    }

    fn no_row(&self, link: u64, end: u64) -> Error {
        Error::NoRow { table: self.name.clone(), link, end }
    }

    fn broken(&self, link: u64) -> Error {
        Error::BrokenChain { table: self.name.clone(), link }
    }
}

/// The owner of a table of records: sets, commits, settles and saves.
#[derive(Debug)]
pub(crate) struct RecordsOwner<const K: usize, const V: usize> {
    shared: Arc<Records<K, V>>,
    log: MappedLog,
    saver: CellSaver,
    /// The rows that the saved head knows.
    linked: u64,
    /// The same for a head that is prepared.
    linked_next: u64,
}

/// Rows that are set and not yet reachable.
#[derive(Debug)]
pub(crate) struct Pending<'a, const K: usize, const V: usize> {
    shared: &'a Records<K, V>,
    first: u64,
    cells: Vec<(Cell<'a>, u64)>,
}

impl<const K: usize, const V: usize> Pending<'_, K, V> {
    pub(crate) fn first(&self) -> Link {
        Link::of(self.first)
    }

    /// Makes all rows reachable, in order.
    pub(crate) fn commit(self) {
        let state = self.shared.state.load();
        // An exchange stalls until its cell is in the cache; plain loads overlap.
        for (cell, _) in &self.cells {
            black_box(cell.load());
        }
        for ((cell, hash), number) in self.cells.into_iter().zip(self.first..) {
            let slot = state.stage.slot(number).expect("filled by set; settling needs the owner");
            RecordHead::push(cell, hash, number, |next| slot.set_next(next));
        }
    }
}

impl<const K: usize, const V: usize> RecordsOwner<K, V> {
    pub(crate) const fn shared(&self) -> &Arc<Records<K, V>> {
        &self.shared
    }

    /// Assigns consecutive numbers to the rows and stores their bytes. When a page of the head
    /// cannot be read, the assigned numbers stay unused.
    pub(crate) fn set(
        &self,
        rows: impl ExactSizeIterator<Item = (u64, Row<K, V>)>,
    ) -> Result<Pending<'_, K, V>> {
        let shared = &*self.shared;
        let state = shared.state.load();
        let count = rows.len() as u64;
        let full = || Error::Full { table: shared.name.clone(), rows: state.stage.end() };
        let first = state.stage.allocate(count, ROWS_MAX).ok_or_else(full)?;
        let mut cells = Vec::with_capacity(rows.len());
        for (number, (hash, row)) in (first..).zip(rows) {
            cells.push((shared.head().cell(number, hash)?, hash));
            // Only this thread was given the number.
            let _ = state.stage.fill(number).row.set(row);
        }
        Ok(Pending { shared, first, cells })
    }

    /// Rows that the saved head does not know.
    pub(crate) fn unlinked(&self) -> u64 {
        self.shared.rows() - self.linked
    }

    /// Moves the stage into the body. After a failure it may be called again; nothing is lost.
    fn settle(&mut self) -> Result<()> {
        let state = self.shared.state.load_full();
        let end = state.stage.end();
        let row_len = Row::<K, V>::LEN as u64;
        let mut bytes = Vec::with_capacity(Row::<K, V>::LEN);
        for number in self.log.end().get() / row_len..end {
            bytes.clear();
            let slot = state.stage.slot(number);
            let row = slot.and_then(|slot| Some((slot.row.get()?, slot.next())));
            // A number whose setter failed half-way has no bytes: zeroes hold its place.
            let empty = Row { key: [0; K], value: [0; V] };
            let (row, next) = row.unwrap_or((&empty, UNLINKED));
            row.encode(next, &mut bytes);
            let written = self.log.append(&bytes)?;
            if written.get() != number * row_len {
                let table = self.shared.name.clone();
                return Err(Error::Misplaced { table, link: number, written });
            }
        }
        if end > state.stage.base() {
            let body = self.log.reader().snapshot();
            self.shared.state.store(Arc::new(State { body, stage: Stage::new(end) }));
        }
        Ok(())
    }

    /// Makes everything committed durable in this table.
    pub(crate) fn prepare(&mut self, epoch: Epoch, heads: Heads) -> Result<Mark> {
        self.settle()?;
        let log = self.log.sync()?;
        let rows = self.shared.rows();
        let geometry = self.shared.geometry;
        let cells = match heads {
            Heads::Save => self.saver.prepare(epoch.0, geometry.cells(rows))?,
            Heads::Defer => self.saver.keep(),
        };
        self.linked_next = if heads == Heads::Save { rows } else { self.linked };
        Ok(Mark { log, len: rows, linked: self.linked_next, geometry, cells })
    }

    /// Verifies the checksums of body and head.
    pub(crate) fn verify(&self) -> Result<()> {
        self.log.reader().snapshot().verify()?;
        self.shared.cells.verify()
    }

    /// Completes a checkpoint once the manifest with the prepared mark is durable.
    pub(crate) fn confirm(&mut self) -> Result<()> {
        self.linked = self.linked_next;
        self.saver.confirm()
    }
}
