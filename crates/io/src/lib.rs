//! The storage seam: every byte Varve keeps goes through here.
//!
//! The crate knows files, not what is in them. It must not learn what a block, a coin or a record
//! is.
//!
//! | you want | take | bytes drawn in |
//! |---|---|---|
//! | a directory and its files | [`Storage`], [`File`]; [`Disk`], `faulty::FaultyStorage` | |
//! | a log of checksummed frames: append, rewind, prune | [`Segments`] | `segment`, `frame` |
//! | a log of plain bytes, read as slices while it grows | [`MappedLog`] | `mapped_log` |
//! | a file written once, read by pages | [`PageFileWriter`], [`PageFile`] | `page_file`, `page` |
//! | a small file replaced atomically | [`replace`], [`load`] | `envelope` |
//! | many reads in one submission | [`BatchReader`] | |
//! | immutable bytes without copying | [`Map`] | |
//! | one opener per directory | [`Storage::lock`] | `lock` |
//!
//! Rules that hold in all of it:
//!
//! - Nothing is durable before a sync returned: [`File::sync`] for bytes, [`Storage::sync_dir`]
//!   for names.
//! - After a failed sync the storage is poisoned until it is opened again; see [`storage`].
//! - Whatever is read is verified, and damage is an error naming file and offset. Lengths found in
//!   files are checked against the file's size before memory is allocated for them.
//! - Maps are read-only and cover bytes that do not change.
//! - Positions in a file and in a log are different types.
//!
//! Formats are described together in `docs/format/io.md`. `unsafe` is in six files (`buffer`,
//! `fault`, `map`, `out_of_memory`, `tail`, `uring`), each with its argument.

#[cfg(not(target_os = "linux"))]
compile_error!("varve-io needs Linux: io_uring, O_DIRECT and what its fsync promises");

mod bitmap;
mod buffer;
mod checksum;
mod descriptors;
mod disk;
mod envelope;
mod error;
mod fault;
#[cfg(any(test, feature = "test-storage"))]
pub mod faulty;
mod fields;
mod frame;
mod held;
mod lock;
mod map;
mod mapped_log;
mod offset;
mod origin;
mod out_of_memory;
mod page;
mod page_file;
mod poison;
mod reader;
mod segment;
mod segments;
pub mod storage;
mod synced;
mod tail;
mod transfer;
mod uring;

pub use bitmap::Bitmap;
pub use buffer::{AlignedBuffer, BLOCK};
pub use checksum::{Checksum, Kind, StoreId};
pub use disk::Disk;
pub use envelope::{ENVELOPE_HEADER_LEN, Envelope, is_envelope, load, replace};
pub use error::{Error, FormatError, Result};
pub use fault::FAULT_EXIT_CODE;
pub use frame::{FRAME_HEADER_LEN, FrameHeader, decode_frame};
pub use lock::{Holder, LOCK_FILE, LockGuard};
pub use map::Map;
pub use mapped_log::{LogCheckpoint, LogReader, LogSnapshot, MappedLog, MappedLogConfig};
pub use offset::{FileOffset, GlobalOffset};
pub use origin::{is_far, is_written_by, remove_unnamed};
pub use out_of_memory::ReportingAllocator;
pub use page::{FileId, PAGE_LEN, PAGE_PAYLOAD_LEN, PageNumber, seal_page, verify_page};
pub use page_file::{PageFile, PageFileWriter, verify_header_page};
pub use reader::{BatchReader, Completion, Method, ReadRequest};
pub use segment::{
    Layout, SEGMENT_HEADER_LEN, SegmentHeader, file_name as segment_name, is_segment,
    numbers as segment_numbers,
};
pub use segments::{Frame, Frames, PendingSync, Segments, SegmentsConfig, SegmentsReader};
pub use storage::{Access, Caching, File, Storage};
pub use synced::was_synced;
