//! An entry: one version of what a key holds, as it lies in the log.
//!
//! ```text
//!  0      4        8      9      10     12     16       24      28       32      36         68
//!  ┌──────┬────────┬──────┬──────┬──────┬──────┬────────┬───────┬────────┬───────┬──────────┬────
//!  │ crc  │ length │ kind │ marks│ zero │ part │ before │ weight│ unmined│ expiry│ txid     │ pay-
//!  │ u32  │ u32    │ u8   │ u8   │ u16  │ u32  │ u64    │ u32   │ u32    │ u32   │ 32 bytes │ load
//!  └──────┴────────┴──────┴──────┴──────┴──────┴────────┴───────┴────────┴───────┴──────────┴────
//! ```
//!
//! - `length` is that of the whole entry, these 68 bytes included.
//! - crc = CRC32C(store id 16 ‖ position of the entry u64 ‖ bytes 4 to `length`). An entry of
//!   another store or of another place does not verify.
//! - `before` is the position, plus one, of the version that this one replaces, and 0 when the key
//!   had none; `weight` is the number of bytes of the log that version needed. So recovery changes
//!   the index and its sums without reading old versions.
//! - `unmined`, `expiry` and `marks` are what the index keeps beside the position.
//!
//! | kind | payload | drawn in |
//! |---|---|---|
//! | 1 whole | state of a record, then its body | `state`, `body` |
//! | 2 state | state of a record, whose body lies elsewhere | `state` |
//! | 3 chunk | some slots of a record | `chunk` |
//! | 4 intent | a conflict intent | `intent` |
//! | 5 gone | nothing: the key is no more | |

use varve_io::{Checksum, FormatError, GlobalOffset, StoreId};
use varve_types::Txid;

use super::key::{Key, Part};

/// The length of an entry without its payload.
pub(super) const ENTRY_HEAD_LEN: usize = 68;
const CRC_LEN: usize = 4;

/// What an entry holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EntryKind {
    /// A record's state and body.
    Whole,
    /// A record's state.
    State,
    /// Some slots of a record.
    Chunk,
    /// A conflict intent.
    Intent,
    /// The end of a key.
    Gone,
}

impl EntryKind {
    const ALL: [Self; 5] = [Self::Whole, Self::State, Self::Chunk, Self::Intent, Self::Gone];

    const fn code(self) -> u8 {
        match self {
            Self::Whole => 1,
            Self::State => 2,
            Self::Chunk => 3,
            Self::Intent => 4,
            Self::Gone => 5,
        }
    }
}

/// What the index keeps of an entry beside its position, so that scans need not read the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Marks {
    /// The height since which the transaction is unmined, 0 when it is mined.
    pub(super) unmined: u32,
    /// The height the record is preserved until, or else the one it is to be deleted at; 0 for
    /// neither.
    pub(super) expiry: u32,
    /// `expiry` is a preservation.
    pub(super) preserved: bool,
    /// The transaction is conflicting.
    pub(super) conflicting: bool,
}

const PRESERVED: u8 = 1;
const CONFLICTING: u8 = 2;

impl Marks {
    pub(super) const fn bits(self) -> u8 {
        (if self.preserved { PRESERVED } else { 0 })
            | (if self.conflicting { CONFLICTING } else { 0 })
    }

    pub(super) const fn new(unmined: u32, expiry: u32, bits: u8) -> Self {
        let (preserved, conflicting) = (bits & PRESERVED != 0, bits & CONFLICTING != 0);
        Self { unmined, expiry, preserved, conflicting }
    }
}

/// A version that another one replaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Before {
    pub(super) at: GlobalOffset,
    /// Bytes of the log that it needed.
    pub(super) weight: u32,
}

/// The head of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct EntryHead {
    pub(super) kind: EntryKind,
    pub(super) marks: Marks,
    pub(super) key: Key,
    /// The version that this one replaces.
    pub(super) before: Option<Before>,
}

impl EntryHead {
    /// Appends the head, with room for the checksum and the length.
    pub(super) fn begin(&self, out: &mut Vec<u8>) {
        let mut head = [0; ENTRY_HEAD_LEN];
        let mut rest = head.as_mut_slice();
        let mut put = |bytes: &[u8]| {
            let (place, later) = std::mem::take(&mut rest).split_at_mut(bytes.len());
            place.copy_from_slice(bytes);
            rest = later;
        };
        put(&[0; 8]);
        put(&[self.kind.code(), self.marks.bits(), 0, 0]);
        put(&self.key.part.get().to_le_bytes());
        put(&self.before.map_or(0, |before| before.at.get().wrapping_add(1)).to_le_bytes());
        put(&self.before.map_or(0, |before| before.weight).to_le_bytes());
        put(&self.marks.unmined.to_le_bytes());
        put(&self.marks.expiry.to_le_bytes());
        put(self.key.txid.as_bytes());
        out.extend_from_slice(&head);
    }

    /// The head at the front of `bytes` and the length of the whole entry. Nothing but the plain
    /// sense of the fields is checked: the caller has verified the frame, or verifies the entry.
    pub(super) fn decode(bytes: &[u8]) -> Result<(Self, usize), FormatError> {
        let Some(head) = bytes.first_chunk::<ENTRY_HEAD_LEN>() else {
            return Err(damaged(bytes.len(), "the entry is cut short"));
        };
        let length = u32_at(head, 4) as usize;
        if length < ENTRY_HEAD_LEN || length > bytes.len() {
            return Err(damaged(4, "the entry's length is wrong"));
        }
        let [kind, bits, zero @ ..] = u32_at(head, 8).to_le_bytes();
        let kind = EntryKind::ALL.into_iter().find(|known| known.code() == kind);
        let kind = kind.ok_or(damaged(8, "the entry is of an unknown kind"))?;
        if zero != [0; 2] || bits > PRESERVED | CONFLICTING {
            return Err(damaged(9, "the entry has unknown marks"));
        }
        let txid = head.last_chunk::<32>().expect("the head ends with the txid");
        let key = Key { txid: Txid::from_bytes(*txid), part: Part::new(u32_at(head, 12)) };
        let (at, weight) =
            (u64_at(head, 16).checked_sub(1).map(GlobalOffset::new), u32_at(head, 24));
        let before = at.map(|at| Before { at, weight });
        let marks = Marks::new(u32_at(head, 28), u32_at(head, 32), bits);
        Ok((Self { kind, marks, key, before }, length))
    }
}

/// The length that the entry at the front of `bytes` says it has.
pub(super) fn stated_length(bytes: &[u8; ENTRY_HEAD_LEN]) -> usize {
    u32_at(bytes, 4) as usize
}

/// Puts length and checksum into the entry that `bytes` consists of.
///
/// # Panics
///
/// When the entry is longer than 4 GiB: what is put into one is bounded.
pub(super) fn seal(bytes: &mut [u8], store: StoreId, at: GlobalOffset) {
    let length = u32::try_from(bytes.len()).expect("an entry is far shorter than 4 GiB");
    if let Some(place) = bytes.get_mut(4..8) {
        place.copy_from_slice(&length.to_le_bytes());
    }
    let crc = crc(bytes, store, at);
    if let Some(place) = bytes.get_mut(..CRC_LEN) {
        place.copy_from_slice(&crc.to_le_bytes());
    }
}

/// Checks the entry that `bytes` consists of, found at `at`.
pub(super) fn verify(bytes: &[u8], store: StoreId, at: GlobalOffset) -> Result<(), FormatError> {
    let stored = bytes.first_chunk::<CRC_LEN>().map(|crc| u32::from_le_bytes(*crc));
    if stored == Some(crc(bytes, store, at)) {
        return Ok(());
    }
    Err(damaged(0, "the entry's checksum is wrong"))
}

fn crc(bytes: &[u8], store: StoreId, at: GlobalOffset) -> u32 {
    let covered = bytes.get(CRC_LEN..).unwrap_or_default();
    Checksum::new().with(&store.0).with_u64(at.get()).with(covered).get()
}

fn u32_at(bytes: &[u8; ENTRY_HEAD_LEN], at: usize) -> u32 {
    let field = bytes.get(at..).and_then(<[u8]>::first_chunk);
    field.map_or(0, |field| u32::from_le_bytes(*field))
}

fn u64_at(bytes: &[u8; ENTRY_HEAD_LEN], at: usize) -> u64 {
    let field = bytes.get(at..).and_then(<[u8]>::first_chunk);
    field.map_or(0, |field| u64::from_le_bytes(*field))
}

const fn damaged(at: usize, what: &'static str) -> FormatError {
    FormatError::Damaged { at, what }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: StoreId = StoreId([3; 16]);
    const AT: GlobalOffset = GlobalOffset::new(1 << 40);

    fn sample() -> (EntryHead, Vec<u8>) {
        let head = EntryHead {
            kind: EntryKind::Chunk,
            marks: Marks { unmined: 7, expiry: 9, preserved: true, conflicting: false },
            key: Key { txid: Txid::from_bytes([5; 32]), part: Part::new(3) },
            before: Some(Before { at: GlobalOffset::ZERO, weight: 700 }),
        };
        let mut bytes = Vec::new();
        head.begin(&mut bytes);
        bytes.extend_from_slice(b"payload");
        seal(&mut bytes, STORE, AT);
        (head, bytes)
    }

    #[test]
    fn an_entry_survives_and_every_flipped_bit_is_noticed() {
        let (head, bytes) = sample();
        assert_eq!(verify(&bytes, STORE, AT), Ok(()));
        assert_eq!(EntryHead::decode(&bytes), Ok((head, bytes.len())));
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(verify(&bytes, STORE, AT).is_err(), "bit {bit}");
        }
        assert!(verify(&bytes, STORE, AT.plus(1)).is_err(), "it belongs elsewhere");
        assert!(verify(&bytes, StoreId([4; 16]), AT).is_err(), "it is of another store");
        for len in 0..bytes.len() {
            assert!(EntryHead::decode(&bytes[..len]).is_err(), "cut at {len}");
        }
    }

    #[test]
    fn unknown_kinds_and_marks_are_refused() {
        let (_, bytes) = sample();
        for (at, value) in [(8, 0), (8, 6), (9, 4), (10, 1), (11, 1)] {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            assert!(EntryHead::decode(&bytes).is_err(), "{value} at {at}");
        }
    }
}
