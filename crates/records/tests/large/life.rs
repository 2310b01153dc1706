//! The life of a large transaction, in two parts, each in a process of its own.

use std::path::Path;
use std::sync::Arc;

use varve_io::{Disk, Storage as _, StoreId};
use varve_records::blob::{Blobs, DiskBucket, Fanout};
use varve_records::conflicts::{ConflictBlock, process_conflicting};
use varve_records::contract::blobs_of;
use varve_records::contract::draft::{Coin, TxDraft};
use varve_records::operation::MinedBlockInfo;
use varve_records::record::{BlockId, BlockRef, Body};
use varve_records::store::{PruneAt, prune};
use varve_records::{
    BlockState, CreateOptions, EmbeddedEngine, EmbeddedOptions, Fields, Settings, SpendRules,
    Store, StoreKey, Transaction,
};
use varve_types::{BlockHash, Format, Height};

use crate::peak::step;
use crate::shape::{Shape, coin};

/// What a child says when it has done its part.
pub(crate) const OVER: &str = "over";
/// The steps of both parts.
pub(crate) const STEPS: usize = 13;

const TIP: Height = Height::new(100);
const NEXT: Height = Height::new(101);
const RULES: SpendRules = SpendRules::at(NEXT);

fn open(directory: &Path, shape: &Shape) -> Store {
    let storage = Arc::new(Disk::open(directory).unwrap());
    let key = StoreKey { id: StoreId([1; 16]), secret: [2; 16] };
    let options = EmbeddedOptions {
        segment_size: shape.segment_size,
        cache: shape.cache,
        ..EmbeddedOptions::new(key)
    };
    let bucket = DiskBucket::open(storage.directory("blobs").unwrap(), Fanout::None).unwrap();
    let engine = EmbeddedEngine::open(storage, options).unwrap();
    let blobs = Blobs::new(bucket, Fanout::None);
    let store = Store::new(Arc::new(engine), blobs, Settings::default(), Box::new(|| 0));
    store.set_block_state(BlockState { height: TIP, median_time: 0 }).unwrap();
    store
}

fn options() -> CreateOptions {
    CreateOptions { height: NEXT, ..CreateOptions::default() }
}

/// The small transaction whose output the large one spends.
fn parent(shape: &Shape) -> Transaction {
    let mut draft = TxDraft::root(1, 1);
    draft.inputs[0].value = 2 * shape.value();
    draft.outputs[0].0 = shape.value();
    draft.build()
}

/// The one who spends the last two outputs of the large transaction.
fn spender(large: &Transaction, shape: &Shape) -> Transaction {
    let last = [shape.outputs - 1, shape.outputs - 2].map(|vout| coin(large.txid(), vout));
    TxDraft::spending(&last, 1).build()
}

/// Another spender of what the large transaction spends.
fn rival(parent: &Transaction) -> Transaction {
    TxDraft::spending(&[Coin::of(parent, 0)], 2).build()
}

fn mined(id: u32) -> MinedBlockInfo {
    let block = BlockRef { id: BlockId(id), height: NEXT, subtree: 0 };
    MinedBlockInfo { block, on_longest_chain: true, unset: false }
}

/// From its creation to its block, and on until it is killed.
pub(crate) fn begin(directory: &Path, shape: &Shape) {
    let store = open(directory, shape);
    let parent = parent(shape);
    store.create(&parent, &options()).unwrap();
    store.set_mined_multi(&[parent.txid()], &mined(1)).unwrap();
    let large = shape.transaction(&Coin::of(&parent, 0));
    let txid = large.txid();
    let spender = spender(&large, shape);
    step("create", || store.spend_and_create(&large, RULES, &options()).unwrap());
    drop(large);
    step("get-meta", || assert!(store.get_meta(txid).unwrap().external));
    step("get-tx", || {
        let record = store.get(txid, Fields::TX).unwrap();
        let Some(Body::Transaction(tx)) = record.body else { panic!("a transaction") };
        assert_eq!(tx.bytes().len() as u64, record.extended_size);
        assert!(Transaction::parse(tx.bytes().clone(), Format::Legacy).unwrap().txid() == txid);
    });
    step("spend", || store.spend_and_create(&spender, RULES, &options()).unwrap());
    step("mined", || store.set_mined_multi(&[txid], &mined(2)).unwrap());
    println!("{OVER}");
    loop {
        std::thread::park();
    }
}

/// From the reopening to the end of the record.
pub(crate) fn go_on(directory: &Path, shape: &Shape) {
    let parent = parent(shape);
    let store = step("reopen", || open(directory, shape));
    let spent = store.get(parent.txid(), Fields::UTXOS).unwrap().utxos;
    let txid = spent[0].unwrap().spender().unwrap().txid;
    step("get-all", || {
        let record = store.get(txid, Fields::ALL).unwrap();
        assert_eq!(record.utxos.len(), shape.outputs as usize + 1);
        assert_eq!(record.blocks.len(), 1);
        let spent: u32 = record.parts.iter().map(|part| part.spent).sum();
        let by: Vec<_> = record.utxos.iter().flatten().filter_map(|slot| slot.spender()).collect();
        assert_eq!((spent, by.len()), (2, 2), "what was acknowledged is there");
        assert_eq!(by[0].vin + by[1].vin, 1);
    });
    let bare = TxDraft::spending(&[coin(txid, shape.outputs - 3)], 1).build();
    let bare = Transaction::parse(bare.view().to_legacy().into(), Format::Legacy).unwrap();
    step("previous-outputs", || {
        let extended = store.previous_outputs_decorate(std::slice::from_ref(&bare)).unwrap();
        let extended = extended.into_iter().next().unwrap().unwrap();
        let spent = extended.view().inputs().next().unwrap().spent.unwrap();
        assert_eq!(spent.script, crate::shape::script(shape.outputs - 3));
    });
    let rival = rival(&parent);
    let losing = CreateOptions { conflicting: true, ..options() };
    store.create(&rival, &losing).unwrap();
    let large = store.get(txid, Fields::TX).unwrap();
    let Some(Body::Transaction(large)) = large.body else { panic!("a transaction") };
    let spender = spender(&large, shape);
    drop(large);
    step("conflict", || {
        let block = ConflictBlock {
            height: NEXT,
            hash: BlockHash::from_bytes([1; 32]),
            now_ms: 0,
            budget: 100,
            is_ancestor: &|_| false,
        };
        let losers = process_conflicting(&store, &[rival.txid()], &block).unwrap();
        assert_eq!(losers, [txid, spender.txid()]);
        assert!(store.get_meta(txid).unwrap().conflicting);
    });
    // Both lost at once and are due at once; neither keeps the other.
    step("prune", || {
        let height = Height::new(1_000);
        store.set_block_height(height).unwrap();
        let at = PruneAt { height, persisted: None, assembly_running: true };
        assert_eq!(prune(&store, at).unwrap().removed, 2, "it goes with its spender");
    });
    assert!(!blobs_of(&store).contains(&txid), "the blob goes with its record");
    let large = shape.transaction(&Coin::of(&parent, 0));
    step("create-again", || store.create(&large, &options()).unwrap());
    drop(large);
    step("delete", || store.delete(&[txid]).unwrap());
    step("clean", || {
        assert_eq!(store.clean_blobs(store.block_state().height, usize::MAX).unwrap().removed, 0)
    });
    assert_eq!(blobs_of(&store), []);
    println!("{OVER}");
}
