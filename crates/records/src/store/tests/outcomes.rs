//! What a store makes of engines that cannot always answer.

use std::sync::{Arc, Mutex};

use varve_types::{Outpoint, Txid};

use crate::engine::{
    Context, Cursor, Engine, EngineError, EngineStatus, Fate, Limits, Question, Scan, ScanPage,
    SlotView,
};
use crate::fields::Fields;
use crate::fixture::{options, root, store};
use crate::intent::{Intent, IntentId};
use crate::memory::{MemoryDisk, MemoryEngine};
use crate::operation::Operation;
use crate::outcome::{Failure, Outcome, Unknown};
use crate::record::Record;
use crate::store::{Store, StoreError};

/// How it answers operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Done,
    /// The answer is lost. This is what became of the operations.
    Lost(Fate),
    Unavailable,
    Busy,
}

/// An engine behind a bad network.
struct Remote {
    inner: MemoryEngine,
    answer: Mutex<Answer>,
    /// The lengths of the batches that came.
    batches: Mutex<Vec<usize>>,
    asked: Mutex<Vec<Question>>,
}

impl Remote {
    fn store() -> (Arc<Self>, Store) {
        let inner = MemoryEngine::open(MemoryDisk::default());
        let answer = Mutex::new(Answer::Done);
        let (batches, asked) = (Mutex::default(), Mutex::default());
        let remote = Arc::new(Self { inner, answer, batches, asked });
        let store = store(Arc::<Self>::clone(&remote));
        (remote, store)
    }

    fn answer(&self, answer: Answer) {
        *self.answer.lock().unwrap() = answer;
    }
}

impl Engine for Remote {
    fn apply(
        &self,
        context: &Context,
        operations: &[Operation],
    ) -> Result<Vec<Outcome>, EngineError> {
        self.batches.lock().unwrap().push(operations.len());
        let answer = *self.answer.lock().unwrap();
        let all = |failure: Failure| {
            let outcome = Outcome { result: Err(failure), effects: Vec::new() };
            Ok(vec![outcome; operations.len()])
        };
        let disk = MemoryDisk::default();
        let lost = |outcomes: Vec<Outcome>| {
            let unknown = |outcome: Outcome| {
                let answer = outcome.result.map_err(|failure| match failure {
                    Failure::Refused(error) => error,
                    other => panic!("{other}"),
                });
                let (question, effects) = (Question(b"which".to_vec()), outcome.effects);
                let unknown = Unknown { question, answer, effects, cause: "cut".into() };
                let result = Err(Failure::Unknown(Box::new(unknown)));
                Outcome { result, effects: Vec::new() }
            };
            outcomes.into_iter().map(unknown).collect()
        };
        match answer {
            Answer::Done => self.inner.apply(context, operations),
            Answer::Lost(Fate::Done) => self.inner.apply(context, operations).map(lost),
            Answer::Lost(_) => MemoryEngine::open(disk).apply(context, operations).map(lost),
            Answer::Unavailable => all(Failure::Unavailable { cause: "gone".into() }),
            Answer::Busy => all(Failure::Busy { by: "others".into() }),
        }
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
        Limits { operations: 3, ..Limits::NONE }
    }

    fn status(&self) -> Result<EngineStatus, EngineError> {
        self.inner.status()
    }

    fn fate(&self, question: &Question) -> Result<Fate, EngineError> {
        self.asked.lock().unwrap().push(question.clone());
        match *self.answer.lock().unwrap() {
            Answer::Lost(fate) => Ok(fate),
            _ => panic!("nothing was lost"),
        }
    }
}

#[test]
fn a_lost_answer_is_asked_for() {
    let (remote, store) = Remote::store();
    remote.answer(Answer::Lost(Fate::Done));
    let tx = root(1, 2);
    store.create(&tx, &options()).unwrap();
    assert_eq!(*remote.asked.lock().unwrap(), [Question(b"which".to_vec())]);
    let again = store.create(&tx, &options()).unwrap_err();
    assert!(again.record().is_some(), "a refusal that was lost is a refusal: {again}");
    remote.answer(Answer::Lost(Fate::NotDone));
    let error = store.create(&root(2, 2), &options()).unwrap_err();
    assert!(matches!(error, StoreError::Engine(EngineError::Unavailable { .. })), "{error}");
    remote.answer(Answer::Lost(Fate::Undecided));
    let error = store.create(&root(2, 2), &options()).unwrap_err();
    assert!(matches!(error, StoreError::Engine(EngineError::Unknown { .. })), "{error}");
}

#[test]
fn what_was_not_done_fails_the_call() {
    let (remote, store) = Remote::store();
    remote.answer(Answer::Unavailable);
    let error = store.create(&root(1, 2), &options()).unwrap_err();
    assert!(matches!(error, StoreError::Engine(EngineError::Unavailable { .. })), "{error}");
    remote.answer(Answer::Busy);
    let error = store.create(&root(1, 2), &options()).unwrap_err();
    assert!(matches!(error, StoreError::Engine(EngineError::Busy { .. })), "{error}");
    remote.answer(Answer::Done);
    store.create(&root(1, 2), &options()).unwrap();
}

#[test]
fn batches_are_split_as_the_engine_asks() {
    let (remote, store) = Remote::store();
    let txs: Vec<_> = (0..7).map(|salt| root(salt, 1)).collect();
    for tx in &txs {
        store.create(tx, &options()).unwrap();
    }
    remote.batches.lock().unwrap().clear();
    let txids: Vec<Txid> = txs.iter().map(crate::Transaction::txid).collect();
    store.set_locked(&txids, true).unwrap();
    assert_eq!(*remote.batches.lock().unwrap(), [3, 3, 1]);
    let records = store.engine().read(&txids, Fields::HEAD).unwrap();
    assert!(records.iter().flatten().all(|record| record.locked));
}
