//! What a folder holds and how it is kept, in one answer.

use std::error::Error as StdError;
use std::path::Path;
use std::{fs, io};

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
    /// How the memory is split, and how the unspent set splits its part: now, or when the sync that
    /// runs has begun.
    pub memory: Option<(Budget, MemorySplit)>,
}

/// How far an optional index goes.
#[derive(Clone, Debug)]
pub struct IndexStatus {
    /// The index.
    pub index: Index,
    /// Its height; `None` when it has not begun, or is damaged.
    pub height: Option<Height>,
    /// Bytes of its files. While blocks are taken in, its newest part may be in memory alone.
    pub bytes: u64,
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

/// The bytes of one store's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreBytes {
    /// The name of its folder.
    pub name: String,
    /// Bytes of all files in it.
    pub bytes: u64,
}

/// The bytes of each folder of a data directory, the largest first, as the system has them.
pub(crate) fn store_bytes(path: &Path) -> Result<Vec<StoreBytes>, Error> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let mut stores = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().map_err(failed)?.is_dir() {
            stores.push(StoreBytes { name, bytes: bytes_below(&entry.path()).map_err(failed)? });
        }
    }
    stores.sort_unstable_by(|one, other| (other.bytes, &one.name).cmp(&(one.bytes, &other.name)));
    Ok(stores)
}

/// The bytes of all files below a folder. A file may go while it is looked at: a merge is done.
fn bytes_below(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let found = match entry.metadata() {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        bytes += if found.is_dir() { bytes_below(&entry.path())? } else { found.len() };
    }
    Ok(bytes)
}

impl Status {
    pub(crate) fn of(
        front: &Front,
        snapshot: &Snapshot,
        memory: Option<(Budget, MemorySplit)>,
    ) -> Result<Self, Error> {
        let network = snapshot.network();
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
        let indexed = |index| Ok((reading.indexed(index)?, reading.index_bytes(index)?));
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
        let indexed = |index| Ok((reader.indexed(index)?, reader.index_bytes(index)?));
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
        indexed: impl Fn(Index) -> Result<(Option<Height>, u64), varve_node::Error>,
    ) -> Result<Self, Error> {
        let mut indexes = Vec::new();
        for index in settings.indexes.iter() {
            let ((height, bytes), damaged) = match indexed(index) {
                Ok(found) => (found, None),
                Err(error) if is_of_the_system(&error) => return Err(error.into()),
                Err(error) => ((None, 0), Some(error.to_string())),
            };
            indexes.push(IndexStatus { index, height, bytes, damaged });
        }
        Ok(Self { prune: settings.prune, pruned_below, indexes })
    }
}

fn is_of_the_system(error: &(dyn StdError + 'static)) -> bool {
    error.is::<io::Error>() || error.source().is_some_and(is_of_the_system)
}
