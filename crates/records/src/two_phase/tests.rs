//! Two phases: spend and create locked, then unlock.

use std::cell::RefCell;

use varve_types::Outpoint;

use super::*;
use crate::block_state::BlockState;
use crate::fixture::{NEXT, child, everywhere, options, root};
use crate::operation::SpendRules;

/// Block assembly that writes down what it gets, or refuses.
#[derive(Default)]
struct Assembly {
    added: RefCell<Vec<Txid>>,
    refuses: bool,
}

impl BlockAssembly for Assembly {
    fn add(&self, tx: &Transaction, record: &Record) -> Result<(), AssemblyError> {
        assert!(record.locked, "locked while block assembly does not know of it");
        if self.refuses {
            return Err(AssemblyError("full".to_owned()));
        }
        self.added.borrow_mut().push(tx.txid());
        Ok(())
    }
}

const OPTIONS: AdmitOptions =
    AdmitOptions { created_at: 1, ignore_locked: false, create_conflicting: true, assemble: true };

fn take(store: &Store, tx: &Transaction, assembly: &Assembly) -> Result<Admitted, AdmitError> {
    admit(store, tx, OPTIONS, &|_| Ok(()), assembly)
}

#[test]
fn a_new_transaction_is_handed_on_and_unlocked() {
    everywhere(|store| {
        let parent = root(1, 1);
        store.add_mined(&parent);
        let tx = child(&[(&parent, 0)], 1, 1);
        let assembly = Assembly::default();
        let admitted = take(store, &tx, &assembly).unwrap();
        assert!(matches!(admitted, Admitted::New(record) if !record.locked));
        let record = store.record(&tx);
        assert_eq!((record.locked, record.unmined_since), (false, Some(NEXT)));
        assert!(matches!(take(store, &tx, &assembly), Ok(Admitted::Known(_))));
        assert_eq!(*assembly.added.borrow(), [tx.txid()], "not handed on again");
    });
}

#[test]
fn what_block_assembly_refuses_stays_locked_until_it_is_mined() {
    everywhere(|store| {
        let parent = root(1, 1);
        store.add_mined(&parent);
        let tx = child(&[(&parent, 0)], 1, 1);
        let full = Assembly { refuses: true, ..Assembly::default() };
        let error = take(store, &tx, &full).unwrap_err();
        assert!(matches!(error, AdmitError::LeftLocked { .. }), "{error}");
        assert!(store.record(&tx).locked);
        let next = child(&[(&tx, 0)], 1, 1);
        let locked = take(store, &next, &Assembly::default()).unwrap_err();
        let AdmitError::Store(StoreError::Record(cause)) = &locked else { panic!("{locked}") };
        assert_eq!(cause.cause(), ErrorCode::TxLocked);
        store.set_mined_multi(&[tx.txid()], &crate::fixture::mined(5, 101)).unwrap();
        take(store, &next, &Assembly::default()).unwrap();
    });
}

#[test]
fn a_double_spend_is_kept_as_conflicting_when_asked_for() {
    everywhere(|store| {
        let parent = root(1, 1);
        store.add_mined(&parent);
        let first = child(&[(&parent, 0)], 1, 1);
        let second = child(&[(&parent, 0)], 1, 2);
        let assembly = Assembly::default();
        take(store, &first, &assembly).unwrap();
        let strict = AdmitOptions { create_conflicting: false, ..OPTIONS };
        let error = admit(store, &second, strict, &|_| Ok(()), &assembly).unwrap_err();
        assert_eq!(error.code(), ErrorCode::UtxoError);
        assert!(store.get_meta(second.txid()).is_err(), "nothing is left of it");
        let error = take(store, &second, &assembly).unwrap_err();
        assert_eq!(error.code(), ErrorCode::TxConflicting);
        let record = store.record(&second);
        assert_eq!((record.conflicting, record.locked), (true, false));
        assert_eq!(store.spender(&parent, 0), Some(first.txid()));
        assert_eq!(store.record(&parent).children.conflicting, [second.txid()]);
        // And so is what builds on it.
        let third = child(&[(&second, 0)], 1, 1);
        assert_eq!(take(store, &third, &assembly).unwrap_err().code(), ErrorCode::TxConflicting);
        assert_eq!(*assembly.added.borrow(), [first.txid()]);
    });
}

#[test]
fn what_cannot_be_in_the_next_block_is_refused_before_anything_is_written() {
    everywhere(|store| {
        let parent = root(1, 1);
        store.add_mined(&parent);
        let tx = child(&[(&parent, 0)], 1, 1);
        let assembly = Assembly::default();
        let invalid = admit(store, &tx, OPTIONS, &|_| Err("a script".to_owned()), &assembly);
        assert_eq!(invalid.unwrap_err().code(), ErrorCode::TxInvalid);
        let coinbase = varve_consensus::contract::draft::TxDraft::coinbase(NEXT, 1);
        let coinbase =
            Transaction::parse(coinbase.bytes().into(), varve_types::Format::Legacy).unwrap();
        assert_eq!(take(store, &coinbase, &assembly).unwrap_err().code(), ErrorCode::TxInvalid);
        let mut late = varve_consensus::contract::draft::TxDraft::spending(
            &[Outpoint::new(parent.txid(), 0)],
            1,
        );
        late.inputs[0].sequence = 0;
        for (lock_time, is_final) in [(100, true), (101, false), (1_600_000_000, false)] {
            late.lock_time = lock_time;
            let late = Transaction::parse(late.bytes().into(), varve_types::Format::Legacy);
            let result = take(store, &late.unwrap(), &assembly);
            assert_eq!(result.is_ok(), is_final, "{lock_time}");
            if let Err(error) = result {
                assert_eq!(error.code(), ErrorCode::TxLockTime);
            }
        }
        assert_eq!(store.everything().len(), 2);
    });
}

#[test]
fn a_store_without_a_tip_takes_nothing() {
    let engine = crate::MemoryEngine::open(crate::MemoryDisk::default());
    let blobs = crate::blob::Blobs::new(crate::blob::ObjectBucket::memory(), Default::default());
    let settings = crate::Settings::default();
    let store = Store::new(std::sync::Arc::new(engine), blobs, settings, Box::new(|| 0));
    let take = || take(&store, &root(1, 1), &Assembly::default()).unwrap_err();
    assert!(matches!(take(), AdmitError::NotReady));
    store.set_block_height(NEXT).unwrap();
    assert!(matches!(take(), AdmitError::NotReady), "height and time belong together");
    store.set_block_state(BlockState { height: NEXT, median_time: 9 }).unwrap();
    assert!(matches!(take(), AdmitError::Store(_)));
}

/// The parent was pruned after it had been spent: the spender that has a record is not refused.
#[test]
fn a_known_transaction_whose_parent_is_gone_stays_known() {
    everywhere(|store| {
        let parent = root(1, 1);
        store.add_mined(&parent);
        let tx = child(&[(&parent, 0)], 1, 1);
        take(store, &tx, &Assembly::default()).unwrap();
        store.delete(&[parent.txid()]).unwrap();
        assert!(matches!(take(store, &tx, &Assembly::default()), Ok(Admitted::Known(_))));
        store.spend(&tx, SpendRules::at(NEXT)).unwrap();
        let rules = SpendRules::at(NEXT);
        let again = store.spend_and_create(&tx, rules, &options()).unwrap_err();
        assert_eq!(again.code(), ErrorCode::TxExists);
    });
}
