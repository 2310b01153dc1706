//! What a log of plain bytes is called, and how far it is durable.

use crate::checksum::{Checksum, Kind, StoreId};
use crate::fields::{put, u32_at, u64_at};
use crate::offset::GlobalOffset;
use crate::segment::{self, Layout, SegmentHeader};

/// What a log is called and how it is cut into files.
#[derive(Debug, Clone)]
pub struct MappedLogConfig {
    /// The first part of every file's name.
    pub prefix: String,
    /// What the log holds; checked when it is opened.
    pub kind: Kind,
    /// The store it belongs to.
    pub store: StoreId,
    /// The bytes in a segment; at least one.
    pub capacity: u32,
}

impl MappedLogConfig {
    /// The header of segment `number`.
    pub(super) fn header(&self, number: u64) -> SegmentHeader {
        let Self { kind, store, .. } = *self;
        let start = GlobalOffset::new(number.saturating_mul(self.capacity()));
        SegmentHeader { layout: Layout::Plain, kind, store, number, start }
    }

    pub(super) fn capacity(&self) -> u64 {
        u64::from(self.capacity)
    }

    pub(super) fn size(&self) -> usize {
        usize::try_from(self.capacity()).expect("a u32 is an address")
    }

    pub(super) fn file_name(&self, number: u64) -> String {
        segment::file_name(&self.prefix, number)
    }

    /// The start of every checksum of segment `number`.
    pub(super) fn salt(&self, number: u64) -> Checksum {
        Checksum::new().with(&self.store.0).with_u64(number)
    }
}

/// How far a log is durable, and how to recognise it: twelve bytes to keep with the caller's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogCheckpoint {
    /// The position after the last durable byte.
    pub end: GlobalOffset,
    /// The checksum of the last, unsealed segment up to there.
    pub tail_crc: u32,
}

impl LogCheckpoint {
    /// The checkpoint of a log that does not exist yet.
    pub const NEW: Self = Self { end: GlobalOffset::ZERO, tail_crc: 0 };

    /// The length of a checkpoint in bytes.
    pub const LEN: usize = size_of::<u64>() + size_of::<u32>();

    /// End u64, tail crc u32.
    #[must_use]
    pub fn encode(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        put(&mut bytes, 0, &self.end.get().to_le_bytes());
        put(&mut bytes, size_of::<u64>(), &self.tail_crc.to_le_bytes());
        bytes
    }

    /// Reads what [`LogCheckpoint::encode`] gave. The caller's own checksum protects it.
    #[must_use]
    pub fn decode(bytes: [u8; Self::LEN]) -> Self {
        let end = GlobalOffset::new(u64_at(&bytes, 0));
        Self { end, tail_crc: u32_at(&bytes, size_of::<u64>()) }
    }
}

const _: () = assert!(LogCheckpoint::LEN == 12);
