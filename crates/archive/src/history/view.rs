//! Questions about scripts, all of one moment.
//!
//! | question | costs |
//! |---|---|
//! | [`HistoryView::sums`], [`HistoryView::histories`] | each pane; a page of each run with it |
//! | [`HistoryView::history`], [`HistoryView::unspent`] | the same, and a page per 1,000 rows |
//! | [`HistoryView::at`] | nothing: the view of an earlier block that is still in memory |
//! | [`HistoryView::nearer`] | both ends of the history, as far as the nearer one is away |
//!
//! A page of an answer ends with the *rest*: what to ask for the next page, of this view or a later
//! one. It names a place and not a number of rows, so blocks that come between two pages neither
//! repeat nor hide a row.

use std::ops::Range;
use std::sync::Arc;

use varve_io::Storage;
use varve_runs::{Candidate, Query, Run};
use varve_types::{Height, Outpoint, ScriptHash};

use super::codec::History;
use super::error::Result;
use super::identity::{HistoryKeys, Identity};
use super::leaf::Leaf;
use super::pane::{Mark, OURS, Pane};
use super::row::{Body, Key, Place, Row};
use super::scan::{Scan, Shelf};
use super::sums::Sums;
use super::table;
use super::version::Version;
use crate::link::TxLink;
use crate::search::{LINK_BITS, Order};
use crate::shared::Shared;

/// Reads the table. Cheap to clone; any number of threads read while one writes.
#[derive(Clone, Debug)]
pub struct HistoryReader {
    shared: Arc<Shared<Version>>,
    keys: HistoryKeys,
}

impl HistoryReader {
    pub(super) const fn new(shared: Arc<Shared<Version>>, keys: HistoryKeys) -> Self {
        Self { shared, keys }
    }

    /// Opens a table that nobody writes, without writing anything: at the cost of its directories.
    pub fn at_rest(storage: &Arc<dyn Storage>, keys: HistoryKeys) -> Result<Self> {
        let loaded = table::load(storage, keys.store())?;
        let (runs, watermark) = (loaded.runs, loaded.watermark);
        let version = Version { panes: Box::default(), runs, watermark };
        Ok(Self::new(Arc::new(Shared::new(version)), keys))
    }

    /// The present moment.
    #[must_use]
    pub fn view(&self) -> HistoryView {
        let version = self.shared.version.load_full();
        HistoryView { version, shared: Arc::clone(&self.shared), keys: self.keys }
    }
}

/// One moment of the table.
#[derive(Clone, Debug)]
pub struct HistoryView {
    version: Arc<Version>,
    shared: Arc<Shared<Version>>,
    keys: HistoryKeys,
}

/// A part of a list, and what to ask for to continue it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryPage<T, R> {
    /// The rows.
    pub rows: Vec<T>,
    /// Where the next page begins; `None` when this is the last.
    pub rest: Option<R>,
}

/// An output that is not spent. The bytes of its transaction have value and txid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unspent {
    /// The transaction that made it.
    pub tx: TxLink,
    /// Its number there.
    pub vout: u32,
    /// The height of the block.
    pub height: Height,
    /// 64 keyed bits of the outpoint ([`HistoryView::print`]), which decide. After a deep
    /// reorganisation `tx` and `vout` may name another transaction of that block.
    pub print: u64,
}

/// A place in the list of unspent outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnspentCursor(Place);

impl UnspentCursor {
    /// Before the first.
    pub const START: Self = Self(Place::FIRST_OUTPUT);

    /// Height and keyed bits of the outpoint that comes next, for a client to hold.
    #[must_use]
    pub const fn to_parts(self) -> (u32, u64) {
        (self.0.height(), self.0.low())
    }

    /// The place with these parts.
    #[must_use]
    pub const fn from_parts(height: u32, print: u64) -> Self {
        Self(Place::output(height, print))
    }
}

/// Which part of a history is shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nearer {
    /// That before the place: add up from the beginning.
    Beginning,
    /// That from the place on: take back from the end.
    End,
}

impl HistoryView {
    /// The block up to which it has everything; `None` before the first.
    #[must_use]
    pub fn tip(&self) -> Option<Mark> {
        self.version.tip()
    }

    /// What stands for an outpoint in the list of unspent outputs.
    #[must_use]
    pub fn print(&self, outpoint: &Outpoint) -> u64 {
        self.keys.output(outpoint)
    }

    /// The moment when the block at this height was the tip, as long as all blocks above it are in
    /// memory.
    #[must_use]
    pub fn at(&self, height: Height) -> Option<Self> {
        let mut kept = self.version.panes.len();
        loop {
            let last = kept.checked_sub(1).and_then(|last| self.version.panes.get(last));
            let mark = last.map_or(self.version.watermark, |pane| pane.mark)?;
            if mark.height == height {
                break;
            }
            if mark.height < height || last.is_none_or(|pane| pane.negates) {
                return None;
            }
            kept -= 1;
        }
        let panes = self.version.panes.get(..kept).unwrap_or_default().into();
        let version = Arc::new(Version { panes, ..(*self.version).clone() });
        Some(Self { version, shared: Arc::clone(&self.shared), keys: self.keys })
    }

    /// The sums of many scripts, in the order of the question: zero for one that has no rows.
    pub fn sums(&self, scripts: &[ScriptHash]) -> Result<Vec<Sums>> {
        let mut sums = vec![Sums::default(); scripts.len()];
        self.groups(scripts, |place, seen| {
            if let Seen::Row(row) = seen
                && let (Body::Sums(more), Some(sums)) = (row.body, sums.get_mut(place))
            {
                sums.add(&more);
            }
        })?;
        Ok(sums)
    }

    /// The first page of the histories of many scripts, in the order of the question. Their pages
    /// are read in one submission; only scripts that fill more than a page are walked one by one.
    pub fn histories(
        &self,
        scripts: &[ScriptHash],
        order: Order,
        limit: usize,
    ) -> Result<Vec<HistoryPage<TxLink, Range<TxLink>>>> {
        let mut found: Vec<Option<Vec<Row>>> = vec![Some(Vec::new()); scripts.len()];
        self.groups(scripts, |place, seen| {
            let Some(rows) = found.get_mut(place) else { return };
            match seen {
                Seen::Cut => *rows = None,
                Seen::Row(row) => {
                    if let Some(rows) = rows.as_mut().filter(|_| row.key.place.is_tx()) {
                        rows.push(row);
                    }
                }
            }
        })?;
        let pages = scripts.iter().zip(found).map(|(script, rows)| match rows {
            Some(rows) => Ok(page(rows, order, limit)),
            None => self.history(script, EVERYTHING, order, limit),
        });
        pages.collect()
    }

    /// Reports the rows of many scripts in the leaf of each pane and run that begins their group.
    fn groups(&self, scripts: &[ScriptHash], mut each: impl FnMut(usize, Seen)) -> Result<()> {
        let identities = scripts.iter().map(|script| self.keys.identity(script));
        let mut sorted: Vec<(Identity, usize)> =
            identities.enumerate().map(|(place, identity)| (identity, place)).collect();
        sorted.sort_unstable();
        for pane in &self.version.panes {
            for (identity, place) in &sorted {
                let Some(leaf) = pane.locate(&Key::sums(*identity)) else { continue };
                let rows = |row| each(*place, Seen::Row(row));
                pane.leaf(leaf).find(*identity, rows).expect(OURS);
                if pane.first(leaf + 1).is_some_and(|next| next.identity == *identity) {
                    each(*place, Seen::Cut);
                }
            }
        }
        let keys = sorted.iter().map(|(identity, _)| Key::sums(*identity)).collect();
        self.shared.fetch(Query::new(&self.version.runs, keys), |query| {
            for candidate in query.by_key().flatten() {
                let Some((identity, place)) = sorted.get(candidate.key()) else { continue };
                let leaf = Leaf::parse(query.payload(candidate)?, 0);
                let rows = |row| each(*place, Seen::Row(row));
                let looked = leaf.and_then(|leaf| leaf.find(*identity, rows));
                let found = looked.map_err(|error| query.place(candidate).error(error))?;
                if found.is_some_and(|found| found.is_last) {
                    each(*place, Seen::Cut);
                }
            }
            Ok(())
        })
    }

    /// The transactions of a script with links in this range, in the order of the chain or against
    /// it, at most `limit` of them. As of a height, the range ends behind the last transaction of
    /// its block.
    pub fn history(
        &self,
        script: &ScriptHash,
        links: Range<TxLink>,
        order: Order,
        limit: usize,
    ) -> Result<HistoryPage<TxLink, Range<TxLink>>> {
        let places = Place::tx(links.start)..Place::tx(links.end);
        let mut scan = self.scan(script, places, order);
        let (mut rows, mut rest) = (Vec::new(), None);
        while let Some(row) = scan.next()? {
            let link = TxLink::new(row.key.place.low());
            if rows.len() >= limit {
                rest = Some(match order {
                    Order::Ascending => link..links.end,
                    Order::Descending => links.start..link.plus(1),
                });
                break;
            }
            rows.push(link);
        }
        Ok(HistoryPage { rows, rest })
    }

    /// The unspent outputs of a script from a place on, at most `limit`, without a look at its
    /// history: in the order of their blocks; those of one block and page in chain order.
    pub fn unspent(
        &self,
        script: &ScriptHash,
        from: UnspentCursor,
        limit: usize,
    ) -> Result<HistoryPage<Unspent, UnspentCursor>> {
        let mut scan = self.scan(script, from.0..Place::MAX, Order::Ascending);
        let (mut rows, mut rest) = (Vec::new(), None);
        while let Some(row) = scan.next()? {
            if rows.len() >= limit {
                rest = Some(UnspentCursor(row.key.place));
                break;
            }
            let Body::Output(Some((tx, vout))) = row.body else { continue };
            let (height, print) = (Height::new(row.key.place.height()), row.key.place.low());
            rows.push(Unspent { tx, vout, height, print });
        }
        rows.sort_unstable_by_key(|output| (output.height, output.tx, output.vout));
        Ok(HistoryPage { rows, rest })
    }

    /// Whether a script has fewer transactions below `link` or from it on, for sums as of a height
    /// that is no longer in memory. Walks both parts until the shorter one ends.
    pub fn nearer(&self, script: &ScriptHash, link: TxLink) -> Result<Nearer> {
        let (least, most) = (Place::tx(TxLink::new(0)), Place::FIRST_OUTPUT);
        let mut below = self.scan(script, least..Place::tx(link), Order::Descending);
        let mut above = self.scan(script, Place::tx(link)..most, Order::Ascending);
        loop {
            if above.next()?.is_none() {
                return Ok(Nearer::End);
            }
            if below.next()?.is_none() {
                return Ok(Nearer::Beginning);
            }
        }
    }

    /// Everything that has rows: panes, and runs.
    pub(super) fn shelves(&self) -> (&[Arc<Pane>], &[Arc<Run<History>>]) {
        (&self.version.panes, self.version.runs.as_slice())
    }

    fn scan(&self, script: &ScriptHash, places: Range<Place>, order: Order) -> Scan<'_> {
        let identity = self.keys.identity(script);
        // Only runs whose filter passes the script.
        let query = Query::<History>::new(&self.version.runs, vec![Key::sums(identity)]);
        let runs = self.version.runs.as_slice();
        let run = |candidate: &Candidate| runs.get(candidate.run()).map(|run| Shelf::Run(run));
        let runs = query.by_key().flatten().filter_map(run);
        let shelves = self.version.panes.iter().map(|pane| Shelf::Pane(pane)).chain(runs);
        Scan::new(shelves, (identity, places), order)
    }
}

/// All links.
const EVERYTHING: Range<TxLink> = TxLink::new(0)..TxLink::new(1 << LINK_BITS);

/// What is seen of a script in a leaf.
enum Seen {
    Row(Row),
    /// Rows may follow in the next leaf.
    Cut,
}

/// The first page of transactions that were gathered from all panes and runs.
fn page(mut rows: Vec<Row>, order: Order, limit: usize) -> HistoryPage<TxLink, Range<TxLink>> {
    rows.sort_unstable_by_key(|row| row.key);
    let counts = |same: &&[Row]| same.iter().map(Row::weight).sum::<i32>() > 0;
    let same = rows.chunk_by(|a, b| a.key == b.key).filter(counts);
    let links = same.filter_map(|same| same.first()).map(|row| TxLink::new(row.key.place.low()));
    let mut links: Vec<TxLink> = links.collect();
    let Range { start, end } = EVERYTHING;
    if order == Order::Descending {
        links.reverse();
    }
    let rest = links.get(limit).map(|next| match order {
        Order::Ascending => *next..end,
        Order::Descending => start..next.plus(1),
    });
    links.truncate(limit);
    HistoryPage { rows: links, rest }
}
