//! The walks at random reach what they are for, and find what is wrong.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use varve_records::conflicts::{Intent, IntentId};
use varve_records::contract::Disk;
use varve_records::contract::random::{Generator, Rng, Walk, walk};
use varve_records::engine::{Context, Cursor, EngineStatus, Limits, Scan, ScanPage, SlotView};
use varve_records::operation::{Effect, Failure, Outcome, Reply};
use varve_records::{
    Engine, EngineError, Fields, MemoryDisk, MemoryEngine, Operation, Record, RecordError,
    SlotError,
};
use varve_types::{Outpoint, Txid};

/// The first word of a value's debug form: its variant.
fn variant(value: impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    text.split([' ', '(', '{']).next().unwrap_or_default().to_owned()
}

const ERRORS: &str = "TxNotFound Creating Conflicting Locked CoinbaseImmature UtxoNotFound \
    HashMismatch FrozenUntil InvalidSpend Frozen Spent AlreadyFrozen InvalidSize NotFrozen \
    TxExists Spend Slot Processing";
const REPLIES: &str = "Unit Unspent Blocks Conflicting Done Written Again ParentGone Removed \
    Missing NotDue Unmined NeededBy";
const EFFECTS: &str = "DeleteAt KeepOn PreserveUntil Deleted";
const OPERATIONS: &str = "Unit Unspend SetMined MarkOnLongestChain SetLocked Freeze \
    FreezeWindow Unfreeze Reassign SetConflicting RemoveConflictingChild RemoveBlocks Delete \
    PreserveUntil ExpirePreservation Prune BeginIntent CompleteIntent";

/// What four walks of the default length meet: every operation, answer, refusal and effect.
#[test]
fn walks_meet_everything() {
    let mut seen = BTreeSet::new();
    for seed in 1..=4 {
        let mut generator = Generator::new(seed);
        let engine = MemoryEngine::open(MemoryDisk::default());
        for _ in 0..400 {
            let (context, batch) = generator.next_batch();
            seen.extend(batch.iter().map(|operation| format!("+{}", variant(operation))));
            for outcome in engine.apply(&context, &batch).unwrap() {
                note(&outcome, &mut seen);
            }
        }
    }
    let names = [("!", ERRORS), ("=", REPLIES), ("~", EFFECTS), ("+", OPERATIONS)];
    let expected = names.into_iter().flat_map(|(sign, names)| {
        names.split_whitespace().map(move |name| format!("{sign}{name}"))
    });
    let missing: Vec<_> = expected.filter(|name| !seen.contains(name)).collect();
    assert_eq!(missing, [""; 0], "not met");
}

fn note(outcome: &Outcome, seen: &mut BTreeSet<String>) {
    let refused = |error: SlotError| format!("!{}", variant(error));
    match &outcome.result {
        Err(Failure::Refused(RecordError::Spend(items))) => {
            seen.extend(items.iter().filter_map(|item| item.error).map(refused));
        }
        Err(Failure::Refused(RecordError::Slot { error, .. })) => seen.extend([refused(*error)]),
        Ok(Reply::Unit(spent)) => {
            seen.extend(spent.iter().map(|spent| format!("={:?}", spent.how)));
        }
        Ok(Reply::Pruned(pruned)) => seen.extend([format!("={}", variant(pruned))]),
        _ => {}
    }
    match &outcome.result {
        Ok(reply) => seen.insert(format!("={}", variant(reply))),
        Err(Failure::Refused(error)) => seen.insert(format!("!{}", variant(error))),
        Err(other) => panic!("this engine never fails so: {other}"),
    };
    seen.extend(outcome.effects.iter().map(|effect: &Effect| format!("~{}", variant(effect))));
}

/// What goes wrong with the engine below.
#[derive(Clone, Copy, PartialEq)]
enum Mischief {
    /// The storage fails in the middle of a batch, between two operations.
    Fails,
    /// The same, but the operations behind the middle are done and those before are not.
    FailsBackwards,
    /// An acknowledged batch is lost now and then.
    Forgets,
}

/// A disk whose engine does mischief.
struct BadDisk {
    disk: MemoryDisk,
    mischief: Mischief,
    calls: AtomicU64,
}

struct BadEngine<'a> {
    inner: MemoryEngine,
    bad: &'a BadDisk,
}

impl<'a> Disk for &'a BadDisk {
    type Engine = BadEngine<'a>;

    fn open(&self) -> BadEngine<'a> {
        BadEngine { inner: MemoryEngine::open(self.disk.clone()), bad: self }
    }
}

impl Engine for BadEngine<'_> {
    fn apply(&self, context: &Context, batch: &[Operation]) -> Result<Vec<Outcome>, EngineError> {
        let call = self.bad.calls.fetch_add(1, Ordering::Relaxed);
        let mut rng = Rng::new(call);
        if !rng.chance(30) {
            return self.inner.apply(context, batch);
        }
        let middle = usize::try_from(rng.below(batch.len() as u64 + 1)).expect("small");
        let (before, behind) = batch.split_at(middle);
        match self.bad.mischief {
            Mischief::Fails => self.inner.apply(context, before)?,
            Mischief::FailsBackwards => self.inner.apply(context, behind)?,
            Mischief::Forgets => {
                return MemoryEngine::open(self.bad.disk.fork()).apply(context, batch);
            }
        };
        Err(EngineError::Poisoned { cause: "the test says so".into() })
    }

    fn read(&self, txids: &[Txid], fields: Fields) -> Result<Vec<Option<Record>>, EngineError> {
        self.inner.read(txids, fields)
    }

    fn slots(&self, outpoints: &[Outpoint]) -> Result<Vec<Option<SlotView>>, EngineError> {
        self.inner.slots(outpoints)
    }

    fn scan(
        &self,
        scan: Scan,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<ScanPage, EngineError> {
        self.inner.scan(scan, after, limit)
    }

    fn intents(&self, after: Option<IntentId>, limit: usize) -> Result<Vec<Intent>, EngineError> {
        self.inner.intents(after, limit)
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn status(&self) -> Result<EngineStatus, EngineError> {
        self.inner.status()
    }
}

fn walk_with(mischief: Mischief) {
    let bad = BadDisk { disk: MemoryDisk::default(), mischief, calls: AtomicU64::new(0) };
    walk(&&bad, &Walk { seed: 5, steps: 200, reopen: 10 });
}

/// A failure between two operations leaves a first part of the batch, which is allowed.
#[test]
fn a_failing_storage_is_followed() {
    walk_with(Mischief::Fails);
}

#[test]
#[should_panic(expected = "no first part of the batch")]
fn operations_out_of_order_are_found() {
    walk_with(Mischief::FailsBackwards);
}

#[test]
#[should_panic(expected = "assertion")]
fn a_lost_batch_is_found() {
    walk_with(Mischief::Forgets);
}
