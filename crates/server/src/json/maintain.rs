//! Answers of the commands that look after a folder: `varve index` and `varve compact`.

use serde::Serialize;
use varve::{Height, Index, Tip};

/// `varve index list`, and what `add` and `drop` leave.
#[derive(Debug, Serialize)]
pub struct Indexes<'a> {
    indexes: Vec<Entry<'a>>,
}

/// One of the indexes that there are, whether or not the folder keeps it.
#[derive(Debug, Serialize)]
struct Entry<'a> {
    name: &'static str,
    kept: bool,
    height: Option<u32>,
    bytes: Option<u64>,
    damaged: Option<&'a str>,
}

impl<'a> From<&'a varve::Status> for Indexes<'a> {
    fn from(status: &'a varve::Status) -> Self {
        let entry = |index: Index| {
            let kept = status.indexes.iter().find(|kept| kept.index == index);
            Entry {
                name: index.name(),
                kept: kept.is_some(),
                height: kept.and_then(|kept| kept.height).map(Height::to_u32),
                bytes: kept.map(|kept| kept.bytes),
                damaged: kept.and_then(|kept| kept.damaged.as_deref()),
            }
        };
        Self { indexes: Index::ALL.into_iter().map(entry).collect() }
    }
}

/// `varve compact`.
#[derive(Debug, Serialize)]
pub struct Compact {
    height: u32,
    #[serde(serialize_with = "super::text")]
    bestblock: varve::BlockHash,
    files: u64,
    bytes_before: u64,
    bytes_after: u64,
}

impl Compact {
    /// What was compressed, at this tip.
    #[must_use]
    pub const fn new(tip: Tip, compacted: &varve::Compacted) -> Self {
        let varve::Compacted { files, bytes_before, bytes_after } = *compacted;
        let (height, bestblock) = (tip.height.to_u32(), tip.hash);
        Self { height, bestblock, files, bytes_before, bytes_after }
    }
}
