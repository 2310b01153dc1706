//! Parents before children, otherwise the order stays.
//!
//! Blocks of some chains are sorted by txid, and records come back in the order of their creation,
//! which a reorganisation can turn around: both are put in order before they are admitted.

use std::collections::{BTreeSet, HashMap};

use varve_records::Transaction;
use varve_types::Txid;

/// Sorts transactions so that each comes after those of the list that it spends. `tx_of` finds the
/// transaction of an item.
pub(super) fn parents_first<T>(items: Vec<T>, tx_of: impl Fn(&T) -> &Transaction) -> Vec<T> {
    let places: HashMap<Txid, usize> =
        items.iter().enumerate().map(|(place, item)| (tx_of(item).txid(), place)).collect();
    let mut waits = vec![0_usize; items.len()];
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); items.len()];
    for (place, item) in items.iter().enumerate() {
        let inputs = tx_of(item).outpoints();
        let parents: BTreeSet<usize> =
            inputs.iter().filter_map(|input| places.get(&input.txid).copied()).collect();
        for parent in parents.into_iter().filter(|parent| *parent != place) {
            if let (Some(wait), Some(list)) = (waits.get_mut(place), children.get_mut(parent)) {
                *wait += 1;
                list.push(place);
            }
        }
    }
    let free = waits.iter().enumerate().filter(|(_, wait)| **wait == 0);
    let mut ready: BTreeSet<usize> = free.map(|(place, _)| place).collect();
    let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
    let mut ordered = Vec::with_capacity(items.len());
    while let Some(place) = ready.pop_first() {
        ordered.extend(items.get_mut(place).and_then(Option::take));
        for child in children.get(place).into_iter().flatten() {
            if let Some(wait) = waits.get_mut(*child) {
                *wait -= 1;
                if *wait == 0 {
                    ready.insert(*child);
                }
            }
        }
    }
    debug_assert!(items.iter().all(Option::is_none), "no transaction builds on itself");
    ordered
}
