//! What a folder keeps: how much of the blocks, and which optional indexes.
//!
//! The file `settings` in the root of the folder, an envelope that is replaced when an opener
//! changes them. A folder without one keeps all blocks and has no optional index.
//!
//! ```text
//!  0            8         9
//!  ┌────────────┬─────────┐
//!  │ prune      │ indexes │    prune: bytes of blocks to keep, 0 = all
//!  │ u64        │ u8      │    indexes: bit 1 filter, 2 stats, 3 script, 4 pushdata
//!  └────────────┴─────────┘             bit 7: pushdata by Conduit's rule, else as documented
//! ```

use std::fmt;
use std::str::FromStr;

use varve_io::{Envelope, FileOffset, FormatError, Kind, Storage, load, replace};
use varve_types::pushdata::PushdataRule;

use crate::error::Error;

const FILE: &str = "settings";
const KIND: Kind = Kind(*b"SETTINGS");
const VERSION: u32 = 2;
/// The bit of the rule beside those of the indexes.
const CONDUIT: u8 = 0x80;

/// How much of the raw blocks is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prune {
    /// All.
    #[default]
    Off,
    /// About this many bytes of the youngest, and always what a reorganisation may need.
    To(u64),
}

/// What can be kept beside the chain, or left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Index {
    /// BIP158 filters of the confirmed chain.
    Filter,
    /// Transactions by the items that their scripts push.
    Pushdata,
    /// The history, balance and unspent outputs of every script.
    Script,
    /// The figures of the unspent set at every height, up to date after each sync.
    Stats,
}

impl Index {
    /// All that there are.
    pub const ALL: [Self; 4] = [Self::Filter, Self::Pushdata, Self::Script, Self::Stats];

    /// What it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Pushdata => "pushdata",
            Self::Script => "script",
            Self::Stats => "stats",
        }
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Filter => 2,
            Self::Stats => 4,
            Self::Script => 8,
            Self::Pushdata => 16,
        }
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Some of the indexes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexSet(u8);

impl IndexSet {
    /// All that there are.
    pub(crate) const ALL: Self = Self(2 | 4 | 8 | 16);

    /// Whether it is one of them.
    #[must_use]
    pub const fn has(self, index: Index) -> bool {
        self.0 & index.bit() != 0
    }

    /// These and one more.
    #[must_use]
    pub const fn with(self, index: Index) -> Self {
        Self(self.0 | index.bit())
    }

    /// All of them, in the order of their names.
    pub fn iter(self) -> impl Iterator<Item = Index> {
        Index::ALL.into_iter().filter(move |index| self.has(*index))
    }
}

impl fmt::Display for IndexSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(Index::name).collect();
        f.write_str(if names.is_empty() { "none" } else { "" })?;
        f.write_str(&names.join(","))
    }
}

/// A name that no index has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no index `{name}`; write none, all, or some of filter,pushdata,script,stats")]
pub struct UnknownIndexError {
    name: String,
}

impl FromStr for IndexSet {
    type Err = UnknownIndexError;

    /// Reads `none`, `all`, or names with commas between them.
    fn from_str(text: &str) -> Result<Self, UnknownIndexError> {
        match text {
            "none" => return Ok(Self::default()),
            "all" => return Ok(Self::ALL),
            _ => {}
        }
        text.split(',').try_fold(Self::default(), |set, name| {
            let found = Index::ALL.into_iter().find(|index| index.name() == name);
            let index = found.ok_or_else(|| UnknownIndexError { name: name.to_owned() })?;
            Ok(set.with(index))
        })
    }
}

/// How a folder is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How much of the raw blocks.
    pub prune: Prune,
    /// Which optional indexes.
    pub indexes: IndexSet,
    /// By which rule pushed items are indexed.
    pub pushdata_rule: PushdataRule,
}

impl Default for Settings {
    fn default() -> Self {
        let (prune, indexes) = (Prune::default(), IndexSet::default());
        Self { prune, indexes, pushdata_rule: PushdataRule::Documented }
    }
}

/// What an opener changes; `None` leaves it as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SettingsChange {
    /// How much of the raw blocks.
    pub prune: Option<Prune>,
    /// Which optional indexes.
    pub indexes: Option<IndexSet>,
    /// By which rule pushed items are indexed.
    pub pushdata_rule: Option<PushdataRule>,
}

impl Settings {
    /// Reads those of a folder.
    pub(crate) fn load(root: &dyn Storage) -> Result<Self, Error> {
        let Some(found) = load(root, FILE, KIND)? else { return Ok(Self::default()) };
        let path = root.path().join(FILE);
        if found.version != VERSION {
            let error = FormatError::Version { found: found.version, supported: VERSION };
            return Err(error.in_file(&path, FileOffset::ZERO).into());
        }
        let damaged = FormatError::Damaged { at: 0, what: "these are no settings" };
        let fields = found.payload.split_first_chunk::<8>();
        let fields =
            fields.and_then(|(prune, rest)| Some((*prune, <[u8; 1]>::try_from(rest).ok()?)));
        let known = IndexSet::ALL.0 | CONDUIT;
        let fields = fields.filter(|(_, [indexes])| indexes & !known == 0);
        let (prune, [indexes]) = fields.ok_or_else(|| damaged.in_file(&path, FileOffset::ZERO))?;
        let prune = match u64::from_le_bytes(prune) {
            0 => Prune::Off,
            bytes => Prune::To(bytes),
        };
        let is_conduit = indexes & CONDUIT != 0;
        let pushdata_rule =
            if is_conduit { PushdataRule::Conduit } else { PushdataRule::Documented };
        Ok(Self { prune, indexes: IndexSet(indexes & !CONDUIT), pushdata_rule })
    }

    /// Makes these the folder's, durably.
    pub(crate) fn store(self, root: &dyn Storage) -> Result<(), Error> {
        let prune = match self.prune {
            Prune::Off => 0,
            Prune::To(bytes) => bytes.max(1),
        };
        let mut payload = prune.to_le_bytes().to_vec();
        let rule = match self.pushdata_rule {
            PushdataRule::Conduit => CONDUIT,
            PushdataRule::Documented => 0,
        };
        payload.push(self.indexes.0 | rule);
        let envelope = Envelope { version: VERSION, payload: payload.as_slice() };
        Ok(replace(root, FILE, KIND, &envelope)?)
    }

    /// These with a change.
    pub(crate) fn changed(self, change: SettingsChange) -> Self {
        Self {
            prune: change.prune.unwrap_or(self.prune),
            indexes: change.indexes.unwrap_or(self.indexes),
            pushdata_rule: change.pushdata_rule.unwrap_or(self.pushdata_rule),
        }
    }

    /// By which rule pushed items are indexed, if they are.
    #[must_use]
    pub fn pushdata(&self) -> Option<PushdataRule> {
        self.indexes.has(Index::Pushdata).then_some(self.pushdata_rule)
    }

    /// The indexes that these have and `before` does not. Pushdata by another rule is another
    /// index.
    pub(crate) fn added_to(self, before: Self) -> IndexSet {
        let added = IndexSet(self.indexes.0 & !before.indexes.0);
        let is_other = self.pushdata().is_some() && self.pushdata() != before.pushdata();
        if is_other { added.with(Index::Pushdata) } else { added }
    }
}

#[cfg(test)]
mod tests {
    use varve_io::faulty::FaultyStorage;

    use super::*;

    #[test]
    fn names() {
        let all: IndexSet = "stats,script,pushdata,filter".parse().unwrap();
        assert_eq!(Index::ALL.into_iter().fold(IndexSet::default(), IndexSet::with), all);
        assert_eq!(all.to_string(), "filter,pushdata,script,stats");
        assert_eq!("all".parse(), Ok(all));
        assert_eq!("none".parse(), Ok(IndexSet::default()));
        assert_eq!(IndexSet::default().to_string(), "none");
        for text in ["", "stats,", "Stats", "none,stats", "all,stats", "wallet", "address"] {
            let message = text.parse::<IndexSet>().unwrap_err().to_string();
            assert!(message.contains("filter,pushdata,script,stats"), "{message}");
        }
    }

    #[test]
    fn they_are_kept_and_changed() {
        let root = FaultyStorage::new(1);
        assert_eq!(Settings::load(&root).unwrap(), Settings::default());
        let script = IndexSet::default().with(Index::Script);
        let change = SettingsChange {
            prune: Some(Prune::To(5 << 30)),
            indexes: Some(script),
            pushdata_rule: Some(PushdataRule::Conduit),
        };
        let settings = Settings::default().changed(change);
        settings.store(&root).unwrap();
        assert_eq!(Settings::load(&root).unwrap(), settings);
        assert_eq!(settings.changed(SettingsChange::default()), settings);
        let filter = IndexSet::default().with(Index::Filter);
        let other = SettingsChange { indexes: Some(filter), ..SettingsChange::default() };
        let changed = settings.changed(other);
        assert_eq!((changed.prune, changed.added_to(settings)), (Prune::To(5 << 30), filter));
    }

    #[test]
    fn pushdata_by_another_rule_is_another_index() {
        let settings = |indexes: &str, pushdata_rule| {
            let indexes = indexes.parse().unwrap();
            Settings { indexes, pushdata_rule, ..Settings::default() }
        };
        let (conduit, documented) = (PushdataRule::Conduit, PushdataRule::Documented);
        let added = |now: Settings, before| now.added_to(before).to_string();
        let before = settings("stats,pushdata", documented);
        assert_eq!(added(settings("all", documented), before), "filter,script");
        assert_eq!(added(settings("pushdata", conduit), before), "pushdata");
        assert_eq!(added(settings("stats", conduit), before), "none");
    }

    #[test]
    fn bits_that_no_index_has_are_refused() {
        let root = FaultyStorage::new(1);
        let mut payload = 0_u64.to_le_bytes().to_vec();
        payload.push(0x40);
        let envelope = Envelope { version: VERSION, payload: payload.as_slice() };
        replace(&root, FILE, KIND, &envelope).unwrap();
        assert!(Settings::load(&root).is_err());
    }
}
