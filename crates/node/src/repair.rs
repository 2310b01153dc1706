//! Rebuilds everything that derives from blocks.
//!
//! What counts are the frames of the block store and the frames of the commit log. `repair` keeps
//! those, removes the files of the other stores, and opens the node, which rebuilds them. If it
//! finds files that no store writes (`store_files`), it names them and removes nothing: a user may
//! have put them there by mistake.
//!
//! 1. *The commit log.* When it is damaged, it is cut before the first frame that does not verify
//!    or is not there. The blocks of the commits behind that are stored still; the next sync
//!    confirms them again, and finds again which are bad.
//! 2. *The block store.* Its index, tables of offsets and manifest are rebuilt from the frames,
//!    unless some are compressed: then they stay.
//! 3. *Unspent set, archive, script history, figures by height* are rebuilt from the blocks.
//!
//! Every step can be repeated, so an interrupted repair is simply run again.

use std::sync::Arc;

use varve_blocks::{BlockNumber, BlockStore};
use varve_io::Storage;
use varve_types::Height;

use crate::commit_log::{Archived, CommitLog};
use crate::data_directory::DataDirectory;
use crate::error::Error;
use crate::organizer::{Options, Organizer};
use crate::recovery::{Progress, open_blocks};
use crate::settings::Settings;
use crate::store_files::{ARCHIVE, SCRIPT, STATS, STORES, UTXO};

impl Organizer {
    /// Removes what derives from the blocks and rebuilds it. Refused where blocks are pruned, and
    /// where the folder of a store holds something that the store did not write.
    /// `progress` gets how many blocks the archive has taken, and how many there are.
    pub fn repair(
        root: Arc<dyn Storage>,
        options: Options,
        progress: Progress<'_>,
    ) -> Result<Self, Error> {
        {
            let directory =
                DataDirectory::open(Arc::clone(&root), options.params.network, &options.seed)?;
            directory.check_stores(STORES)?;
            let (storage, store) = (directory.store("commit")?, directory.identity().store);
            let (mut log, history) = match CommitLog::open(Arc::clone(&storage), store) {
                Err(error) if is_lost(&error) => CommitLog::salvage(storage, store)?,
                opened => opened?,
            };
            BlockStore::forget_index(directory.store("blocks")?.as_ref())?;
            let settings = Settings::load(directory.root())?;
            let mut blocks = open_blocks(&directory, &options, settings, &history)?;
            if blocks.reader().first_held()? > BlockNumber::ZERO {
                return Err(Error::Pruned { height: Height::GENESIS });
            }
            blocks.checkpoint()?;
            // Nothing is archived any more; this comes first, in case the rest is not reached.
            log.checkpoint(&Archived::default())?;
            [UTXO, ARCHIVE, SCRIPT, STATS].iter().try_for_each(|store| directory.clear(store))?;
        }
        let mut organizer = Self::open_with(root, options, progress)?;
        organizer.stores.follow_scripts(Height::GENESIS, progress)?;
        organizer.checkpoint()?;
        Ok(organizer)
    }
}

/// Whether bytes are not what was written, or not there at all.
fn is_lost(error: &varve_io::Error) -> bool {
    error.is_damage() || matches!(error, varve_io::Error::NotFound { .. })
}
