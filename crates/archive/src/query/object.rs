//! Whole objects out of rows and bytes.
//!
//! Nothing is put together again: a header is a row, a transaction is one slice of its block and a
//! block is one slice of the block store.

use varve_types::{Amount, BlockHash, Header, Outpoint, TxOut};

use super::TxPlace;
use crate::backend::Tables;
use crate::error::Result;
use crate::link::{HeaderLink, TxLink};
use crate::snapshot::Snapshot;
use crate::source::BlockSource;
use crate::view::View;

/// An output, with the transaction that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The transaction.
    pub tx: TxPlace,
    /// The place of the output in it.
    pub vout: u32,
    /// What it is worth.
    pub value: Amount,
    /// What spending it takes.
    pub script: Vec<u8>,
}

impl Output {
    /// An output of the transaction, as its bytes have it.
    pub(super) fn new(tx: &TxPlace, vout: u32, output: &TxOut<'_>) -> Self {
        Self { tx: *tx, vout, value: output.value, script: output.script.to_vec() }
    }

    /// Its point.
    #[must_use]
    pub const fn point(&self) -> Outpoint {
        Outpoint::new(self.tx.txid, self.vout)
    }
}

impl<T: Tables> Snapshot<T> {
    /// The 80 bytes of a header.
    pub fn raw_header(&self, link: HeaderLink) -> Result<[u8; Header::LEN]> {
        let row = self.header(link)?;
        let below = row.parent.map(|parent| self.header(parent)).transpose()?;
        Ok(row.to_bytes(below.map_or(BlockHash::ZERO, |row| row.hash)))
    }
}

impl<T: Tables, S: BlockSource> View<T, S> {
    /// The serialised block, lent by the block store; `None` when it has not been archived.
    pub fn raw_block(&self, link: HeaderLink) -> Result<Option<S::Bytes<'_>>> {
        let Some(row) = self.stored(link)? else { return Ok(None) };
        self.bytes(link, row.number, 0..row.size).map(Some)
    }

    /// The serialised transaction, lent by the block store; `None` when the snapshot does not see
    /// the row.
    pub fn raw_tx(&self, tx: TxLink) -> Result<Option<S::Bytes<'_>>> {
        let Some(row) = self.row_place(tx)? else { return Ok(None) };
        self.bytes(row.block, row.slice.number, row.slice.range()).map(Some)
    }

    /// The output at a point, from the confirmed chain where it is there, else from the newest
    /// block that has it.
    pub fn output(&self, point: Outpoint) -> Result<Option<Output>> {
        let place = self.to_tx(point.txid)?;
        place.map_or(Ok(None), |place| self.output_of(&place, point.vout))
    }

    /// An output of a transaction.
    fn output_of(&self, place: &TxPlace, vout: u32) -> Result<Option<Output>> {
        self.with_tx(place.block, &place.slice, |tx| {
            let output = tx.outputs().nth(vout as usize)?;
            Some(Output::new(place, vout, &output))
        })
    }

    /// All outputs of a transaction.
    pub fn outputs(&self, tx: TxLink) -> Result<Vec<Output>> {
        self.with_row(tx, |row, tx| {
            let place = row.with(tx.txid());
            let outputs = (0..).zip(tx.outputs());
            outputs.map(|(vout, output)| Output::new(&place, vout, &output)).collect()
        })
    }
}
