//! Search tables: from the fingerprint of something searched for to the transactions it is in.
//!
//! One shape serves them all: by txid, by outpoint spent, by script. A row is 40 bits of the keyed
//! hash of the key and the link of a transaction. What a search finds are candidates, newest first,
//! and the bytes of the block decide.
//!
//! ```text
//!  rows of a block ─► Batch ─► SearchTable::append ─► panes in memory
//!   (any thread)                                        │ flush, when they are settled
//!                                                       ▼
//!                     SearchReader  ◄────────────────  runs ──┐
//!                                                       ▲     │ merge, eight at a time
//!                                                       └─────┘
//! ```
//!
//! | you want | take |
//! |---|---|
//! | the rows of a block, prepared beside the writer | [`Batch`] |
//! | to write | [`SearchTable`] |
//! | all rows of many keys | [`SearchReader::find`] |
//! | the rows of one key one after the other, from either end | [`SearchReader::cursor`] |
//!
//! - **Rows take 5.2 bytes**, in sorted runs of pages (`leaf` draws them), written about three
//!   times until a chain is synced. A key costs one page, found or not (`policy`).
//! - **Memory is bounded** by one number ([`SearchOptions::memory`]): 8 bytes a young row, 8 bytes
//!   a page for directories, and filters for the small runs (`budget`).
//! - **No log.** The chain is the journal: a crash leaves blocks to be appended again, from
//!   [`SearchTable::end`] on.
//! - **Readers never wait**, and keep what they read (`version`).
//!
//! ```
//! use std::sync::Arc;
//! use varve_archive::TxLink;
//! use varve_archive::primitive::{KeyHasher as _, Keyed};
//! use varve_archive::search::{Batch, Fingerprint, SearchOptions, SearchTable};
//! use varve_io::{Disk, StoreId};
//! use varve_runs::{Secret, StoreKey};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let secret = [7; 16]; // drawn at random, as the id
//! let hasher = Keyed::new(secret);
//! let fingerprint = |key: &[u8]| Fingerprint::new(hasher.hash(key));
//! let key = StoreKey { id: StoreId([9; 16]), secret: Secret::new(secret) };
//!
//! let disk = Arc::new(Disk::open(dir.path())?);
//! let mut table = SearchTable::open(disk, key, SearchOptions::default(), TxLink::new(0))?;
//! let rows = [(fingerprint(b"food"), 0), (fingerprint(b"pizza"), 1), (fingerprint(b"food"), 1)];
//! table.append(TxLink::new(0), 2, Batch::new(rows))?; // a block of two transactions
//!
//! let (reader, mut found) = (table.reader(), Vec::new());
//! reader.find(&[fingerprint(b"pizza"), fingerprint(b"food")], &mut found)?;
//! assert_eq!(found, [(0, TxLink::new(1)), (1, TxLink::new(1)), (1, TxLink::new(0))]);
//! # Ok(())
//! # }
//! ```

mod batch;
mod bits;
pub(crate) mod budget;
mod codec;
mod cursor;
mod error;
mod find;
mod leaf;
mod options;
mod pane;
pub(crate) mod policy;
mod row;
#[cfg(feature = "test-suite")]
pub mod suite;
mod table;
mod version;
mod young;

pub use crate::shared::PageReads;
pub use batch::Batch;
pub use budget::SearchMemory;
pub use cursor::{Cursor, Order};
pub use error::{Result, SearchError};
pub use find::SearchReader;
pub use options::SearchOptions;
pub(crate) use row::LINK_BITS;
pub use row::{Fingerprint, Row};
pub use table::{SearchSize, SearchTable, Settled};
