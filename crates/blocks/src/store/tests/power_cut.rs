//! The power fails after every single operation of a life of the store.

use varve_io::faulty::Crash;

use super::*;

/// A store and its owner's records, in order.
struct Life {
    storage: Arc<FaultyStorage>,
    store: BlockStore,
    blocks: Vec<Vec<u8>>,
    /// All blocks that ever had a number.
    ever: Vec<Vec<Vec<u8>>>,
    /// The owner's records, each with the number of operations by then.
    notes: Vec<Note>,
    seed: u32,
}

#[derive(Clone)]
struct Note {
    operations: usize,
    synced: Synced,
    blocks: Vec<Vec<u8>>,
    /// Blocks from here on must not have been pruned.
    kept_from: u32,
}

impl Life {
    fn new() -> Self {
        let storage = Arc::new(FaultyStorage::new(1));
        let store = open(storage.clone(), Synced::NEW);
        let (blocks, ever) = (Vec::new(), Vec::new());
        let note = Note { operations: 0, synced: Synced::NEW, blocks: Vec::new(), kept_from: 0 };
        Self { storage, store, blocks, ever, notes: vec![note], seed: 0 }
    }

    fn append(&mut self, count: u32) {
        for _ in 0..count {
            let bytes = block(self.seed, 1 + self.seed * 5 % 23);
            self.seed += 1;
            let number = append(&mut self.store, &bytes).unwrap().get() as usize;
            assert_eq!(number, self.blocks.len());
            self.ever.resize(self.ever.len().max(number + 1), Vec::new());
            self.ever[number].push(bytes.clone());
            self.blocks.push(bytes);
        }
    }

    fn note(&mut self, synced: Synced) {
        let blocks = self.blocks[..synced.count as usize].to_vec();
        let kept_from = self.last().kept_from;
        let operations = self.storage.operations();
        self.notes.push(Note { operations, synced, blocks, kept_from });
    }

    fn last(&self) -> &Note {
        self.notes.last().unwrap()
    }

    fn sync(&mut self) {
        let synced = self.store.sync().unwrap();
        self.note(synced);
    }

    fn checkpoint(&mut self) -> Synced {
        let synced = self.store.checkpoint().unwrap();
        self.note(synced);
        synced
    }

    /// Lowers the note to an earlier one, then cuts.
    fn truncate(&mut self, count: u32, earlier: Synced) {
        self.note(earlier);
        self.store.truncate(count).unwrap();
        self.blocks.truncate(count as usize);
    }

    fn prune(&mut self, from: u32) {
        let mut note = self.last().clone();
        note.kept_from = from;
        note.operations = self.storage.operations();
        self.notes.push(note);
        self.store.prune(Keep { from: BlockNumber::new(from), bytes: 0 }).unwrap();
    }

    fn pack(&mut self) {
        let job = self.store.pack_job().unwrap().unwrap();
        self.store.finish_pack(job.run().unwrap()).unwrap();
    }

    /// What the owner knew when the power failed after operation `n`.
    fn note_at(&self, n: usize) -> &Note {
        self.notes.iter().rfind(|note| note.operations <= n).unwrap()
    }
}

fn whole_life() -> Life {
    let mut life = Life::new();
    life.append(3);
    life.sync();
    life.append(4);
    life.checkpoint();
    life.append(6);
    life.sync();
    life.append(1);
    let early = life.checkpoint();
    life.append(9);
    life.sync();
    life.truncate(18, early);
    life.append(5);
    life.sync();
    life.pack();
    life.pack();
    life.append(2);
    life.checkpoint();
    life.prune(7);
    life.append(3);
    life.sync();
    life.pack();
    life.prune(12);
    life.append(4);
    life.checkpoint();
    life
}

/// Everything recorded is there, everything else that is there is intact, and the store continues.
fn check_after(life: &Life, after: FaultyStorage, n: usize) {
    let note = life.note_at(n);
    let after = Arc::new(after);
    let mut store = open(after.clone(), note.synced);
    let reader = store.reader();
    assert!(reader.count() >= note.synced.count);
    let mut found = note.blocks.clone();
    for number in note.synced.count..reader.count() {
        let hash_found = reader.hash(BlockNumber::new(number)).unwrap();
        let known = &life.ever[number as usize];
        let bytes = known.iter().find(|bytes| hash(bytes) == hash_found);
        found.push(bytes.expect("a block that was written under this number").clone());
    }
    check_all(&reader, &found);
    assert!(reader.first_held().unwrap().get() <= note.kept_from);
    check_files(&store, &after);
    found.push(block(7_777, 3));
    append(&mut store, &block(7_777, 3)).unwrap();
    let synced = store.checkpoint().unwrap();
    let again = after.crash(after.operations(), Crash::LoseAll);
    drop((store, reader));
    check_all(&open(Arc::new(again), synced).reader(), &found);
}

/// No bytes are stored twice, and there is no file without a purpose.
fn check_files(store: &BlockStore, storage: &FaultyStorage) {
    let packed = &store.manifest.packed;
    if let Some(last) = packed.last() {
        assert_eq!(store.segments.start(), last.end);
    }
    let names = storage.list().unwrap();
    let files = names.iter().filter(|name| name.starts_with(packed::FILE_PREFIX));
    assert_eq!(files.count(), packed.len());
}

#[test]
fn nothing_noted_is_lost_whenever_the_power_fails() {
    let life = whole_life();
    let operations = life.storage.operations();
    assert!(life.store.manifest.packed.len() < 3 && operations > 100, "{operations} operations");
    for n in 0..=operations {
        for crash in Crash::ways(6) {
            check_after(&life, life.storage.crash(n, crash), n);
        }
    }
}

/// The power fails again while the store is opened after the first failure.
#[test]
fn an_opening_may_be_interrupted_as_well() {
    let life = whole_life();
    for n in (0..=life.storage.operations()).step_by(5) {
        let after = Arc::new(life.storage.crash(n, Crash::Seed(n as u64)));
        drop(open(after.clone(), life.note_at(n).synced));
        for again in 0..=after.operations() {
            for crash in Crash::ways(2) {
                check_after(&life, after.crash(again, crash), n);
            }
        }
    }
}
