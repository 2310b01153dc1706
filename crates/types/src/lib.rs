//! Chain types.

#![forbid(unsafe_code)]

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
pub mod merkle;
pub mod muhash;
mod network;
mod outpoint;
pub mod pushdata;
mod reader;
pub mod script;
pub mod stream;
mod tx;
pub mod varint;

pub use amount::Amount;
pub use block::Block;
pub use coin::Coin;
pub use error::{DecodeError, DecodeErrorKind};
pub use format::Format;
pub use hash::{BlockHash, MerkleRoot, ParseHashError, Txid, Wtxid, sha256d};
pub use header::Header;
pub use height::Height;
pub use network::{Network, ParseNetworkError};
pub use outpoint::{Outpoint, ParseOutpointError};
pub use reader::Reader;
pub use script::unspendable;
pub use tx::{Inputs, Outputs, Tx, TxIn, TxOut, Witness, WitnessItems, Witnesses};
