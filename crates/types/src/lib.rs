//! Chain types.

#![forbid(unsafe_code)]

mod amount;
mod coin;
pub mod compact_size;
mod error;
mod format;
mod genesis;
mod hash;
mod height;
pub mod merkle;
pub mod muhash;
mod network;
mod outpoint;
mod reader;
pub mod script;

pub use amount::Amount;
pub use coin::Coin;
pub use error::{DecodeError, DecodeErrorKind};
pub use format::Format;
pub use hash::{BlockHash, MerkleRoot, ParseHashError, Txid, Wtxid, sha256d};
pub use height::Height;
pub use network::{Network, ParseNetworkError};
pub use outpoint::{Outpoint, ParseOutpointError};
pub use reader::Reader;
pub use script::unspendable;
