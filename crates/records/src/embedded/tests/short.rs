//! Many short processes, each of which does one thing and ends.

use varve_io::{GlobalOffset, Storage as _};
use varve_runs::Manifest;
use varve_types::Txid;

use super::size::create;
use super::twin::{Twin, small};
use crate::embedded::EmbeddedOptions;
use crate::embedded::checkpoint::{Checkpoint, MANIFEST};
use crate::engine::Engine as _;
use crate::fields::Fields;
use crate::operation::Operation;

fn name(number: u32) -> Txid {
    let mut bytes = [0x55; 32];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    Txid::from_bytes(bytes)
}

/// Neither the log nor the part of it that opening reads grows with the number of processes, though
/// none of them writes enough to finish a checkpoint or to clean a file.
#[test]
fn the_log_of_many_short_processes_stays_short() {
    let (segment_size, checkpoint_every) = (60_000, 40_000);
    let options = EmbeddedOptions { segment_size, checkpoint_every, ..small() };
    let mut twin = Twin::new(options);
    for number in 0..600_u32 {
        let mut batch = vec![create(name(number), 20)];
        if let Some(old) = number.checked_sub(20).filter(|old| old % 50 != 0) {
            batch.push(Operation::Delete { txid: name(old) });
        }
        twin.apply(&batch);
        twin.reopen();
        let sizes = twin.engine().status().unwrap();
        let index = 24 * sizes.keys;
        let bound = 2 * sizes.live + 5 * segment_size + 4 * index;
        assert!(sizes.stored < bound, "process {number}: {sizes:?}");
        let decode = |manifest: Manifest| Checkpoint::decode(&manifest.owner);
        let checkpoint = Manifest::load(twin.storage.as_ref(), MANIFEST, decode).unwrap().unwrap();
        let end = twin.engine().commit.base.log.end();
        let replayed = end.since(checkpoint.replay_from).unwrap();
        let bound = checkpoint_every.max(3 * index) + 20_000;
        assert!(replayed < bound, "process {number} reads {replayed} bytes of log");
    }
    assert!(twin.engine().commit.base.log.start() > GlobalOffset::ZERO, "files were dropped");
    let index = twin.storage.list().unwrap();
    let index = index.iter().filter(|name| name.starts_with("index")).count();
    assert!(index < 5, "the index log is short too");
    twin.check();
}

/// The files are larger than this process would make them. Opening gets through the first all the
/// same, or no process ever would: each begins at the front.
#[test]
fn opening_cleans_files_that_are_larger_than_its_own() {
    let large = EmbeddedOptions { segment_size: 10 << 20, checkpoint_every: 1 << 20, ..small() };
    let mut twin = Twin::new(large);
    let groups: Vec<Vec<Txid>> =
        (0..120).map(|group| (0..30).map(|n| name(group * 30 + n)).collect()).collect();
    for group in &groups {
        let batch: Vec<_> = group.iter().map(|txid| create(*txid, 100)).collect();
        twin.engine().apply(&twin.context, &batch).unwrap();
    }
    let first = twin.engine().commit.base.log.full_ends()[0];
    assert!(first.get() > 9 << 20, "more than two steps of cleaning");
    // One in ten lives.
    let all = groups.concat();
    let dead = all.iter().enumerate().filter(|(n, _)| n % 10 > 0).map(|(_, txid)| *txid);
    let batch: Vec<_> = dead.map(|txid| Operation::Delete { txid }).collect();
    twin.engine().apply(&twin.context, &batch).unwrap();
    assert_eq!(twin.engine().commit.base.log.start(), GlobalOffset::ZERO, "it was never due");
    twin.options.segment_size = 200_000;
    twin.reopen();
    assert!(twin.engine().commit.base.log.start() >= first);
    let found = twin.engine().read(&all, Fields::UTXOS).unwrap();
    assert_eq!(found.iter().flatten().count(), all.len() / 10);
}
