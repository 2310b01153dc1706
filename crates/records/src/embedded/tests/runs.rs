//! Records that have left memory: the index knows them by its runs.

use varve_io::faulty::{Fault, FaultRule, Operation as Call, When};
use varve_types::{Height, Outpoint, Txid};

use super::size::create;
use super::threads::spend;
use super::twin::{Twin, small};
use crate::embedded::EmbeddedOptions;
use crate::engine::{Engine as _, Scan};
use crate::fields::Fields;
use crate::operation::Operation;
use crate::record::{BlockId, BlockRef};

const RECORDS: u32 = 3_000;

fn name(number: u32) -> Txid {
    let mut bytes = [0x44; 32];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    Txid::from_bytes(bytes)
}

fn mined(number: u32) -> Operation {
    let Operation::Unit(mut unit) = create(name(number), 2) else { panic!("it is a unit") };
    let block = BlockRef { id: BlockId(1), height: Height::new(90), subtree: 0 };
    unit.create.as_mut().unwrap().blocks = vec![block];
    Operation::Unit(unit)
}

/// A store of mined records, none of which the index has in memory.
fn stocked() -> Twin {
    let options = EmbeddedOptions { segment_size: 300_000, checkpoint_every: 100_000, ..small() };
    let twin = Twin::new(options);
    for first in (0..RECORDS).step_by(100) {
        twin.apply(&(first..first + 100).map(mined).collect::<Vec<_>>());
    }
    twin.engine().checkpoint().unwrap();
    let index = twin.engine().commit.index().unwrap();
    assert_eq!(index.shards().iter().map(|shard| shard.slots().count()).sum::<usize>(), 0);
    drop(index);
    twin
}

/// All records are the same as those of the oracle, by read and by scan.
fn check(twin: &Twin) {
    let txids: Vec<Txid> = (0..RECORDS + 200).map(name).collect();
    let found = twin.engine().read(&txids, Fields::ALL).unwrap();
    assert!(found == twin.oracle.read(&txids, Fields::ALL).unwrap());
    for limit in [7, 1_000] {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = twin.engine().scan(Scan::All, after, limit).unwrap();
            assert!(page.txids.len() == limit || page.next.is_none());
            all.extend(page.txids);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let mut expected: Vec<Txid> = found.iter().flatten().map(|record| record.txid).collect();
        all.sort_unstable();
        expected.sort_unstable();
        assert!(all == expected, "{} of {}", all.len(), expected.len());
    }
    let keys = twin.engine().status().unwrap().keys;
    assert_eq!(keys, found.iter().flatten().count() as u64);
}

/// What changes cold records: spends, the end of them, creating them again and what is new.
fn change(twin: &Twin) {
    let spends = (0..300).map(|n| spend(name(RECORDS + n % 200), Outpoint::new(name(n * 7), 1)));
    twin.apply(&spends.collect::<Vec<_>>());
    let deletes = (0..RECORDS).step_by(11).map(|n| Operation::Delete { txid: name(n) });
    twin.apply(&deletes.collect::<Vec<_>>());
    twin.apply(&(0..RECORDS).step_by(33).map(mined).collect::<Vec<_>>());
    twin.apply(&(RECORDS..RECORDS + 100).map(mined).collect::<Vec<_>>());
    twin.apply(&(0..40).map(mined).collect::<Vec<_>>());
}

#[test]
fn cold_records_are_found_changed_removed_and_made_again() {
    let mut twin = stocked();
    check(&twin);
    change(&twin);
    check(&twin);
    twin.reopen();
    check(&twin);
    twin.engine().checkpoint().unwrap();
    check(&twin);
    twin.reopen();
    change(&twin);
    check(&twin);
}

/// When no run can be written, everything stays in memory, and goes when one can.
#[test]
fn cold_records_stay_right_while_checkpoints_fail() {
    let mut twin = stocked();
    twin.storage.inject(FaultRule::new(Call::Rename, When::OneIn(1), Fault::Io));
    change(&twin);
    assert!(twin.engine().checkpoint().is_err());
    check(&twin);
    change(&twin);
    twin.storage.clear_faults();
    twin.engine().checkpoint().unwrap();
    check(&twin);
    twin.reopen();
    check(&twin);
}

/// The part in memory and what opening reads stay as they are when the store is ten times as large.
#[test]
fn memory_and_recovery_do_not_grow_with_the_records() {
    let options = EmbeddedOptions { segment_size: 1 << 20, checkpoint_every: 100_000, ..small() };
    let mut twin = Twin::new(options);
    let mut sizes = Vec::new();
    for first in (0..20_000).step_by(100) {
        let batch: Vec<_> = (first..first + 100).map(mined).collect();
        twin.engine().apply(&twin.context, &batch).unwrap();
        if [1_900, 19_900].contains(&first) {
            twin.reopen();
            twin.engine().checkpoint().unwrap();
            let status = twin.engine().status().unwrap();
            let runs = twin.engine().commit.index().unwrap().cold().memory();
            sizes.push((status.memory - runs, runs));
        }
    }
    let [(few, _), (many, runs)] = sizes[..] else { panic!("two sizes") };
    assert!(many <= few, "{many} bytes of slots, {few} before");
    assert!(runs < 4 * 20_000, "{runs} bytes of filters and directories");
}
