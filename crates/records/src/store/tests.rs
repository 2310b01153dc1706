//! The contract of the store beyond that of its engine: blobs, batches, decoration.

mod outcomes;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use varve_io::faulty::{Crash, FaultyStorage};
use varve_io::{Disk, Storage};
use varve_types::{Amount, Outpoint, TxOut};

use super::*;
use crate::blob::{BlobKind, DiskBucket, Fanout, ObjectBucket};
use crate::engine::Limits;
use crate::error::ErrorCode;
use crate::extended::Transaction;
use crate::fields::Fields;
use crate::fixture::{
    FailingEngine, NEXT, child, everywhere, mined, options, root, slot, store_with, with_engines,
};
use crate::memory::{MemoryDisk, MemoryEngine};
use crate::operation::SpendRules;
use crate::prepare::CreateOptions;
use crate::pruner::{PruneAt, prune};
use crate::record::Body;
use crate::restart::recover;
use crate::spend_response::SpendStatus;
use crate::utxo_wrapper::{WrappedOutput, WrapperHead, write_wrapper};

fn external(engine: Arc<dyn Engine>) -> Store {
    let settings = Settings { externalize_all: true, ..Settings::default() };
    store_with(engine, Blobs::new(ObjectBucket::memory(), Fanout::Last(2)), settings)
}

fn code(result: Result<impl Sized>) -> ErrorCode {
    result.map(drop).unwrap_err().code()
}

#[test]
fn forty_five_thousand_outputs_are_three_parts_and_one_blob() {
    everywhere(|store| {
        let tx = root(1, 45_000);
        store.add_mined(&tx);
        let record = store.record(&tx);
        assert!(record.external);
        let counts: Vec<u32> = record.parts.iter().map(|part| part.utxos).collect();
        assert_eq!(counts, [20_000, 20_000, 5_000]);
        assert_eq!(record.utxos.len(), 45_000, "all parts come with one read");
        assert_eq!(record.body, Some(Body::Transaction(tx.clone())));
        let spends = [0, 19_999, 20_000, 40_000, 44_999];
        let spender = child(&spends.map(|vout| (&tx, vout)), 1, 1);
        store.add(&spender);
        let spent: Vec<u32> = store.record(&tx).parts.iter().map(|part| part.spent).collect();
        assert_eq!(spent, [2, 1, 2]);
        for vout in spends {
            assert_eq!(store.spender(&tx, vout), Some(spender.txid()));
        }
        // A lock is one flag for all parts: none stays locked when the record is mined.
        store.set_locked(&[tx.txid()], true).unwrap();
        let late = child(&[(&tx, 44_998)], 1, 2);
        assert_eq!(code(store.spend(&late, SpendRules::at(NEXT))), ErrorCode::UtxoError);
        store.set_mined_multi(&[tx.txid()], &mined(2, 101)).unwrap();
        store.spend(&late, SpendRules::at(NEXT)).unwrap();
    });
}

#[test]
fn what_an_engine_refuses_as_too_big_goes_outside() {
    /// Says it takes everything, and does not.
    struct Surprised(MemoryEngine);
    impl Engine for Surprised {
        fn apply(
            &self,
            context: &Context,
            operations: &[Operation],
        ) -> Result<Vec<crate::operation::Outcome>, crate::EngineError> {
            self.0.apply(context, operations)
        }
        fn read(
            &self,
            txids: &[varve_types::Txid],
            fields: Fields,
        ) -> Result<Vec<Option<crate::Record>>, crate::EngineError> {
            self.0.read(txids, fields)
        }
        fn slots(
            &self,
            outpoints: &[Outpoint],
        ) -> Result<Vec<Option<crate::engine::SlotView>>, crate::EngineError> {
            self.0.slots(outpoints)
        }
        fn scan(
            &self,
            scan: crate::engine::Scan,
            after: Option<crate::engine::Cursor>,
            limit: usize,
        ) -> Result<crate::engine::ScanPage, crate::EngineError> {
            self.0.scan(scan, after, limit)
        }
        fn intents(
            &self,
            after: Option<crate::intent::IntentId>,
            limit: usize,
        ) -> Result<Vec<crate::intent::Intent>, crate::EngineError> {
            self.0.intents(after, limit)
        }
        fn limits(&self) -> Limits {
            Limits::NONE
        }
        fn status(&self) -> Result<crate::engine::EngineStatus, crate::EngineError> {
            self.0.status()
        }
    }
    let engine =
        MemoryEngine::with_limits(MemoryDisk::default(), Limits { body: 500, ..Limits::NONE });
    let store = crate::fixture::store(Arc::new(Surprised(engine)));
    let big = root(1, 100);
    let small = child(&[(&big, 0)], 1, 1);
    let unit = |tx| TxUnit { tx, spend: None, create: Some(options()) };
    let spending = TxUnit { spend: Some(SpendRules::at(NEXT)), ..unit(&small) };
    let answers = store.spend_and_create_multi(&[spending, unit(&big)]).unwrap();
    assert!(answers.iter().all(Item::is_ok), "{answers:?}");
    assert!(store.record(&big).external && !store.record(&small).external);
    assert_eq!(store.spender(&big, 0), Some(small.txid()));
}

#[test]
fn many_transactions_come_in_any_order() {
    everywhere(|store| {
        let first = root(1, 2);
        let mut chain = vec![first.clone()];
        for salt in 0..50 {
            chain.push(child(&[(chain.last().unwrap(), 0)], 1, salt));
        }
        let stranger = child(&[(&root(9, 1), 0)], 1, 1);
        let unit = |tx| TxUnit { tx, spend: Some(SpendRules::at(NEXT)), create: Some(options()) };
        let mut units: Vec<TxUnit<'_>> = chain.iter().skip(1).map(unit).rev().collect();
        units.insert(20, unit(&stranger));
        units.push(TxUnit { tx: &first, spend: None, create: Some(options()) });
        let answers = store.spend_and_create_multi(&units).unwrap();
        for (place, answer) in answers.iter().enumerate() {
            assert_eq!(answer.is_err(), place == 20, "{place}: {answer:?}");
        }
        assert_eq!(answers[20].as_ref().unwrap_err().cause(), ErrorCode::TxNotFound);
        for pair in chain.windows(2) {
            assert_eq!(store.spender(&pair[0], 0), Some(pair[1].txid()));
        }
    });
}

#[test]
fn one_of_many_creators_of_an_external_transaction_wins() {
    with_engines(|new| {
        let store = external(new());
        let tx = root(1, 3);
        let won = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| match store.create(&tx, &options()) {
                    Ok(()) => _ = won.fetch_add(1, Ordering::SeqCst),
                    Err(error) => assert_eq!(error.code(), ErrorCode::TxExists),
                });
            }
        });
        assert_eq!(won.into_inner(), 1);
        assert_eq!(store.record(&tx).body, Some(Body::Transaction(tx.clone())));
    });
}

#[test]
fn a_failed_unit_leaves_no_blob_and_an_existing_one_keeps_its_own() {
    with_engines(|new| {
        let store = external(new());
        let stranger = child(&[(&root(9, 1), 0)], 1, 1);
        let rules = SpendRules::at(NEXT);
        assert_eq!(
            code(store.spend_and_create(&stranger, rules, &options())),
            ErrorCode::UtxoError
        );
        assert!(!store.blobs().contains(stranger.txid()).unwrap());
        let tx = root(1, 1);
        store.create(&tx, &options()).unwrap();
        // The same txid with another story about what it spends.
        let liar = TxOut { value: Amount::from_sat(7_000_000_000), script: &[0x52] };
        let standard = Transaction::parse(tx.view().to_legacy().into(), tx.format());
        let lie = standard.unwrap_or_else(|_| tx.clone()).extend(&[liar]).unwrap();
        assert_eq!(lie.txid(), tx.txid());
        assert_eq!(code(store.create(&lie, &options())), ErrorCode::TxExists);
        assert_eq!(store.record(&tx).body, Some(Body::Transaction(tx.clone())));
    });
}

#[test]
fn a_blob_follows_its_record() {
    with_engines(|new| {
        let store = external(new());
        let tx = root(1, 1);
        store.add_mined(&tx);
        let txid = tx.txid();
        let spender = child(&[(&tx, 0)], 1, 1);
        store.add(&spender);
        let at = store.record(&tx).delete_at;
        assert_eq!(at, Some(Height::new(101 + 288)));
        assert_eq!(store.blobs().delete_at(txid).unwrap(), at);
        store.preserve_until(&[txid], Height::new(500)).unwrap();
        assert_eq!(store.blobs().delete_at(txid).unwrap(), None);
        assert_eq!(store.blobs().preserve_until(txid).unwrap(), Some(Height::new(500)));
        assert_eq!(store.process_expired_preservations(Height::new(499)).unwrap(), 0);
        assert_eq!(store.process_expired_preservations(Height::new(500)).unwrap(), 1);
        assert_eq!(store.blobs().delete_at(txid).unwrap(), Some(Height::new(788)));
        store.delete(&[txid]).unwrap();
        assert!(!store.blobs().contains(txid).unwrap());
        assert_eq!(code(store.get(txid, Fields::GET)), ErrorCode::TxNotFound);
        store.delete(&[txid]).unwrap();
    });
}

#[test]
fn a_stale_height_beside_a_blob_does_not_lose_it() {
    with_engines(|new| {
        let store = external(new());
        let (kept, orphan, later) = (root(1, 1), root(2, 1), root(3, 1));
        store.add_mined(&kept);
        store.blobs().set_delete_at(kept.txid(), Some(Height::new(5))).unwrap();
        for tx in [&orphan, &later] {
            store.blobs().put(tx.txid(), BlobKind::Tx, tx.bytes()).unwrap();
        }
        store.blobs().set_delete_at(later.txid(), Some(Height::new(102))).unwrap();
        let clean = || store.clean_blobs(store.block_state().height, usize::MAX).unwrap();
        let report = clean();
        assert_eq!((report.removed, report.corrected), (1, 1));
        assert_eq!(store.blobs().delete_at(kept.txid()).unwrap(), None, "as the record says");
        assert_eq!(store.record(&kept).body, Some(Body::Transaction(kept.clone())));
        assert!(!store.blobs().contains(orphan.txid()).unwrap());
        store.set_block_height(Height::new(102)).unwrap();
        let report = clean();
        assert_eq!((report.removed, report.corrected), (1, 0));
        let report = clean();
        assert_eq!((report.removed, report.corrected), (0, 0));
    });
}

/// What crashes left is found by the pruner and by a restart, a few files at a time, however short
/// the life of each process is.
#[test]
fn pruning_and_restarts_clean_blobs_a_slice_at_a_time() {
    with_engines(|new| {
        let (disk, engine) = (FaultyStorage::new(5), new());
        let open = || {
            let bucket = DiskBucket::open(Arc::new(disk.reopen()), Fanout::None).unwrap();
            let settings =
                Settings { externalize_all: true, clean_batch: 4, ..Settings::default() };
            store_with(Arc::clone(&engine), Blobs::new(bucket, Fanout::None), settings)
        };
        let kept = [1, 2, 3].map(|salt| root(salt, 1));
        kept.iter().for_each(|tx| open().add_mined(tx));
        let orphans: Vec<_> = (10..18).map(|salt| root(salt, 1)).collect();
        let leave = |tx: &Transaction| {
            open().blobs().put(tx.txid(), BlobKind::Tx, tx.bytes()).unwrap();
        };
        orphans.iter().for_each(leave);
        let at = PruneAt { height: NEXT, persisted: None, assembly_running: true };
        let mut removed = 0;
        for _ in 0..12 {
            let report = prune(&open(), at).unwrap().blobs;
            assert!(report.examined <= 4, "{report:?}");
            removed += report.removed;
        }
        assert_eq!(removed, 8);
        leave(&orphans[0]);
        for _ in 0..12 {
            recover(&open(), &|_| true, &mut |_| Ok(())).unwrap();
        }
        let left = open().blobs().page(None, usize::MAX).unwrap().txids;
        let mut expected = kept.each_ref().map(Transaction::txid);
        expected.sort();
        assert_eq!(left, expected);
    });
}

/// A crash after any write of blob or record: what has a record has its blob.
#[test]
fn a_crash_between_blob_and_record_leaves_nothing_that_is_half_there() {
    with_engines(|new| {
        let settings = || Settings { externalize_all: true, ..Settings::default() };
        let open = |storage: FaultyStorage, engine| {
            let storage: Arc<dyn Storage> = Arc::new(storage);
            let bucket = DiskBucket::open(storage, Fanout::None).unwrap();
            store_with(engine, Blobs::new(bucket, Fanout::None), settings())
        };
        let disk = FaultyStorage::new(3);
        let tx = root(1, 2);
        // The record is not created, because the engine fails; the power is cut anywhere before.
        let engine = new();
        let cut = FailingEngine::new(new(), 0);
        let cut_store = open(disk.reopen(), Arc::new(cut));
        cut_store.blobs().put(tx.txid(), BlobKind::Tx, tx.bytes()).unwrap();
        for n in 0..=disk.operations() {
            let store = open(disk.crash(n, Crash::Seed(n as u64)), Arc::clone(&engine));
            assert_eq!(code(store.get(tx.txid(), Fields::GET)), ErrorCode::TxNotFound);
            store.create(&tx, &options()).unwrap();
            assert_eq!(store.record(&tx).body, Some(Body::Transaction(tx.clone())));
            store.delete(&[tx.txid()]).unwrap();
            assert_eq!(store.clean_blobs(NEXT, usize::MAX).unwrap().removed, 0);
            assert_eq!(store.blobs().page(None, usize::MAX).unwrap().txids, []);
        }
        // And the other way: a record whose creation returned has its blob after any crash.
        let disk = FaultyStorage::new(4);
        open(disk.reopen(), Arc::clone(&engine)).create(&tx, &options()).unwrap();
        for seed in 0..8 {
            let left = disk.crash(disk.operations(), Crash::Seed(seed));
            let store = open(left, Arc::clone(&engine));
            assert_eq!(store.record(&tx).body, Some(Body::Transaction(tx.clone())));
        }
    });
}

#[test]
fn a_record_that_could_not_be_removed_keeps_its_blob() {
    with_engines(|new| {
        let failing = Arc::new(FailingEngine::new(new(), u64::MAX));
        let shared: Arc<dyn Engine> = Arc::<FailingEngine>::clone(&failing);
        let store = external(shared);
        let tx = root(1, 2);
        store.add_mined(&tx);
        failing.left.store(0, Ordering::SeqCst);
        store.delete(&[tx.txid()]).unwrap_err();
        failing.left.store(u64::MAX, Ordering::SeqCst);
        assert_eq!(store.record(&tx).body, Some(Body::Transaction(tx.clone())));
    });
}

/// Two create the same transaction at once, and one of them fails. It must not take the blob that
/// the other one's record needs.
#[test]
fn one_who_fails_to_create_leaves_the_blob_of_one_who_does() {
    with_engines(|new| {
        let failing = Arc::new(FailingEngine::new(new(), u64::MAX));
        let shared: Arc<dyn Engine> = Arc::<FailingEngine>::clone(&failing);
        let store = external(shared);
        let tx = root(1, 2);
        // Slow to come to its record, with its blob in place.
        failing.pause_ms.store(100, Ordering::SeqCst);
        std::thread::scope(|scope| {
            scope.spawn(|| store.create(&tx, &options()).unwrap());
            while !store.blobs().contains(tx.txid()).unwrap() {
                std::thread::yield_now();
            }
            failing.pause_ms.store(0, Ordering::SeqCst);
            // Its parent has no record.
            let rules = SpendRules::at(NEXT);
            store.spend_and_create(&tx, rules, &options()).unwrap_err();
        });
        assert_eq!(store.record(&tx).body, Some(Body::Transaction(tx.clone())));
    });
}

#[test]
fn outputs_are_imported_without_the_rest() {
    with_engines(|new| {
        for outside in [false, true] {
            let store = if outside { external(new()) } else { crate::fixture::store(new()) };
            let txid = root(1, 1).txid();
            let output = |index| {
                let output = TxOut { value: Amount::from_sat(5), script: &[0x51] };
                WrappedOutput { index, output }
            };
            let head = WrapperHead { txid, height: Height::new(7), coinbase: false };
            let mut bytes = Vec::new();
            write_wrapper(&head, [output(1), output(3)].into_iter(), &mut bytes);
            let bytes = Bytes::from(bytes);
            let blocks = vec![mined(0, 7).block];
            let create = CreateOptions { blocks, ..options() };
            assert_eq!(store.create_outputs(bytes.clone(), &create).unwrap(), txid);
            assert_eq!(code(store.create_outputs(bytes.clone(), &create)), ErrorCode::TxExists);
            let record = store.get(txid, Fields::ALL).unwrap();
            assert_eq!(record.body, Some(Body::Outputs(bytes)));
            assert_eq!((record.external, record.total_utxos), (outside, 4));
            let found = store.outputs(&[1, 2].map(|vout| Outpoint::new(txid, vout))).unwrap();
            assert!(found[&Outpoint::new(txid, 1)].is_ok());
            assert!(found[&Outpoint::new(txid, 2)].is_err(), "a gap");
        }
    });
}

#[test]
fn previous_outputs_come_from_records_and_blobs() {
    with_engines(|new| {
        for outside in [false, true] {
            let store = if outside { external(new()) } else { crate::fixture::store(new()) };
            let parents = [root(1, 3), root(2, 1)];
            parents.iter().for_each(|tx| store.add_mined(tx));
            let extended = child(&[(&parents[0], 2), (&parents[1], 0), (&parents[0], 0)], 1, 1);
            let plain = |tx: &Transaction| {
                let mut bytes = tx.view().version().to_le_bytes().to_vec();
                varve_types::compact_size::write(tx.view().inputs().len() as u64, &mut bytes);
                tx.view().inputs().for_each(|input| input.write(&mut bytes));
                varve_types::compact_size::write(tx.view().outputs().len() as u64, &mut bytes);
                tx.view().outputs().for_each(|output| output.write(&mut bytes));
                bytes.extend_from_slice(&tx.view().lock_time().to_le_bytes());
                Transaction::parse(bytes.into(), varve_types::Format::Legacy).unwrap()
            };
            let stranger = plain(&child(&[(&root(9, 1), 0)], 1, 1));
            let beyond = plain(&child(&[(&parents[1], 5)], 1, 1));
            let txs = [plain(&extended), extended.clone(), stranger, beyond];
            let answers = store.previous_outputs_decorate(&txs).unwrap();
            assert_eq!(answers[0].as_ref().unwrap(), &extended);
            assert_eq!(answers[1].as_ref().unwrap(), &extended);
            assert_eq!(answers[2].as_ref().unwrap_err().code(), ErrorCode::TxNotFound);
            assert_eq!(answers[3].as_ref().unwrap_err().code(), ErrorCode::UtxoNotFound);
        }
    });
}

#[test]
fn a_missing_transaction_is_named_and_does_not_stop_the_others() {
    everywhere(|store| {
        let tx = root(1, 1);
        store.create(&tx, &options()).unwrap();
        let mut txids: Vec<_> = (10..25).map(|salt| root(salt, 1).txid()).collect();
        txids.insert(3, tx.txid());
        let error = store.mark_on_longest_chain(&txids, true).unwrap_err();
        let StoreError::Missing { count, first } = &error else { panic!("{error}") };
        assert_eq!((*count, first.len()), (15, 10));
        assert_eq!(error.code(), ErrorCode::TxNotFound);
        assert_eq!(store.record(&tx).unmined_since, None, "the one that is there is marked");
        store.mark_on_longest_chain(&[tx.txid()], false).unwrap();
        assert_eq!(store.record(&tx).unmined_since, Some(crate::fixture::TIP));
        store.mark_on_longest_chain(&[], true).unwrap();
        let answers = store.batch_decorate(&txids, Fields::HEAD).unwrap();
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
        assert_eq!(answers[0].as_ref().unwrap_err().code(), ErrorCode::TxNotFound);
    });
}

#[test]
fn the_state_of_an_output_is_told() {
    everywhere(|store| {
        let tx = root(1, 2);
        let status = |vout| store.get_spend(&slot(&tx, vout)).unwrap().status;
        assert_eq!(status(0), SpendStatus::NotFound);
        store.add_mined(&tx);
        assert_eq!(status(0), SpendStatus::Ok);
        store.add(&child(&[(&tx, 0)], 1, 1));
        assert_eq!(status(0), SpendStatus::Spent);
        store.freeze(&[slot(&tx, 1)]).unwrap()[0].clone().unwrap();
        assert_eq!(status(1), SpendStatus::Frozen);
        store.unfreeze(&[slot(&tx, 1)]).unwrap()[0].clone().unwrap();
        store.set_locked(&[tx.txid()], true).unwrap();
        assert_eq!(status(1), SpendStatus::Locked);
        let mut wrong = slot(&tx, 0);
        wrong.hash = slot(&tx, 1).hash;
        assert_eq!(code(store.get_spend(&wrong)), ErrorCode::UtxoMismatch);
    });
}

#[test]
fn unmined_transactions_are_walked_in_pages() {
    everywhere(|store| {
        assert_eq!(store.unmined().count(), 0);
        let mined_tx = root(0, 1);
        store.add_mined(&mined_tx);
        assert_eq!(store.unmined().count(), 0, "all are mined");
        let mut expected: Vec<_> = (1..=2_500).map(|salt| root(salt, 1)).collect();
        expected.iter().for_each(|tx| store.create(tx, &options()).unwrap());
        store.add_conflicting(&root(9_999, 1));
        let mut found: Vec<_> = store.unmined().map(|tx| tx.unwrap().txid).collect();
        found.sort();
        expected.sort_by_key(Transaction::txid);
        assert!(found.iter().eq(expected.iter().map(Transaction::txid).collect::<Vec<_>>().iter()));
        let mut some = store.unmined();
        assert!(some.next().is_some());
        drop(some);
        assert_eq!(store.query_old_unmined(Height::new(100)).unwrap().len(), 0);
        assert_eq!(store.query_old_unmined(NEXT).unwrap().len(), 2_501);
    });
}

#[test]
fn health_tells_what_is_wrong() {
    with_engines(|new| {
        let store = crate::fixture::store(new());
        assert_eq!(store.health(), Health { healthy: true, text: "ok".to_owned() });
        let failing = FailingEngine::new(new(), 0);
        let health = crate::fixture::store(Arc::new(failing)).health();
        assert_eq!(health.http_status(), 503);
        assert!(health.text.contains("the test pulled the plug"), "{}", health.text);
        assert!(store.set_block_height(Height::GENESIS).is_err());
    });
}

/// Records were fetched one at a time, and a large block took thousands of round trips.
#[test]
fn a_thousand_transactions_take_a_few_calls() {
    with_engines(|new| {
        let watched = Arc::new(FailingEngine::new(new(), u64::MAX));
        let shared: Arc<dyn Engine> = Arc::<FailingEngine>::clone(&watched);
        let store = crate::fixture::store(shared);
        let calls = |run: &dyn Fn()| {
            let before = watched.calls.load(Ordering::SeqCst);
            run();
            watched.calls.load(Ordering::SeqCst) - before
        };
        let parent = root(1, 45_000);
        store.add_mined(&parent);
        let txs: Vec<Transaction> =
            (0..1_000).map(|vout| child(&[(&parent, vout * 45)], 2, vout)).collect();
        let unit = |tx| TxUnit { tx, spend: Some(SpendRules::at(NEXT)), create: Some(options()) };
        let units: Vec<TxUnit<'_>> = txs.iter().map(unit).collect();
        let create = || drop(store.spend_and_create_multi(&units).unwrap());
        assert!(calls(&create) <= 2, "units in one batch, and a look at the blobs' records");
        let txids: Vec<_> = txs.iter().map(Transaction::txid).collect();
        assert_eq!(calls(&|| drop(store.batch_decorate(&txids, Fields::GET).unwrap())), 1);
        assert_eq!(calls(&|| drop(store.get(parent.txid(), Fields::ALL).unwrap())), 1);
        assert_eq!(calls(&|| drop(store.previous_outputs_decorate(&txs).unwrap())), 0);
        let outpoints: Vec<_> = txs.iter().flat_map(Transaction::outpoints).collect();
        assert_eq!(calls(&|| drop(store.outputs(&outpoints).unwrap())), 1);
        assert_eq!(calls(&|| drop(store.set_mined_multi(&txids, &mined(2, 101)).unwrap())), 1);
        assert_eq!(calls(&|| store.set_locked(&txids, false).unwrap()), 1);
    });
}

/// A file that cannot be read is counted and reported, and those behind it are cleaned.
#[test]
fn cleaning_passes_over_a_blob_that_cannot_be_read() {
    with_engines(|new| {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::open(folder.path()).unwrap();
        let bucket = DiskBucket::open(Arc::new(disk), Fanout::None).unwrap();
        let store = store_with(new(), Blobs::new(bucket, Fanout::None), Settings::default());
        let orphans = [1, 2, 3].map(|salt| root(salt, 1));
        for tx in &orphans {
            store.blobs().put(tx.txid(), BlobKind::Tx, tx.bytes()).unwrap();
        }
        let mut txids = orphans.each_ref().map(|tx| tx.txid().to_string());
        txids.sort();
        // A directory in the place of the height beside the first.
        let height = folder.path().join(format!("{}.tx.dah", txids[0]));
        std::fs::create_dir(&height).unwrap();
        let at = PruneAt { height: NEXT, persisted: None, assembly_running: true };
        for removed in [2, 0] {
            let report = prune(&store, at).unwrap().blobs;
            assert_eq!((report.failed, report.removed), (1, removed), "{report:?}");
            let error = report.error.unwrap();
            assert!(error.contains(&txids[0]), "{error}");
            let health = store.health();
            assert!(health.healthy && health.text.contains(&error), "{}", health.text);
        }
        // Without it the next round ends well.
        std::fs::remove_dir(&height).unwrap();
        assert_eq!(prune(&store, at).unwrap().blobs.removed, 1);
        assert_eq!(store.health().text, "ok");
    });
}
