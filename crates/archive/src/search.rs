//! Search tables: the keyed fingerprint of something searched for → transactions it is found in.

mod batch;
mod bits;
mod leaf;
mod pane;
mod row;

pub use batch::Batch;
pub use row::{Fingerprint, Row};
