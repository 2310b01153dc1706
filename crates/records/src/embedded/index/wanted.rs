//! The records of a shard that scans look for, so that a scan costs what it finds.
//!
//! ```text
//!  unmined      (height since which the record is unmined, tag)
//!  due          (height from which it may be removed, tag)
//!  preserved    (height to which it is kept, tag)
//!  conflicting  (0, tag)
//! ```
//!
//! Each list is a sorted set beside the table, some 18 bytes an entry. A record that is mined, not
//! scheduled and not conflicting, as most are, is in none. A tag may stand for several records; the
//! slots say which of them are meant.

use std::collections::BTreeSet;

use super::slot::Slot;

/// What a scan may look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::embedded) enum List {
    Unmined,
    Due,
    Preserved,
    Conflicting,
}

/// An estimate of the memory that an entry takes.
const ENTRY_LEN: usize = 18;

/// The lists of a shard.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    lists: [BTreeSet<(u32, u32)>; 4],
}

impl List {
    /// Under which height a slot is in this list; `None` when it is not.
    pub(in crate::embedded) fn height(self, slot: &Slot) -> Option<u32> {
        if !slot.is_record() {
            return None;
        }
        let marks = slot.marks();
        let expiry = Some(marks.expiry).filter(|height| *height > 0);
        match self {
            Self::Unmined => Some(marks.unmined).filter(|height| *height > 0),
            Self::Due => expiry.filter(|_| !marks.preserved),
            Self::Preserved => expiry.filter(|_| marks.preserved),
            Self::Conflicting => marks.conflicting.then_some(0),
        }
    }

    pub(super) const ALL: [Self; 4] =
        [Self::Unmined, Self::Due, Self::Preserved, Self::Conflicting];
}

impl Wanted {
    pub(super) fn memory(&self) -> usize {
        self.lists.iter().map(BTreeSet::len).sum::<usize>() * ENTRY_LEN
    }

    fn list(&self, list: List) -> &BTreeSet<(u32, u32)> {
        let [unmined, due, preserved, conflicting] = &self.lists;
        match list {
            List::Unmined => unmined,
            List::Due => due,
            List::Preserved => preserved,
            List::Conflicting => conflicting,
        }
    }

    fn list_mut(&mut self, list: List) -> &mut BTreeSet<(u32, u32)> {
        let [unmined, due, preserved, conflicting] = &mut self.lists;
        match list {
            List::Unmined => unmined,
            List::Due => due,
            List::Preserved => preserved,
            List::Conflicting => conflicting,
        }
    }

    pub(super) fn is_empty(&self, list: List) -> bool {
        self.list(list).is_empty()
    }

    /// A slot is in the table.
    pub(super) fn add(&mut self, slot: &Slot) {
        for list in List::ALL {
            if let Some(height) = list.height(slot) {
                self.list_mut(list).insert((height, slot.tag()));
            }
        }
    }

    /// A slot is no longer in the table; `others` are the slots with the same tag that are.
    pub(super) fn remove<'a>(
        &mut self,
        slot: &Slot,
        others: impl Iterator<Item = &'a Slot> + Clone,
    ) {
        for list in List::ALL {
            let Some(height) = list.height(slot) else { continue };
            if !others.clone().any(|other| list.height(other) == Some(height)) {
                self.list_mut(list).remove(&(height, slot.tag()));
            }
        }
    }

    /// The entries of a list from `from` on, up to a height.
    pub(super) fn range(
        &self,
        list: List,
        from: (u32, u32),
        height: u32,
    ) -> impl Iterator<Item = (u32, u32)> {
        let to = (height, u32::MAX);
        let entries = (from <= to).then(|| self.list(list).range(from..=to));
        entries.into_iter().flatten().copied()
    }
}
