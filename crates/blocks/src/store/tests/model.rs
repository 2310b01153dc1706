//! Any sequence of operations, against a plain list of blocks.

use proptest::prelude::*;
use varve_io::faulty::Crash;

use super::*;
use crate::BlockReader;

#[derive(Debug, Clone)]
enum Step {
    Append(u32),
    AppendKnown(usize),
    Sync,
    Checkpoint,
    Truncate(u32),
    Prune(u32),
    Pack,
    HoldReader,
    Kill,
    PowerCut(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (1_u32..30).prop_map(Step::Append),
        1 => any::<usize>().prop_map(Step::AppendKnown),
        3 => Just(Step::Sync),
        3 => Just(Step::Checkpoint),
        2 => (0_u32..6).prop_map(Step::Truncate),
        1 => (0_u32..20).prop_map(Step::Prune),
        2 => Just(Step::Pack),
        2 => Just(Step::HoldReader),
        1 => Just(Step::Kill),
        1 => any::<u64>().prop_map(Step::PowerCut),
    ]
}

struct World {
    storage: Arc<FaultyStorage>,
    store: BlockStore,
    blocks: Vec<Vec<u8>>,
    synced: Synced,
    /// How many blocks can no longer be cut.
    indexed: usize,
    pruned: usize,
    /// Readers with what they must see.
    readers: Vec<(BlockReader, usize)>,
    seed: u32,
}

impl World {
    fn new() -> Self {
        let storage = Arc::new(FaultyStorage::new(3));
        let store = open(storage.clone(), Synced::NEW);
        let (blocks, readers) = (Vec::new(), Vec::new());
        let (synced, indexed, pruned) = (Synced::NEW, 0, 0);
        Self { storage, store, blocks, synced, indexed, pruned, readers, seed: 0 }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Append(txs) => {
                self.seed += 1;
                self.blocks.push(block(self.seed, txs));
                append(&mut self.store, self.blocks.last().unwrap()).unwrap();
            }
            Step::AppendKnown(index) if self.blocks.len() > self.pruned => {
                let index = self.pruned + index % (self.blocks.len() - self.pruned);
                let number = append(&mut self.store, &self.blocks[index]).unwrap();
                assert_eq!(number.get() as usize, index);
            }
            Step::Sync => self.synced = self.store.sync().unwrap(),
            Step::Checkpoint => {
                self.synced = self.store.checkpoint().unwrap();
                self.indexed = self.blocks.len();
            }
            Step::Truncate(back) => self.truncate(back as usize),
            Step::Prune(back) => {
                let from = u32::try_from(self.blocks.len()).unwrap().saturating_sub(back);
                let first =
                    self.store.prune(Keep { from: BlockNumber::new(from), bytes: 0 }).unwrap();
                self.indexed = self.store.index_rows() as usize;
                let first = first.get() as usize;
                assert!(first >= self.pruned && first <= self.pruned.max(from as usize));
                self.pruned = first;
            }
            Step::Pack => {
                if let Some(job) = self.store.pack_job().unwrap() {
                    self.store.finish_pack(job.run().unwrap()).unwrap();
                    self.indexed = self.blocks.len();
                }
            }
            Step::HoldReader => self.readers.push((self.store.reader(), self.blocks.len())),
            Step::Kill => self.reopen(Arc::new(self.storage.reopen()), self.blocks.len()),
            Step::PowerCut(seed) => {
                let after = self.storage.crash(self.storage.operations(), Crash::Seed(seed));
                self.reopen(Arc::new(after), self.synced.count as usize);
            }
            Step::AppendKnown(_) => {}
        }
    }

    fn truncate(&mut self, back: usize) {
        let count = self.blocks.len().saturating_sub(back).max(self.indexed);
        let position = self.store.segments.end();
        self.store.truncate(u32::try_from(count).unwrap()).unwrap();
        self.blocks.truncate(count);
        for (_, seen) in &mut self.readers {
            *seen = (*seen).min(count);
        }
        if self.store.segments.end() < position {
            self.synced = self.store.sync().unwrap();
        }
    }

    /// Opens `storage`, where at least `least` blocks must be.
    fn reopen(&mut self, storage: Arc<FaultyStorage>, least: usize) {
        self.readers.clear();
        // The process that held the store is gone, and with it all that it had mapped.
        self.store = open(Arc::new(FaultyStorage::new(0)), Synced::NEW);
        self.storage = storage;
        self.store = open(self.storage.clone(), self.synced);
        let count = self.store.count() as usize;
        assert!(count >= least && count <= self.blocks.len());
        self.blocks.truncate(count);
        self.indexed = self.store.index_rows() as usize;
        assert!(self.indexed <= count);
    }

    fn check(&self) {
        let held = check_all(&self.store.reader(), &self.blocks);
        assert_eq!(held, self.blocks.len() - self.pruned);
        for (reader, seen) in &self.readers {
            for (number, bytes) in (0..).zip(&self.blocks[..*seen]) {
                check_block(reader, number, bytes);
            }
            let beyond = BlockNumber::new(u32::try_from(*seen).unwrap());
            assert!(matches!(reader.row(beyond), Err(Error::Unknown { .. })));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn the_store_is_a_list_of_blocks(steps in prop::collection::vec(step(), 1..80)) {
        let mut world = World::new();
        for step in &steps {
            world.take(step);
            world.check();
        }
    }
}
