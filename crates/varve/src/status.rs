//! What a folder holds and how it is kept, in one answer.

use std::error::Error as StdError;
use std::io;

use varve_node::{
    Budget, ChainTip, Index, Invalid, NodeReader, Prune, Reading, ScriptsChecked, Settings,
};
use varve_types::{Height, Network};
use varve_utxo::MemorySplit;

use crate::answer::Tip;
use crate::at_rest::State;
use crate::error::Error;
use crate::node::Front;
use crate::snapshot::Snapshot;

/// What a folder holds and how it is kept: [`Node::status`](crate::Node::status).
#[derive(Clone, Debug)]
pub struct Status {
    /// The network of the chain.
    pub network: Network,
    /// The last block of the confirmed chain.
    pub tip: Tip,
    /// The height of the best header.
    pub headers: Height,
    /// The tip of every known branch, the confirmed one among them.
    pub chain_tips: Vec<ChainTip>,
    /// The blocks that were found invalid.
    pub invalid: Vec<Invalid>,
    /// Up to where scripts were checked.
    pub scripts: ScriptsChecked,
    /// How much of the blocks is kept.
    pub prune: Prune,
    /// All confirmed blocks from this height on have their bytes; `None` when all blocks have.
    pub pruned_below: Option<Height>,
    /// The optional indexes, and how far each goes.
    pub indexes: Vec<IndexStatus>,
    /// The sizes of the stores.
    pub stores: StoreSizes,
    /// How the memory is split, and how the unspent set splits its part. `None` while another
    /// thread is syncing.
    pub memory: Option<(Budget, MemorySplit)>,
}

/// How far an optional index goes.
#[derive(Clone, Debug)]
pub struct IndexStatus {
    /// The index.
    pub index: Index,
    /// Its height; `None` when it has not begun, or is damaged.
    pub height: Option<Height>,
    /// What is wrong with it. `varve repair` rebuilds it.
    pub damaged: Option<String>,
}

/// How much the stores hold.
#[derive(Clone, Copy, Debug)]
pub struct StoreSizes {
    /// Stored blocks, on every branch.
    pub blocks: u32,
    /// Headers, on every branch.
    pub headers: u32,
    /// Transactions of stored blocks, once for each block that holds them.
    pub transactions: u64,
    /// Bytes of the archive's files.
    pub archive_bytes: u64,
    /// Unspent outputs.
    pub coins: u64,
    /// Sorted files of the unspent set.
    pub runs: usize,
    /// The number of commits.
    pub commits: u64,
}

impl Status {
    pub(crate) fn of(
        front: &Front,
        network: Network,
        memory: Option<(Budget, MemorySplit)>,
    ) -> Result<Self, Error> {
        let snapshot = Snapshot::of(front, network);
        let parts = match front {
            Front::Live(reader) => Parts::live(reader, memory)?,
            Front::AtRest(at_rest) => at_rest.ask(|state| match state {
                State::Asleep(at_rest) => Parts::at_rest(&at_rest.reading),
                State::Woken(woken) => Parts::live(&woken.reader, memory),
            })?,
        };
        let Parts { kept, stores, memory } = parts;
        Ok(Self {
            network,
            tip: snapshot.tip(),
            headers: snapshot.header_height(),
            chain_tips: snapshot.chain_tips(),
            invalid: snapshot.invalid_blocks(),
            scripts: snapshot.scripts(),
            prune: kept.prune,
            pruned_below: kept.pruned_below,
            indexes: kept.indexes,
            stores,
            memory,
        })
    }

    /// Whether a later sync could check the scripts of blocks that were taken without.
    #[must_use]
    pub const fn can_check_scripts(&self) -> bool {
        !self.network.is_bsv() && self.pruned_below.is_none()
    }
}

/// What is read from the stores themselves.
struct Parts {
    kept: Kept,
    stores: StoreSizes,
    memory: Option<(Budget, MemorySplit)>,
}

impl Parts {
    fn at_rest(reading: &Reading) -> Result<Self, Error> {
        let rows = reading.view().bounds();
        let (coins, runs) = reading.coins();
        let stores = StoreSizes {
            blocks: reading.blocks().count(),
            headers: rows.headers,
            transactions: rows.txs,
            archive_bytes: reading.archive_bytes()?,
            coins,
            runs,
            commits: reading.sequence().0,
        };
        let indexed = |index| reading.indexed(index);
        let kept = Kept::new(reading.settings(), reading.pruned_below()?, indexed)?;
        Ok(Self { kept, stores, memory: Some(reading.memory()) })
    }

    fn live(reader: &NodeReader, memory: Option<(Budget, MemorySplit)>) -> Result<Self, Error> {
        let now = reader.snapshot();
        let rows = now.archive.bounds();
        let stores = StoreSizes {
            blocks: now.blocks.count(),
            headers: rows.headers,
            transactions: rows.txs,
            archive_bytes: reader.archive_bytes()?,
            coins: now.utxo.coin_count(),
            runs: now.utxo.run_count(),
            commits: now.sequence.0,
        };
        let indexed = |index| reader.indexed(index);
        let kept = Kept::new(reader.settings(), now.pruned_below()?, indexed)?;
        Ok(Self { kept, stores, memory })
    }
}

struct Kept {
    prune: Prune,
    pruned_below: Option<Height>,
    indexes: Vec<IndexStatus>,
}

impl Kept {
    /// A damaged index is reported and does not hide the rest; a system that refuses to read is an
    /// error, because then nothing is known about what is stored.
    fn new(
        settings: Settings,
        pruned_below: Option<Height>,
        indexed: impl Fn(Index) -> Result<Option<Height>, varve_node::Error>,
    ) -> Result<Self, Error> {
        let mut indexes = Vec::new();
        for index in settings.indexes.iter() {
            let (height, damaged) = match indexed(index) {
                Ok(height) => (height, None),
                Err(error) if is_of_the_system(&error) => return Err(error.into()),
                Err(error) => (None, Some(error.to_string())),
            };
            indexes.push(IndexStatus { index, height, damaged });
        }
        Ok(Self { prune: settings.prune, pruned_below, indexes })
    }
}

fn is_of_the_system(error: &(dyn StdError + 'static)) -> bool {
    error.is::<io::Error>() || error.source().is_some_and(is_of_the_system)
}
