//! A database and the oracle, driven through the same steps.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use varve_consensus::contract::draft::{BlockDraft, TxDraft};
use varve_consensus::{BlockAt, MemorySet, OwnedCoin, PrevoutError, Undo};
use varve_io::StoreId;
use varve_io::faulty::FaultyStorage;
use varve_testdata::Random;
use varve_types::{Block, BlockHash, Height, Network, Outpoint};
use varve_utxo::parts::Sequence;
use varve_utxo::{
    Compaction, Database, Error, Options, Parameters, Secret, SourceFailure, SpentCoins, StoreKey,
    UndoConfig, Version,
};

pub(crate) const KEY: StoreKey = StoreKey { id: StoreId([1; 16]), secret: Secret::new([2; 16]) };

/// All coins.
pub(crate) type State = BTreeMap<Outpoint, OwnedCoin>;

/// Options under which short chains reach old runs.
pub(crate) fn small() -> Options {
    let parameters = Parameters { window: 4, flush_interval: 2, fan_in: 2, max_probed: 3 };
    let undo = UndoConfig { blocks: 64, segment_size: 1 << 20, cache: 4096 };
    let compaction = Compaction::Inline;
    Options { parameters, undo, shards: 2, compaction, ..Options::new(Network::Regtest, KEY) }
}

/// The same with threads.
pub(crate) fn threaded() -> Options {
    Options { compaction: Compaction::Threads, ..small() }
}

/// All coins of a version, by the walk; looking some of them up must give the same.
pub(crate) fn state(version: &Version) -> State {
    let mut state = State::new();
    let mut walk = version.coins().unwrap();
    while let Some((outpoint, coin)) = walk.next_coin().unwrap() {
        assert!(state.last_key_value().is_none_or(|(last, _)| *last < outpoint), "in order, once");
        state.insert(outpoint, coin.into());
    }
    let keys: Vec<Outpoint> = state.keys().rev().copied().collect();
    let found = version.get(&keys).unwrap();
    for (key, coin) in keys.iter().zip(found.iter()) {
        assert_eq!(coin.map(OwnedCoin::from).as_ref(), Some(&state[key]), "{key}");
    }
    state
}

pub(crate) fn oracle_state(set: &MemorySet) -> State {
    set.iter().map(|(outpoint, coin)| (*outpoint, coin.into())).collect()
}

pub(crate) struct Twin {
    pub(crate) storage: Arc<FaultyStorage>,
    pub(crate) options: Options,
    pub(crate) database: Option<Database>,
    pub(crate) oracle: MemorySet,
    /// The active chain from the genesis block on.
    pub(crate) chain: Vec<(Vec<u8>, Undo)>,
    /// The coins after each step since the last opening, and the one it was opened at.
    pub(crate) history: BTreeMap<Sequence, Rc<State>>,
    /// The coins at each block that was the tip.
    by_tip: BTreeMap<BlockHash, Rc<State>>,
    /// The operations of the storage when the database was opened.
    pub(crate) opened: usize,
    /// All blocks there ever were, of all branches.
    pub(crate) archive: Archive,
    salt: u32,
}

impl Twin {
    pub(crate) fn new(seed: u64, options: Options) -> Self {
        let storage = Arc::new(FaultyStorage::new(seed));
        let database = Database::open(storage.clone(), options).unwrap();
        let mut twin = Self {
            storage,
            options,
            database: Some(database),
            oracle: MemorySet::new(Network::Regtest),
            chain: Vec::new(),
            history: BTreeMap::from([(Sequence::ZERO, Rc::default())]),
            by_tip: BTreeMap::new(),
            opened: 0,
            archive: Archive::default(),
            salt: 0,
        };
        twin.append(&Network::Regtest.genesis_block()).unwrap();
        twin
    }

    /// A twin whose set was imported at its tip, so that there is no undo record at all.
    pub(crate) fn imported(seed: u64, options: Options, blocks: usize) -> Self {
        let (mut twin, mut chance) = (Self::new(seed, options), Random::new(seed));
        (0..blocks).for_each(|_| twin.append_draft(&mut chance).unwrap());
        let (height, _) = twin.database().tip().unwrap();
        let mut file = Vec::new();
        twin.database().snapshot().export(options.network, &mut file, &mut |_, _| {}).unwrap();
        twin.database = None;
        twin.storage = Arc::new(FaultyStorage::new(seed));
        let mut database = Database::open(twin.storage.clone(), options).unwrap();
        database.import(&file[..], height, &mut |_, _| {}).unwrap();
        twin.database = Some(database);
        twin.history = BTreeMap::from([(Sequence::ZERO, Rc::default())]);
        twin.note();
        twin
    }

    pub(crate) fn database(&mut self) -> &mut Database {
        self.database.as_mut().unwrap()
    }

    pub(crate) fn height(&self) -> u32 {
        u32::try_from(self.chain.len()).unwrap()
    }

    /// Connects a block to both, or to none.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let block = Block::parse(bytes, Network::Regtest.format()).unwrap();
        let at = BlockAt::new(Height::new(self.height()), &block);
        let before = self.database().tip();
        let sequence = self.database().snapshot().sequence();
        let below = Rc::clone(&self.history[&sequence]);
        if self.options.compaction == Compaction::Threads && self.salt.is_multiple_of(3) {
            // Gives the threads time: blocks arrive much faster here than in practice.
            std::thread::sleep(Duration::from_micros(300));
        }
        let connected = self.database().append(&at);
        match connected {
            Ok(()) => {
                self.archive.0.insert(at.hash(), (bytes.to_vec(), below));
                let undo = self.oracle.connect(&at).unwrap();
                self.chain.push((bytes.to_vec(), undo));
            }
            Err(error) => {
                assert_eq!(self.database().tip(), before);
                if let Error::Prevout(reason) = &error {
                    same_reason(self.oracle.connect(&at).unwrap_err(), *reason);
                }
                return Err(error);
            }
        }
        self.note();
        Ok(())
    }

    /// Disconnects the tip of both.
    pub(crate) fn rewind(&mut self) -> Result<(), Error> {
        self.database().rewind()?;
        self.disconnect_oracle();
        self.note();
        Ok(())
    }

    /// Disconnects the tip of both, whether its undo record is kept or not.
    pub(crate) fn rewind_with_archive(&mut self) -> Result<(), Error> {
        self.database.as_mut().unwrap().rewind_with(&self.archive)?;
        self.disconnect_oracle();
        self.note();
        Ok(())
    }

    pub(crate) fn disconnect_oracle(&mut self) -> Vec<u8> {
        let (bytes, undo) = self.chain.pop().unwrap();
        let block = Block::parse(&bytes, Network::Regtest.format()).unwrap();
        self.oracle.disconnect(&BlockAt::new(Height::new(self.height()), &block), undo);
        bytes
    }

    pub(crate) fn note(&mut self) {
        let version = self.database().snapshot();
        let state = oracle_state(&self.oracle);
        let state = Rc::new(state);
        if let Some((_, tip)) = version.tip() {
            self.by_tip.insert(tip, Rc::clone(&state));
        }
        self.history.insert(version.sequence(), state);
    }

    /// Compares everything.
    pub(crate) fn check(&mut self) {
        let version = self.database().snapshot();
        assert_eq!(version.tip().map(|(height, _)| height.to_u32() + 1), Some(self.height()));
        assert_eq!(state(&version), oracle_state(&self.oracle));
    }

    /// A block on the tip, of random transactions: some spend within the block, some were made
    /// before on another branch, and now and then a coinbase is repeated.
    pub(crate) fn draft(&mut self, chance: &mut Random) -> BlockDraft {
        self.salt += 1;
        let height = Height::new(self.height());
        let repeated = TxDraft::coinbase(Height::new(7), 50);
        let coinbase = if chance.index(12) == 0 {
            repeated.clone()
        } else {
            // On rival branches the same coinbases and spends recur.
            TxDraft::coinbase(height, chance.index(3) as u64)
        };
        let mut txs = vec![coinbase];
        let mut free: Vec<Outpoint> = self.oracle.iter().map(|(outpoint, _)| *outpoint).collect();
        let mut used: Vec<Outpoint> = Vec::new();
        for _ in 0..chance.index(5) {
            if free.is_empty() {
                break;
            }
            let inputs = 1 + chance.index(2.min(free.len()));
            let inputs: Vec<Outpoint> =
                (0..inputs).map(|_| free.swap_remove(chance.index(free.len()))).collect();
            let mut tx = TxDraft::spending(&inputs, 1 + chance.index(3));
            if chance.index(8) == 0 {
                tx.outputs[0].script = vec![0x51; 3_000];
            }
            if chance.index(6) == 0 {
                tx.outputs[0].script = vec![0x6a];
            }
            let txid = tx.txid();
            let made = (0..).zip(&tx.outputs).filter(|(_, output)| output.script != [0x6a]);
            // Spenders of a repeated coinbase make their outputs again too.
            used.extend(inputs);
            for outpoint in made.map(|(vout, _)| Outpoint::new(txid, vout)) {
                if !used.contains(&outpoint) && !free.contains(&outpoint) {
                    free.push(outpoint);
                }
            }
            txs.push(tx);
        }
        if chance.index(8) == 0 {
            // After transactions that may spend the outputs it makes again.
            txs.push(repeated);
        }
        BlockDraft { previous: self.tip_hash(), nonce: self.salt, ..BlockDraft::new(txs) }
    }

    pub(crate) fn append_draft(&mut self, chance: &mut Random) -> Result<(), Error> {
        let bytes = self.draft(chance).bytes();
        self.append(&bytes)
    }

    pub(crate) fn tip_hash(&self) -> BlockHash {
        let (bytes, _) = self.chain.last().unwrap();
        Block::parse(bytes, Network::Regtest.format()).unwrap().hash()
    }

    /// Opens what a killed process leaves, or `storage`, compares with the state of that step, and
    /// brings the database back to the tip as an owner does.
    pub(crate) fn reopen(&mut self, storage: Option<FaultyStorage>) {
        self.database = None;
        self.storage = Arc::new(storage.unwrap_or_else(|| self.storage.reopen()));
        self.opened = self.storage.operations();
        let database = Database::open(self.storage.clone(), self.options).unwrap();
        let version = database.snapshot();
        let at = version.sequence();
        assert_eq!(state(&version), *self.history[&at], "exactly the state of step {at}");
        assert_eq!(database.checkpoint().sequence, at);
        self.history.retain(|sequence, _| *sequence <= at);
        self.database = Some(database);
        self.catch_up();
    }

    /// Goes down to the fork and up the active chain.
    fn catch_up(&mut self) {
        let mut chain: Vec<Vec<u8>> = Vec::new();
        while !self.chain.is_empty() {
            chain.push(self.disconnect_oracle());
        }
        chain.reverse();
        let hashes: Vec<BlockHash> = chain
            .iter()
            .map(|bytes| Block::parse(bytes, Network::Regtest.format()).unwrap().hash())
            .collect();
        let is_active = |(height, hash): (Height, BlockHash)| {
            hashes.get(height.to_u32() as usize) == Some(&hash)
        };
        let database = self.database.as_mut().unwrap();
        while database.tip().is_some_and(|tip| !is_active(tip)) {
            database.rewind_with(&self.archive).unwrap();
            // A thread may make a checkpoint of this very step.
            let coins = database.tip().map(|(_, tip)| Rc::clone(&self.by_tip[&tip]));
            self.history.insert(database.snapshot().sequence(), coins.unwrap_or_default());
        }
        let have = database.tip().map_or(0, |(height, _)| height.to_u32() as usize + 1);
        for bytes in &chain[..have] {
            let block = Block::parse(bytes, Network::Regtest.format()).unwrap();
            let undo = self.oracle.connect(&BlockAt::new(Height::new(self.height()), &block));
            self.chain.push((bytes.clone(), undo.unwrap()));
        }
        self.note();
        for bytes in &chain[have..] {
            self.append(bytes).unwrap();
        }
        self.check();
    }
}

/// Who spent a coin in the block that made it is known to the oracle alone.
fn same_reason(expected: PrevoutError, found: PrevoutError) {
    match (expected, found) {
        (
            PrevoutError::Missing { outpoint, spender, spent_by: expected },
            PrevoutError::Missing { spent_by: None, .. },
        ) if expected.is_some() => {
            assert_eq!(found, PrevoutError::Missing { outpoint, spender, spent_by: None });
        }
        _ => assert_eq!(found, expected),
    }
}

/// Blocks, and the coins below each.
#[derive(Default)]
pub(crate) struct Archive(HashMap<BlockHash, (Vec<u8>, Rc<State>)>);

impl SpentCoins for Archive {
    fn block(&self, _: Height, hash: BlockHash) -> Result<Vec<u8>, SourceFailure> {
        Ok(self.0[&hash].0.clone())
    }

    fn coin_below(
        &self,
        block: &BlockAt<'_>,
        outpoint: &Outpoint,
    ) -> Result<Option<OwnedCoin>, SourceFailure> {
        Ok(self.0[&block.hash()].1.get(outpoint).cloned())
    }
}
