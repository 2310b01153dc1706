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
//! The file is: the header page of a page file, `data` pages (leaves and spilled coins), the
//! directory's section, the filter's section, this page. A section fills whole pages, 4092 bytes in
//! each, zeroes behind it. `digest` is the CRC32C of all payloads between header page and footer.

use varve_io::{FormatError, PAGE_PAYLOAD_LEN, StoreId};

use crate::directory::Counts;
use crate::fuse::Width;
use crate::sequence::Sequence;

const MAGIC: [u8; 8] = *b"VARVERUN";
pub(crate) const VERSION: u32 = 1;
const ENCODED_LEN: usize = 100;

/// The number of a run's file. Never given twice in the life of a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunNumber(pub u64);

impl RunNumber {
    /// The name of the file.
    #[must_use]
    pub fn file_name(self) -> String {
        format!("{:010}.run", self.0)
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
    pub(crate) width: Width,
    pub(crate) chunks: u32,
    pub(crate) filter_len: u64,
    pub(crate) digest: u32,
}

impl Footer {
    /// The first page of the directory's section.
    pub(crate) const fn directory_page(&self) -> u64 {
        self.data_pages.saturating_add(1)
    }

    /// The first page of the filter's section.
    pub(crate) const fn filter_page(&self) -> u64 {
        self.directory_page().saturating_add(section_pages(self.directory.encoded_len()))
    }

    /// The number of the footer's own page: the last.
    pub(crate) const fn own_page(&self) -> u64 {
        self.filter_page().saturating_add(section_pages(self.filter_len))
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(ENCODED_LEN);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.width.code().to_le_bytes());
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

    /// Decodes the payload of page `own`, the last of a run.
    pub(crate) fn decode(payload: &[u8], own: u64) -> Result<Self, FormatError> {
        let mut fields = Fields { rest: payload, at: 0 };
        if fields.take::<8>()? != MAGIC {
            return Err(FormatError::Damaged { at: 0, what: "this is not the end of a run" });
        }
        let version = fields.u32()?;
        if version != VERSION {
            return Err(FormatError::Version { found: version, supported: VERSION });
        }
        let width = Width::from_code(fields.u32()?);
        let what = "a filter's fingerprints have an impossible width";
        let width = width.ok_or(FormatError::Damaged { at: 12, what })?;
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
        if footer.own_page() != own {
            let what = "the run's parts do not fill its file";
            return Err(FormatError::Damaged { at: 64, what });
        }
        Ok(footer)
    }
}

/// The number of pages that a section fills.
pub(crate) const fn section_pages(len: u64) -> u64 {
    len.div_ceil(PAGE_PAYLOAD_LEN as u64)
}

/// Fixed-width fields, one after the other.
pub(crate) struct Fields<'a> {
    pub(crate) rest: &'a [u8],
    pub(crate) at: usize,
}

impl Fields<'_> {
    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let what = "the bytes end within a field";
        let Some((field, rest)) = self.rest.split_first_chunk() else {
            return Err(FormatError::Damaged { at: self.at, what });
        };
        self.rest = rest;
        self.at += N;
        Ok(*field)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, FormatError> {
        self.take().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, FormatError> {
        self.take().map(u64::from_le_bytes)
    }
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
            width: Width::Two,
            chunks: 1,
            filter_len: 5000,
            digest: 0x1234_5678,
        }
    }

    #[test]
    fn round_trips_and_knows_its_place() {
        let footer = footer();
        assert_eq!(footer.own_page(), 1 + 20 + 1 + 2);
        let bytes = footer.encode();
        assert_eq!(Footer::decode(&bytes, 24), Ok(footer));
        assert!(Footer::decode(&bytes, 25).is_err(), "the file has another length");
        assert!(Footer::decode(&bytes[..99], 24).is_err());
    }

    #[test]
    fn another_version_is_told_from_damage() {
        let mut bytes = footer().encode();
        bytes[8] = 2;
        let expected = FormatError::Version { found: 2, supported: 1 };
        assert_eq!(Footer::decode(&bytes, 24), Err(expected));
    }

    proptest! {
        #[test]
        fn hostile_bytes(mut bytes in prop::collection::vec(any::<u8>(), 0..120), own: u64) {
            let _ = Footer::decode(&bytes, own);
            if let Some(start) = bytes.get_mut(..16) {
                start.copy_from_slice(b"VARVERUN\x01\0\0\0\x01\0\0\0");
            }
            let _ = Footer::decode(&bytes, own);
        }
    }
}
