//! The answer of `varve status`.

use serde::Serialize;
use varve::{BlockHash, Height, Network, Prune};

use super::chain::ScriptsChecked;
use super::text;

/// `varve status`.
#[derive(Debug, Serialize)]
pub struct Status<'a> {
    #[serde(serialize_with = "text")]
    network: Network,
    height: u32,
    #[serde(serialize_with = "text")]
    bestblock: BlockHash,
    headers: u32,
    chaintips: Vec<ChainTip>,
    invalid: Vec<Invalid<'a>>,
    scripts: ScriptsChecked,
    prune: Option<u64>,
    pruned_below: Option<u32>,
    indexes: Vec<Index<'a>>,
    stores: Stores,
    memory: Option<Memory>,
}

#[derive(Debug, Serialize)]
struct ChainTip {
    height: u32,
    #[serde(serialize_with = "text")]
    hash: BlockHash,
    branchlen: u32,
}

#[derive(Debug, Serialize)]
struct Invalid<'a> {
    #[serde(serialize_with = "text")]
    hash: BlockHash,
    reason: &'a str,
}

#[derive(Debug, Serialize)]
struct Index<'a> {
    name: &'static str,
    height: Option<u32>,
    damaged: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct Stores {
    blocks: Blocks,
    utxo: Utxo,
    archive: Archive,
    commit: Commit,
}

#[derive(Debug, Serialize)]
struct Blocks {
    blocks: u32,
}

#[derive(Debug, Serialize)]
struct Utxo {
    txouts: u64,
    runs: usize,
}

#[derive(Debug, Serialize)]
struct Archive {
    transactions: u64,
    headers: u32,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct Commit {
    sequence: u64,
}

/// Bytes of each part of the budget.
#[derive(Debug, Serialize)]
struct Memory {
    budget: usize,
    program: usize,
    headers: usize,
    archive: usize,
    blocks: usize,
    utxo: UtxoMemory,
    records_index: Option<u64>,
}

#[derive(Debug, Serialize)]
struct UtxoMemory {
    budget: usize,
    index: usize,
    merge: usize,
    joiner: usize,
    undo: usize,
    page_buffers: usize,
    window: usize,
}

impl<'a> Status<'a> {
    /// The status of a node. `records_index` is the memory of the index of the records beside it,
    /// if there are any.
    #[must_use]
    pub fn new(status: &'a varve::Status, records_index: Option<u64>) -> Self {
        let stores = &status.stores;
        Self {
            network: status.network,
            height: status.tip.height.to_u32(),
            bestblock: status.tip.hash,
            headers: status.headers.to_u32(),
            chaintips: status.chain_tips.iter().map(ChainTip::from).collect(),
            invalid: status.invalid.iter().map(Invalid::from).collect(),
            scripts: status.scripts.into(),
            prune: match status.prune {
                Prune::Off => None,
                Prune::To(bytes) => Some(bytes),
            },
            pruned_below: status.pruned_below.map(Height::to_u32),
            indexes: status.indexes.iter().map(Index::from).collect(),
            stores: Stores {
                blocks: Blocks { blocks: stores.blocks },
                utxo: Utxo { txouts: stores.coins, runs: stores.runs },
                archive: Archive {
                    transactions: stores.transactions,
                    headers: stores.headers,
                    bytes: stores.archive_bytes,
                },
                commit: Commit { sequence: stores.commits },
            },
            memory: status.memory.map(|(budget, set)| Memory::new(budget, set, records_index)),
        }
    }
}

impl From<&varve::ChainTip> for ChainTip {
    fn from(tip: &varve::ChainTip) -> Self {
        let varve::ChainTip { height, hash, branch_length } = *tip;
        Self { height: height.to_u32(), hash, branchlen: branch_length }
    }
}

impl<'a> From<&'a varve::Invalid> for Invalid<'a> {
    fn from(invalid: &'a varve::Invalid) -> Self {
        Self { hash: invalid.block, reason: &invalid.reason }
    }
}

impl<'a> From<&'a varve::IndexStatus> for Index<'a> {
    fn from(status: &'a varve::IndexStatus) -> Self {
        let (name, height) = (status.index.name(), status.height.map(Height::to_u32));
        Self { name, height, damaged: status.damaged.as_deref() }
    }
}

impl Memory {
    const fn new(
        budget: varve::Budget,
        set: varve::MemorySplit,
        records_index: Option<u64>,
    ) -> Self {
        Self {
            budget: budget.memory,
            program: budget.program,
            headers: budget.headers,
            archive: budget.archive,
            blocks: budget.blocks,
            utxo: UtxoMemory {
                budget: budget.set,
                index: set.index,
                merge: set.merge,
                joiner: set.joining,
                undo: set.undo,
                page_buffers: set.buffers,
                window: set.window,
            },
            records_index,
        }
    }
}
