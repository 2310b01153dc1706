//! What a poll of a folder looks at.
//!
//! A folder of mainnet has five thousand block files and as many others, and is polled four times
//! a second. So a poll looks at a bounded number of things, whatever the folder holds:
//!
//! | what | how often | finds |
//! |---|---|---|
//! | the newest file | every poll | what a node appends |
//! | the file with the next number | every poll | the next file |
//! | [`SWEEP`] of all files in turn | every poll | old files that were replaced or written over |
//! | the list of the folder | seldom | files out of order, such as one that was missing |
//!
//! The folder is listed when its modification time has changed, and at most once every
//! entries / [`LIST`] polls, so a poll reads [`LIST`] entries on average.
//!
//! With 5,000 files a change in an old one is seen after at most 80 seconds, and a file that turns
//! up between others after 40; with fewer than sixteen files all is seen at the next poll.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// How many files are looked at in turn.
const SWEEP: usize = 16;
/// How many entries of the folder a poll may read.
const LIST: usize = 64;

/// The name of a block file: `blk` and at least five digits. Files are ordered by the number, and
/// a name without a number that fits comes last.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileName {
    length: usize,
    digits: String,
}

impl FileName {
    /// The name of the file with this path, when it is that of a block file.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let digits = name.strip_prefix("blk")?.strip_suffix(".dat")?;
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| Self { length: digits.len(), digits: digits.to_owned() })
    }

    /// The name of the next file of a node.
    fn next(&self) -> Option<String> {
        let number: u32 = self.digits.parse().ok()?;
        Some(format!("blk{:05}.dat", number.checked_add(1)?))
    }
}

/// What has been looked at.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The file with the last name, and its index.
    newest: Option<(Option<FileName>, usize)>,
    /// The index of the file that is looked at next.
    cursor: usize,
    /// How many entries the folder had when it was listed, and how many polls there were since.
    entries: usize,
    polls: usize,
    /// The folder's time of change at the last two listings. Two that agree say that nothing came
    /// between the listing and the next change of the clock.
    modified: [Option<SystemTime>; 2],
}

impl Watch {
    /// A file was added to the list.
    pub(super) fn added(&mut self, name: Option<FileName>, index: usize) {
        if self.newest.as_ref().is_none_or(|(newest, _)| *newest <= name) {
            self.newest = Some((name, index));
        }
    }

    /// The index of the file with the last name.
    pub(super) fn newest(&self) -> Option<usize> {
        self.newest.as_ref().map(|(_, index)| *index)
    }

    /// Where the next file would be.
    pub(super) fn next_file(&self, folder: &Path) -> Option<PathBuf> {
        let (name, _) = self.newest.as_ref()?;
        Some(folder.join(name.as_ref()?.next()?))
    }

    /// The folder was listed.
    pub(super) const fn listed(&mut self, entries: usize) {
        (self.entries, self.polls) = (entries, 0);
    }

    /// Whether the folder, changed last at this time, is to be listed in this poll.
    pub(super) fn is_list_due(&mut self, modified: Option<SystemTime>) -> bool {
        self.polls += 1;
        let known = modified.is_some() && self.modified == [modified; 2];
        let due = !known && self.polls.saturating_mul(LIST) >= self.entries;
        if due {
            self.modified = [self.modified[1], modified];
        }
        due
    }

    /// The indexes of the files to look at in this poll, of `count`.
    pub(super) fn sweep(&mut self, count: usize) -> Vec<usize> {
        let cursor = self.cursor;
        self.cursor = (cursor + SWEEP.min(count)) % count.max(1);
        (0..SWEEP.min(count)).map(|step| (cursor + step) % count).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_poll_looks_at_a_few_files_and_many_polls_at_all() {
        let mut watch = Watch::default();
        let mut seen = BTreeSet::new();
        for poll in 0..313 {
            let some = watch.sweep(5000);
            assert!(some.len() <= 16, "{} files in poll {poll}", some.len());
            seen.extend(some);
        }
        assert_eq!(seen.len(), 5000);
        assert_eq!(watch.sweep(3).len(), 3);
        assert!(watch.sweep(0).is_empty());
    }

    #[test]
    fn a_folder_is_listed_when_it_has_changed_and_seldom_when_it_is_large() {
        let time = |seconds| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        for (entries, polls) in [(20, 0), (10_000, 156)] {
            let mut watch = Watch::default();
            watch.listed(entries);
            let mut until_listed = |modified, most: usize| {
                let listed = (0..most).position(|_| watch.is_list_due(modified));
                watch.listed(entries);
                listed
            };
            assert_eq!(until_listed(time(5), 1000), Some(polls));
            // Once more, since a file may have come within the same tick of the clock.
            assert_eq!(until_listed(time(5), 1000), Some(polls));
            assert_eq!(until_listed(time(5), 1000), None);
            assert_eq!(until_listed(time(6), 1000), Some(polls));
        }
    }

    #[test]
    fn names_are_ordered_by_their_numbers() {
        let name = |name: &str| FileName::of(Path::new(name));
        assert!(name("blk99999.dat") < name("blk100000.dat"));
        assert_eq!(name("blk99999.dat").unwrap().next().unwrap(), "blk100000.dat");
        assert_eq!(name("blk00009.dat").unwrap().next().unwrap(), "blk00010.dat");
        assert!(name("rev00000.dat").is_none() && name("blk0000x.dat").is_none());
        let mut watch = Watch::default();
        let files = ["a/blk00000.dat", "a/blk00002.dat", "a/blk00001.dat"];
        for (index, path) in files.iter().enumerate() {
            watch.added(name(path), index);
        }
        assert_eq!(watch.newest(), Some(1));
        assert_eq!(watch.next_file(Path::new("a")), Some("a/blk00003.dat".into()));
    }
}
