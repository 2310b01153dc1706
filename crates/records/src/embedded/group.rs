//! A frame of the log: entries that are written together.
//!
//! ```text
//!  0              16         24         32        36        40
//!  ┌──────────────┬──────────┬──────────┬─────────┬─────────┬─────────┬─────────┬─ ─ ┬───────┐
//!  │ frame header │ group    │ durable  │ entries │ more    │ entry   │ entry   │    │ zeroes│
//!  │ 16, as in io │ u64      │ u64      │ u32     │ u32     │         │         │    │< 4096 │
//!  └──────────────┴──────────┴──────────┴─────────┴─────────┴─────────┴─────────┴─ ─ ┴───────┘
//! ```
//!
//! - The frame header is that of `varve_io`: length and checksum of the rest, bound to store and
//!   position. A frame begins and ends at a multiple of 4 KiB of the log: so it is written past the
//!   system's cache, no sector of an older frame is ever written again, and a frame behind a
//!   damaged place can be found again.
//! - A *group* is what one sync made durable: all operations of the callers that waited for it. It
//!   counts whole or not at all. It lies in one frame as a rule; `more` is 1 when it continues in
//!   the next one.
//! - `durable` is the position that was known to be synced when the frame was written. It
//!   distinguishes damage from a torn tail: a frame that does not verify, before the `durable` of
//!   one that does, was acknowledged and is lost. See `log::recover`.

use varve_io::{
    BLOCK, FRAME_HEADER_LEN, FormatError, FrameHeader, GlobalOffset, StoreId, decode_frame,
};

use super::entry::EntryHead;

/// Frames begin at multiples of this.
pub(super) const ALIGN: usize = BLOCK;
/// The length of what comes before the first entry.
pub(super) const GROUP_HEAD_LEN: usize = FRAME_HEADER_LEN + 24;
const _: () = assert!(GROUP_HEAD_LEN == 40);

/// The head of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct GroupHead {
    /// The group's number, counted up since the store was created.
    pub(super) group: u64,
    /// All before this was synced when the frame was written.
    pub(super) durable: GlobalOffset,
    pub(super) entries: u32,
    /// The group continues in the next frame.
    pub(super) more: bool,
}

/// A frame being filled.
#[derive(Debug)]
pub(super) struct FrameBuilder {
    /// Where it will lie.
    at: GlobalOffset,
    bytes: Vec<u8>,
    entries: u32,
}

impl FrameBuilder {
    /// A frame to be put at `at`.
    pub(super) fn new(at: GlobalOffset, capacity: usize) -> Self {
        let mut bytes = Vec::with_capacity(capacity.max(GROUP_HEAD_LEN));
        bytes.resize(GROUP_HEAD_LEN, 0);
        Self { at, bytes, entries: 0 }
    }

    /// The bytes so far.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Adds an entry whose payload `fill` appends; returns its position and length.
    pub(super) fn push(
        &mut self,
        store: StoreId,
        head: &EntryHead,
        fill: impl FnOnce(&mut Vec<u8>),
    ) -> (GlobalOffset, usize) {
        let start = self.bytes.len();
        let at = self.at.plus(start as u64);
        head.begin(&mut self.bytes);
        fill(&mut self.bytes);
        let entry = self.bytes.get_mut(start..).unwrap_or_default();
        super::entry::seal(entry, store, at);
        self.entries += 1;
        (at, self.bytes.len() - start)
    }

    /// The finished frame.
    pub(super) fn finish(
        mut self,
        store: StoreId,
        group: u64,
        durable: GlobalOffset,
        more: bool,
    ) -> Vec<u8> {
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGN), 0);
        let (header, payload) = self.bytes.split_at_mut(FRAME_HEADER_LEN);
        let fields = [
            &group.to_le_bytes()[..],
            &durable.get().to_le_bytes(),
            &self.entries.to_le_bytes(),
            &u32::from(more).to_le_bytes(),
        ];
        let mut rest = &mut *payload;
        for field in fields {
            let (place, later) = rest.split_at_mut(field.len());
            place.copy_from_slice(field);
            rest = later;
        }
        header.copy_from_slice(&FrameHeader::of(payload).encode(store, self.at));
        assert!(durable <= self.at, "what is durable lies before the frame");
        self.bytes
    }
}

/// A verified frame.
#[derive(Debug)]
pub(super) struct GroupFrame<'a> {
    at: GlobalOffset,
    pub(super) head: GroupHead,
    /// The frame's bytes, all of them.
    bytes: &'a [u8],
}

impl<'a> GroupFrame<'a> {
    /// Verifies the frame at the front of `bytes`, found at `at`.
    pub(super) fn decode(
        bytes: &'a [u8],
        store: StoreId,
        at: GlobalOffset,
    ) -> Result<Self, FormatError> {
        let payload = decode_frame(bytes, store, at)?;
        let Some((fields, _)) = payload.split_first_chunk::<24>() else {
            return Err(damaged(FRAME_HEADER_LEN, "the frame has no group"));
        };
        let (words, _) = fields.as_chunks::<8>();
        let [group, durable, rest] = words else {
            return Err(damaged(FRAME_HEADER_LEN, "the frame has no group"));
        };
        let [a, b, c, d, more @ ..] = *rest;
        let head = GroupHead {
            group: u64::from_le_bytes(*group),
            durable: GlobalOffset::new(u64::from_le_bytes(*durable)),
            entries: u32::from_le_bytes([a, b, c, d]),
            more: match u32::from_le_bytes(more) {
                0 => false,
                1 => true,
                _ => return Err(damaged(GROUP_HEAD_LEN - 4, "the group's head is wrong")),
            },
        };
        if head.durable > at {
            return Err(damaged(24, "the group's durable position is behind it"));
        }
        let len = FRAME_HEADER_LEN + payload.len();
        Ok(Self { at, head, bytes: bytes.get(..len).unwrap_or_default() })
    }

    /// The length of the frame.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The entries with their positions and bytes.
    pub(super) fn entries(&self) -> Entries<'a> {
        Entries { frame: self.at, bytes: self.bytes, next: GROUP_HEAD_LEN, left: self.head.entries }
    }
}

/// The entries of a frame. The frame is verified, so what does not decode was written so; the
/// error's offset counts from the start of the frame.
#[derive(Debug)]
pub(super) struct Entries<'a> {
    frame: GlobalOffset,
    bytes: &'a [u8],
    next: usize,
    left: u32,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<(GlobalOffset, EntryHead, &'a [u8]), FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let start = self.next;
        let rest = self.bytes.get(start..).unwrap_or_default();
        Some(match EntryHead::decode(rest) {
            Ok((head, len)) => {
                self.next += len;
                let bytes = rest.get(..len).unwrap_or_default();
                Ok((self.frame.plus(start as u64), head, bytes))
            }
            Err(error) => {
                self.left = 0;
                Err(error_at(error, start))
            }
        })
    }
}

/// The same error, counted from `start` bytes before.
fn error_at(error: FormatError, start: usize) -> FormatError {
    match error {
        FormatError::Damaged { at, what } => damaged(start + at, what),
        other => other,
    }
}

const fn damaged(at: usize, what: &'static str) -> FormatError {
    FormatError::Damaged { at, what }
}

#[cfg(test)]
mod tests {
    use varve_types::Txid;

    use super::super::entry::{EntryKind, Marks};
    use super::super::key::{Key, Part};
    use super::*;

    const STORE: StoreId = StoreId([3; 16]);
    const AT: GlobalOffset = GlobalOffset::new(8192);

    fn head(part: u32) -> EntryHead {
        let key = Key { txid: Txid::from_bytes([5; 32]), part: Part::new(part) };
        EntryHead { kind: EntryKind::State, marks: Marks::default(), key, before: None }
    }

    fn frame() -> Vec<u8> {
        let mut builder = FrameBuilder::new(AT, 0);
        assert!(builder.is_empty());
        assert_eq!(builder.push(STORE, &head(0), |out| out.push(1)).0, AT.plus(40));
        assert_eq!(builder.push(STORE, &head(1), |_| ()).0, AT.plus(40 + 69));
        builder.finish(STORE, 9, GlobalOffset::new(64), true)
    }

    #[test]
    fn a_frame_gives_its_entries_back() {
        let bytes = frame();
        assert_eq!(bytes.len() % ALIGN, 0);
        let found = GroupFrame::decode(&bytes, STORE, AT).unwrap();
        let durable = GlobalOffset::new(64);
        assert_eq!(found.head, GroupHead { group: 9, durable, entries: 2, more: true });
        assert_eq!(found.len(), bytes.len());
        let entries = found.entries().map(Result::unwrap);
        let entries: Vec<_> = entries.map(|(at, head, bytes)| (at, head, bytes.len())).collect();
        assert_eq!(entries, [(AT.plus(40), head(0), 69), (AT.plus(109), head(1), 68)]);
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let bytes = frame();
        for bit in 0..300 * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(GroupFrame::decode(&bytes, STORE, AT).is_err(), "bit {bit}");
        }
        for len in (0..bytes.len()).step_by(7) {
            assert!(GroupFrame::decode(&bytes[..len], STORE, AT).is_err(), "cut at {len}");
        }
    }

    #[test]
    fn more_entries_than_there_are_is_an_error() {
        let mut builder = FrameBuilder::new(AT, 0);
        builder.push(STORE, &head(0), |_| ());
        builder.entries = 3;
        let bytes = builder.finish(STORE, 9, AT, false);
        let found = GroupFrame::decode(&bytes, STORE, AT).unwrap();
        assert!(found.entries().any(|entry| entry.is_err()));
    }
}
