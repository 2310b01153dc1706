//! Fills leaves, in the order of outpoint and birth.
//!
//! 1. [`LeafBuilder::push`] adds an entry, or says that the page is full.
//! 2. When it is full, [`LeafBuilder::tail`] says how many entries move to the next page, so that
//!    neither an outpoint nor a small transaction is split: the whole last transaction up to
//!    [`CARRY_MAX`] bytes, else the entries of the outpoint that comes next. A larger transaction
//!    is split, and its txid repeated in the next page.
//! 3. [`LeafBuilder::split_tail`] moves them, and [`LeafBuilder::encode`] returns the page's bytes.
//!
//! An entry takes at most [`RECORD_MAX`] bytes, so two always fit into a page; larger coins are
//! spilled by the writer before they come here. So are the second and later coins of an outpoint,
//! so that [`CROWD_MAX`] entries of one always fit.

use varve_io::PAGE_PAYLOAD_LEN;
use varve_types::{Outpoint, varint};

use crate::page::{HEADER_LEN, OFFSET_MASK, SIBLING, SLOT_COST, tag};

/// The longest record with its slot: half a page.
pub(crate) const RECORD_MAX: usize = (PAGE_PAYLOAD_LEN - HEADER_LEN) / 2;
/// The longest record without its slot and txid.
pub(crate) const BODY_MAX: usize = RECORD_MAX - SLOT_COST - 32;
/// The most bytes of one transaction that are moved to keep it whole. A quarter page: splitting
/// costs a tie in the directory (40 bytes of memory), moving costs at most this much disk space.
pub(crate) const CARRY_MAX: usize = PAGE_PAYLOAD_LEN / 4;
const _: () = assert!(HEADER_LEN + CARRY_MAX + RECORD_MAX <= PAGE_PAYLOAD_LEN);
/// The most entries of one outpoint in a run. Each beyond the first takes a reorganisation deeper
/// than the window that makes the same transaction again, and a merge of all runs leaves one.
pub(crate) const CROWD_MAX: u32 = 48;
/// A delete or a spilled coin: slot, back reference, output's place, birth, length, first page.
const SMALL_MAX: usize = SLOT_COST + 2 + 5 + 5 + 10 + 10;
const _: () = assert!(HEADER_LEN + RECORD_MAX + CROWD_MAX as usize * SMALL_MAX <= PAGE_PAYLOAD_LEN);

/// One entry of the page being built.
#[derive(Clone, Copy, Debug)]
struct Placed {
    outpoint: Outpoint,
    hash: u64,
    /// The offset of the record and its flags.
    slot: u16,
    /// The length of the record's txid or back reference.
    key_len: u8,
}

/// A page being built.
#[derive(Debug, Default)]
pub(crate) struct LeafBuilder {
    placed: Vec<Placed>,
    records: Vec<u8>,
    /// The index of the first entry of the last transaction.
    group: usize,
}

impl LeafBuilder {
    pub(crate) fn first(&self) -> Option<Outpoint> {
        self.placed.first().map(|entry| entry.outpoint)
    }

    pub(crate) fn last(&self) -> Option<Outpoint> {
        self.placed.last().map(|entry| entry.outpoint)
    }

    /// The keyed hashes of the entries.
    pub(crate) fn hashes(&self) -> impl Iterator<Item = u64> {
        self.placed.iter().map(|entry| entry.hash)
    }

    /// Adds an entry: its flags, and its body from the output's place on. False when it does not
    /// fit.
    pub(crate) fn push(&mut self, outpoint: Outpoint, hash: u64, flags: u16, body: &[u8]) -> bool {
        debug_assert!(body.len() <= BODY_MAX, "larger coins are spilled");
        let start = self.records.len();
        let sibling = self.last().is_some_and(|last| last.txid == outpoint.txid);
        if sibling {
            varint::write((self.placed.len() - self.group) as u64, &mut self.records);
        } else {
            self.records.extend_from_slice(outpoint.txid.as_bytes());
        }
        let key_len = self.records.len() - start;
        let slots = SLOT_COST * (self.placed.len() + 1);
        if HEADER_LEN + slots + self.records.len() + body.len() > PAGE_PAYLOAD_LEN {
            self.records.truncate(start);
            return false;
        }
        self.records.extend_from_slice(body);
        if !sibling {
            self.group = self.placed.len();
        }
        let offset = u16::try_from(start).expect("a page is shorter than that");
        let slot = offset | flags | if sibling { SIBLING } else { 0 };
        let key_len = u8::try_from(key_len).expect("a txid or a short number");
        self.placed.push(Placed { outpoint, hash, slot, key_len });
        true
    }

    /// How many entries stay in this page when `next` does not fit.
    pub(crate) fn tail(&self, next: &Outpoint) -> usize {
        let all = self.placed.len();
        let Some(last) = self.last().filter(|last| last.txid == next.txid) else { return all };
        let group_bytes = self.records.len() - self.start(self.group);
        let group_cost = group_bytes + SLOT_COST * (all - self.group);
        if self.group > 0 && group_cost <= CARRY_MAX {
            return self.group;
        }
        if last.vout != next.vout {
            return all;
        }
        let others = self.placed.iter().rposition(|entry| entry.outpoint != *next);
        others.map_or(0, |other| other + 1)
    }

    /// Moves the entries from `from` on, which are of one transaction, into a new page.
    pub(crate) fn split_tail(&mut self, from: usize) -> Self {
        let mut tail = Self::default();
        let moved = self.placed.get(from..).unwrap_or_default();
        for (index, entry) in (from..).zip(moved) {
            let body = self.start(index) + usize::from(entry.key_len)..self.start(index + 1);
            let body = self.records.get(body).unwrap_or_default();
            let flags = entry.slot & !(OFFSET_MASK | SIBLING);
            let fits = tail.push(entry.outpoint, entry.hash, flags, body);
            debug_assert!(fits, "a part of a page fits into a page");
        }
        self.records.truncate(self.start(from));
        self.placed.truncate(from);
        tail
    }

    /// Where a record starts; the end of the records for the index after the last.
    fn start(&self, index: usize) -> usize {
        let slot = self.placed.get(index).map(|entry| usize::from(entry.slot & OFFSET_MASK));
        slot.unwrap_or(self.records.len())
    }

    /// Puts the page's payload into `payload`, without the zeroes at its end.
    pub(crate) fn encode(&self, payload: &mut Vec<u8>) {
        let field = |number| u16::try_from(number).expect("a page is shorter than that");
        payload.clear();
        payload.extend_from_slice(&field(self.placed.len()).to_le_bytes());
        payload.extend_from_slice(&field(self.records.len()).to_le_bytes());
        payload.extend(self.placed.iter().map(|entry| tag(entry.hash)));
        payload.extend(self.placed.iter().flat_map(|entry| entry.slot.to_le_bytes()));
        payload.extend_from_slice(&self.records);
        debug_assert!(self.placed.is_sorted_by_key(|entry| entry.outpoint), "a leaf is in order");
        assert!(payload.len() <= PAGE_PAYLOAD_LEN, "a leaf fits into its page");
    }
}
