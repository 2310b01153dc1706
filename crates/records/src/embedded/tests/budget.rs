//! Records in lists have a share of the memory, and no more are created beyond it.

use std::sync::Arc;

use varve_types::{Height, Txid};

use super::size::create;
use super::twin::small;
use crate::embedded::{EmbeddedEngine, EmbeddedOptions};
use crate::engine::{Context, Engine as _, EngineError};
use crate::fields::Fields;
use crate::operation::{MinedBlockInfo, Operation};
use crate::record::{BlockId, BlockRef};

const CONTEXT: Context = Context { height: Height::new(100), retention: 5 };
/// Records of a batch.
const BATCH: u32 = 200;

fn batch(number: u32) -> Vec<Txid> {
    let txid = |record: u32| {
        let mut bytes = [7; 32];
        bytes[..4].copy_from_slice(&(number * BATCH + record).to_le_bytes());
        Txid::from_bytes(bytes)
    };
    (0..BATCH).map(txid).collect()
}

fn create_all(engine: &EmbeddedEngine, number: u32) -> Result<(), EngineError> {
    let operations: Vec<_> = batch(number).into_iter().map(|txid| create(txid, 1)).collect();
    let outcomes = engine.apply(&CONTEXT, &operations)?;
    assert!(outcomes.iter().all(|outcome| outcome.result.is_ok()));
    Ok(())
}

fn mine(engine: &EmbeddedEngine, number: u32) {
    let block = BlockRef { id: BlockId(1), height: Height::new(100), subtree: 0 };
    let info = MinedBlockInfo { block, on_longest_chain: true, unset: false };
    let mined: Vec<_> =
        batch(number).into_iter().map(|txid| Operation::SetMined { txid, info }).collect();
    let outcomes = engine.apply(&CONTEXT, &mined).unwrap();
    assert!(outcomes.iter().all(|outcome| outcome.result.is_ok()));
}

/// Without the limit the lists would grow with the unmined transactions, whatever `--memory` says.
#[test]
fn creations_are_refused_when_lists_fill_their_share() {
    let folder = tempfile::tempdir().unwrap();
    let options = EmbeddedOptions { memory: 200_000, lists: 100_000, ..small() };
    let open = || {
        let disk = varve_io::Disk::open(folder.path()).unwrap();
        EmbeddedEngine::open(Arc::new(disk), options).unwrap()
    };
    let engine = open();
    let refused = (0..1_000).find_map(|number| Some((number, create_all(&engine, number).err()?)));
    let (full, error) = refused.expect("the lists are full before 200,000 records");
    let EngineError::Full { memory, limit } = error else { panic!("{error}") };
    assert!(memory > limit && limit == 300_000, "{memory} of {limit}");
    assert!(memory < limit + 40_000, "one batch may pass the limit: {memory}");
    let known = engine.read(&batch(full), Fields::HEAD).unwrap();
    assert!(known.iter().all(Option::is_none), "nothing of a refused batch is done");

    // Mined records are in no list; the next checkpoint takes them out of memory.
    (0..full).for_each(|number| mine(&engine, number));
    engine.checkpoint().unwrap();
    assert!(engine.status().unwrap().memory < limit / 2);
    create_all(&engine, full).unwrap();
    drop(engine);
    let engine = open();
    let known = engine.read(&batch(full), Fields::HEAD).unwrap();
    assert!(known.iter().all(Option::is_some));
}
