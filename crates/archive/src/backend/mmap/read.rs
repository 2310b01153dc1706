//! Reading the tables.
//!
//! Searches for many keys go to the primitive as one batch, so that their cache misses overlap.

use varve_types::{BlockHash, Outpoint, PushdataHash, Txid};

use super::blocks::BlocksReader;
use super::filters::FiltersReader;
use super::row::{self, HEADER, TX_STATE};
use super::searches::SearchesReader;
use crate::backend::{Match, Result, Tables};
use crate::link::{HeaderLink, TxLink};
use crate::primitive::{Link, RecordReader};
use crate::row::{BlockRow, FilterRow, HeaderRow, TxRow, TxState};

/// The tables on disk, as a reader sees them.
#[derive(Clone, Debug)]
pub struct MmapTables {
    pub(super) header: RecordReader<32, HEADER>,
    pub(super) blocks: BlocksReader,
    pub(super) searches: SearchesReader,
    pub(super) filters: FiltersReader,
    pub(super) tx_state: RecordReader<8, TX_STATE>,
}

impl Tables for MmapTables {
    fn headers(&self, links: &[HeaderLink], out: &mut Vec<HeaderRow>) -> Result<()> {
        for link in links {
            out.push(row::decode_header(&self.header.get(Link(link.to_u32()))?));
        }
        Ok(())
    }

    fn find_headers(&self, hashes: &[BlockHash], out: &mut Vec<Option<HeaderLink>>) -> Result<()> {
        if let [hash] = hashes {
            let found = self.header.find(hash.as_bytes())?;
            out.push(found.map(|(link, _)| HeaderLink::new(link.0)));
            return Ok(());
        }
        let keys: Vec<_> = hashes.iter().map(|hash| hash.to_bytes()).collect();
        let mut found = Vec::new();
        self.header.find_many(&keys, &mut found)?;
        let mut found = found.into_iter().peekable();
        out.extend((0..keys.len()).map(|key| {
            while found.next_if(|(index, ..)| *index < key).is_some() {}
            found.next_if(|(index, ..)| *index == key).map(|(_, link, _)| HeaderLink::new(link.0))
        }));
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
        self.searches.find_txs(txids, out)
    }

    fn find_spenders(&self, points: &[Outpoint], out: &mut Vec<Match>) -> Result<()> {
        self.searches.find_spenders(points, out)
    }

    fn find_pushes(
        &self,
        hash: PushdataHash,
        from: TxLink,
        limit: usize,
        out: &mut Vec<TxLink>,
    ) -> Result<()> {
        self.searches.find_pushes(hash, from, limit, out)
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
