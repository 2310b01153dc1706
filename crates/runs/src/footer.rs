//! The last page of a run: what the run is and where its parts are.
//!
//! ```text
//!  0        8        12       16         32       40       44      48       56        64
//!  ┌────────┬────────┬────────┬──────────┬────────┬────────┬───────┬────────┬─────────┐
//!  │ magic  │ version│ width  │ store id │ number │ first  │ last  │ adds   │ deletes │
//!  │VARVERUN│ u32 = 1│ u32    │ 16 bytes │ u64    │ step   │ step  │ u64    │ u64     │
//!  │        │        │        │          │        │ u32    │ u32   │        │         │
//!  └────────┴────────┴────────┴──────────┴────────┴────────┴───────┴────────┴─────────┘
//!  64       72       76       80       84       88         96       100
//!  ┌────────┬────────┬────────┬────────┬────────┬──────────┬────────┐
//!  │ data   │ leaves │ ties   │ jumps  │ chunks │ filter   │ digest │
//!  │ pages  │ u32    │ u32    │ u32    │ u32    │ bytes u64│ u32    │
//!  │ u64    │        │        │        │        │          │        │
//!  └────────┴────────┴────────┴────────┴────────┴──────────┴────────┘
//! ```
//!
//! The file is: the header page of a page file, `data` pages (leaves and what they spilled), the
//! directory's section, the filter's section, this page. A section fills whole pages, 4092 bytes in
//! each, padded with zeroes. `digest` is the CRC32C of all payloads between header page and footer.
//! `width` is that of a fingerprint: 1 or 2 bytes, 0 for half a byte, 3 when there is no filter.

use varve_io::{FormatError, PAGE_PAYLOAD_LEN, StoreId};

use crate::directory::Counts;
use crate::fields::Fields;
use crate::fuse::Width;
use crate::sequence::Sequence;

const MAGIC: [u8; 8] = *b"VARVERUN";
const VERSION: u32 = 1;
/// In place of a width: the run has no filter.
const NO_FILTER: u32 = 3;
const ENCODED_LEN: usize = 100;

/// The number of a run, or of another file of its owner. Never reused in the life of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunNumber(pub u64);

impl RunNumber {
    /// The name of the run's file.
    #[must_use]
    pub fn file_name(self) -> String {
        self.name("run")
    }

    /// The name of the owner's file with this number and extension.
    #[must_use]
    pub fn name(self, extension: &str) -> String {
        format!("{:010}.{extension}", self.0)
    }

    /// The number in the name of a file with one of these extensions.
    pub(crate) fn of_name(name: &str, extensions: &[&str]) -> Option<Self> {
        let (number, extension) = name.split_once('.')?;
        let number = number.parse().ok().map(Self)?;
        (extensions.contains(&extension) && number.name(extension) == name).then_some(number)
    }
}

/// The steps whose changes a run holds, from `first` to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first step.
    pub first: Sequence,
    /// The last step.
    pub last: Sequence,
}

impl Span {
    /// The steps of all `runs` together.
    #[must_use]
    pub fn of(runs: &[RunInfo]) -> Self {
        let spans = || runs.iter().map(|run| run.span);
        let first = spans().map(|span| span.first).min().unwrap_or_default();
        let last = spans().map(|span| span.last).max().unwrap_or_default();
        Self { first, last }
    }
}

/// What manifests and merge policies know about a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunInfo {
    /// The number of the file.
    pub number: RunNumber,
    /// The steps whose changes it holds.
    pub span: Span,
    /// The number of rows that add something.
    pub adds: u64,
    /// The number of rows that delete rows of older runs.
    pub deletes: u64,
    /// The length of the file in pages.
    pub pages: u64,
    /// The checksum over the whole content.
    pub digest: u32,
}

/// What a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) store: StoreId,
    pub(crate) number: RunNumber,
    pub(crate) span: Span,
    pub(crate) adds: u64,
    pub(crate) deletes: u64,
    pub(crate) data_pages: u64,
    pub(crate) directory: Counts,
    pub(crate) width: Option<Width>,
    pub(crate) chunks: u32,
    pub(crate) filter_len: u64,
    pub(crate) digest: u32,
}

impl Footer {
    /// The footer of a run that has no pages yet.
    pub(crate) fn new(store: StoreId, number: RunNumber, span: Span, width: Option<Width>) -> Self {
        let (adds, deletes, data_pages, chunks, filter_len, digest) = (0, 0, 0, 0, 0, 0);
        let directory = Counts::default();
        Self {
            store,
            number,
            span,
            adds,
            deletes,
            data_pages,
            directory,
            width,
            chunks,
            filter_len,
            digest,
        }
    }

    /// The first page of the directory's section.
    pub(crate) const fn directory_page(&self) -> u64 {
        self.data_pages.saturating_add(1)
    }

    /// The first page of the filter's section; a key has `key_len` bytes.
    pub(crate) const fn filter_page(&self, key_len: usize) -> u64 {
        self.directory_page().saturating_add(section_pages(self.directory.encoded_len(key_len)))
    }

    /// The number of the footer's page: the last.
    pub(crate) const fn own_page(&self, key_len: usize) -> u64 {
        self.filter_page(key_len).saturating_add(section_pages(self.filter_len))
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(ENCODED_LEN);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        let width = self.width.map_or(NO_FILTER, Width::code);
        out.extend_from_slice(&width.to_le_bytes());
        out.extend_from_slice(&self.store.0);
        out.extend_from_slice(&self.number.0.to_le_bytes());
        out.extend_from_slice(&self.span.first.to_u32().to_le_bytes());
        out.extend_from_slice(&self.span.last.to_u32().to_le_bytes());
        out.extend_from_slice(&self.adds.to_le_bytes());
        out.extend_from_slice(&self.deletes.to_le_bytes());
        out.extend_from_slice(&self.data_pages.to_le_bytes());
        out.extend_from_slice(&self.directory.leaves.to_le_bytes());
        out.extend_from_slice(&self.directory.ties.to_le_bytes());
        out.extend_from_slice(&self.directory.jumps.to_le_bytes());
        out.extend_from_slice(&self.chunks.to_le_bytes());
        out.extend_from_slice(&self.filter_len.to_le_bytes());
        out.extend_from_slice(&self.digest.to_le_bytes());
        debug_assert_eq!(out.len(), ENCODED_LEN);
        out
    }

    /// Decodes the payload of page `own`, the last of a run whose keys have `key_len` bytes.
    pub(crate) fn decode(payload: &[u8], own: u64, key_len: usize) -> Result<Self, FormatError> {
        let mut fields = Fields::new(payload);
        if fields.take::<8>()? != MAGIC {
            return Err(FormatError::Damaged { at: 0, what: "this is not the end of a run" });
        }
        let version = fields.u32()?;
        if version != VERSION {
            return Err(FormatError::Version { found: version, supported: VERSION });
        }
        let width = decode_width(fields.u32()?)?;
        let footer = Self {
            width,
            store: StoreId(fields.take()?),
            number: RunNumber(fields.u64()?),
            span: Span { first: Sequence::new(fields.u32()?), last: Sequence::new(fields.u32()?) },
            adds: fields.u64()?,
            deletes: fields.u64()?,
            data_pages: fields.u64()?,
            directory: Counts { leaves: fields.u32()?, ties: fields.u32()?, jumps: fields.u32()? },
            chunks: fields.u32()?,
            filter_len: fields.u64()?,
            digest: fields.u32()?,
        };
        if footer.own_page(key_len) != own {
            let what = "the run's parts do not fill its file";
            return Err(FormatError::Damaged { at: 64, what });
        }
        Ok(footer)
    }
}

fn decode_width(code: u32) -> Result<Option<Width>, FormatError> {
    if code == NO_FILTER {
        return Ok(None);
    }
    let what = "a filter's fingerprints have an impossible width";
    Width::from_code(code).map(Some).ok_or(FormatError::Damaged { at: 12, what })
}

/// The number of pages that a section fills.
pub(crate) const fn section_pages(len: u64) -> u64 {
    len.div_ceil(PAGE_PAYLOAD_LEN as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn footer() -> Footer {
        Footer {
            store: StoreId([3; 16]),
            number: RunNumber(9),
            span: Span { first: Sequence::new(1), last: Sequence::new(256) },
            adds: 1000,
            deletes: 10,
            data_pages: 20,
            directory: Counts { leaves: 18, ties: 1, jumps: 1 },
            width: Some(Width::Two),
            chunks: 1,
            filter_len: 5000,
            digest: 0x1234_5678,
        }
    }

    #[test]
    fn round_trips_and_knows_its_place() {
        let footer = footer();
        assert_eq!(footer.own_page(36), 1 + 20 + 1 + 2);
        let bytes = footer.encode();
        assert_eq!(Footer::decode(&bytes, 24, 36), Ok(footer));
        assert!(Footer::decode(&bytes, 25, 36).is_err(), "the file has another length");
        assert!(Footer::decode(&bytes, 24, 4_000).is_err(), "keys of another length");
        assert!(Footer::decode(&bytes[..99], 24, 36).is_err());
    }

    #[test]
    fn a_run_may_have_no_filter() {
        let footer = Footer { width: None, chunks: 0, filter_len: 0, ..footer() };
        let mut bytes = footer.encode();
        assert_eq!(Footer::decode(&bytes, 22, 36), Ok(footer));
        bytes[12] = 4;
        assert!(Footer::decode(&bytes, 22, 36).is_err(), "no such width");
    }

    #[test]
    fn names_have_numbers() {
        let of = |name: &str| RunNumber::of_name(name, &["run", "window"]);
        assert_eq!(of(&RunNumber(7).file_name()), Some(RunNumber(7)));
        assert_eq!(of(&RunNumber(7).name("window")), Some(RunNumber(7)));
        for other in ["7.run", "0000000007.old", "0000000007", "+000000007.run", "manifest"] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn another_version_is_told_from_damage() {
        let mut bytes = footer().encode();
        bytes[8] = 2;
        let expected = FormatError::Version { found: 2, supported: 1 };
        assert_eq!(Footer::decode(&bytes, 24, 36), Err(expected));
    }

    proptest! {
        #[test]
        fn hostile_bytes(mut bytes in prop::collection::vec(any::<u8>(), 0..120), own: u64) {
            let _ = Footer::decode(&bytes, own, 36);
            if let Some(start) = bytes.get_mut(..16) {
                start.copy_from_slice(b"VARVERUN\x01\0\0\0\x01\0\0\0");
            }
            let _ = Footer::decode(&bytes, own, 36);
        }
    }
}
