//! The queries of the archive.
//!
//! ```text
//!              block hash            txid             pushdata hash
//!                  │ search            │ search           │ search (optional)
//!                  ▼                   ▼                  ▼
//!  height ──► header row ◄──block── tx row ◄──spender── point (txid, vout)
//!                  │ 0..1              │                  ▲ search
//!                  └► block row ──range┘──bytes──► inputs ┘
//! ```
//!
//! Two natural keys come from outside, block hash and txid; heights and script hashes are
//! conveniences. Inside, links are followed without a search. Two things are searched for because
//! they arrive in any order: the rows of a txid and the spenders of a point. A search returns
//! candidates, and the bytes decide.
//!
//! Queries over rows alone are methods of [`Snapshot`](crate::Snapshot); those that need bytes, of
//! [`View`](crate::View), which is a snapshot with the block store. Each file has one kind of
//! query. `docs/archive-queries.md` maps libbitcoin's operations to these functions.

mod branch;
mod candidate;
mod confirm;
mod filter;
mod height;
mod merkle;
mod navigate;
mod object;
mod pushdata;
mod search;
mod spend;
mod state;

pub use branch::Branch;
pub use filter::FilterHashes;
pub use merkle::HeaderProof;
pub use navigate::{RowPlace, TxPlace};
pub use object::Output;
pub(crate) use pushdata::pushes;
pub use pushdata::{Pushed, PushedPage};
pub use spend::Spender;
