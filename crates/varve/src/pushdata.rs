//! Where an item is pushed: the answers of the index `pushdata`.

use varve_archive::Pushed;
use varve_node::ArchiveView;
use varve_node::mempool::Side;
use varve_types::pushdata::PushdataFlags;
use varve_types::{BlockHash, Height, Txid};

use crate::error::Error;

/// A confirmed input or output that pushes an item:
/// [`Snapshot::pushdata`](crate::Snapshot::pushdata). Unconfirmed ones are
/// [`Mempool::pushes`](crate::Mempool::pushes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushdataMatch {
    /// The transaction.
    pub txid: Txid,
    /// The input or output.
    pub side: Side,
    /// Conduit's flags: input, output, data.
    pub flags: PushdataFlags,
    /// The height of its block.
    pub height: Height,
    /// The block.
    pub block: BlockHash,
    /// The place of the transaction in the block.
    pub position: u32,
}

/// A part of the matches of an item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushdataPage {
    /// The matches, in the order in which their blocks came.
    pub rows: Vec<PushdataMatch>,
    /// What to ask for to get the next page; `None` when this is the last.
    pub next: Option<u64>,
}

impl PushdataMatch {
    pub(crate) fn new(view: &ArchiveView, row: &Pushed) -> Result<Self, Error> {
        let Pushed { tx, flags, index } = *row;
        let is_input = flags.bits() & PushdataFlags::INPUT.bits() != 0;
        let side = if is_input { Side::Input(index) } else { Side::Output(index) };
        let (block, height) = (view.header(tx.block)?.hash, tx.height);
        Ok(Self { txid: tx.txid, side, flags, height, block, position: tx.position })
    }
}
