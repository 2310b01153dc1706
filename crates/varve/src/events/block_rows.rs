//! What a block has for watchers, made of its bytes once for all of them.
//!
//! Whoever is first at a block makes its rows: txids, spent outputs and, when somebody watches
//! scripts, the scripts that it pays and spends from. The last [`KEPT`] blocks are kept, about as
//! many bytes as the blocks have, so that subscribers who follow the tip share the work.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use varve_archive::HeaderLink;
use varve_node::ArchiveView;
use varve_types::{Block, Outpoint, ScriptHash, Txid};

use super::{Watch, Watched};
use crate::answer::Tip;
use crate::error::Error;

/// Blocks whose rows are kept.
const KEPT: usize = 4;

/// What one block has for watchers.
#[derive(Debug)]
pub(crate) struct BlockRows {
    block: Tip,
    txids: Vec<Txid>,
    /// Outputs that are spent, with position and input.
    spends: Vec<(Outpoint, u32, u32)>,
    /// Scripts that are paid or spent from, each once a transaction, with its position; `None`
    /// when nobody asked.
    scripts: Option<Vec<(ScriptHash, u32)>>,
}

/// The rows of the last blocks that subscribers have looked at.
#[derive(Debug, Default)]
pub(crate) struct RowCache(Mutex<VecDeque<Arc<BlockRows>>>);

impl RowCache {
    /// The rows of a block, with its scripts if they are wanted.
    pub(super) fn rows(
        &self,
        view: &ArchiveView,
        block: Tip,
        with_scripts: bool,
    ) -> Result<Arc<BlockRows>, Error> {
        let is_it = |rows: &&Arc<BlockRows>| {
            rows.block == block && (rows.scripts.is_some() || !with_scripts)
        };
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rows) = lock().iter().find(is_it) {
            return Ok(Arc::clone(rows));
        }
        let rows = Arc::new(BlockRows::new(view, block, with_scripts)?);
        let mut kept = lock();
        kept.retain(|other| other.block != block);
        kept.push_front(Arc::clone(&rows));
        kept.truncate(KEPT);
        Ok(rows)
    }
}

impl BlockRows {
    fn new(view: &ArchiveView, block: Tip, with_scripts: bool) -> Result<Self, Error> {
        let missing = || Error::NotStored { hash: block.hash };
        let link = view.to_header(block.hash)?.ok_or_else(missing)?;
        let bytes = view.raw_block(link)?.ok_or_else(missing)?;
        let parsed = Block::parse(&bytes, view.network().format()).map_err(|source| {
            Error::from(varve_node::Error::Undecodable { hash: block.hash, source })
        })?;
        let mut spends = Vec::new();
        for (position, tx) in (0_u32..).zip(parsed.txs()).filter(|(_, tx)| !tx.is_coinbase()) {
            let inputs = (0_u32..).zip(tx.inputs());
            spends.extend(inputs.map(|(vin, input)| (input.outpoint, position, vin)));
        }
        let scripts = with_scripts.then(|| scripts(view, link, &parsed, &spends)).transpose()?;
        Ok(Self { block, txids: parsed.txids(), spends, scripts })
    }

    /// Reports what is watched, in block order: position, transaction, by which watch, and the
    /// input of a spend.
    pub(super) fn each(&self, watch: &Watch, mut report: impl FnMut(u32, Txid, Watched, u32)) {
        let mut found: Vec<(u32, Watched, u32)> = Vec::new();
        for (position, txid) in (0..).zip(&self.txids) {
            if watch.has(Watched::Tx, txid) {
                found.push((position, Watched::Tx, 0));
            }
        }
        let mut put = |position, watched, vin| {
            if watch.has(watched, &Txid::ZERO) {
                found.push((position, watched, vin));
            }
        };
        for (outpoint, position, vin) in &self.spends {
            put(*position, Watched::Outpoint(*outpoint), *vin);
        }
        for (script, position) in self.scripts.iter().flatten() {
            put(*position, Watched::Script(*script), 0);
        }
        found.sort_unstable();
        for (position, watched, vin) in found {
            let txid = self.txids.get(position as usize).copied().unwrap_or_default();
            report(position, txid, watched, vin);
        }
    }
}

/// The scripts that a block pays and spends from.
fn scripts(
    view: &ArchiveView,
    link: HeaderLink,
    block: &Block<'_>,
    spends: &[(Outpoint, u32, u32)],
) -> Result<Vec<(ScriptHash, u32)>, Error> {
    let mut scripts = Vec::new();
    for (position, tx) in (0_u32..).zip(block.txs()) {
        scripts.extend(tx.outputs().map(|output| (ScriptHash::of(output.script), position)));
    }
    let spent = view.block_prevouts(link)?.unwrap_or_default();
    for ((_, position, _), output) in spends.iter().zip(spent) {
        scripts.extend(output.map(|output| (ScriptHash::of(&output.script), *position)));
    }
    scripts.sort_unstable();
    scripts.dedup();
    Ok(scripts)
}
