//! Reading the tables.
//!
//! Searches of many keys go to the primitive as one, so that their waits for memory overlap.

use std::ops::ControlFlow;

use varve_types::{BlockHash, Outpoint, Txid};

use super::blocks::BlocksReader;
use super::filters::FiltersReader;
use super::row::{self, FINGERPRINT, HEADER, TX_LINK, TX_STATE};
use crate::backend::{Match, Result, Tables};
use crate::link::{HeaderLink, TxLink};
use crate::primitive::{KeyHasher as _, Keyed, Link, RecordReader};
use crate::row::{BlockRow, FilterRow, HeaderRow, ScriptHash, TxRow, TxState};

/// The tables on disk, as a reader sees them.
#[derive(Clone, Debug)]
pub struct MmapTables {
    pub(super) hasher: Keyed,
    pub(super) header: RecordReader<32, HEADER>,
    pub(super) blocks: BlocksReader,
    pub(super) tx: RecordReader<FINGERPRINT, TX_LINK>,
    pub(super) spend: RecordReader<FINGERPRINT, TX_LINK>,
    pub(super) script: RecordReader<FINGERPRINT, TX_LINK>,
    pub(super) filters: FiltersReader,
    pub(super) tx_state: RecordReader<8, TX_STATE>,
}

impl MmapTables {
    /// The rows under each fingerprint, newest first.
    fn find_fingerprints<'k>(
        &self,
        table: &RecordReader<FINGERPRINT, TX_LINK>,
        keys: impl Iterator<Item = &'k [u8]>,
        out: &mut Vec<Match>,
    ) -> Result<()> {
        let keys: Vec<_> = keys.map(|key| row::fingerprint(self.hasher.hash(key))).collect();
        if let [key] = keys.as_slice() {
            return Ok(table.search(key, |_, value| {
                out.push((0, row::tx_link(value)));
                ControlFlow::Continue(())
            })?);
        }
        let mut found = Vec::new();
        table.find_many(&keys, &mut found)?;
        out.extend(found.iter().map(|(index, _, value)| (*index, row::tx_link(value))));
        Ok(())
    }
}

impl Tables for MmapTables {
    fn headers(&self, links: &[HeaderLink], out: &mut Vec<HeaderRow>) -> Result<()> {
        for link in links {
            out.push(row::decode_header(&self.header.get(Link(link.to_u32()))?));
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
            out.push(self.blocks.block(*link)?);
        }
        Ok(())
    }

    fn txs(&self, links: &[TxLink], out: &mut Vec<TxRow>) -> Result<()> {
        for link in links {
            out.push(self.blocks.tx(*link)?);
        }
        Ok(())
    }

    fn find_txs(&self, txids: &[Txid], out: &mut Vec<Match>) -> Result<()> {
        let keys = txids.iter().map(|txid| txid.as_bytes().as_slice());
        self.find_fingerprints(&self.tx, keys, out)
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
            out.push(self.filters.get(*link)?);
        }
        Ok(())
    }

    fn tx_states(&self, links: &[TxLink], out: &mut Vec<Option<TxState>>) -> Result<()> {
        for link in links {
            let found = self.tx_state.find(&row::tx_key(*link))?;
            out.push(found.map(|(_, value)| row::decode_tx_state(&value)));
        }
        Ok(())
    }
}
