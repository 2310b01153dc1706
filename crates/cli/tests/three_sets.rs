//! One stream of blocks through all that hold an unspent set: the durable set, the records, and the
//! plain set in memory that judges them. They give the same verdict on every block, good or
//! spoiled, and hold the same coins at the end.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::sync::Arc;

use varve_consensus::contract::draft::BlockDraft;
use varve_consensus::{
    Ancestor, BlockAt, CheckError, MemorySet, OwnedCoin, Params, PrevoutError, SpendError, Undo,
    UnspentOutputsView, check_spends,
};
use varve_io::StoreId;
use varve_io::faulty::FaultyStorage;
use varve_records::blob::{Blobs, Fanout, ObjectBucket};
use varve_records::record::BlockId;
use varve_records::view::{RecordsUndo, RecordsView, coins, connect, disconnect};
use varve_records::{EmbeddedEngine, EmbeddedOptions, Settings, Store, StoreKey};
use varve_sim::{Chain, Config, Profile};
use varve_types::{Block, Height, Network, Outpoint, Txid};
use varve_utxo::{Database, Options, Parameters, Secret};

const NETWORK: Network = Network::Regtest;

/// The three sets, and what takes the last block back.
struct Sets {
    params: Params,
    judge: MemorySet,
    set: Database,
    records: Store,
    chain: Vec<Connected>,
    blocks: u32,
}

struct Connected {
    ancestor: Ancestor,
    bytes: Vec<u8>,
    id: BlockId,
    judge: Undo,
    records: RecordsUndo,
}

impl Sets {
    fn new() -> Self {
        let key = StoreKey { id: StoreId([1; 16]), secret: [2; 16] };
        let storage = Arc::new(FaultyStorage::new(1));
        let engine = EmbeddedEngine::open(storage, EmbeddedOptions::new(key)).unwrap();
        let blobs = Blobs::new(ObjectBucket::memory(), Fanout::None);
        let records = Store::new(Arc::new(engine), blobs, Settings::new(NETWORK), Box::new(|| 0));
        let key = varve_utxo::StoreKey { id: StoreId([3; 16]), secret: Secret::new([4; 16]) };
        // Short chains reach runs on disk.
        let parameters = Parameters { window: 4, flush_interval: 2, fan_in: 2, max_probed: 3 };
        let options = Options { parameters, ..Options::new(NETWORK, key) };
        let set = Database::open(Arc::new(FaultyStorage::new(2)), options).unwrap();
        let (params, judge) = (Params::new(NETWORK), MemorySet::new(NETWORK));
        Self { params, judge, set, records, chain: Vec::new(), blocks: 0 }
    }

    fn next_height(&self) -> Height {
        Height::new(u32::try_from(self.chain.len()).unwrap())
    }

    /// Goes to the block, back from a branch if need be.
    fn go_to(&mut self, bytes: Vec<u8>) {
        let block = Block::parse(&bytes, NETWORK.format()).unwrap();
        let previous = block.header().previous();
        while self.chain.last().is_some_and(|tip| tip.ancestor.hash != previous) {
            self.disconnect();
        }
        let height = self.next_height();
        let at = BlockAt::new(height, &block);
        assert_eq!(self.verdict(&at), None, "a block of the simulator is valid");
        self.blocks += 1;
        let id = BlockId(self.blocks);
        let judge = self.judge.connect(&at).unwrap();
        let records = connect(&self.records, NETWORK, &at, id).unwrap();
        self.set.append(&at).unwrap();
        let ancestor = Ancestor::from(block.header());
        self.chain.push(Connected { ancestor, bytes: bytes.clone(), id, judge, records });
        if height > Height::GENESIS {
            self.records.set_block_height(height).unwrap();
        }
    }

    fn disconnect(&mut self) {
        let tip = self.chain.pop().unwrap();
        let block = Block::parse(&tip.bytes, NETWORK.format()).unwrap();
        let at = BlockAt::new(self.next_height(), &block);
        self.judge.disconnect(&at, tip.judge);
        disconnect(&self.records, &at, tip.id, &tip.records).unwrap();
        self.set.rewind().unwrap();
    }

    /// What all three say of a block; `None` for "valid".
    fn verdict(&self, block: &BlockAt<'_>) -> Option<SpendError> {
        let judge = self.verdict_by(block, &self.judge);
        let set = self.verdict_by(block, &self.set.view(block).unwrap());
        let records = RecordsView::load(&self.records, NETWORK, block).unwrap();
        let records = self.verdict_by(block, &records);
        assert_eq!((&set, &records), (&judge, &judge), "block {}", block.hash());
        judge
    }

    fn verdict_by<V>(&self, block: &BlockAt<'_>, view: &V) -> Option<SpendError>
    where
        V: UnspentOutputsView<Error: std::fmt::Debug>,
    {
        let below: Vec<Ancestor> = self.chain.iter().map(|found| found.ancestor).collect();
        match check_spends(&self.params, block, &below, view) {
            Ok(_) => None,
            // Who spent a missing coin before is told by those that remember it.
            Err(CheckError::Invalid(SpendError::Prevout(PrevoutError::Missing {
                outpoint,
                spender,
                ..
            }))) => {
                let missing = PrevoutError::Missing { outpoint, spender, spent_by: None };
                Some(SpendError::Prevout(missing))
            }
            Err(CheckError::Invalid(reason)) => Some(reason),
            Err(other) => panic!("{other:?}"),
        }
    }

    /// Asks about a block that is spoiled; nobody takes it. Returns whether it could be spoiled.
    fn refuse(&self, bytes: &[u8], spoil: impl FnOnce(&mut BlockDraft) -> bool) -> bool {
        let mut draft = BlockDraft::from(&Block::parse(bytes, NETWORK.format()).unwrap());
        if !spoil(&mut draft) {
            return false;
        }
        let bytes = draft.bytes();
        let block = Block::parse(&bytes, NETWORK.format()).unwrap();
        assert!(self.verdict(&BlockAt::new(self.next_height(), &block)).is_some());
        true
    }

    fn assert_same_coins(&self) {
        let records = coins(&self.records, NETWORK).unwrap();
        let snapshot = self.set.snapshot();
        let mut walk = snapshot.coins().unwrap();
        let mut seen = 0;
        while let Some((outpoint, coin)) = walk.next_coin().unwrap() {
            assert_eq!(self.judge.get(&outpoint), Some(coin), "{outpoint}");
            let record = records.get(&outpoint).map(OwnedCoin::as_coin);
            assert_eq!(record, Some(coin), "{outpoint}");
            seen += 1;
        }
        assert_eq!((seen, records.len()), (self.judge.len(), self.judge.len()));
    }
}

#[test]
fn the_same_blocks_give_the_same_verdicts_and_the_same_coins() {
    let config = Config {
        reorg_depth: Some(6),
        transactions: Some(12),
        coins: Some(600),
        mempool: 0,
        ..Config::new(Profile::Mainnet, 170, 5)
    };
    let mut sets = Sets::new();
    let (mut spoiled, mut stale) = (0, 0);
    for block in Chain::new(&config).unwrap() {
        if block.height as usize == sets.chain.len() && block.height.is_multiple_of(5) {
            spoiled += usize::from(sets.refuse(&block.bytes, |draft| {
                let again = draft.txs.get(1).cloned();
                draft.txs.extend(again);
                draft.txs.len() > 2
            }));
            spoiled += usize::from(sets.refuse(&block.bytes, |draft| {
                let spender = draft.txs.iter_mut().skip(1).next_back();
                let input = spender.and_then(|tx| tx.inputs.first_mut());
                let nowhere = Outpoint::new(Txid::from_bytes([9; 32]), 3);
                input.map(|input| input.outpoint = nowhere).is_some()
            }));
        }
        stale += usize::from(block.stale);
        sets.go_to(block.bytes);
        if block.height.is_multiple_of(40) {
            sets.assert_same_coins();
        }
    }
    assert!(spoiled > 20 && stale > 0, "{spoiled} spoiled, {stale} stale");
    sets.assert_same_coins();
}
