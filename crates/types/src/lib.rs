//! The types of a Bitcoin-family chain: what its bytes mean, and nothing else.
//!
//! This is the lowest layer of Varve. It does not know files, threads, clocks or JSON: bytes come
//! in, views and hashes come out.
//!
//! | module or type | is |
//! |---|---|
//! | [`Txid`], [`BlockHash`], [`ScriptHash`], … | hashes, one type for each thing hashed |
//! | [`address`] | addresses of scripts, on every network |
//! | [`Outpoint`], [`Height`], [`Amount`], [`Coin`] | what the set of unspent outputs is made of |
//! | [`Network`] | the chains: magic, genesis, subsidy |
//! | [`Block`], [`Tx`], [`Header`] | views over bytes, checked once, then walked without failure |
//! | [`blk`] | the records of a node's block files |
//! | [`script`], [`pushdata`] | classes of scripts, opcodes, pushed items, what cannot be spent |
//! | [`status`] | Electrum's status of a script, extended as its history grows |
//! | [`merkle`], [`proof`] | roots and branches; proofs in the TSC format |
//! | [`muhash`] | the hash of a set that can be updated |
//! | [`KeyedHasher`] | where a store places a key, unknown to those who choose keys |
//! | [`compact_size`], [`mod@varint`], [`compress`] | the integers and compressed outputs of Core |
//!
//! Hostile bytes give a [`DecodeError`] with the offset and the field that was expected, never a
//! panic, and no count in them decides how much memory is allocated.
//!
//! Parse a block and find what it spends:
//!
//! ```
//! use varve_types::{Block, Network};
//!
//! let bytes = Network::Regtest.genesis_block();
//! let block = Block::parse(&bytes, Network::Regtest.format())?;
//! for (tx, txid) in block.txs().iter().zip(block.txids()) {
//!     let spends: Vec<_> = tx.inputs().map(|input| input.outpoint).collect();
//!     let paid: u64 = tx.outputs().map(|output| output.value.to_sat()).sum();
//!     println!("{txid} spends {spends:?} and pays {paid}");
//! #   assert!(tx.is_coinbase() && paid == 5_000_000_000);
//! }
//! # Ok::<(), varve_types::DecodeError>(())
//! ```
//!
//! Compute the txid of a transaction:
//!
//! ```
//! use varve_types::{Format, Network, Tx};
//!
//! let block = Network::Mainnet.genesis_block();
//! let tx = Tx::parse(&block[81..], Format::Segwit)?;
//! let txid = "4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b";
//! assert_eq!(tx.txid().to_string(), txid);
//! # Ok::<(), varve_types::DecodeError>(())
//! ```

#![forbid(unsafe_code)]

pub mod address;
mod amount;
pub mod blk;
mod block;
mod coin;
pub mod compact_size;
pub mod compress;
mod error;
mod format;
mod genesis;
mod hash;
mod header;
mod height;
mod keyed_hash;
pub mod merkle;
pub mod muhash;
mod network;
mod outpoint;
pub mod proof;
pub mod pushdata;
mod reader;
pub mod script;
pub mod status;
mod tx;
pub mod varint;

pub use amount::Amount;
pub use block::Block;
pub use coin::Coin;
pub use error::{DecodeError, DecodeErrorKind};
pub use format::Format;
pub use hash::{
    BlockHash, MerkleRoot, ParseHashError, PushdataHash, ScriptHash, ScriptStatus, Txid, Wtxid,
    sha256d,
};
pub use header::Header;
pub use height::Height;
pub use keyed_hash::{KeyedHasher, mix64};
pub use network::{Network, ParseNetworkError};
pub use outpoint::{Outpoint, ParseOutpointError};
pub use reader::Reader;
pub use script::unspendable;
pub use tx::{Inputs, Outputs, Tx, TxIn, TxOut, Witness, WitnessItems, Witnesses};
