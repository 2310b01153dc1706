//! What moves to the end of the log while another group is being written, or while it is fetched.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use bytes::Bytes;
use varve_io::GlobalOffset;
use varve_types::{Height, Outpoint, Txid};

use super::gate::{Call, Gate, GatedStorage};
use super::size::create;
use super::twin::small;
use crate::embedded::clean::Walked;
use crate::embedded::fetch::Fetched;
use crate::embedded::key::{Key, Part};
use crate::embedded::{EmbeddedEngine, EmbeddedOptions};
use crate::engine::{Context, Engine as _};
use crate::fields::Fields;
use crate::operation::Operation;
use crate::record::Body;
use crate::rules;

const CONTEXT: Context = Context { height: Height::new(100), retention: 5 };
/// So many that a record fills most of the block that a group takes at least. Then the log is not
/// cleaned unless the test does it.
const OUTPUTS: u32 = 100;
/// The chunks of a record.
const CHUNKS: u32 = 13;

fn name(kind: u8, number: u8) -> Txid {
    let mut bytes = [kind; 32];
    bytes[0] = number;
    Txid::from_bytes(bytes)
}

/// The record that it is about.
const SUBJECT: u8 = 1;
/// Others, which fill the log.
const FILLER: u8 = 2;
const PARENT: u8 = 3;
const FILLERS: u8 = 60;

fn subject() -> Txid {
    name(SUBJECT, 0)
}

/// A record with a body and an input.
fn create_subject(body: u8) -> Operation {
    let Operation::Unit(mut unit) = create(subject(), OUTPUTS) else { panic!("it is a unit") };
    let new = unit.create.as_mut().unwrap();
    new.inputs = vec![Outpoint::new(name(PARENT, 0), 15)];
    new.body = bytes(body);
    Operation::Unit(unit)
}

fn bytes(body: u8) -> Body {
    Body::Outputs(Bytes::from(vec![body; 150]))
}

fn lock(locked: bool) -> Operation {
    Operation::SetLocked { txid: subject(), locked }
}

fn apply(engine: &EmbeddedEngine, operations: &[Operation]) {
    for outcome in engine.apply(&CONTEXT, operations).unwrap() {
        outcome.result.unwrap();
    }
}

struct World {
    gate: Arc<Gate>,
    storage: Arc<GatedStorage>,
    engine: Arc<EmbeddedEngine>,
}

fn options() -> EmbeddedOptions {
    EmbeddedOptions { segment_size: 20_000, checkpoint_every: u64::MAX, ..small() }
}

/// An engine in which these operations come first, others behind, and most of the log is cold.
fn world(front: &[Operation], later: &[Operation]) -> World {
    let gate = Arc::new(Gate::default());
    gate.open();
    let storage = Arc::new(GatedStorage::new(&gate));
    let engine = Arc::new(EmbeddedEngine::open(storage.clone(), options()).unwrap());
    gate.watch(&engine);
    front.iter().for_each(|operation| apply(&engine, std::slice::from_ref(operation)));
    for number in 0..4 {
        apply(&engine, &[create(name(FILLER, number), OUTPUTS)]);
    }
    apply(&engine, &[create(name(PARENT, 0), OUTPUTS)]);
    apply(&engine, later);
    for number in 4..FILLERS {
        apply(&engine, &[create(name(FILLER, number), OUTPUTS)]);
    }
    World { gate, storage, engine }
}

impl World {
    /// The end of the first file.
    fn boundary(&self) -> GlobalOffset {
        self.engine.commit.base.log.full_ends()[0]
    }

    /// Puts all that lives in the first file into the open group, as the cleaner does.
    fn move_front(&self, boundary: GlobalOffset) {
        let fillers = (0..FILLERS).map(|number| name(FILLER, number));
        let txids = fillers.chain([subject(), name(PARENT, 0)]);
        let keys =
            txids.flat_map(|txid| (0..CHUNKS).map(move |part| Key { txid, part: Part::new(part) }));
        let keys: Vec<Key> = keys.collect();
        let walked = Walked { boundary, end: boundary };
        assert!(self.engine.commit.move_to_end(&keys, walked, &Fetched::default()).unwrap());
    }

    /// Writes the open group and drops the first file.
    fn drop_front(&self, boundary: GlobalOffset) {
        self.engine.checkpoint().unwrap();
        apply(&self.engine, &[create(name(4, 0), 1)]);
        assert!(self.engine.commit.base.log.start() >= boundary, "the file is gone");
    }

    /// While the group of `first` is being written, `then` is executed on top of it. Afterwards the
    /// record has this body, now and when the store is opened again.
    fn check(self, first: Operation, then: &[Operation], clean: bool, body: u8) {
        let boundary = self.boundary();
        let act = || apply(&self.engine, &[first]);
        thread::scope(|scope| {
            let meanwhile = || {
                let (done, is_done) = channel();
                let engine = &self.engine;
                scope.spawn(move || {
                    engine.commit.run(
                        || Ok(Fetched::default()),
                        |work| {
                            for operation in then {
                                let done = rules::apply(work, &CONTEXT, engine.limits, operation)?;
                                done.result.unwrap();
                            }
                            done.send(()).unwrap();
                            Ok(())
                        },
                    )
                });
                is_done.recv().unwrap();
                if clean {
                    self.move_front(boundary);
                }
            };
            assert!(self.gate.stop_at((Call::Write, 0), act, meanwhile));
        });
        if clean {
            self.drop_front(boundary);
        }
        let Self { storage, engine, gate } = self;
        let read = |engine: &EmbeddedEngine| {
            let record = engine.read(&[subject()], Fields::ALL).unwrap().remove(0).unwrap();
            assert_eq!(record.body, Some(bytes(body)));
            record
        };
        let record = read(&engine);
        drop((engine, gate));
        let engine = EmbeddedEngine::open(Arc::new(storage.reopen()), options()).unwrap();
        assert_eq!(read(&engine), record);
    }
}

/// The group that is being written has a new state, which names the body in the first file.
#[test]
fn a_body_that_moves_while_its_state_is_written_is_not_lost() {
    world(&[create_subject(1)], &[]).check(lock(true), &[], true, 1);
    world(&[create_subject(1)], &[]).check(lock(true), &[lock(false)], true, 1);
}

/// The group that is being written has the record with its body; the next changes its state.
#[test]
fn the_state_of_a_record_that_is_written_finds_its_body() {
    world(&[], &[]).check(create_subject(1), &[lock(true)], false, 1);
    world(&[], &[]).check(create_subject(1), &[lock(true)], true, 1);
}

/// The group that is being written has one body, the next another.
#[test]
fn a_record_that_is_made_again_while_it_is_written_has_its_new_body() {
    let again = [Operation::Delete { txid: subject() }, create_subject(2)];
    for clean in [false, true] {
        world(&[], &[]).check(create_subject(1), &again, clean, 2);
        world(&[create_subject(1)], &[]).check(lock(true), &again, clean, 2);
        let delete = Operation::Delete { txid: subject() };
        world(&[create_subject(1)], &[]).check(delete, &again[1..], clean, 2);
    }
}

/// The cleaner drops the file of a record that is being fetched. What the operation looks at
/// further is fetched all the same.
#[test]
fn what_moves_while_it_is_fetched_is_fetched_again() {
    let mut stops = 0;
    for left in 0.. {
        // The state lies behind the file that goes, with the body and the chunks in it.
        let world = world(&[create_subject(1)], &[lock(true)]);
        let boundary = world.boundary();
        let operation = Operation::SetConflicting { txid: subject(), conflicting: true };
        let act = || apply(&world.engine, &[operation]);
        let meanwhile = || {
            world.move_front(boundary);
            world.drop_front(boundary);
        };
        let stopped = world.gate.stop_at((Call::Read, left), act, meanwhile);
        assert_eq!(world.gate.reads_under_lock(), 0, "moved at read {left}");
        if !stopped {
            break;
        }
        stops += 1;
    }
    assert!(stops > 3, "{stops}");
}
