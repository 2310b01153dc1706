//! Writing a chain: block files and the answers.
//!
//! Two threads: one generates, one writes each block and gives it to the model, with a few blocks
//! in a channel between them. Both hand work to the pool of threads: the first its witnesses, the
//! second its set hashes.

use std::fs;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use crate::block::Block;
use crate::chain::{Chain, Unconfirmed};
use crate::config::{Config, ConfigError};
use crate::expected::expected;
use crate::files::BlockFiles;
use crate::model::{Model, ModelError};
use crate::rng::secret;

/// Blocks that the generator may be ahead.
const AHEAD: usize = 24;
/// Set hashes are taken at this many heights of the chain, and more often while the set is small.
const SET_SAMPLES: u32 = 2;

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The height of the tip.
    pub height: u32,
    /// Blocks on all branches, genesis among them.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Confirmed transactions.
    pub transactions: u64,
    /// Reorgs on the way.
    pub reorgs: usize,
}

/// The progress of writing.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The height of the block just written.
    pub height: u32,
    /// Bytes written so far.
    pub bytes: u64,
}

/// Why a chain could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The description makes no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There are block files already.
    #[error("{} already has block files: choose another folder or remove them", .folder.display())]
    Exists {
        /// The folder.
        folder: PathBuf,
    },
    /// There is a file where the answers belong.
    #[error("{} exists already: choose another folder or remove it", .path.display())]
    Answers {
        /// The file.
        path: PathBuf,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The model refuses what was generated.
    #[error("the simulator made a chain that its model refuses: {0}; please report the seed")]
    Model(#[from] ModelError),
}

/// Writes `folder/blocks/blk*.dat` and `folder/expected.json`, and calls `progress` for every
/// block.
///
/// # Errors
///
/// When `folder` has block files or answers already or cannot be written to, or when `config` makes
/// no sense.
pub fn write_chain(
    config: &Config,
    folder: &Path,
    progress: impl FnMut(Progress),
) -> Result<Summary, WriteError> {
    let (chain, written) = Written::blocks(config, folder, progress)?;
    written.finish(config, &chain.into_mempool())
}

/// The same, without unconfirmed transactions, and returns the chain, which can be
/// [continued](Chain::continue_with_reorgs).
///
/// # Errors
///
/// As [`write_chain`].
pub fn begin_chain(
    config: &Config,
    folder: &Path,
    progress: impl FnMut(Progress),
) -> Result<(Summary, Chain), WriteError> {
    let (chain, written) = Written::blocks(config, folder, progress)?;
    Ok((written.finish(config, &[])?, chain))
}

/// Block files that are written, without their answers.
struct Written {
    model: Model,
    answers_path: PathBuf,
    count: u64,
    bytes: u64,
}

impl Written {
    /// Writes the blocks, and returns the chain at its end.
    fn blocks(
        config: &Config,
        folder: &Path,
        mut progress: impl FnMut(Progress),
    ) -> Result<(Chain, Self), WriteError> {
        let mut chain = Chain::new(config)?;
        let blocks = folder.join("blocks");
        if BlockFiles::exist(&blocks) {
            return Err(WriteError::Exists { folder: blocks });
        }
        let answers_path = folder.join("expected.json");
        if answers_path.symlink_metadata().is_ok() {
            return Err(WriteError::Answers { path: answers_path });
        }
        let key = config.xor.then(|| xor_key(config.seed));
        let files = BlockFiles::create(&blocks, config.network(), key);
        let mut files = files.map_err(failed(&blocks))?;
        let window = config.reorg_depth.unwrap_or(0);
        let every = (config.blocks / SET_SAMPLES).max(1);
        let mut model = Model::new(config.network(), window, every, &chain.hot_scripts());
        let (sender, receiver) = sync_channel::<Block>(AHEAD);

        let (chain, written) = thread::scope(|scope| {
            let generator = scope.spawn(move || -> Chain {
                for block in chain.by_ref() {
                    // The receiver is gone when writing failed; its error is the one to report.
                    if sender.send(block).is_err() {
                        break;
                    }
                }
                chain
            });
            let written = drain(&receiver, &mut files, &mut model, &mut progress);
            drop(receiver);
            (generator.join().expect("the generator does not panic"), written)
        });
        let (count, bytes) = written.map_err(|error| match error {
            DrainError::Io(source) => WriteError::Io { path: blocks.clone(), source },
            DrainError::Model(error) => WriteError::Model(error),
        })?;
        files.finish().map_err(failed(&blocks))?;
        Ok((chain, Self { model, answers_path, count, bytes }))
    }

    /// Writes the answers.
    fn finish(mut self, config: &Config, mempool: &[Unconfirmed]) -> Result<Summary, WriteError> {
        let answers = expected(config, &mut self.model, mempool);
        for transaction in mempool {
            self.model.add_unconfirmed(&transaction.bytes)?;
        }
        write_json(&self.answers_path, &answers).map_err(failed(&self.answers_path))?;
        Ok(Summary {
            height: self.model.height(),
            blocks: self.count,
            bytes: self.bytes,
            transactions: self.model.transactions(),
            reorgs: self.model.reorgs().len(),
        })
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> WriteError {
    let path = path.to_owned();
    move |source| WriteError::Io { path: path.clone(), source }
}

enum DrainError {
    Io(io::Error),
    Model(ModelError),
}

fn drain(
    receiver: &Receiver<Block>,
    files: &mut BlockFiles,
    model: &mut Model,
    progress: &mut impl FnMut(Progress),
) -> Result<(u64, u64), DrainError> {
    let (mut count, mut bytes) = (0, 0);
    for block in receiver {
        files.append(&block.bytes).map_err(DrainError::Io)?;
        count += 1;
        bytes += block.bytes.len() as u64 + 8;
        progress(Progress { height: block.height, bytes });
        model.add(block.bytes).map_err(DrainError::Model)?;
    }
    Ok((count, bytes))
}

fn write_json(path: &Path, value: &serde_json::Value) -> Result<(), io::Error> {
    let mut file = BufWriter::new(fs::File::create_new(path)?);
    serde_json::to_writer_pretty(&mut file, value)?;
    file.write_all(b"\n")?;
    file.flush()
}

fn xor_key(seed: u64) -> [u8; 8] {
    let [a, b, c, d, e, f, g, h, ..] = secret(seed, "xor", 0);
    [a, b, c, d, e, f, g, h]
}
