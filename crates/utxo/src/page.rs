//! A leaf: one page of a run, with entries in the order of outpoint, then birth.
//!
//! ```text
//!  0       2      4          4+n          4+3n                  4+3n+used        4092
//!  ┌───────┬──────┬──────────┬────────────┬─────────────────────┬────────────────┐
//!  │ n     │ used │ tags     │ slots      │ records             │ zero           │
//!  │ u16   │ u16  │ n bytes  │ n × u16    │ `used` bytes        │                │
//!  └───────┴──────┴──────────┴────────────┴─────────────────────┴────────────────┘
//!
//!  slot     bits 0–11 where the record starts, from the start of the records
//!           bit 12 SIBLING   bit 13 DELETE   bit 14 SPILLED   bit 15 zero
//!
//!  record   │ txid 32       │ VARINT vout │ body │     first of its transaction in this page
//!           │ VARINT k      │ VARINT vout │ body │     SIBLING: the txid is k slots back
//!
//!  body     │ VARINT distance │ packed coin to the end of the record │
//!           │ VARINT birth │                                            DELETE
//!           │ VARINT birth │ VARINT length │ VARINT first page │        SPILLED
//! ```
//!
//! `distance` is birth − height, with the sign in the lowest bit (0, −1, 1, −2, …): one byte while
//! there have been few reorganisations. A coin too large for a leaf is *spilled*: its packed bytes
//! fill whole pages that lie before the leaf in the file.
//!
//! A tag is one byte of the outpoint's keyed hash. A lookup scans the tags, follows the slots
//! of those that agree and compares the outpoint: two or three cache lines of the 64. Every
//! page stands alone: the txid is repeated when a transaction continues in the next page. All
//! entries of one outpoint are in one page.
//!
//! Decoders trust nothing: bytes that do not decode give a [`FormatError`] with their offset.

use varve_io::FormatError;
use varve_runs::Sequence;
use varve_types::{DecodeError, Outpoint, Reader, Txid, varint};

use crate::packed::PackedCoin;

pub(crate) const COUNT_AT: usize = 0;
pub(crate) const USED_AT: usize = COUNT_AT + size_of::<u16>();
pub(crate) const HEADER_LEN: usize = USED_AT + size_of::<u16>();
/// What one entry takes beside its record: a tag and a slot.
pub(crate) const SLOT_COST: usize = size_of::<u8>() + size_of::<u16>();
const _: () = assert!(HEADER_LEN == 4 && SLOT_COST == 3);

pub(crate) const OFFSET_MASK: u16 = 0x0fff;
pub(crate) const SIBLING: u16 = 1 << 12;
pub(crate) const DELETE: u16 = 1 << 13;
pub(crate) const SPILLED: u16 = 1 << 14;
const UNKNOWN: u16 = 1 << 15;
const _: () = assert!(OFFSET_MASK as usize >= varve_io::PAGE_PAYLOAD_LEN);

/// The tag of an outpoint with this keyed hash. The multiplication moves it away from the bits
/// that the filter takes.
#[must_use]
#[inline]
pub(crate) const fn tag(hash: u64) -> u8 {
    let [.., top] = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    top
}

/// The entry of one outpoint and birth in a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafEntry<'a> {
    /// The coin's outpoint.
    pub outpoint: Outpoint,
    /// The step that created the coin.
    pub birth: Sequence,
    /// What happened to it.
    pub body: Body<'a>,
}

/// The part of an entry after its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// The coin was added, and is here.
    Packed(PackedCoin<'a>),
    /// The coin was added; its packed bytes fill separate pages.
    Spilled(Spill),
    /// The coin was deleted.
    Deleted,
}

/// Where a large coin is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spill {
    /// The number of the first of its pages.
    pub first: u64,
    /// The length of the packed coin.
    pub len: u64,
}

/// A page's payload, seen as a leaf.
#[derive(Clone, Copy, Debug)]
pub struct Leaf<'a> {
    tags: &'a [u8],
    slots: &'a [[u8; 2]],
    records: &'a [u8],
}

const fn damaged(at: usize, what: &'static str) -> FormatError {
    FormatError::Damaged { at, what }
}

impl<'a> Leaf<'a> {
    /// Interprets a verified payload as a leaf. Checks the header; records are checked when they
    /// are read.
    #[inline]
    pub fn parse(payload: &'a [u8]) -> Result<Self, FormatError> {
        let short = damaged(COUNT_AT, "a leaf is shorter than its header says");
        let (count, rest) = payload.split_first_chunk().ok_or(short)?;
        let (used, rest) = rest.split_first_chunk().ok_or(short)?;
        let count = usize::from(u16::from_le_bytes(*count));
        let used = usize::from(u16::from_le_bytes(*used));
        let (tags, rest) = rest.split_at_checked(count).ok_or(short)?;
        let (slots, rest) = rest.split_at_checked(2 * count).ok_or(short)?;
        let records = rest.get(..used).ok_or(short)?;
        let (slots, _) = slots.as_chunks();
        Ok(Self { tags, slots, records })
    }

    /// The number of entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.tags.len()
    }

    /// True when there is no entry, which no writer writes.
    #[cfg(feature = "test-suite")]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.tags.is_empty()
    }

    /// The first entry from `from` on with this tag. It may be another outpoint's.
    #[must_use]
    #[inline]
    pub(crate) fn tagged(&self, tag: u8, from: usize) -> Option<usize> {
        let rest = self.tags.get(from..)?;
        Some(from + memchr::memchr(tag, rest)?)
    }

    /// Loads the record of `index` into the cache before it is decoded.
    #[inline]
    pub(crate) fn touch(&self, index: usize) -> u8 {
        let slot = self.slots.get(index).map_or(0, |slot| u16::from_le_bytes(*slot));
        let start = usize::from(slot & OFFSET_MASK);
        let byte = |at: usize| self.records.get(at).copied().unwrap_or_default();
        // A record is about as long as a cache line. The txid of a sibling is in one before it.
        let before = if slot & SIBLING == 0 { 0 } else { 64 };
        byte(start.saturating_sub(before)) ^ byte(start) ^ byte(start + 63)
    }

    /// The coin of `outpoint`, whose tag first occurs at `index`, unless its birth is among the
    /// `deleted`. Births that the page deletes are added to `deleted`.
    pub(crate) fn find_from(
        &self,
        index: Option<usize>,
        outpoint: &Outpoint,
        deleted: &mut Vec<Sequence>,
    ) -> Result<Option<LeafEntry<'a>>, FormatError> {
        let mut next = index;
        while let Some(index) = next {
            match self.entry_of(index, outpoint)? {
                Some(LeafEntry { birth, body: Body::Deleted, .. }) => deleted.push(birth),
                Some(entry) if !deleted.contains(&entry.birth) => return Ok(Some(entry)),
                _ => {}
            }
            let tag = self.tags.get(index).copied().unwrap_or_default();
            next = self.tagged(tag, index + 1);
        }
        Ok(None)
    }

    /// The coin of `outpoint`, which has this keyed hash, unless its birth is among the `deleted`
    /// of younger pages. Births that this page deletes are added to `deleted`.
    pub fn find(
        &self,
        hash: u64,
        outpoint: &Outpoint,
        deleted: &mut Vec<Sequence>,
    ) -> Result<Option<LeafEntry<'a>>, FormatError> {
        self.find_from(self.tagged(tag(hash), 0), outpoint, deleted)
    }

    /// The entry number `index`, which must be below [`Leaf::len`].
    pub fn entry(&self, index: usize) -> Result<LeafEntry<'a>, FormatError> {
        let (slot, record, base) = self.record(index)?;
        let (txid, rest) = self.txid(index, slot, record)?;
        let mut reader = Reader::at(record, record.len() - rest.len());
        let entry = decode(slot, txid, &mut reader);
        entry.map_err(|error| damaged(base + error_place(error), "an entry does not decode"))
    }

    /// The entry number `index` if it has this outpoint.
    #[inline]
    fn entry_of(
        &self,
        index: usize,
        outpoint: &Outpoint,
    ) -> Result<Option<LeafEntry<'a>>, FormatError> {
        let (slot, record, base) = self.record(index)?;
        let (txid, rest) = self.txid(index, slot, record)?;
        if txid != outpoint.txid.as_bytes() {
            return Ok(None);
        }
        let mut reader = Reader::at(record, record.len() - rest.len());
        let entry = decode(slot, txid, &mut reader);
        let entry = entry
            .map_err(|error| damaged(base + error_place(error), "an entry does not decode"))?;
        Ok((entry.outpoint.vout == outpoint.vout).then_some(entry))
    }

    /// The slot and the bytes of a record, and where they are in the page.
    #[inline]
    fn record(&self, index: usize) -> Result<(u16, &'a [u8], usize), FormatError> {
        let slot = self.slot(index)?;
        let start = usize::from(slot & OFFSET_MASK);
        let end = match self.slots.get(index + 1) {
            Some(next) => usize::from(u16::from_le_bytes(*next) & OFFSET_MASK),
            None => self.records.len(),
        };
        let base = HEADER_LEN + SLOT_COST * self.tags.len() + start;
        let record = self.records.get(start..end);
        let record = record.ok_or(damaged(base, "a slot points outside the page"))?;
        Ok((slot, record, base))
    }

    #[inline]
    fn slot(&self, index: usize) -> Result<u16, FormatError> {
        let place = HEADER_LEN + self.tags.len() + 2 * index;
        let slot = self.slots.get(index).map(|slot| u16::from_le_bytes(*slot));
        let slot = slot.filter(|slot| slot & UNKNOWN == 0);
        slot.ok_or(damaged(place, "there is no such slot"))
    }

    /// The txid of a record, and the bytes that follow it.
    #[inline]
    fn txid(
        &self,
        index: usize,
        slot: u16,
        record: &'a [u8],
    ) -> Result<(&'a [u8; 32], &'a [u8]), FormatError> {
        let place = HEADER_LEN + SLOT_COST * self.tags.len() + usize::from(slot & OFFSET_MASK);
        let short = damaged(place, "a record is shorter than its txid");
        if slot & SIBLING == 0 {
            let (txid, rest) = record.split_first_chunk().ok_or(short)?;
            return Ok((txid, rest));
        }
        let lost = damaged(place, "a sibling has no first of its transaction");
        let mut reader = Reader::new(record);
        let back = read_number(&mut reader, "the distance to the first sibling");
        let back = back.ok().and_then(|back| usize::try_from(back).ok()).filter(|back| *back > 0);
        let first = back.and_then(|back| index.checked_sub(back)).ok_or(lost)?;
        let (first_slot, first_record, _) = self.record(first)?;
        if first_slot & SIBLING != 0 {
            return Err(lost);
        }
        let txid = first_record.first_chunk().ok_or(short)?;
        Ok((txid, reader.rest()))
    }
}

/// Decodes what follows the txid.
#[inline]
fn decode<'a>(
    slot: u16,
    txid: &[u8; 32],
    reader: &mut Reader<'a>,
) -> Result<LeafEntry<'a>, DecodeError> {
    let vout = read_u32(reader, "an output's place")?;
    let outpoint = Outpoint::new(Txid::from_bytes(*txid), vout);
    if slot & (DELETE | SPILLED) == 0 {
        let distance = read_number(reader, "the distance of birth and height")?;
        let coin = PackedCoin::new(reader.rest());
        let (height, _) = coin.code()?;
        let birth = unfold(distance, height.to_u32());
        let birth = birth.ok_or(reader.error(varve_types::DecodeErrorKind::VarintTooLarge))?;
        return Ok(LeafEntry { outpoint, birth, body: Body::Packed(coin) });
    }
    let birth = Sequence::new(read_u32(reader, "a birth")?);
    let body = if slot & DELETE != 0 {
        Body::Deleted
    } else {
        let len = varint::read(reader, "the length of a spilled coin")?;
        let first = varint::read(reader, "the page of a spilled coin")?;
        Body::Spilled(Spill { first, len })
    };
    reader.end()?;
    Ok(LeafEntry { outpoint, birth, body })
}

/// Reads a number; most are one byte.
#[inline]
pub(crate) fn read_number(reader: &mut Reader<'_>, what: &'static str) -> Result<u64, DecodeError> {
    match reader.rest().first() {
        Some(byte) if *byte < 0x80 => reader.u8(what).map(u64::from),
        _ => varint::read(reader, what),
    }
}

fn read_u32(reader: &mut Reader<'_>, what: &'static str) -> Result<u32, DecodeError> {
    let number = read_number(reader, what)?;
    let too_large = |_| reader.error(varve_types::DecodeErrorKind::VarintTooLarge);
    u32::try_from(number).map_err(too_large)
}

/// The difference of birth and height as a number without a sign.
pub(crate) const fn fold(birth: Sequence, height: u32) -> u64 {
    let (birth, height) = (birth.to_u32(), height);
    if birth >= height { (birth - height) as u64 * 2 } else { (height - birth) as u64 * 2 - 1 }
}

/// The birth at this folded distance from the height.
fn unfold(distance: u64, height: u32) -> Option<Sequence> {
    let apart = u32::try_from(distance.div_ceil(2)).ok()?;
    let birth = match distance % 2 {
        0 => height.checked_add(apart)?,
        _ => height.checked_sub(apart)?,
    };
    Some(Sequence::new(birth))
}

fn error_place(error: DecodeError) -> usize {
    usize::try_from(error.offset).unwrap_or_default()
}

#[cfg(test)]
mod tests;
