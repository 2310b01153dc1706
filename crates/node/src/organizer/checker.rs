//! Threads beside the organizer that parse, hash and check blocks without their context.
//!
//! ```text
//! intake ─► blocks 0, 2, 4 … ─► checker ─┐
//!       └─► blocks 1, 3, 5 … ─► checker ─┴─► intake, in the order 0, 1, 2 …
//! ```
//!
//! Checking that bytes are the block that a header commits to hashes every byte twice and needs
//! none of the stores; nor does hashing and sorting the rows of the archive. So the organizer gives
//! each block to the next checker in turn and takes the verdicts in the same turn: blocks are
//! stored in the order in which they came. A few blocks are under way at a time, within the bytes
//! that the budget allows.

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use varve_archive::{BlockPreparer, MmapRowMaker};
use varve_consensus::{Ancestor, Ancestors, Params};
use varve_types::{BlockHash, Height};
use varve_utxo::AsBlock as _;

use super::judge::{Refusal, check_bytes};
use crate::error::Error;
use crate::header_tree::{HeaderId, HeaderTree};
use crate::owned_block::{Bytes, OwnedBlock};
use crate::source::Giver;
use crate::stores::ArchiveBlock;

/// Blocks under way for each checker: one in work and one that waits.
const UNDER_WAY: usize = 2;
/// How many headers below it the checks of a block by itself look at: those of a median time.
const RECENT: u32 = 11;

/// A block to be checked.
pub(crate) struct Job {
    pub(crate) id: HeaderId,
    pub(crate) hash: BlockHash,
    pub(crate) height: Height,
    pub(crate) below: Recent,
    pub(crate) bytes: Vec<u8>,
    pub(crate) giver: Giver,
}

/// The verdict on it.
pub(crate) struct Checked {
    pub(crate) id: HeaderId,
    pub(crate) hash: BlockHash,
    pub(crate) giver: Giver,
    pub(crate) result: Result<(OwnedBlock, ArchiveBlock), Refusal>,
}

/// Makes blocks ready for the archive.
pub(crate) type Preparer = BlockPreparer<MmapRowMaker>;

/// The headers right below a block, copied out of the tree.
pub(crate) struct Recent {
    first: u32,
    headers: Vec<Ancestor>,
}

impl Recent {
    /// Those below the header `id`.
    pub(crate) fn below(tree: &HeaderTree, id: HeaderId) -> Self {
        let height = tree.height(id).to_u32();
        let first = height.saturating_sub(RECENT);
        let branch = tree.branch(id);
        let headers = (first..height).filter_map(|height| branch.ancestor(Height::new(height)));
        Self { first, headers: headers.collect() }
    }
}

impl Ancestors for Recent {
    fn ancestor(&self, height: Height) -> Option<Ancestor> {
        let index = height.to_u32().checked_sub(self.first)?;
        self.headers.get(usize::try_from(index).ok()?).copied()
    }
}

/// The threads.
pub(crate) struct Checkers {
    lanes: Vec<Lane>,
    /// Blocks that were given to a lane, and verdicts that were taken from one.
    given: usize,
    taken: usize,
    /// The lengths of the blocks under way, in the order in which they were given, and their sum.
    lengths: VecDeque<u64>,
    bytes: u64,
    limit: u64,
}

/// One thread, which ends when there are no more jobs to come.
struct Lane {
    jobs: Option<Sender<Job>>,
    verdicts: Receiver<Checked>,
    thread: Option<JoinHandle<()>>,
}

impl Checkers {
    /// Starts `threads` threads, or fewer when the system refuses one. An error when it refuses
    /// the first. Another block is taken while fewer bytes than `limit` are under way.
    pub(crate) fn new(
        params: &Params,
        preparer: Preparer,
        threads: NonZeroUsize,
        limit: u64,
    ) -> Result<Self, Error> {
        let mut lanes = Vec::new();
        for number in 0..threads.get() {
            match Lane::start(number, params.clone(), preparer) {
                Ok(lane) => lanes.push(lane),
                Err(error) if lanes.is_empty() => return Err(Error::Thread(error)),
                Err(_) => break,
            }
        }
        Ok(Self { lanes, given: 0, taken: 0, lengths: VecDeque::new(), bytes: 0, limit })
    }

    /// Whether no block is under way.
    pub(crate) const fn is_idle(&self) -> bool {
        self.given == self.taken
    }

    /// Whether a verdict should be taken before another block is given.
    pub(crate) const fn is_full(&self) -> bool {
        self.given - self.taken >= UNDER_WAY * self.lanes.len() || self.bytes >= self.limit
    }

    /// Gives a block to the next checker in turn.
    pub(crate) fn push(&mut self, job: Job) {
        let lane = self.lanes.get(self.given % self.lanes.len()).expect("a lane for each turn");
        let jobs = lane.jobs.as_ref().expect("open until it is dropped");
        let length = job.bytes.len() as u64;
        self.lengths.push_back(length);
        self.bytes += length;
        // A checker that is gone has panicked; receiving its verdict reports that.
        let _ = jobs.send(job);
        self.given += 1;
    }

    /// The verdict on the block that was given first, waiting for it. `None` when none is under
    /// way.
    pub(crate) fn next(&mut self) -> Option<Checked> {
        if self.is_idle() {
            return None;
        }
        let lane = self.lanes.get(self.taken % self.lanes.len()).expect("a lane for each turn");
        let checked = lane.verdicts.recv().expect("a checker that panics has said so already");
        self.taken += 1;
        self.bytes -= self.lengths.pop_front().unwrap_or_default();
        Some(checked)
    }
}

impl Lane {
    fn start(number: usize, params: Params, preparer: Preparer) -> io::Result<Self> {
        let (jobs, to_do) = channel::<Job>();
        let (done, verdicts) = channel();
        let thread = Builder::new().name(format!("block-checker-{number}"));
        let thread = thread.spawn(move || {
            for job in to_do {
                if done.send(check(&params, preparer, job)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { jobs: Some(jobs), verdicts, thread: Some(thread) })
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A checker that panicked has said so already.
            let _ = thread.join();
        }
    }
}

fn check(params: &Params, preparer: Preparer, job: Job) -> Checked {
    let Job { id, hash, height, below, bytes, giver } = job;
    let result = OwnedBlock::parse(Bytes::Given(bytes), params.network.format(), height)
        .map_err(|error| Refusal::Mutated(format!("the block does not decode: {error}")))
        .and_then(|block| {
            check_bytes(params, block.as_block(), &below)?;
            let prepared = preparer.prepare(block.as_block());
            let prepared = prepared.map_err(|error| Refusal::Failed(error.into()))?;
            Ok((block, prepared))
        });
    Checked { id, hash, giver, result }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::sync::Arc;

    use varve_archive::search::SearchOptions;
    use varve_archive::{Archive, ArchiveConfig, Indexes, MmapBackend, MmapConfig};
    use varve_io::StoreId;
    use varve_io::faulty::FaultyStorage;
    use varve_types::Network;
    use varve_utxo::Compaction;

    /// Set in a child process whose threads ask for stacks of this size.
    const STACK: &str = "RUST_MIN_STACK";
    const THREADS: NonZeroUsize = NonZeroUsize::new(16).unwrap();

    /// That of an archive in memory.
    fn preparer() -> Preparer {
        let config = MmapConfig::new(StoreId([1; 16]), [2; 16]);
        let search = SearchOptions { compaction: Compaction::Inline, ..config.search };
        let config = MmapConfig { search, ..config };
        let backend = MmapBackend::open(Arc::new(FaultyStorage::new(1)), config).unwrap();
        let config = ArchiveConfig { network: Network::Regtest, indexes: Indexes::default() };
        Archive::open(backend, config).unwrap().preparer()
    }

    /// Threads are refused for want of address space: the limit on processes does not bind root.
    #[test]
    fn a_refused_thread_leaves_the_others_and_none_at_all_is_an_error() {
        if let Ok(stack) = std::env::var(STACK) {
            let checkers = Checkers::new(&Params::new(Network::Regtest), preparer(), THREADS, 1);
            if stack == (1_u64 << 50).to_string() {
                let error = checkers.err().expect("no thread has such a stack");
                assert!(matches!(error, Error::Thread(_)), "{error}");
            } else {
                assert!((1..THREADS.get()).contains(&checkers.unwrap().lanes.len()));
            }
            return;
        }
        for stack in [1_u64 << 50, 256 << 20] {
            let mut child = Command::new("sh");
            child.args(["-c", "ulimit -c 0; ulimit -v 2000000; exec \"$0\" \"$@\""]);
            child.arg(std::env::current_exe().unwrap());
            let test = "a_refused_thread_leaves_the_others_and_none_at_all_is_an_error";
            child.arg(format!("organizer::checker::tests::{test}"));
            child.args(["--exact", "--test-threads=1", "--nocapture"]);
            let done = child.env(STACK, stack.to_string()).output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            let told = String::from_utf8_lossy(&done.stdout).into_owned();
            assert!(told.contains("1 passed"), "{told}");
        }
    }

    /// However many lanes there are, a block more is taken only while the bytes under way are below
    /// the limit; a large one is taken by itself.
    #[test]
    fn blocks_under_way_are_bounded_by_bytes() {
        let threads = NonZeroUsize::new(4).unwrap();
        let params = Params::new(Network::Regtest);
        let mut checkers = Checkers::new(&params, preparer(), threads, 100).unwrap();
        let push = |checkers: &mut Checkers, length| {
            let (id, hash, height) = (HeaderId::GENESIS, BlockHash::ZERO, Height::GENESIS);
            let below = Recent { first: 0, headers: Vec::new() };
            checkers.push(Job {
                id,
                hash,
                height,
                below,
                bytes: vec![0; length],
                giver: Giver::ONLY,
            });
        };
        push(&mut checkers, 99);
        assert!(!checkers.is_full());
        push(&mut checkers, 1_000);
        assert!(checkers.is_full());
        assert!(checkers.next().is_some());
        assert!(checkers.is_full(), "the large one is still under way");
        assert!(checkers.next().is_some() && checkers.next().is_none());
        assert!(!checkers.is_full());
        (0..8).for_each(|_| push(&mut checkers, 1));
        assert!(checkers.is_full(), "two for each lane");
    }
}
