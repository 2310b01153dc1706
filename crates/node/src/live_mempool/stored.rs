//! The mempool of a folder at rest: what the last sync left, for questions.
//!
//! Its records are opened, judged again at the tip and closed; what is answered from is the version
//! in memory. Nothing else of the folder is written.

use std::sync::Arc;

use varve_archive::{MmapTables, Snapshot};
use varve_consensus::{Ancestor, Ancestors, OwnedCoin, Params};
use varve_types::{BlockHash, Height, Outpoint};
use varve_utxo::{Compaction, Version as Set};

use super::records::{self, FOLDER};
use super::{Now, Opening, policy};
use crate::budget::Budget;
use crate::commit_log::CommitSequence;
use crate::data_directory::DataDirectory;
use crate::error::Error;
use crate::mempool::{Chain, ChainError, Mempool, MempoolParts, Moment, Tip, Version};

/// The confirmed chain of a folder at rest.
pub(crate) struct RestingChain {
    pub(crate) sequence: CommitSequence,
    pub(crate) tip: (Height, BlockHash),
    pub(crate) archive: Snapshot<MmapTables>,
    pub(crate) set: Arc<Set>,
}

/// Whether a sync has kept a mempool in this folder.
pub(crate) fn is_kept(directory: &DataDirectory) -> Result<bool, Error> {
    Ok(directory.root().list_others()?.iter().any(|name| name == FOLDER))
}

/// What is left of it at this tip.
pub(crate) fn open(
    directory: &DataDirectory,
    params: &Params,
    chain: &RestingChain,
    (memory, now): (usize, u32),
) -> Result<Arc<Version>, Error> {
    let push_rule = chain.archive.indexes().pushdata;
    let opening = Opening { memory: Budget::mempool_share(memory), gateway: None, push_rule };
    let clock: Now = Arc::new(move || now);
    let share = opening.memory as u64 / 4;
    let store = records::open(directory, params, share, Compaction::Inline, &clock)?;
    let policy = policy(&opening, params.network.is_bsv());
    let (store, params) = (Arc::new(store), params.clone());
    let parts = MempoolParts { store, params, policy, verifier: None };
    let (mempool, _) = Mempool::open(parts, Moment { chain, now: u64::from(now) })?;
    Ok(Arc::clone(mempool.version()))
}

impl Ancestors for RestingChain {
    fn ancestor(&self, height: Height) -> Option<Ancestor> {
        let row = self.archive.header(self.archive.to_confirmed(height)?).ok()?;
        Some(Ancestor { hash: row.hash, time: row.time, bits: row.bits })
    }
}

impl Chain for RestingChain {
    fn tip(&self) -> Tip {
        let (height, hash) = self.tip;
        Tip { height, hash, sequence: self.sequence }
    }

    fn coins(&self, outpoints: &[Outpoint]) -> Result<Vec<Option<OwnedCoin>>, ChainError> {
        let found = self.set.get(outpoints).map_err(|error| ChainError(error.to_string()))?;
        Ok(found.iter().map(|coin| coin.map(OwnedCoin::from)).collect())
    }
}
