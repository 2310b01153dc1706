//! Every question the archive answers.
//!
//! ```text
//!              block hash            txid             script hash
//!                  │ search            │ search           │ search (optional)
//!                  ▼                   ▼                  ▼
//!  height ──► header row ◄──block── tx row ◄──spender── point (txid, vout)
//!                  │ 0..1              │                  ▲ search
//!                  └► block row ──range┘──bytes──► inputs ┘
//! ```
//!
//! There are two natural keys from outside, block hash and txid; heights and script hashes are
//! conveniences. Inside, links are followed without a search. Two things are searched because they
//! may come in any order: the rows of a txid and the spenders of a point. A search gives
//! candidates, and the bytes decide.
//!
//! What rows alone can answer is asked of a [`Snapshot`]; what needs bytes, of a [`View`], which
//! is a snapshot with the block store. One file has one kind of question.
//! `docs/archive-queries.md` maps libbitcoin's operations to these functions.

mod branch;
mod candidate;
mod confirm;
mod fee;
mod filter;
mod height;
mod merkle;
mod navigate;
mod object;
mod script;
mod search;
mod spend;
mod state;

pub use branch::Branch;
pub use fee::FeeRate;
pub use filter::FilterHashes;
pub use merkle::HeaderProof;
pub use navigate::{RowPlace, TxPlace};
pub use object::{Output, TxSize};
pub use script::{Balance, Page, Scope};
pub use spend::Spender;
