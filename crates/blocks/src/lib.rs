//! The raw block store: the chain is the journal.
//!
//! Every block that arrives is appended to a log, on whatever branch it is, and gets a
//! [`BlockNumber`]. Everything else that Varve knows about the chain is derived from these bytes
//! and can be derived again. Scripts and witnesses are stored here and nowhere else: rows of the
//! archive point to bytes of a block.
//!
//! | file | holds | drawn in |
//! |---|---|---|
//! | `blocks-N` | raw blocks, a frame each, as `io` writes a log of frames | `store` |
//! | `index-N` | a row a block: hash, header, place, length | `row` |
//! | `offsets-N` | where the transactions of each block begin | `tx_offsets` |
//! | `packed-P` | an old file of blocks, compressed | `packed` |
//! | `manifest` | how far the index goes, which files are packed | `manifest` |
//!
//! The one writer owns a [`BlockStore`]; any thread reads with a [`BlockReader`], which sees a
//! fixed state and never waits. `docs/format/blocks.md` draws every byte.
//!
//! ```
//! use std::sync::Arc;
//! use varve_blocks::{BlockStore, Options, Synced, TxPosition};
//! use varve_io::{Disk, StoreId};
//! use varve_types::{Block, Network, Tx};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let format = Network::Regtest.format();
//! let options = Options::new(StoreId([7; 16]), [8; 16], format);
//! let storage = Arc::new(Disk::open(dir.path())?);
//! let mut store = BlockStore::open(storage.clone(), options.clone(), Synced::NEW)?;
//!
//! let bytes = Network::Regtest.genesis_block();
//! let number = store.append(&Block::parse(&bytes, format)?)?;
//! let synced = store.sync()?; // note this where the block is acknowledged
//! drop(store); // or the power fails
//!
//! let store = BlockStore::open(storage, options, synced)?;
//! let reader = store.reader(); // clone it into other threads
//! assert_eq!(reader.number_of(&Network::Regtest.genesis_hash())?, Some(number));
//! assert_eq!(&reader.raw(number)?[..], &bytes[..]); // a slice of the file's map
//! let coinbase = reader.tx(number, TxPosition::ZERO)?;
//! assert!(Tx::parse(&coinbase, format)?.is_coinbase());
//! # Ok(())
//! # }
//! ```
//!
//! Must not know: which branch is best, what is valid, what is derived from a block. Layer 1.

#![forbid(unsafe_code)]

mod bytes;
mod error;
#[cfg(test)]
mod fixture;
mod hash_table;
mod manifest;
mod number;
mod pack;
mod packed;
mod pending;
mod reader;
mod recover;
mod row;
mod store;
mod tx_offsets;
mod verified;
mod view;

pub use bytes::BlockBytes;
pub use error::{Error, Result};
pub use manifest::Manifest;
pub use number::{BlockNumber, TxPosition};
pub use pack::{PackDone, PackJob};
pub use packed::{PackedHeader, unpack_chunk};
pub use reader::BlockReader;
pub use row::BlockRow;
pub use store::{BlockStore, Keep, Options, Synced};
pub use tx_offsets::{TxOffsets, encode as encode_tx_offsets, table_len as tx_offsets_len};
