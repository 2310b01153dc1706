//! What all parts of the engine read from.

use std::sync::Arc;

use super::key::KeyHasher;
use super::log::{Log, Warmer};

/// The log and how to look for keys.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) log: Arc<Log>,
    pub(super) hasher: KeyHasher,
    pub(super) warmer: Warmer,
}
