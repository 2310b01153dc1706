//! Search tables: the keyed fingerprint of something searched for → transactions it is found in.

mod batch;
mod bits;
mod budget;
mod codec;
mod cursor;
mod error;
mod find;
mod leaf;
mod options;
mod pane;
mod policy;
mod row;
mod table;
mod version;
mod young;

pub use batch::Batch;
pub use budget::SearchMemory;
pub use cursor::{Cursor, Order};
pub use error::{Result, SearchError};
pub use find::SearchReader;
pub use options::SearchOptions;
pub use row::{Fingerprint, Row};
pub use table::{SearchSize, SearchTable, Settled};
pub use version::PageReads;
