//! The tip as it was told last, kept in the folder of the records.
//!
//! ```text
//!  payload of the file `tip` (an envelope of `varve_io`, kind RECTIP, version 1)
//!  │ height u32le │ median time u32le │
//! ```
//!
//! A store learns the tip from whoever follows the chain and forgets it when it is closed. A
//! command runs for a moment only, so the tip is written down when it is told and read when the
//! store is opened.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use varve_io::{Envelope, Kind, Storage, load, replace};
use varve_records::BlockState;
use varve_types::Height;

const NAME: &str = "tip";
const KIND: Kind = Kind(*b"RECTIP\0\0");
const VERSION: u32 = 1;

/// The file of the tip.
#[derive(Debug)]
pub(super) struct TipFile {
    directory: Arc<dyn Storage>,
}

impl TipFile {
    /// The one in this directory.
    pub(super) fn new(directory: Arc<dyn Storage>) -> Self {
        Self { directory }
    }

    /// What was told last; `None` when nothing was.
    pub(super) fn load(&self) -> Result<Option<BlockState>> {
        let Some(found) = load(self.directory.as_ref(), NAME, KIND)? else { return Ok(None) };
        let path = self.directory.path().join(NAME);
        ensure!(
            found.version == VERSION,
            "{} is of version {}; use a newer varve",
            path.display(),
            found.version
        );
        let (height, rest) = found.payload.split_first_chunk().context("a short tip")?;
        let median_time = rest.try_into().context("a tip of a wrong length")?;
        Ok(Some(BlockState {
            height: Height::new(u32::from_le_bytes(*height)),
            median_time: u32::from_le_bytes(median_time),
        }))
    }

    /// Writes it down, durably.
    pub(super) fn save(&self, state: BlockState) -> varve_io::Result<()> {
        let mut payload = [0; 8];
        let (height, median_time) = payload.split_at_mut(4);
        height.copy_from_slice(&state.height.to_u32().to_le_bytes());
        median_time.copy_from_slice(&state.median_time.to_le_bytes());
        let envelope = Envelope { version: VERSION, payload: &payload[..] };
        replace(self.directory.as_ref(), NAME, KIND, &envelope)
    }
}

#[cfg(test)]
mod tests {
    use varve_io::Disk;

    use super::*;

    #[test]
    fn what_was_told_last_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let tip = TipFile::new(Arc::new(Disk::open(folder.path()).unwrap()));
        assert_eq!(tip.load().unwrap(), None);
        for height in [7, 8] {
            let state = BlockState { height: Height::new(height), median_time: 9 };
            tip.save(state).unwrap();
            assert_eq!(tip.load().unwrap(), Some(state));
        }
    }
}
