//! How much of each confirmed block was checked.
//!
//! A block is in the confirmed chain when its spends are allowed. Its scripts may have been checked
//! as well, or an assume-valid block has vouched for them, or nobody has looked at them. The commit
//! log records which: a commit names the *spans* of heights whose scripts were settled since the
//! one before, and its fork height takes back what was recorded above the fork.
//!
//! ```text
//!  height     0                 700         900                 1200
//!  spans      │ assumed to 700 │ checked    │                     │
//!             └────────────────┴── to 900 ──┴── spends alone ─────┘
//! ```
//!
//! What no span covers counts as not checked, so a lost frame claims less than was done, never
//! more. Neighbouring spans of one kind are merged: a chain has a handful, whatever its length.

use std::collections::BTreeMap;

use varve_types::Height;

/// How much of a block was checked, the least first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Checked {
    /// Nothing that depends on other blocks.
    #[default]
    Nothing,
    /// That it may spend what it spends.
    Spends,
    /// The same; its scripts are those of an ancestor of an assume-valid block.
    Assumed,
    /// Everything.
    Scripts,
}

/// Heights of the confirmed chain whose scripts were settled in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckedSpan {
    /// The lowest height.
    pub first: Height,
    /// The highest height, not below the lowest.
    pub last: Height,
    /// [`Checked::Assumed`] or [`Checked::Scripts`].
    pub checked: Checked,
}

/// How the scripts of a confirmed chain were settled, in three numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptsChecked {
    /// The scripts of all blocks up to this height were checked or assumed to be valid.
    pub checked_to: Height,
    /// The highest block whose scripts were assumed to be valid.
    pub assumed_to: Option<Height>,
    /// Blocks whose scripts nobody has looked at.
    pub unchecked: u64,
}

/// The spans of a chain. They do not overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckedHeights {
    /// By their lowest height.
    spans: BTreeMap<u32, (u32, Checked)>,
}

impl CheckedHeights {
    /// What was recorded of the block at this height. That of genesis has no scripts to check.
    #[must_use]
    pub fn at(&self, height: Height) -> Checked {
        if height == Height::GENESIS {
            return Checked::Scripts;
        }
        let height = height.to_u32();
        let below = self.spans.range(..=height).next_back();
        let covering = below.filter(|(_, (last, _))| *last >= height);
        covering.map_or(Checked::Spends, |(_, (_, checked))| *checked)
    }

    /// The same of a chain up to `tip`.
    #[must_use]
    pub fn summary(&self, tip: Height) -> ScriptsChecked {
        let (mut checked_to, mut assumed_to, mut settled) = (0, None, 0);
        for (first, (last, checked)) in &self.spans {
            let (first, last) = ((*first).max(1), (*last).min(tip.to_u32()));
            if last < first {
                continue;
            }
            settled += u64::from(last - first) + 1;
            if first <= checked_to + 1 {
                checked_to = last;
            }
            if *checked == Checked::Assumed {
                assumed_to = Some(Height::new(last));
            }
        }
        let unchecked = u64::from(tip.to_u32()) - settled;
        ScriptsChecked { checked_to: Height::new(checked_to), assumed_to, unchecked }
    }

    /// The spans, the lowest first.
    pub(crate) fn spans(&self) -> impl Iterator<Item = CheckedSpan> {
        self.spans.iter().map(|(first, (last, checked))| CheckedSpan {
            first: Height::new(*first),
            last: Height::new(*last),
            checked: *checked,
        })
    }

    /// Records a span. What was checked stays so when it is assumed later.
    pub fn record(&mut self, span: CheckedSpan) {
        let (mut at, last) = (span.first.to_u32(), span.last.to_u32());
        while at <= last {
            // The part that begins at `at` and is of one kind so far.
            let below = self.spans.range(..=at).next_back();
            let covering = below.filter(|(_, (end, _))| *end >= at);
            let (end, known) = match covering {
                Some((_, (end, known))) => (*end, *known),
                None => {
                    let next = self.spans.range(at..).next().map(|(first, _)| first - 1);
                    (next.unwrap_or(u32::MAX), Checked::Spends)
                }
            };
            let end = end.min(last);
            if known < span.checked {
                self.put(at, end, span.checked);
            }
            let Some(next) = end.checked_add(1) else { return };
            at = next;
        }
    }

    /// Forgets what was recorded above a height.
    pub fn cut_above(&mut self, height: Height) {
        let height = height.to_u32();
        let above = height.checked_add(1).map(|above| self.spans.split_off(&above));
        drop(above);
        if let Some((_, (last, _))) = self.spans.iter_mut().next_back() {
            *last = (*last).min(height);
        }
    }

    /// Replaces what is known of these heights, which lie within one span or gap.
    fn put(&mut self, first: u32, last: u32, checked: Checked) {
        let below = self.spans.range_mut(..=first).next_back();
        if let Some((begin, (end, known))) = below
            && *end >= first
        {
            let (begin, old_end, known) = (*begin, *end, *known);
            *end = first.wrapping_sub(1);
            if begin == first {
                self.spans.remove(&begin);
            }
            if let Some(behind) = last.checked_add(1).filter(|behind| *behind <= old_end) {
                self.spans.insert(behind, (old_end, known));
            }
        }
        let (mut first, mut last) = (first, last);
        let below = self.spans.range(..first).next_back().map(|(begin, span)| (*begin, *span));
        if let Some((begin, (end, known))) = below
            && known == checked
            && end.checked_add(1) == Some(first)
        {
            first = begin;
        }
        let above = last.checked_add(1).and_then(|next| Some((next, *self.spans.get(&next)?)));
        if let Some((next, (end, known))) = above
            && known == checked
        {
            self.spans.remove(&next);
            last = end;
        }
        self.spans.insert(first, (last, checked));
    }
}

/// Cuts a run of heights into spans: `checked` says what was checked of each, from `first` on.
/// Heights whose scripts were not settled are left out.
pub(crate) fn spans(first: Height, checked: impl IntoIterator<Item = Checked>) -> Vec<CheckedSpan> {
    let mut spans: Vec<CheckedSpan> = Vec::new();
    for (height, checked) in (first.to_u32()..).map(Height::new).zip(checked) {
        if checked < Checked::Assumed {
            continue;
        }
        match spans.last_mut() {
            Some(span) if span.checked == checked && span.last.checked_add(1) == Some(height) => {
                span.last = height;
            }
            _ => spans.push(CheckedSpan { first: height, last: height, checked }),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEIGHTS: u32 = 40;

    fn span(first: u32, last: u32, checked: Checked) -> CheckedSpan {
        CheckedSpan { first: Height::new(first), last: Height::new(last), checked }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Record(u32, u32, bool),
        Cut(u32),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => (0..HEIGHTS, 0..HEIGHTS, any::<bool>())
                .prop_map(|(one, other, scripts)| Step::Record(one, other, scripts)),
            1 => (0..HEIGHTS).prop_map(Step::Cut),
        ];
        prop::collection::vec(step, 1..30)
    }

    proptest! {
        /// A height at a time gives the same, and neighbours of one kind are one span.
        #[test]
        fn spans_are_what_was_recorded_height_by_height(steps in steps()) {
            let mut heights = CheckedHeights::default();
            let mut plain = vec![Checked::Spends; HEIGHTS as usize];
            for step in steps {
                match step {
                    Step::Record(one, other, scripts) => {
                        let (first, last) = (one.min(other), one.max(other));
                        let checked = if scripts { Checked::Scripts } else { Checked::Assumed };
                        heights.record(span(first, last, checked));
                        for known in &mut plain[first as usize..=last as usize] {
                            *known = (*known).max(checked);
                        }
                    }
                    Step::Cut(height) => {
                        heights.cut_above(Height::new(height));
                        plain[height as usize + 1..].fill(Checked::Spends);
                    }
                }
            }
            plain[0] = Checked::Scripts;
            for (height, known) in (0..).zip(&plain) {
                prop_assert_eq!(heights.at(Height::new(height)), *known, "at {}", height);
            }
            let kept: Vec<_> = heights.spans.iter().collect();
            for pair in kept.windows(2) {
                let ((_, (last, kind)), (first, (_, next))) = (pair[0], pair[1]);
                prop_assert!(last < first && (last + 1 < *first || kind != next), "{:?}", kept);
            }
        }
    }

    #[test]
    fn three_numbers() {
        let mut heights = CheckedHeights::default();
        let found = |heights: &CheckedHeights, tip: u32| {
            let ScriptsChecked { checked_to, assumed_to, unchecked } =
                heights.summary(Height::new(tip));
            (checked_to.to_u32(), assumed_to.map(Height::to_u32), unchecked)
        };
        assert_eq!((found(&heights, 0), found(&heights, 9)), ((0, None, 0), (0, None, 9)));
        heights.record(span(1, 4, Checked::Assumed));
        heights.record(span(5, 6, Checked::Scripts));
        assert_eq!((found(&heights, 6), found(&heights, 9)), ((6, Some(4), 0), (6, Some(4), 3)));
        heights.record(span(8, 9, Checked::Scripts));
        assert_eq!(found(&heights, 9), (6, Some(4), 1));
        heights.record(span(0, 9, Checked::Scripts));
        assert_eq!(found(&heights, 9), (9, None, 0));
    }

    #[test]
    fn the_highest_height_is_one_too() {
        let mut heights = CheckedHeights::default();
        heights.record(span(7, u32::MAX, Checked::Assumed));
        heights.record(span(u32::MAX, u32::MAX, Checked::Scripts));
        assert_eq!(heights.at(Height::new(u32::MAX)), Checked::Scripts);
        assert_eq!(heights.at(Height::new(u32::MAX - 1)), Checked::Assumed);
        heights.cut_above(Height::new(6));
        assert_eq!(heights, CheckedHeights::default());
    }

    #[test]
    fn a_run_of_heights_is_cut_where_the_kind_changes() {
        use Checked::{Assumed, Scripts, Spends};
        let found = spans(Height::new(5), [Assumed, Assumed, Spends, Scripts, Scripts, Assumed]);
        let expected = [span(5, 6, Assumed), span(8, 9, Scripts), span(10, 10, Assumed)];
        assert_eq!(found, expected);
    }
}
