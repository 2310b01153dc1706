//! One unconfirmed transaction, and what it costs to keep.
//!
//! The transaction itself never changes and is shared by all versions; the sums over its
//! relatives change with every arrival near it and are copied.
//!
//! ```text
//! Entry ─┬─ Arc<Body>     extended bytes, fee, sizes, time, heights of the coins it spends
//!        ├─ ancestors     itself and all unconfirmed transactions that it builds on
//!        └─ descendants   itself and all that build on it
//! ```

use std::sync::Arc;

use varve_records::Transaction;
use varve_types::{Amount, Format, Height, Outpoint, Txid};

use super::fee_rate::{FeeRate, Sum};

/// The place of a transaction in the order of arrival. Parents always come before children.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct EntryId(pub(super) u64);

/// What is known of a transaction before it has a place.
#[derive(Clone, Debug)]
pub(super) struct Body {
    /// In extended form: with the outputs that it spends.
    pub(super) tx: Transaction,
    /// The length of the form that blocks have.
    pub(super) size: u64,
    pub(super) weight: u64,
    pub(super) fee: Amount,
    /// When it arrived, in seconds of the caller's clock.
    pub(super) time: u64,
    /// For each input, where its coin was confirmed; `None` when its parent was unconfirmed at
    /// arrival.
    pub(super) coins: Vec<Option<CoinAt>>,
    /// What signature operations cost.
    pub(super) sigop_cost: u64,
    /// Whether a lower tip can make it invalid by itself: it has a lock time, or spends a coinbase.
    pub(super) timed: bool,
}

/// Where a coin was confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CoinAt {
    pub(super) height: Height,
    pub(super) coinbase: bool,
}

/// An unconfirmed transaction.
#[derive(Clone, Debug)]
pub struct Entry {
    pub(super) body: Arc<Body>,
    pub(super) ancestors: Sum,
    pub(super) descendants: Sum,
}

/// A scale of weight to virtual bytes (BIP141).
const WITNESS_SCALE: u64 = 4;

impl Body {
    pub(super) const fn txid(&self) -> Txid {
        self.tx.txid()
    }

    /// Virtual bytes: a quarter of the weight, rounded up.
    pub(super) const fn vsize(&self) -> u64 {
        self.weight.div_ceil(WITNESS_SCALE)
    }

    pub(super) const fn sum(&self) -> Sum {
        Sum { count: 1, vsize: self.vsize(), fees: self.fee }
    }

    /// The bytes that it takes in memory with all its rows: what the memory share is charged.
    pub(super) fn memory(&self, rows: u64) -> u64 {
        let inputs = self.coins.len() as u64;
        self.tx.bytes().len() as u64 + PER_ENTRY + inputs * PER_INPUT + rows * PER_ROW
    }
}

/// A node of a map is two thirds full on average.
const fn in_map(bytes: u64) -> u64 {
    bytes * 3 / 2
}

/// Bytes of an entry apart from its bytes, inputs and rows: the two maps from txid and id, the two
/// orders by rate, and the allocations of body and bytes.
const PER_ENTRY: u64 = in_map(
    size_of::<(Txid, EntryId)>() as u64
        + size_of::<(EntryId, Entry)>() as u64
        + 2 * size_of::<(FeeRate, EntryId, u64)>() as u64,
) + size_of::<Body>() as u64
    + 96;
/// Bytes of an input: its row among the spends, and where its coin was confirmed.
const PER_INPUT: u64 =
    in_map(size_of::<(Outpoint, EntryId, u32)>() as u64) + size_of::<Option<CoinAt>>() as u64;
/// Bytes of a row of a script or of pushed data.
const PER_ROW: u64 = in_map(size_of::<([u8; 32], EntryId, u32, u64)>() as u64);

impl Entry {
    /// The txid.
    #[must_use]
    pub fn txid(&self) -> Txid {
        self.body.txid()
    }

    /// The bytes as blocks and peers have them.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let tx = &self.body.tx;
        match tx.format() {
            Format::Extended => tx.view().to_legacy(),
            Format::Legacy | Format::Segwit => tx.view().bytes().to_vec(),
        }
    }

    /// The transaction with the outputs that it spends.
    #[must_use]
    pub fn transaction(&self) -> &Transaction {
        &self.body.tx
    }

    /// The length in bytes, witness included.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.body.size
    }

    /// The weight (BIP141); four times the size where there are no witnesses.
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.body.weight
    }

    /// Virtual bytes: a quarter of the weight, rounded up.
    #[must_use]
    pub fn vsize(&self) -> u64 {
        self.body.vsize()
    }

    /// The fee.
    #[must_use]
    pub fn fee(&self) -> Amount {
        self.body.fee
    }

    /// The cost of its signature operations, at most 80,000.
    #[must_use]
    pub fn sigop_cost(&self) -> u64 {
        self.body.sigop_cost
    }

    /// The rate of its own fee.
    #[must_use]
    pub fn rate(&self) -> FeeRate {
        self.body.sum().rate()
    }

    /// When it arrived, in seconds of the caller's clock.
    #[must_use]
    pub fn time(&self) -> u64 {
        self.body.time
    }

    /// It and all unconfirmed transactions that it builds on.
    #[must_use]
    pub const fn ancestors(&self) -> &Sum {
        &self.ancestors
    }

    /// It and all unconfirmed transactions that build on it.
    #[must_use]
    pub const fn descendants(&self) -> &Sum {
        &self.descendants
    }

    /// Whether some input spends an output of an unconfirmed transaction.
    #[must_use]
    pub const fn has_unconfirmed_inputs(&self) -> bool {
        self.ancestors.count > 1
    }

    /// The height that Electrum gives an unconfirmed transaction: 0 when all its inputs are
    /// confirmed, else -1.
    #[must_use]
    pub const fn electrum_height(&self) -> i32 {
        if self.has_unconfirmed_inputs() { -1 } else { 0 }
    }

    /// What eviction sorts by: the better of its own rate and that of it with its descendants.
    pub(super) fn eviction_rate(&self) -> FeeRate {
        self.rate().max(self.descendants.rate())
    }
}
