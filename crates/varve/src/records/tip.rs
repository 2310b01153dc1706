//! The tip that the records were last given, kept in their folder.
//!
//! ```text
//!  payload of the file `tip` (an envelope of `varve_io`, kind RECTIP, version 1)
//!  │ height u32le │ median time u32le │
//! ```
//!
//! A store of records learns the tip from whoever follows the chain and forgets it when it is
//! closed. A command runs for a moment only, so the tip is written when it is set and read when the
//! store is opened.

use std::sync::Arc;

use varve_io::{Envelope, Kind, Storage, load, replace};
use varve_records::BlockState;
use varve_types::Height;

use crate::error::Error;

const NAME: &str = "tip";
const KIND: Kind = Kind(*b"RECTIP\0\0");
const VERSION: u32 = 1;

/// The file of the tip.
#[derive(Debug)]
pub(super) struct TipFile {
    directory: Arc<dyn Storage>,
}

impl TipFile {
    pub(super) fn new(directory: Arc<dyn Storage>) -> Self {
        Self { directory }
    }

    /// The tip that was written last; `None` when there is none.
    pub(super) fn load(&self) -> Result<Option<BlockState>, Error> {
        let Some(found) = load(self.directory.as_ref(), NAME, KIND)? else { return Ok(None) };
        let wrong = |what| Error::RecordsTip { path: self.directory.path().join(NAME), what };
        if found.version != VERSION {
            return Err(wrong(format!("is of version {}; use a newer varve", found.version)));
        }
        let fields = found.payload.split_first_chunk().and_then(|(height, rest)| {
            Some((u32::from_le_bytes(*height), u32::from_le_bytes(rest.try_into().ok()?)))
        });
        let (height, median_time) = fields
            .ok_or_else(|| wrong("has a wrong length; remove it and pass --height".into()))?;
        Ok(Some(BlockState { height: Height::new(height), median_time }))
    }

    /// Writes it, durably.
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
    fn the_tip_that_was_written_last_is_found() {
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
