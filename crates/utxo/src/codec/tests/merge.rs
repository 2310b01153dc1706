//! Merges against a count by hand.

use std::collections::BTreeMap;

use proptest::prelude::*;
use varve_runs::Source;

use super::*;
use crate::packed::pack;

/// Outpoint, birth, and the packed coin unless it is deleted.
type Packed = ((Outpoint, u32), Option<Vec<u8>>);

/// A source of entries in memory.
struct List {
    entries: Vec<Packed>,
    at: usize,
}

impl List {
    fn new(changes: &Changes) -> Self {
        let entries = changes.iter().map(|(key, coin)| {
            let packed = coin.as_ref().map(|owned| {
                let mut bytes = Vec::new();
                pack(&owned.coin(), &mut bytes);
                bytes
            });
            (*key, packed)
        });
        Self { entries: entries.collect(), at: 0 }
    }
}

impl Source<CoinCodec> for List {
    fn head(&self) -> Option<Record<'_>> {
        let ((outpoint, birth), coin) = self.entries.get(self.at)?;
        let coin = coin.as_deref().map(PackedCoin::new);
        Some(Record { outpoint: *outpoint, birth: Sequence::new(*birth), coin })
    }

    fn advance(&mut self) -> Result<(), RunError> {
        self.at += 1;
        Ok(())
    }
}

fn merge(lists: &[Changes], whole: bool) -> Result<Changes, RunError> {
    collect(Merge::new(lists.iter().map(List::new).collect(), whole)?)
}

fn add(number: u32) -> Option<Owned> {
    Some(owned(number))
}

#[test]
fn pairs_cancel_and_a_re_added_coin_stays() {
    // Born in step 1, spent, un-spent by a reorganisation (the same birth), spent again, and the
    // outpoint created again in step 9.
    let key = outpoint(1);
    let old = Changes::from([((key, 1), add(1))]);
    let spent = Changes::from([((key, 1), None)]);
    let again = Changes::from([((key, 1), None), ((key, 9), add(2))]);
    let all = [again.clone(), old.clone(), spent.clone(), old.clone()];
    assert_eq!(merge(&all, true).unwrap(), Changes::from([((key, 9), add(2))]));
    assert_eq!(merge(&[old.clone(), spent.clone()], true).unwrap(), Changes::new());
    let young = merge(&[again, old.clone(), spent], false).unwrap();
    assert_eq!(young, Changes::from([((key, 1), None), ((key, 9), add(2))]));
    assert_eq!(merge(&[young, old], true).unwrap(), Changes::from([((key, 9), add(2))]));
}

#[test]
fn a_delete_waits_for_its_coin_until_nothing_is_older() {
    let delete = Changes::from([((outpoint(5), 3), None)]);
    assert_eq!(merge(std::slice::from_ref(&delete), false).unwrap(), delete);
    let error = merge(&[delete], true).unwrap_err();
    assert!(matches!(error, RunError::Count { count: -1, .. }), "{error}");
}

#[test]
fn a_coin_that_came_twice_is_damage() {
    let coin = Changes::from([((outpoint(5), 3), add(1))]);
    for whole in [false, true] {
        let error = merge(&[coin.clone(), coin.clone()], whole).unwrap_err();
        assert!(matches!(error, RunError::Count { count: 2, .. }), "{error}");
    }
}

#[test]
fn txids_of_all_ones_are_no_end() {
    let key = Outpoint::new(varve_types::Txid::from_bytes([0xff; 32]), u32::MAX);
    let last = Changes::from([((key, 3), add(1))]);
    let other = Changes::from([((outpoint(1), 3), add(1))]);
    let merged = merge(&[other, Changes::new(), last], true).unwrap();
    assert_eq!(merged.len(), 2);
    assert!(merged.contains_key(&(key, 3)));
}

proptest! {
    #[test]
    fn as_counting_says(
        steps in prop::collection::vec((0_u32..6, 0_u32..3, any::<bool>()), 0..60),
        lists in 1_usize..6,
    ) {
        // Histories of a few coins, cut into lists at random; each list counts by itself.
        let mut alive: BTreeMap<(Outpoint, u32), bool> = BTreeMap::new();
        let mut cut = vec![BTreeMap::<(Outpoint, u32), i32>::new(); lists];
        let size = steps.len().div_ceil(lists).max(1);
        for (index, (number, birth, _)) in steps.iter().enumerate() {
            let key = (outpoint(*number), *birth);
            let state = alive.entry(key).or_default();
            *state = !*state;
            *cut[index / size].entry(key).or_default() += if *state { 1 } else { -1 };
        }
        let lists: Vec<Changes> = cut.iter().map(|counts| {
            let left = counts.iter().filter(|(_, count)| **count != 0);
            left.map(|(key, count)| (*key, (*count > 0).then(|| owned(key.1)))).collect()
        }).collect();
        let expected: Changes = alive
            .iter()
            .filter(|(_, alive)| **alive)
            .map(|(key, _)| (*key, Some(owned(key.1))))
            .collect();
        prop_assert_eq!(&merge(&lists, true).unwrap(), &expected);
        // In two steps, the young ones first.
        let (old, young) = lists.split_at(lists.len() / 2);
        let young = merge(young, false).unwrap();
        let old = merge(old, false).unwrap();
        prop_assert_eq!(&merge(&[young, old], true).unwrap(), &expected);
    }
}
