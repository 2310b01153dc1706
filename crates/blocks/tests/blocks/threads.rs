//! Readers beside the writer: they see whole blocks and a fixed state, whatever the writer does.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic fails the test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use varve_blocks::{BlockNumber, BlockReader, BlockStore, Error, Keep, Options, Synced};
use varve_io::{Disk, StoreId};
use varve_types::{Block, Format, Network};

/// The genesis block with another nonce, so with another hash.
fn block(nonce: u32) -> Vec<u8> {
    let mut bytes = Network::Regtest.genesis_block().to_vec();
    bytes[76..80].copy_from_slice(&nonce.to_le_bytes());
    bytes
}

fn append(store: &mut BlockStore, nonce: u32) -> Result<BlockNumber, Error> {
    store.append(&Block::parse(&block(nonce), Format::Segwit).unwrap())
}

/// Reads blocks throughout one state. Every block that is there matches its row.
fn look(reader: &BlockReader, step: u32) -> usize {
    let mut seen = 0;
    for number in (0..reader.count()).rev().step_by(step as usize).map(BlockNumber::new) {
        let read = reader.row(number).and_then(|row| Ok((row, reader.raw(number)?)));
        match read {
            Ok((row, raw)) => {
                let block = Block::parse(&raw, Format::Segwit).unwrap();
                assert_eq!(block.hash(), row.hash);
                seen += 1;
            }
            Err(Error::Pruned { .. } | Error::Unknown { .. }) => {}
            Err(error) => panic!("block {number}: {error}"),
        }
    }
    seen
}

#[test]
fn readers_see_whole_blocks_while_the_store_changes() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options::new(StoreId([1; 16]), [2; 16], Format::Segwit);
    options.segment_size = 20_000;
    let storage = Arc::new(Disk::open(dir.path()).unwrap());
    let mut store = BlockStore::open(storage, options, Synced::NEW).unwrap();
    let done = AtomicBool::new(false);
    let reader = store.reader();
    std::thread::scope(|scope| {
        let readers = [1, 3].map(|step| {
            let (reader, done) = (reader.clone(), &done);
            scope.spawn(move || {
                let (mut count, mut seen) = (0, 0);
                while !done.load(Ordering::Relaxed) {
                    let now = reader.latest();
                    seen += look(&now, step);
                    count = now.count().max(count);
                }
                (count, seen)
            })
        });
        for nonce in 0..3_000 {
            // A cut is refused while a reader holds bytes of the file; it is tried again.
            while let Err(error) = append(&mut store, nonce) {
                let mapped = matches!(&error, Error::Storage(varve_io::Error::Mapped { .. }));
                assert!(mapped, "{error}");
            }
            if nonce % 97 == 0 {
                store.checkpoint().unwrap();
            } else if nonce % 41 == 0 {
                let _ = store.truncate(store.reader().count() - 2);
            } else if nonce % 500 == 499 {
                store.prune(Keep { from: BlockNumber::new(u32::MAX), bytes: 100_000 }).unwrap();
            } else if nonce % 150 == 149
                && let Some(job) = store.pack_job().unwrap()
            {
                let done = scope.spawn(|| job.run().unwrap());
                store.finish_pack(done.join().unwrap()).unwrap();
            }
        }
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            let (count, seen) = reader.join().unwrap();
            assert!(count > 100 && seen > 1_000, "{seen} blocks of {count} were seen");
        }
    });
    assert_eq!(look(&store.reader(), 1), {
        let first = store.reader().first_held().unwrap().get();
        (store.reader().count() - first) as usize
    });
}
