//! A log that nobody writes to, open for reading alone.
//!
//! Opening it touches no file. A sealed file is opened and mapped when a reader first asks for one
//! of its bytes, and its blocks are verified as always. The unsealed one has a single checksum, so
//! the first question for it reads all of it once, in pieces that are not kept, and maps it then.
//! So a reader pays only for the files it reads.
//!
//! What lies after the checkpoint was never acknowledged and is ignored.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::sealed::Sealed;
use super::{LogCheckpoint, MappedLogConfig, check_header, tail_differs};
use crate::error::Result;
use crate::map::Map;
use crate::offset::FileOffset;
use crate::segment;
use crate::storage::{Access, Caching, Storage};

/// The unsealed segment is verified in pieces of this size.
const PIECE: usize = 1 << 20;

/// The files of a log at rest.
#[derive(Debug)]
pub(super) struct AtRest {
    storage: Arc<dyn Storage>,
    sealed: Box<[OnceLock<Sealed>]>,
    tail: OnceLock<Map>,
    checkpoint: LogCheckpoint,
}

impl AtRest {
    pub(super) fn new(
        storage: Arc<dyn Storage>,
        config: &MappedLogConfig,
        checkpoint: LogCheckpoint,
    ) -> Self {
        let sealed = (0..checkpoint.end.get() / config.capacity()).map(|_| OnceLock::new());
        Self { storage, sealed: sealed.collect(), tail: OnceLock::new(), checkpoint }
    }

    pub(super) const fn checkpoint(&self) -> LogCheckpoint {
        self.checkpoint
    }

    /// The bytes of `range` of a segment, verified; `None` inside when it reaches outside.
    pub(super) fn get(
        &self,
        config: &MappedLogConfig,
        segment: usize,
        range: Range<usize>,
    ) -> Result<Option<&[u8]>> {
        let Some(place) = self.sealed.get(segment) else {
            return Ok(self.tail(config)?.get(range));
        };
        let sealed = match place.get() {
            Some(sealed) => sealed,
            None => {
                let opened = Sealed::open(self.storage.as_ref(), config, segment as u64)?;
                place.get_or_init(|| opened)
            }
        };
        sealed.get(config, range)
    }

    /// The bytes of the unsealed segment, up to the checkpoint.
    fn tail(&self, config: &MappedLogConfig) -> Result<&Map> {
        if let Some(map) = self.tail.get() {
            return Ok(map);
        }
        let number = self.sealed.len() as u64;
        let name = config.file_name(number);
        let file = self.storage.open(&name, Access::Read, Caching::Buffered)?;
        check_header(file.as_ref(), config, number)?;
        let begin = FileOffset::new(segment::HEADER_BYTES);
        let len = self.checkpoint.end.get() % config.capacity();
        let (mut crc, mut done) = (config.salt(number), 0);
        let mut piece = vec![0; PIECE.min(usize::try_from(len).unwrap_or(PIECE))];
        while done < len {
            let count = usize::try_from(len - done).map_or(PIECE, |left| left.min(PIECE));
            let part = piece.get_mut(..count).unwrap_or_default();
            file.read_at(begin.plus(done), part)?;
            crc = crc.with(part);
            done += count as u64;
        }
        if crc.get() != self.checkpoint.tail_crc {
            return Err(tail_differs(file.path()));
        }
        let map = file.map(begin, len)?;
        Ok(self.tail.get_or_init(|| map))
    }
}
