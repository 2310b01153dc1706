//! Small blocks for tests, and a plain model of the store.

use std::sync::Arc;

use varve_io::{Storage, StoreId};
use varve_types::{Block, BlockHash, Format, compact_size};

use crate::{BlockNumber, BlockReader, BlockStore, Error, Options, Synced, TxPosition};

pub(crate) const FORMAT: Format = Format::Segwit;

/// Options with files of a few blocks.
pub(crate) fn options() -> Options {
    let mut options = Options::new(StoreId([7; 16]), [8; 16], FORMAT);
    options.segment_size = 3_000;
    options
}

pub(crate) fn open(storage: Arc<dyn Storage>, synced: Synced) -> BlockStore {
    BlockStore::open(storage, options(), synced).unwrap()
}

/// A block of `txs` transactions with scripts of 0 to 80 bytes, different for every seed.
pub(crate) fn block(seed: u32, txs: u32) -> Vec<u8> {
    let mut bytes = vec![0; 76];
    bytes[4..8].copy_from_slice(&txs.to_le_bytes());
    bytes.extend(seed.to_le_bytes());
    compact_size::write(u64::from(txs), &mut bytes);
    for tx in 0..txs {
        let script = (seed.wrapping_mul(31) ^ tx.wrapping_mul(17)) % 81;
        bytes.extend([1, 0, 0, 0, 1]);
        bytes.extend([u8::try_from(tx % 251).unwrap(); 36]);
        bytes.extend([0, 0xff, 0xff, 0xff, 0xff, 1]);
        bytes.extend([0; 8]);
        bytes.push(u8::try_from(script).unwrap());
        bytes.extend((0..script).map(|byte| u8::try_from((byte * 7 + seed) % 256).unwrap()));
        bytes.extend([0; 4]);
    }
    bytes
}

pub(crate) fn append(store: &mut BlockStore, bytes: &[u8]) -> Result<BlockNumber, Error> {
    store.append(&Block::parse(bytes, FORMAT).unwrap())
}

pub(crate) fn hash(bytes: &[u8]) -> BlockHash {
    Block::parse(bytes, FORMAT).unwrap().hash()
}

/// Compares everything a reader says of block `number` with its bytes; whether they are held.
pub(crate) fn check_block(reader: &BlockReader, number: u32, bytes: &[u8]) -> bool {
    let number = BlockNumber::new(number);
    let block = Block::parse(bytes, FORMAT).unwrap();
    let row = reader.row(number).unwrap();
    assert_eq!(row.hash, block.hash());
    assert_eq!(row.header(), block.header());
    assert_eq!((row.length, row.txs as usize), (bytes.len() as u64, block.txs().len()));
    assert_eq!(reader.hash(number).unwrap(), block.hash());
    assert_eq!(reader.number_of(&block.hash()).unwrap(), Some(number));
    let held = number >= reader.first_held().unwrap();
    match reader.raw(number) {
        Ok(raw) if held => assert_eq!(&raw[..], bytes),
        Err(Error::Pruned { number: pruned }) if !held => assert_eq!(pruned, number),
        other => panic!("block {number}, held: {held}, gives {other:?}"),
    }
    for (position, (offset, tx)) in (0..).zip(block.txs_with_offsets()) {
        let position = TxPosition::new(position);
        let range = offset as u64..(offset + tx.bytes().len()) as u64;
        assert_eq!(reader.tx_range(number, position).unwrap(), range);
        if held {
            assert_eq!(&reader.tx(number, position).unwrap()[..], tx.bytes());
            assert_eq!(&reader.slice(number, range).unwrap()[..], tx.bytes());
        }
    }
    held
}

/// Compares a reader with all its blocks in order; how many are held.
pub(crate) fn check_all(reader: &BlockReader, blocks: &[Vec<u8>]) -> usize {
    assert_eq!(reader.count() as usize, blocks.len());
    let unknown = BlockNumber::new(reader.count());
    assert!(matches!(reader.raw(unknown), Err(Error::Unknown { .. })));
    let held = (0..).zip(blocks).filter(|(number, bytes)| check_block(reader, *number, bytes));
    held.count()
}
