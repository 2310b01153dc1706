//! Real blocks of several chains, on a real disk, with files of the usual and of a small size.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use varve_blocks::{BlockNumber, BlockReader, BlockStore, Keep, Options, Synced, TxPosition};
use varve_io::{Disk, StoreId};
use varve_types::blk::Records;
use varve_types::{Block, BlockHash, Format, Network};

fn open(dir: &Path, segment_size: u64, synced: Synced) -> BlockStore {
    let mut options = Options::new(StoreId([1; 16]), [2; 16], Format::Segwit);
    options.segment_size = segment_size;
    let storage = Arc::new(Disk::open(dir).unwrap());
    BlockStore::open(storage, options, synced).unwrap()
}

/// Everything the store says of a block, compared with the parsed block.
fn check(reader: &BlockReader, number: BlockNumber, bytes: &[u8]) {
    let block = Block::parse(bytes, Format::Segwit).unwrap();
    assert_eq!(reader.number_of(&block.hash()).unwrap(), Some(number));
    assert_eq!(reader.row(number).unwrap().header(), block.header());
    assert_eq!(&reader.raw(number).unwrap()[..], bytes);
    for (position, tx) in (0..).zip(block.txs()) {
        assert_eq!(&reader.tx(number, TxPosition::new(position)).unwrap()[..], tx.bytes());
    }
}

/// Stores all blocks, checks them, packs and prunes, and checks after each opening.
fn whole_life(blocks: &[Vec<u8>], segment_size: u64) {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path(), segment_size, Synced::NEW);
    for (number, bytes) in (0..).zip(blocks) {
        let block = Block::parse(bytes, Format::Segwit).unwrap();
        assert_eq!(store.append(&block).unwrap(), BlockNumber::new(number));
        if number % 1_000 == 7 {
            store.checkpoint().unwrap();
        }
    }
    let check_all = |reader: &BlockReader, from: BlockNumber| {
        assert_eq!(reader.count() as usize, blocks.len());
        assert_eq!(reader.first_held().unwrap(), from);
        let numbered = (0..).map(BlockNumber::new).zip(blocks);
        numbered.skip(from.get() as usize).for_each(|(number, bytes)| check(reader, number, bytes));
    };
    check_all(&store.reader(), BlockNumber::ZERO);
    let synced = store.sync().unwrap();
    drop(store);
    let mut store = open(dir.path(), segment_size, synced);
    check_all(&store.reader(), BlockNumber::ZERO);
    let (mut plain, mut packed) = (0, 0);
    while let Some(job) = store.pack_job().unwrap() {
        let done = job.run().unwrap();
        (plain, packed) = (plain + done.plain_bytes, packed + done.packed_bytes);
        store.finish_pack(done).unwrap();
    }
    println!("{plain} bytes were packed into {packed}");
    check_all(&store.reader(), BlockNumber::ZERO);
    let first =
        store.prune(Keep { from: BlockNumber::new(u32::MAX), bytes: segment_size }).unwrap();
    drop(store);
    let store = open(dir.path(), segment_size, synced);
    check_all(&store.reader(), first);
}

#[test]
fn the_first_4313_blocks_of_mainnet() {
    let Some(path) = varve_testdata::data("chains/mainnet-0-4312.blk.dat") else { return };
    let file = fs::read(path).unwrap();
    let records = Records::new(&file, Network::Mainnet.disk_magic());
    let blocks: Vec<Vec<u8>> = records.map(|record| record.block.to_vec()).collect();
    assert_eq!(blocks.len(), 4_313);
    whole_life(&blocks, 100_000);
    whole_life(&blocks, Options::SEGMENT_SIZE);
}

#[test]
fn full_blocks_of_recent_years() {
    let Some(path) = varve_testdata::data("stale") else { return };
    let mut paths: Vec<_> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let blocks: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    assert!(blocks.len() >= 20);
    whole_life(&blocks, 5_000_000);
}

/// Competing branches of BSV, in any order, are blocks like others.
#[test]
fn branches_of_a_bsv_chain() {
    let Some(path) = varve_testdata::data("chains/conduit-regtest") else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options::new(StoreId([1; 16]), [2; 16], Network::BsvRegtest.format());
    options.segment_size = 20_000;
    let storage = Arc::new(Disk::open(dir.path()).unwrap());
    let mut store = BlockStore::open(storage, options, Synced::NEW).unwrap();
    let mut seen = 0;
    for file in files_below(&path) {
        let Some(name) = file.file_name().and_then(|name| name.to_str()) else { continue };
        let Ok(hash) = name.parse::<BlockHash>() else { continue };
        let bytes = fs::read(&file).unwrap();
        let block = Block::parse(&bytes, Network::BsvRegtest.format()).unwrap();
        let number = store.append(&block).unwrap();
        assert_eq!(store.reader().number_of(&hash).unwrap(), Some(number));
        assert_eq!(&store.reader().raw(number).unwrap()[..], &bytes[..]);
        seen += 1;
    }
    assert!(seen > 100, "{seen} files named by hash");
    assert!(store.reader().count() > 100);
}

fn files_below(path: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}
