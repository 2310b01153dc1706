//! What a manifest stands for.
//!
//! ```text
//!  the owner's part   │ height u32 │ block hash 32 │ end u64 │     empty before the first block
//! ```

use std::sync::Arc;

use varve_io::{FormatError, Kind, Storage};
use varve_runs::{Fields, Manifest, RunNumber, Runs, StoreKey};
use varve_types::{BlockHash, Height};

use crate::history::codec::History;
use crate::history::error::{HistoryError, Result};
use crate::history::pane::Mark;
use crate::link::TxLink;

/// Kind and version of the manifest of the history table.
pub(super) const MANIFEST: (Kind, u32) = (Kind(*b"HISTRYMN"), 1);

pub(super) fn encode_mark(mark: Option<Mark>) -> Vec<u8> {
    let Some(Mark { height, hash, end }) = mark else { return Vec::new() };
    let mut out = Vec::new();
    out.extend_from_slice(&height.to_u32().to_le_bytes());
    out.extend_from_slice(hash.as_bytes());
    out.extend_from_slice(&end.to_u64().to_le_bytes());
    out
}

fn decode_mark(bytes: &[u8]) -> std::result::Result<Option<Mark>, FormatError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut fields = Fields::new(bytes);
    let height = Height::new(fields.u32()?);
    let hash = BlockHash::from_bytes(fields.take()?);
    let end = TxLink::new(fields.u64()?);
    if !fields.rest().is_empty() {
        let what = "bytes follow the watermark";
        return Err(FormatError::Damaged { at: fields.offset(), what });
    }
    Ok(Some(Mark { height, hash, end }))
}

/// A table as its manifest says.
#[derive(Debug)]
pub(in crate::history) struct Loaded {
    pub(super) manifest: Manifest,
    pub(in crate::history) watermark: Option<Mark>,
    pub(in crate::history) runs: Runs<History>,
}

/// Loads the table in this directory, empty when there is none. Writes nothing.
pub(in crate::history) fn load(storage: &Arc<dyn Storage>, key: StoreKey) -> Result<Loaded> {
    let decode = |manifest: Manifest| {
        let watermark = decode_mark(&manifest.owner)?;
        Ok((manifest, watermark))
    };
    let (manifest, watermark) =
        Manifest::load(&**storage, MANIFEST, decode)?.unwrap_or_else(|| {
            let (next, runs, owner) = (RunNumber(1), Vec::new(), Vec::new());
            (Manifest { key, next, runs, owner }, None)
        });
    if manifest.key != key {
        return Err(HistoryError::OtherStore { path: storage.path().to_path_buf() });
    }
    let runs = Runs::open(&**storage, key, &manifest.runs)?;
    Ok(Loaded { manifest, watermark, runs })
}
