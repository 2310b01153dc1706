//! The log of the set's figures: a row a height, and how far it is durable.
//!
//! Rows are alike in length, so the row of height h is frame h. The file `checkpoint`, an envelope,
//! holds the position (u64) up to which the log is durable; opening looks only at what is behind
//! it, and cuts off a torn end.

use std::sync::Arc;

use varve_archive::Chain as ArchiveChain;
use varve_io::{
    Envelope, FRAME_HEADER_LEN, FileOffset, FormatError, GlobalOffset, Kind, Segments,
    SegmentsConfig, Storage, StoreId, load, replace,
};
use varve_types::Height;

use super::{ROW_LEN, SetStats};
use crate::error::Error;
use crate::snapshot::ArchiveView;

const KIND: Kind = Kind(*b"SETSTATS");
const SEGMENT_SIZE: u64 = 64 << 20;
/// Says how far the log is durable. It is removed before the log's files.
pub(crate) const CHECKPOINT: &str = "checkpoint";
/// How the names of the log's files begin.
pub(crate) const PREFIX: &str = "stats";
const CHECKPOINT_KIND: Kind = Kind(*b"STATSCP\0");
const CHECKPOINT_VERSION: u32 = 1;

/// The rows of the confirmed chain from genesis up.
#[derive(Debug)]
pub(crate) struct StatsLog {
    storage: Arc<dyn Storage>,
    segments: Segments,
    /// As the checkpoint says.
    durable: GlobalOffset,
}

impl StatsLog {
    pub(super) fn open(storage: Arc<dyn Storage>, store: StoreId) -> varve_io::Result<Self> {
        let prefix = PREFIX.to_owned();
        let config = SegmentsConfig { prefix, kind: KIND, store, segment_size: SEGMENT_SIZE };
        let durable = read_checkpoint(storage.as_ref())?;
        let segments = Segments::open(Arc::clone(&storage), config, durable)?;
        Ok(Self { storage, segments, durable })
    }

    /// Whether the first row is that of genesis. What a removal has left begins later.
    pub(super) fn is_whole(&self) -> bool {
        self.segments.start() == GlobalOffset::ZERO
    }

    /// The number of rows, which is the height that the next one has.
    pub(super) fn rows(&self) -> u32 {
        u32::try_from(self.segments.end().get() / frame_len()).unwrap_or(u32::MAX)
    }

    /// Makes all rows durable.
    pub(crate) fn sync(&mut self) -> varve_io::Result<()> {
        let end = self.segments.sync()?;
        self.checkpoint(end)
    }

    /// Appends rows. They follow the last one.
    pub(super) fn append(&mut self, rows: &[SetStats]) -> varve_io::Result<()> {
        let next = rows.first().map(|row| row.height.to_u32());
        assert!(next.is_none_or(|next| next == self.rows()), "a row a height, without gaps");
        let rows: Vec<Vec<u8>> = rows.iter().map(SetStats::encode).collect();
        self.segments.append(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
        Ok(())
    }

    /// Cuts off the rows above a height.
    pub(super) fn cut_above(&mut self, height: Height) -> varve_io::Result<()> {
        let next = height.to_u32().saturating_add(1);
        if self.rows() > next { self.truncate(place(Height::new(next))) } else { Ok(()) }
    }

    pub(super) fn row(&self, height: Height) -> Result<SetStats, Error> {
        let damaged = FormatError::Damaged { at: 0, what: "a row of another height or length" };
        let frame = self.segments.reader().frame(place(height))?;
        let row = SetStats::decode(&frame).filter(|row| row.height == height);
        Ok(row.ok_or_else(|| damaged.in_file("stats".as_ref(), FileOffset::ZERO))?)
    }

    /// The highest row of the confirmed chain up to `tip`. Rows above it are of another branch and
    /// are cut off, unless it is the tip's; an empty log gets the row of genesis.
    pub(super) fn last(&mut self, view: &ArchiveView, tip: Height) -> Result<SetStats, Error> {
        let rows = self.rows();
        let mut height = rows.checked_sub(1).map(|last| Height::new(last).min(tip));
        while let Some(at) = height {
            let row = self.row(at)?;
            let link = view.at(ArchiveChain::Confirmed, at);
            let hash = link.map(|link| view.header(link)).transpose()?.map(|row| row.hash);
            if hash == Some(row.block) {
                if at < tip {
                    self.cut_above(at)?;
                }
                return Ok(row);
            }
            height = at.checked_sub(1);
        }
        self.truncate(GlobalOffset::ZERO)?;
        let genesis = SetStats::genesis(view.network().genesis_hash());
        self.append(std::slice::from_ref(&genesis))?;
        Ok(genesis)
    }

    fn truncate(&mut self, to: GlobalOffset) -> varve_io::Result<()> {
        self.checkpoint(self.durable.min(to))?;
        self.segments.truncate(to)
    }

    fn checkpoint(&mut self, durable: GlobalOffset) -> varve_io::Result<()> {
        if durable == self.durable {
            return Ok(());
        }
        let payload = durable.get().to_le_bytes();
        let envelope = Envelope { version: CHECKPOINT_VERSION, payload: payload.as_slice() };
        replace(self.storage.as_ref(), CHECKPOINT, CHECKPOINT_KIND, &envelope)?;
        self.durable = durable;
        Ok(())
    }
}

fn read_checkpoint(storage: &dyn Storage) -> varve_io::Result<GlobalOffset> {
    let Some(found) = load(storage, CHECKPOINT, CHECKPOINT_KIND)? else {
        return Ok(GlobalOffset::ZERO);
    };
    let path = storage.path().join(CHECKPOINT);
    if found.version != CHECKPOINT_VERSION {
        let error = FormatError::Version { found: found.version, supported: CHECKPOINT_VERSION };
        return Err(error.in_file(&path, FileOffset::ZERO));
    }
    let damaged = FormatError::Damaged { at: 0, what: "a checkpoint of another length" };
    let end = <[u8; 8]>::try_from(found.payload.as_slice());
    let end = end.map_err(|_| damaged.in_file(&path, FileOffset::ZERO))?;
    Ok(GlobalOffset::new(u64::from_le_bytes(end)))
}

const fn frame_len() -> u64 {
    (FRAME_HEADER_LEN + ROW_LEN) as u64
}

const fn place(height: Height) -> GlobalOffset {
    GlobalOffset::new(height.to_u32() as u64 * frame_len())
}
