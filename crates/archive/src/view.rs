//! A snapshot with the bytes of its blocks.
//!
//! Rows point into the block store, so queries for scripts, values or txids read bytes. Errors of
//! the block store are reported with the height of the block.

use std::ops::{Deref, Range};

use varve_types::{Block, DecodeError, Tx};

use crate::backend::Tables;
use crate::error::{ArchiveError, Result};
use crate::link::{HeaderLink, TxLink};
use crate::query::RowPlace;
use crate::row::TxSlice;
use crate::snapshot::Snapshot;
use crate::source::{BlockNumber, BlockSource, SourceError};

/// One moment of the archive, with the bytes of its blocks.
#[derive(Clone, Debug)]
pub struct View<T, S> {
    snapshot: Snapshot<T>,
    source: S,
}

/// A view answers whatever its snapshot can.
impl<T, S> Deref for View<T, S> {
    type Target = Snapshot<T>;

    fn deref(&self) -> &Snapshot<T> {
        &self.snapshot
    }
}

impl<T: Tables, S: BlockSource> View<T, S> {
    /// The snapshot with these bytes.
    #[must_use]
    pub const fn new(snapshot: Snapshot<T>, source: S) -> Self {
        Self { snapshot, source }
    }

    /// These bytes of a block.
    pub(crate) fn bytes(
        &self,
        header: HeaderLink,
        number: BlockNumber,
        range: Range<u32>,
    ) -> Result<S::Bytes<'_>> {
        match self.source.bytes(number, range) {
            Ok(bytes) => Ok(bytes),
            Err(source) => {
                let height = self.header(header)?.height;
                Err(match source {
                    SourceError::Pruned => ArchiveError::Pruned { height },
                    source => ArchiveError::Source { height, source },
                })
            }
        }
    }

    /// Runs `run` on the transaction at these bytes of a block.
    pub(crate) fn with_tx<R>(
        &self,
        block: HeaderLink,
        slice: &TxSlice,
        run: impl FnOnce(&Tx<'_>) -> R,
    ) -> Result<R> {
        let bytes = self.bytes(block, slice.number, slice.range())?;
        match Tx::parse(bytes.as_ref(), self.network().format()) {
            Ok(tx) => Ok(run(&tx)),
            Err(source) => Err(self.undecodable(block, source)?),
        }
    }

    /// Runs `run` on the transaction of a row; the default value when the snapshot does not see the
    /// row.
    pub(crate) fn with_row<R: Default>(
        &self,
        link: TxLink,
        run: impl FnOnce(&RowPlace, &Tx<'_>) -> R,
    ) -> Result<R> {
        let Some(row) = self.row_place(link)? else { return Ok(R::default()) };
        self.with_tx(row.block, &row.slice, |tx| run(&row, tx))
    }

    /// The error for bytes of a block that do not decode.
    fn undecodable(&self, block: HeaderLink, source: DecodeError) -> Result<ArchiveError> {
        Ok(ArchiveError::Decode { height: self.header(block)?.height, source })
    }

    /// Runs `run` on a block; `None` when the block has not been archived.
    pub(crate) fn with_block<R>(
        &self,
        link: HeaderLink,
        run: impl FnOnce(&Block<'_>) -> R,
    ) -> Result<Option<R>> {
        let Some(row) = self.stored(link)? else { return Ok(None) };
        let bytes = self.bytes(link, row.number, 0..row.size)?;
        match Block::parse(bytes.as_ref(), self.network().format()) {
            Ok(block) => Ok(Some(run(&block))),
            Err(source) => Err(self.undecodable(link, source)?),
        }
    }
}
