//! Reading the tables.
//!
//! Searches of many keys go to the primitive as one, so that their waits for memory overlap.

use std::ops::ControlFlow;

use varve_types::{BlockHash, Outpoint, Txid};

use super::row::{self, BlockMeasure, FINGERPRINT, FilterMeasure, HEADER, SPEND, TX, TX_STATE};
use crate::backend::{BackendError, Match, Result, Tables};
use crate::link::{HeaderLink, TxLink};
use crate::primitive::{KeyHasher as _, Keyed, Link, RecordReader, Row, SlabArrayReader};
use crate::row::{BlockRow, FilterRow, HeaderRow, ScriptHash, TxRow, TxState};

/// The tables on disk, as a reader sees them.
#[derive(Clone, Debug)]
pub struct MmapTables {
    pub(super) hasher: Keyed,
    pub(super) header: RecordReader<32, HEADER>,
    pub(super) block: SlabArrayReader<BlockMeasure>,
    pub(super) tx: RecordReader<32, TX>,
    pub(super) spend: RecordReader<FINGERPRINT, SPEND>,
    pub(super) script: RecordReader<FINGERPRINT, SPEND>,
    pub(super) filter: SlabArrayReader<FilterMeasure>,
    pub(super) tx_state: RecordReader<4, TX_STATE>,
}

impl MmapTables {
    fn row<const K: usize, const V: usize>(
        table: &RecordReader<K, V>,
        link: u64,
    ) -> Result<Row<K, V>> {
        let link = u32::try_from(link).map_err(|_| BackendError::dangling(link))?;
        Ok(table.get(Link(link))?)
    }

    /// The rows under each fingerprint, newest first.
    fn find_fingerprints<'k>(
        &self,
        table: &RecordReader<FINGERPRINT, SPEND>,
        keys: impl Iterator<Item = &'k [u8]>,
        out: &mut Vec<Match>,
    ) -> Result<()> {
        let keys: Vec<_> = keys.map(|key| row::fingerprint(self.hasher.hash(key))).collect();
        search(table, &keys, |index, _, value| out.push((index, row::tx_link(value))))
    }
}

/// Shows every row of each key, newest first.
fn search<const K: usize, const V: usize>(
    table: &RecordReader<K, V>,
    keys: &[[u8; K]],
    mut each: impl FnMut(usize, Link, &[u8; V]),
) -> Result<()> {
    if let [key] = keys {
        return Ok(table.search(key, |link, value| {
            each(0, link, value);
            ControlFlow::Continue(())
        })?);
    }
    let mut found = Vec::new();
    table.find_many(keys, &mut found)?;
    found.iter().for_each(|(index, link, value)| each(*index, *link, value));
    Ok(())
}

impl Tables for MmapTables {
    fn headers(&self, links: &[HeaderLink], out: &mut Vec<HeaderRow>) -> Result<()> {
        for link in links {
            let row = Self::row(&self.header, link.to_u32().into())?;
            out.push(row::decode_header(&row));
        }
        Ok(())
    }

    fn find_headers(&self, hashes: &[BlockHash], out: &mut Vec<Option<HeaderLink>>) -> Result<()> {
        for hash in hashes {
            let found = self.header.find(hash.as_bytes())?;
            out.push(found.map(|(link, _)| HeaderLink::new(link.0)));
        }
        Ok(())
    }

    fn blocks(&self, links: &[HeaderLink], out: &mut Vec<Option<BlockRow>>) -> Result<()> {
        for link in links {
            out.push(self.block.get(link.to_u32().into(), row::decode_block)?.flatten());
        }
        Ok(())
    }

    fn txs(&self, links: &[TxLink], out: &mut Vec<TxRow>) -> Result<()> {
        for link in links {
            out.push(row::decode_tx(&Self::row(&self.tx, link.to_u64())?));
        }
        Ok(())
    }

    fn find_txs(&self, txids: &[Txid], out: &mut Vec<Match>) -> Result<()> {
        let keys: Vec<_> = txids.iter().map(|txid| txid.to_bytes()).collect();
        search(&self.tx, &keys, |index, link, _| out.push((index, TxLink::new(link.number()))))
    }

    fn find_spenders(&self, points: &[Outpoint], out: &mut Vec<Match>) -> Result<()> {
        let keys: Vec<_> = points.iter().map(Outpoint::to_bytes).collect();
        self.find_fingerprints(&self.spend, keys.iter().map(<[u8; _]>::as_slice), out)
    }

    fn find_payers(&self, scripts: &[ScriptHash], out: &mut Vec<Match>) -> Result<()> {
        let keys = scripts.iter().map(|script| script.0.as_slice());
        self.find_fingerprints(&self.script, keys, out)
    }

    fn filters(&self, links: &[HeaderLink], out: &mut Vec<Option<FilterRow>>) -> Result<()> {
        for link in links {
            out.push(self.filter.get(link.to_u32().into(), row::decode_filter)?.flatten());
        }
        Ok(())
    }

    fn tx_states(&self, links: &[TxLink], out: &mut Vec<Option<TxState>>) -> Result<()> {
        for link in links {
            let found = self.tx_state.find(&row::tx_key(*link)?)?;
            out.push(found.map(|(_, value)| row::decode_tx_state(&value)));
        }
        Ok(())
    }
}
