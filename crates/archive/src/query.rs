//! Every question the archive answers.
//!
//! ```text
//!              block hash            txid             script hash
//!                  │ search            │ search           │ search (optional)
//!                  ▼                   ▼                  ▼
//!  height ──► header row ◄──block── tx row ◄──spender── point (txid, vout)
//!                  │ 0..1              │                  ▲ search
//!                  └► block row ──range┘──bytes──► inputs ┘
//! ```
//!
//! There are two natural keys from outside, block hash and txid; heights and script hashes are
//! conveniences. Inside, links are followed without a search. Two things are searched because they
//! may come in any order: the rows of a txid and the spenders of a point.
//!
//! What rows alone can answer is asked of a [`Snapshot`]; what needs bytes, of a [`View`], which
//! is a snapshot with the block store. One file has one kind of question.
//! `docs/archive-queries.md` maps libbitcoin's operations to these functions.

mod branch;
mod confirm;
mod context;
mod extent;
mod fee;
mod filter;
mod height;
mod merkle;
mod navigate;
mod object;
mod script;
mod spend;
mod state;

pub use branch::Branch;
pub use context::ChainState;
pub use fee::FeeRate;
pub use filter::FilterHashes;
pub use merkle::HeaderProof;
pub use navigate::TxPlace;
pub use object::{Output, TxSize};
pub use script::{Balance, Page, Scope};
pub use spend::Spender;

use std::ops::{Deref, Range};

use varve_types::{Block, Tx};

use crate::backend::Tables;
use crate::error::{ArchiveError, Result};
use crate::link::HeaderLink;
use crate::row::BlockRow;
use crate::snapshot::Snapshot;
use crate::source::{BlockSource, SourceError};

/// One moment of the archive, with the bytes of its blocks.
#[derive(Clone, Debug)]
pub struct View<T, S> {
    snapshot: Snapshot<T>,
    source: S,
}

/// What a snapshot can answer, a view can.
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
    fn bytes(&self, header: HeaderLink, row: &BlockRow, range: Range<u32>) -> Result<S::Bytes<'_>> {
        match self.source.bytes(row.number, range) {
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

    /// Does something with a transaction's bytes.
    fn with_tx<R>(&self, place: &TxPlace, run: impl FnOnce(&Tx<'_>) -> R) -> Result<R> {
        let range = self.tx_range(place)?;
        let bytes = self.bytes(place.block, &place.stored, range)?;
        let tx = Tx::parse(bytes.as_ref(), self.network().format());
        let tx = tx.map_err(|source| ArchiveError::Decode { height: place.height, source })?;
        Ok(run(&tx))
    }

    /// Does something with a block's bytes; `None` when the block has not come.
    fn with_block<R>(
        &self,
        link: HeaderLink,
        run: impl FnOnce(&Block<'_>) -> R,
    ) -> Result<Option<R>> {
        let Some(row) = self.stored(link)? else { return Ok(None) };
        let bytes = self.bytes(link, &row, 0..row.size)?;
        let block = Block::parse(bytes.as_ref(), self.network().format());
        let height = self.header(link)?.height;
        let block = block.map_err(|source| ArchiveError::Decode { height, source })?;
        Ok(Some(run(&block)))
    }
}
