//! Several processes on one schema: leases, and batches under them.

use std::thread;

use varve_records::contract::postgres::Server;
use varve_records::engine::{Context, Task};
use varve_records::{Engine as _, EngineError, Operation, PostgresEngine};
use varve_types::{Height, Txid};

const CONTEXT: Context = Context { height: Height::new(100), retention: 10 };

/// Something that changes nothing and is done under whatever leases the thread has.
fn touch(engine: &PostgresEngine) -> Result<(), EngineError> {
    let operation = Operation::Delete { txid: Txid::from_bytes([1; 32]) };
    engine.apply(&CONTEXT, &[operation]).map(drop)
}

#[test]
fn one_process_has_a_lease() {
    let Some(server) = Server::shared() else { return };
    let url = server.disk().url;
    let [here, there] = [(); 2].map(|()| PostgresEngine::open(&url).unwrap());
    assert!(here.take_lease(Task::Prune).unwrap());
    assert!(!there.take_lease(Task::Prune).unwrap(), "another has it");
    assert!(there.take_lease(Task::Resolve).unwrap(), "tasks are independent");
    touch(&here).unwrap();
    here.end_lease(Task::Prune).unwrap();
    assert!(there.take_lease(Task::Prune).unwrap());
    assert!(!here.take_lease(Task::Prune).unwrap());
}

/// A process that was paused for so long that its lease ran out changes nothing when it goes on.
#[test]
fn a_lost_lease_fences() {
    let Some(server) = Server::shared() else { return };
    let disk = server.disk();
    let [slow, quick] = [(); 2].map(|()| PostgresEngine::open(&disk.url).unwrap());
    assert!(slow.take_lease(Task::Resolve).unwrap());
    touch(&slow).unwrap();
    let schema = disk.url.rsplit('=').next().unwrap();
    server.execute(&format!("UPDATE {schema}.leases SET until = now() - interval '1 second'"));
    assert!(quick.take_lease(Task::Resolve).unwrap());
    let other_thread = thread::scope(|scope| scope.spawn(|| touch(&slow)).join().unwrap());
    assert!(other_thread.is_ok(), "other threads of the process go on");
    let lost = touch(&slow).unwrap_err();
    assert!(matches!(lost, EngineError::LeaseLost { task: "resolve" }), "{lost}");
    touch(&slow).unwrap();
    touch(&quick).unwrap();
}
