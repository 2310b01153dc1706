//! Compressing an old segment beside the store's work.
//!
//! 1. The store names the oldest plain segment that is sealed: a [`PackJob`].
//! 2. The job runs in any thread. It verifies every frame (a new checksum over damaged bytes would
//!    hide the damage), writes the packed file, and syncs it. The store keeps working meanwhile.
//! 3. The store takes the result: the manifest lists the packed file, readers switch to it, and the
//!    plain file is removed. Slices that readers hold of it stay valid.
//!
//! A crash before the new manifest leaves a packed file that no manifest lists; a crash after it
//! leaves the plain file as well. The next opening removes either.

use std::ops::Range;
use std::sync::Arc;

use varve_io::{Access, Caching, File, FileOffset, GlobalOffset, SegmentsReader, Storage, StoreId};

use crate::error::Result;
use crate::packed::{ENTRY_LEN, PACKED_HEADER_LEN, PackedHeader, file_name, table_crc};

/// Compressed chunks are gathered up to this much before they are written.
const GATHER: usize = 1 << 20;

/// A segment to be compressed.
#[derive(Debug)]
pub struct PackJob {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) segments: SegmentsReader,
    pub(crate) store: StoreId,
    pub(crate) range: Range<GlobalOffset>,
    /// Held until the job is finished or given up.
    pub(crate) claim: Arc<()>,
}

/// A compressed segment, for [`finish_pack`](crate::BlockStore::finish_pack).
#[derive(Debug)]
pub struct PackDone {
    pub(crate) range: Range<GlobalOffset>,
    _claim: Arc<()>,
    /// Its length before, in bytes.
    pub plain_bytes: u64,
    /// Its length after, in bytes.
    pub packed_bytes: u64,
}

impl PackJob {
    /// Compresses the segment. The job may be dropped and requested again at any time.
    pub fn run(self) -> Result<PackDone> {
        self.run_with(&mut |_| {})
    }

    /// The same. `progress` gets the bytes that are done, whenever a MiB was written.
    pub fn run_with(self, progress: &mut dyn FnMut(u64)) -> Result<PackDone> {
        let Range { start, end } = self.range;
        for frame in self.segments.frames(start) {
            if frame?.next() >= end {
                break;
            }
        }
        let header = PackedHeader { store: self.store, range: self.range.clone() };
        let name = file_name(start);
        let file = self.storage.open(&name, Access::Replace, Caching::Buffered)?;
        let packed_bytes = self.write(file.as_ref(), &header, progress)?;
        file.sync()?;
        let plain_bytes = end.since(start).unwrap_or_default();
        Ok(PackDone { range: self.range, _claim: self.claim, plain_bytes, packed_bytes })
    }

    /// Writes the file and returns its length.
    fn write(
        &self,
        file: &dyn File,
        header: &PackedHeader,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        let mut gather = header.encode().to_vec();
        let mut written = FileOffset::ZERO;
        let mut table = Vec::new();
        let mut buffer = Vec::new();
        for index in 0..header.chunks() {
            let held = header.chunk(index);
            let plain = self.segments.bytes(held.start, held.end.get() - held.start.get())?;
            let stored = compress(&plain, &mut buffer);
            gather.extend_from_slice(stored);
            let end = written.plus(gather.len() as u64);
            table.reserve(ENTRY_LEN);
            table.extend(end.get().to_le_bytes());
            table.extend(header.chunk_crc(index, stored).to_le_bytes());
            if gather.len() >= GATHER {
                file.write_at(written, &gather)?;
                written = end;
                gather.clear();
                progress(held.end.get() - self.range.start.get());
            }
        }
        let crc = table_crc(&header.encode(), &table);
        gather.append(&mut table);
        gather.extend(crc.to_le_bytes());
        file.write_at(written, &gather)?;
        Ok(written.plus(gather.len() as u64).get())
    }
}

/// The chunk as it is stored: compressed when that is shorter.
fn compress<'a>(plain: &'a [u8], buffer: &'a mut Vec<u8>) -> &'a [u8] {
    buffer.resize(lz4_flex::block::get_maximum_output_size(plain.len()), 0);
    match lz4_flex::block::compress_into(plain, buffer) {
        Ok(length) if length < plain.len() => buffer.get(..length).unwrap_or(plain),
        _ => plain,
    }
}

const _: () = assert!(GATHER > PACKED_HEADER_LEN);
