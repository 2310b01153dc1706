//! A node in front of a store, for cases that are stories of several blocks.
//!
//! It takes transactions as they come and keeps a double spend as conflicting, connects blocks,
//! sees blocks of other branches, and changes the branch.

use std::sync::Arc;

use varve_types::{BlockHash, Height, Outpoint, Txid};

use super::draft::{Coin, TxDraft};
use super::{Disk, block as block_ref, scan_all};
use crate::blob::{Blobs, Fanout, ObjectBucket};
use crate::block_state::BlockState;
use crate::conflicts::{CLOSURE_BUDGET, ConflictBlock, ConflictError, process_conflicting};
use crate::engine::Scan;
use crate::extended::Transaction;
use crate::fields::Fields;
use crate::operation::MinedBlockInfo;
use crate::prepare::CreateOptions;
use crate::record::{BlockId, Record};
use crate::restart::recover;
use crate::settings::Settings;
use crate::store::Store;
use crate::two_phase::{AdmitError, AdmitOptions, AssemblyError, BlockAssembly, admit};

/// The height at which every story begins.
pub(super) const START: u32 = 100;

/// A block: its number, its height, what it holds, and the numbers of the blocks below it.
pub(super) struct Block {
    id: u32,
    height: u32,
    txs: Vec<Transaction>,
    below: Vec<u32>,
}

impl Block {
    pub(super) fn new(id: u32, height: u32, txs: &[&Transaction]) -> Self {
        let txs = txs.iter().map(|tx| (*tx).clone()).collect();
        Self { id, height, txs, below: Vec::new() }
    }

    pub(super) fn on(self, below: &[u32]) -> Self {
        Self { below: below.to_vec(), ..self }
    }

    pub(super) fn txids(&self) -> Vec<Txid> {
        self.txs.iter().map(Transaction::txid).collect()
    }

    pub(super) fn info(&self, on_longest_chain: bool) -> MinedBlockInfo {
        let block = block_ref(self.id, self.height);
        MinedBlockInfo { block, on_longest_chain, unset: false }
    }
}

/// Block assembly that takes everything.
struct Taken;

impl BlockAssembly for Taken {
    fn add(&self, _: &Transaction, _: &Record) -> Result<(), AssemblyError> {
        Ok(())
    }
}

/// A node in front of a store.
pub(super) struct Node {
    pub(super) store: Store,
}

impl Node {
    pub(super) fn new<D: Disk<Engine: 'static>>(disk: &D) -> Self {
        let blobs = Blobs::new(ObjectBucket::memory(), Fanout::None);
        let engine = Arc::new(disk.open());
        let node = Self { store: Store::new(engine, blobs, Settings::default(), Box::new(|| 0)) };
        node.stand_at(START);
        node
    }

    pub(super) fn stand_at(&self, height: u32) {
        let state = BlockState { height: Height::new(height), median_time: 1_600_000_000 };
        self.store.set_block_state(state).expect("a height above 0");
    }

    /// A transaction in a block that is old.
    pub(super) fn fund(&self, tag: u32, outputs: u32) -> Transaction {
        let tx = TxDraft::root(tag, outputs).build();
        let height = Height::new(90);
        let blocks = vec![block_ref(1, 90)];
        let options = CreateOptions { height, blocks, ..CreateOptions::default() };
        self.store.create(&tx, &options).expect("it is new");
        tx
    }

    /// Takes a transaction that spends these coins. The tag distinguishes rivals.
    pub(super) fn take(&self, coins: &[(&Transaction, u32)], tag: u32) -> Transaction {
        let coins: Vec<Coin> = coins.iter().map(|(tx, vout)| Coin::of(tx, *vout)).collect();
        let tx = TxDraft::spending(&coins, 2).tag(tag).build();
        self.receive(&tx);
        tx
    }

    /// Takes a transaction. A double spend is kept as conflicting.
    pub(super) fn receive(&self, tx: &Transaction) {
        let options = AdmitOptions {
            created_at: u64::from(tx.view().lock_time()),
            ignore_locked: false,
            create_conflicting: true,
            assemble: true,
        };
        match admit(&self.store, tx, options, &|_| Ok(()), &Taken) {
            Ok(_) | Err(AdmitError::Conflicting { .. }) => {}
            Err(error) => panic!("{} was refused: {error}", tx.txid()),
        }
    }

    /// Connects a block to the chain. Those of its transactions that lost before win. Answers
    /// with those who lose.
    pub(super) fn connect(&self, block: &Block) -> Result<Vec<Txid>, ConflictError> {
        for tx in &block.txs {
            if self.find(tx).is_none() {
                self.receive(tx);
            }
        }
        let lost = |tx: &&Transaction| self.record(tx).conflicting;
        let winners: Vec<Txid> = block.txs.iter().filter(lost).map(Transaction::txid).collect();
        let is_ancestor = |id: BlockId| block.below.contains(&id.0);
        let asks = asks(block.height, block.id, &is_ancestor);
        let losers = process_conflicting(&self.store, &winners, &asks)?;
        self.mine(block, true);
        self.stand_at(block.height);
        Ok(losers)
    }

    /// Sees a block of a branch that is not the longest.
    pub(super) fn see(&self, block: &Block) {
        block.txs.iter().filter(|tx| self.find(tx).is_none()).for_each(|tx| self.receive(tx));
        self.mine(block, false);
    }

    fn mine(&self, block: &Block, on_longest_chain: bool) {
        let info = block.info(on_longest_chain);
        let answers = self.store.set_mined_multi(&block.txids(), &info).expect("the storage works");
        assert!(answers.iter().all(Result::is_ok), "all have records");
    }

    /// Takes the tip from the chain; its transactions wait again, though the block is known.
    pub(super) fn disconnect(&self, block: &Block) {
        self.stand_at(block.height - 1);
        self.store.mark_on_longest_chain(&block.txids(), false).expect("all have records");
    }

    pub(super) fn find(&self, tx: &Transaction) -> Option<Record> {
        let found = self.store.engine().read(&[tx.txid()], Fields::ALL);
        found.expect("the storage works").pop().expect("one for one")
    }

    pub(super) fn record(&self, tx: &Transaction) -> Record {
        self.find(tx).expect("there is a record")
    }

    pub(super) fn spender(&self, tx: &Transaction, vout: u32) -> Option<Txid> {
        let slots = self.store.engine().slots(&[Outpoint::new(tx.txid(), vout)]);
        let view = slots.expect("the storage works").pop().flatten().expect("there is a record");
        view.slot.expect("there is a slot").spender().map(|data| data.txid)
    }

    /// Whether a transaction can be built on: it did not lose, and is not locked.
    pub(super) fn stands(&self, tx: &Transaction) -> bool {
        let record = self.record(tx);
        !record.conflicting && !record.locked
    }

    /// The transactions that a block assembly which forgot everything is given again.
    pub(super) fn reset_assembly(&self, best: &[u32]) -> Vec<Txid> {
        let on_best_chain = |id: BlockId| best.contains(&id.0);
        let found = recover(&self.store, &on_best_chain, &mut |_| Ok(()));
        let mut added = found.expect("it recovers").added;
        added.sort();
        added
    }

    pub(super) fn everything(&self) -> Vec<Record> {
        let txids = scan_all(self.store.engine(), Scan::All, 100);
        let records = self.store.engine().read(&txids, Fields::ALL).expect("the storage works");
        records.into_iter().flatten().collect()
    }

    /// Nothing is left to be done, nothing is locked, and a crash changes nothing.
    pub(super) fn end<D: Disk<Engine: 'static>>(self, disk: &D) {
        assert_eq!(self.store.intents().expect("the storage works"), []);
        let before = self.everything();
        assert!(before.iter().all(|record| !record.locked), "a lock is left");
        drop(self);
        disk.crash();
        assert!(Self::new(disk).everything() == before, "the records are as before the crash");
    }
}

/// A block that asks for winners.
pub(super) fn asks(
    height: u32,
    id: u32,
    is_ancestor: &dyn Fn(BlockId) -> bool,
) -> ConflictBlock<'_> {
    ConflictBlock {
        height: Height::new(height),
        hash: BlockHash::from_bytes([u8::try_from(id).expect("a small number"); 32]),
        now_ms: 1,
        budget: CLOSURE_BUDGET,
        is_ancestor,
    }
}

/// The txids in their order.
pub(super) fn sorted(txs: &[&Transaction]) -> Vec<Txid> {
    let mut txids: Vec<Txid> = txs.iter().map(|tx| tx.txid()).collect();
    txids.sort();
    txids
}
