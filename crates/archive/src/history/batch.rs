//! The rows of one block, made by whoever checks it, in any thread and in no order among blocks.
//!
//! 1. Every output paid or spent is an *event* of a script. Events are sorted by identity.
//! 2. The events of one script become its rows: sums, transactions each once, outputs. An output
//!    that is spent in its own block has weight zero and no row.
//! 3. The rows are encoded in leaves, which a pane takes as they are. Links count from the block's
//!    first, which is not known yet.
//!
//! The negation of a block has the same rows with opposite weights. It brings back outputs that the
//! block had spent, and their rows need the links of the transactions that made them.

use super::changes::{BlockChanges, Funded, Spent};
use super::combine::Total;
use super::identity::{HistoryKeys, Identity};
use super::leaves::Leaves;
use super::row::{Body, Place, Row, Weight};
use super::sums::Sums;
use crate::link::TxLink;
use varve_types::Height;

/// The rows of a block to be connected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch(pub(super) Leaves);

/// The rows that take a block back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Negation(pub(super) Leaves);

impl Batch {
    /// The rows of a block.
    #[must_use]
    pub fn new(keys: &HistoryKeys, block: &BlockChanges) -> Self {
        let maker = Maker { keys, block, first: 0, origins: None };
        Self(Leaves::new(&maker.rows()))
    }

    /// The bytes of memory that it takes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.0.memory()
    }
}

impl Negation {
    /// The rows that take back a block whose transactions have links from `first` on. `origins` has
    /// the link of the transaction that made each output of `block.spent`, in the same order.
    ///
    /// # Panics
    ///
    /// When there is not one link for each spent output.
    #[must_use]
    pub fn new(
        keys: &HistoryKeys,
        block: &BlockChanges,
        first: TxLink,
        origins: &[TxLink],
    ) -> Self {
        assert_eq!(block.spent.len(), origins.len(), "one link for each spent output");
        let maker = Maker { keys, block, first: first.to_u64(), origins: Some(origins) };
        Self(Leaves::new(&maker.rows()))
    }
}

/// Makes the rows of a block, or of its negation.
struct Maker<'a> {
    keys: &'a HistoryKeys,
    block: &'a BlockChanges,
    /// What the links of the block count from.
    first: u64,
    /// For a negation.
    origins: Option<&'a [TxLink]>,
}

/// An output in the lists of a block: funded ones count from 0, spent ones behind them.
type Event = (Identity, usize);

impl Maker<'_> {
    fn rows(&self) -> Vec<Row> {
        let BlockChanges { height, funded, spent } = self.block;
        if *height == Height::GENESIS {
            return Vec::new();
        }
        let scripts = funded.iter().map(|output| &output.script);
        let scripts = scripts.chain(spent.iter().map(|output| &output.script));
        let mut events: Vec<Event> =
            scripts.enumerate().map(|(at, script)| (self.keys.identity(script), at)).collect();
        events.sort_unstable();
        let mut rows = Vec::with_capacity(events.len() * 2);
        let (mut txs, mut outputs) = (Vec::new(), Vec::new());
        for group in events.chunk_by(|a, b| a.0 == b.0) {
            self.group(group, (&mut txs, &mut outputs), &mut rows);
        }
        rows
    }

    /// The rows of one script; the lists are scratch memory.
    fn group(
        &self,
        events: &[Event],
        (txs, outputs): (&mut Vec<u32>, &mut Vec<Row>),
        rows: &mut Vec<Row>,
    ) {
        let Some((identity, _)) = events.first().copied() else { return };
        txs.clear();
        outputs.clear();
        let mut sums = Sums::default();
        for (_, at) in events {
            let BlockChanges { funded, spent, .. } = self.block;
            if let Some(output) = funded.get(*at) {
                sums.funded += 1;
                sums.received = sums.received.wrapping_add(output.value.to_sat());
                txs.push(output.position);
                outputs.push(self.funded(identity, output));
            } else if let Some(output) = spent.get(*at - funded.len()) {
                sums.spent += 1;
                sums.sent = sums.sent.wrapping_add(output.value.to_sat());
                txs.push(output.position);
                outputs.push(self.spent(identity, output, *at - funded.len()));
            }
        }
        txs.sort_unstable();
        txs.dedup();
        sums.txs = i64::try_from(txs.len()).unwrap_or(i64::MAX);
        let negates = self.origins.is_some();
        let sums = if negates { sums.negated() } else { sums };
        let weight = if negates { Weight::Remove } else { Weight::Add };
        rows.push(Row::new(identity, Place::SUMS, Body::Sums(sums)));
        rows.extend(txs.iter().map(|position| {
            let place = Place::tx(TxLink::new(self.first).plus(*position));
            Row::new(identity, place, Body::Tx(weight))
        }));
        outputs.sort_unstable_by_key(|row| row.key);
        for same in outputs.chunk_by(|a, b| a.key == b.key) {
            let mut total = same.iter();
            let Some(mut left) = total.next().map(Total::of) else { continue };
            total.for_each(|row| left.add(row));
            rows.extend(left.row());
        }
    }

    fn funded(&self, identity: Identity, output: &Funded) -> Row {
        let print = self.keys.output(&output.outpoint);
        let place = Place::output(self.block.height.to_u32(), print);
        let link = TxLink::new(self.first).plus(output.position);
        let added = (link, output.outpoint.vout);
        Row::new(identity, place, Body::Output(self.origins.is_none().then_some(added)))
    }

    fn spent(&self, identity: Identity, output: &Spent, at: usize) -> Row {
        let print = self.keys.output(&output.outpoint);
        let place = Place::output(output.height.to_u32(), print);
        let origin = self.origins.and_then(|origins| origins.get(at));
        let added = origin.map(|link| (*link, output.outpoint.vout));
        Row::new(identity, place, Body::Output(added))
    }
}
