//! The registered filters, and how far the chain has been searched for them: the file
//! `conduit.json` in the node's folder.
//!
//! ```json
//! {"version": 1,
//!  "searched": {"height": 700000, "hash": "0000…"},
//!  "filters": [{"account": 1, "hash": "…", "expires": 1700000000}]}
//! ```
//!
//! The file is replaced as a whole: a new one is written beside it, synced, and renamed over it. A
//! filter takes some 120 bytes there, so [`MOST`] of them take 12 MB.
//!
//! `searched` is the block up to which all matches were sent. Matches are sent before it moves, so
//! after a crash some are sent again and none is lost: the chain is the queue.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use varve::types::PushdataHash;
use varve::{Height, Tip};

/// Filters at the same time.
const MOST: usize = 100_000;
const NAME: &str = "conduit.json";
const VERSION: u32 = 1;

/// Why filters are not changed.
#[derive(Debug)]
pub(super) enum NotNow {
    /// The client asks for what cannot be.
    Client(&'static str),
    /// There are too many.
    Full(String),
    /// The file cannot be written.
    Disk(io::Error),
}

/// The registered filters.
#[derive(Debug)]
pub(super) struct Filters {
    path: PathBuf,
    /// Until when each account watches for an item, in seconds since 1970.
    by_hash: HashMap<PushdataHash, Vec<(i64, u64)>>,
    count: usize,
    /// The block up to which matches were sent; `None` while there were no filters.
    searched: Option<Tip>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    version: u32,
    searched: Option<StoredTip>,
    filters: Vec<StoredFilter>,
}

#[derive(Serialize, Deserialize)]
struct StoredTip {
    height: u32,
    hash: String,
}

#[derive(Serialize, Deserialize)]
struct StoredFilter {
    account: i64,
    hash: String,
    expires: u64,
}

impl Filters {
    /// Reads the filters of a folder; none when there is no file.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let path = folder.join(NAME);
        let mut filters = Self { path, by_hash: HashMap::new(), count: 0, searched: None };
        let bytes = match fs::read(&filters.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(filters),
            found => found?,
        };
        let damaged = |what: &dyn std::fmt::Display| {
            let path = filters.path.display();
            let text = format!("{path} is damaged ({what}); remove it and register filters again");
            io::Error::new(io::ErrorKind::InvalidData, text)
        };
        let stored: Stored = serde_json::from_slice(&bytes).map_err(|error| damaged(&error))?;
        if stored.version != VERSION {
            return Err(damaged(&"another version"));
        }
        let searched = stored.searched.map(|tip| {
            let hash = tip.hash.parse().map_err(|error| damaged(&error))?;
            Ok::<_, io::Error>(Tip { height: Height::new(tip.height), hash })
        });
        let searched = searched.transpose()?;
        let mut read = Vec::with_capacity(stored.filters.len());
        for StoredFilter { account, hash, expires } in stored.filters {
            read.push((hash.parse().map_err(|error| damaged(&error))?, account, expires));
        }
        filters.searched = searched;
        for (hash, account, expires) in read {
            filters.by_hash.entry(hash).or_default().push((account, expires));
            filters.count += 1;
        }
        Ok(filters)
    }

    /// Adds filters of an account, all or none.
    pub(super) fn register(
        &mut self,
        account: i64,
        created: u64,
        entries: &[(PushdataHash, u32)],
        tip: Tip,
    ) -> Result<(), NotNow> {
        let mut new = std::collections::HashSet::new();
        if entries.iter().any(|(hash, _)| self.has(account, hash) || !new.insert(*hash)) {
            return Err(NotNow::Client("one or more hashes were already registered"));
        }
        if self.count + entries.len() > MOST {
            return Err(NotNow::Full(format!("too many filters: at most {MOST}")));
        }
        let searched = self.searched;
        for (hash, seconds) in entries {
            let expires = created.saturating_add(u64::from(*seconds));
            self.by_hash.entry(*hash).or_default().push((account, expires));
        }
        self.count += entries.len();
        self.searched = searched.or(Some(tip));
        self.save().map_err(|error| {
            entries.iter().for_each(|(hash, _)| self.remove(account, hash));
            self.searched = searched;
            NotNow::Disk(error)
        })
    }

    /// Removes filters of an account, all or none.
    pub(super) fn delete(&mut self, account: i64, hashes: &[PushdataHash]) -> Result<(), NotNow> {
        if hashes.is_empty() {
            return Err(NotNow::Client("no pushdata hashes provided"));
        }
        if !hashes.iter().all(|hash| self.has(account, hash)) {
            return Err(NotNow::Client("some pushdata hashes are not registered"));
        }
        hashes.iter().for_each(|hash| self.remove(account, hash));
        self.save().map_err(NotNow::Disk)
    }

    fn has(&self, account: i64, hash: &PushdataHash) -> bool {
        let watching = self.by_hash.get(hash);
        watching.is_some_and(|watching| watching.iter().any(|(other, _)| *other == account))
    }

    fn remove(&mut self, account: i64, hash: &PushdataHash) {
        let Some(watching) = self.by_hash.get_mut(hash) else { return };
        let before = watching.len();
        watching.retain(|(other, _)| *other != account);
        self.count -= before - watching.len();
        if watching.is_empty() {
            self.by_hash.remove(hash);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_hash.is_empty()
    }

    /// The accounts that watch for an item.
    pub(super) fn watching(&self, hash: &PushdataHash) -> impl Iterator<Item = i64> {
        self.by_hash.get(hash).into_iter().flatten().map(|(account, _)| *account)
    }

    /// All items that are watched for.
    pub(super) fn hashes(&self) -> Vec<PushdataHash> {
        self.by_hash.keys().copied().collect()
    }

    /// The block up to which matches were sent.
    pub(super) const fn searched(&self) -> Option<Tip> {
        self.searched
    }

    /// Says that all matches up to a block were sent. A crash before [`save`](Self::save) sends
    /// some again.
    pub(super) const fn search_reached(&mut self, tip: Tip) {
        self.searched = Some(tip);
    }

    /// Drops filters whose time is over; returns whether there were any.
    pub(super) fn expire(&mut self, now: u64) -> bool {
        let before = self.count;
        self.by_hash.retain(|_, watching| {
            watching.retain(|(_, expires)| *expires > now);
            !watching.is_empty()
        });
        self.count = self.by_hash.values().map(Vec::len).sum();
        self.count != before
    }

    /// Replaces the file.
    pub(super) fn save(&self) -> io::Result<()> {
        let searched = self
            .searched
            .map(|tip| StoredTip { height: tip.height.to_u32(), hash: tip.hash.to_string() });
        let filters = self.by_hash.iter().flat_map(|(hash, watching)| {
            watching.iter().map(|(account, expires)| StoredFilter {
                account: *account,
                hash: hash.to_string(),
                expires: *expires,
            })
        });
        let stored = Stored { version: VERSION, searched, filters: filters.collect() };
        let beside = self.path.with_extension("tmp");
        let mut file = File::create(&beside)?;
        file.write_all(&serde_json::to_vec(&stored)?)?;
        file.sync_all()?;
        fs::rename(&beside, &self.path)?;
        self.path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    }
}

#[cfg(test)]
mod tests {
    use varve::BlockHash;

    use super::*;

    fn tip(height: u32) -> Tip {
        Tip { height: Height::new(height), hash: BlockHash::from_bytes([7; 32]) }
    }

    fn hash(byte: u8) -> PushdataHash {
        PushdataHash::from_bytes([byte; 32])
    }

    #[test]
    fn filters_outlive_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let mut filters = Filters::open(folder.path()).unwrap();
        assert!(filters.is_empty() && filters.searched().is_none());
        filters.register(1, 100, &[(hash(1), 300), (hash(2), 600)], tip(5)).unwrap();
        filters.register(2, 100, &[(hash(1), 900)], tip(9)).unwrap();

        let mut again = Filters::open(folder.path()).unwrap();
        assert_eq!(again.searched(), Some(tip(5)), "the first registration says from where");
        let mut watching: Vec<i64> = again.watching(&hash(1)).collect();
        watching.sort_unstable();
        assert_eq!((watching, again.count), (vec![1, 2], 3));
        again.search_reached(tip(6));
        assert!(again.expire(400), "the first is over at 400");
        assert_eq!(again.watching(&hash(1)).collect::<Vec<_>>(), [2]);
        again.save().unwrap();
        let last = Filters::open(folder.path()).unwrap();
        assert_eq!((last.count, last.searched()), (2, Some(tip(6))));
    }

    #[test]
    fn a_request_is_done_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let mut filters = Filters::open(folder.path()).unwrap();
        filters.register(1, 0, &[(hash(1), 300)], tip(1)).unwrap();
        let twice = filters.register(1, 0, &[(hash(2), 300), (hash(1), 300)], tip(1));
        assert!(matches!(twice, Err(NotNow::Client(_))));
        let twice = filters.register(1, 0, &[(hash(3), 300), (hash(3), 300)], tip(1));
        assert!(matches!(twice, Err(NotNow::Client(_))));
        assert!(matches!(filters.delete(1, &[hash(1), hash(2)]), Err(NotNow::Client(_))));
        assert!(matches!(filters.delete(2, &[hash(1)]), Err(NotNow::Client(_))));
        assert_eq!((filters.count, filters.hashes()), (1, vec![hash(1)]));
        filters.delete(1, &[hash(1)]).unwrap();
        assert!(filters.is_empty());
    }

    #[test]
    fn a_damaged_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["", "{", r#"{"version":2,"searched":null,"filters":[]}"#] {
            fs::write(folder.path().join(NAME), text).unwrap();
            let error = Filters::open(folder.path()).unwrap_err();
            assert!(error.to_string().contains(NAME), "{error}");
        }
    }
}
