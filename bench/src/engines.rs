//! `engines`: the same work on every engine of the records, servers on the same machine.
//!
//! 1. *Units*: a stock of parents with two outputs is created, then each gets a child that spends
//!    its first output, in batches of 1,000 by two callers. A unit is one child: one spend, one
//!    creation, durable.
//! 2. *Flat*: 1,000 spends at a time from records of 2 outputs, and from one of 20,000. The cost of
//!    a spend must not grow with the record.
//!
//! Without PostgreSQL the benchmark ends with a sentence: its bar is about that engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use varve_bench::ratio::Ratio;
use varve_io::{Disk, StoreId};
use varve_records::contract::postgres::Server;
use varve_records::engine::Context;
use varve_records::operation::{NewRecord, Operation, Spend, SpendPart, Unit};
use varve_records::record::{BatchSize, BlockId, BlockRef, Body, UtxoHash};
use varve_records::{
    EmbeddedEngine, EmbeddedOptions, Engine, MemoryDisk, MemoryEngine, PostgresEngine, SpendRules,
    StoreKey,
};
use varve_types::{Amount, Height, Outpoint, Txid};

use crate::Effort;

const CONTEXT: Context = Context { height: Height::new(100), retention: 288 };
const BATCH: u32 = 1_000;
const CALLERS: u32 = 2;
/// Outputs of the large record of the second work.
const LARGE: u32 = 20_000;
const PARENT: u32 = 1;
const CHILD: u32 = 2;
const SMALL: u32 = 3;
const SPENDER: u32 = 4;

/// What the first work took.
struct Figures {
    units: u32,
    took: Duration,
    /// The times of the batches, sorted.
    batches: Vec<Duration>,
}

/// Runs the benchmark.
pub(crate) fn run(effort: Effort) -> Result<()> {
    let batches = if effort == Effort::Full { 200 } else { 40 };
    println!("units of one spend and one creation, batches of {BATCH}, {CALLERS} callers");
    println!("{:<10} {:>9} {:>10} {:>10}", "engine", "units/s", "p50 ms", "p99 ms");
    let memory = MemoryEngine::open(MemoryDisk::default());
    print("memory", &units(&memory, batches)?);
    let folder = tempfile::tempdir()?;
    let embedded = embedded(folder.path())?;
    print("embedded", &units(&embedded, batches)?);
    let flat_embedded = flat(&embedded)?;
    let Some(server) = Server::start() else { bail!("PostgreSQL is not installed") };
    let postgres = PostgresEngine::open(&server.url("bench"))?;
    print("postgres", &units(&postgres, batches)?);
    let flat_postgres = flat(&postgres)?;
    println!("a spend in a record of {LARGE} outputs, over one in a record of 2:");
    println!("  embedded {flat_embedded:.2}, postgres {flat_postgres:.2}");
    Ratio::at_most("engines.flat", flat_postgres, 1.5).print();
    Ok(())
}

fn embedded(folder: &std::path::Path) -> Result<EmbeddedEngine> {
    let key = StoreKey { id: StoreId([1; 16]), secret: [2; 16] };
    let options = EmbeddedOptions::new(key);
    Ok(EmbeddedEngine::open(Arc::new(Disk::open(folder)?), options)?)
}

fn print(name: &str, figures: &Figures) {
    let rate = f64::from(figures.units) / figures.took.as_secs_f64();
    let at = |percent: usize| {
        let place = (figures.batches.len() * percent).div_ceil(100).saturating_sub(1);
        figures.batches.get(place).copied().unwrap_or_default().as_secs_f64() * 1e3
    };
    println!("{name:<10} {rate:>9.0} {:>10.2} {:>10.2}", at(50), at(99));
}

/// The first work.
fn units(engine: &impl Engine, batches: u32) -> Result<Figures> {
    let next = AtomicU32::new(0);
    let begun = Instant::now();
    let mut spent = Duration::ZERO;
    let times = thread::scope(|scope| {
        let caller = || -> Result<Vec<(Duration, Duration)>> {
            let mut times = Vec::new();
            loop {
                let batch = next.fetch_add(1, Ordering::Relaxed);
                if batch >= batches {
                    return Ok(times);
                }
                let numbers = || batch * BATCH..(batch + 1) * BATCH;
                let parents: Vec<_> = numbers().map(|n| create(txid(PARENT, n), 2)).collect();
                let children: Vec<_> = numbers().map(child).collect();
                let started = Instant::now();
                apply(engine, &parents)?;
                let created = started.elapsed();
                let started = Instant::now();
                apply(engine, &children)?;
                times.push((created, started.elapsed()));
            }
        };
        let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(caller)).collect();
        let join = |caller: thread::ScopedJoinHandle<'_, Result<_>>| {
            caller.join().ok().context("a caller panicked")?
        };
        callers.into_iter().map(join).collect::<Result<Vec<Vec<_>>>>()
    })?;
    let all = begun.elapsed();
    let mut sorted = Vec::new();
    let mut created = Duration::ZERO;
    for (create, spend) in times.into_iter().flatten() {
        created += create;
        spent += spend;
        sorted.push(spend);
    }
    sorted.sort_unstable();
    // Creations of the stock are not counted: the callers' time is split by what they did.
    let share = spent.as_secs_f64() / (spent + created).as_secs_f64().max(1e-9);
    let took = all.mul_f64(share);
    Ok(Figures { units: batches * BATCH, took, batches: sorted })
}

/// The second work: time of a spend in a large record over that in small ones.
fn flat(engine: &impl Engine) -> Result<f64> {
    let small: Vec<_> = (0..LARGE).map(|n| create(txid(SMALL, n), 2)).collect();
    for batch in small.chunks(BATCH as usize) {
        apply(engine, batch)?;
    }
    let large = txid(SMALL, LARGE);
    apply(engine, &[create(large, LARGE)])?;
    let time = |place: &dyn Fn(u32) -> Outpoint, salt: u32| -> Result<Duration> {
        let spend = |n: u32| {
            let outpoint = place(n);
            let unit =
                Unit { txid: txid(SPENDER, salt + n), spend: Some(spends(outpoint)), create: None };
            Operation::Unit(Box::new(unit))
        };
        let operations: Vec<_> = (0..LARGE).map(spend).collect();
        let mut times = Vec::new();
        for batch in operations.chunks(BATCH as usize) {
            let started = Instant::now();
            apply(engine, batch)?;
            times.push(started.elapsed());
        }
        times.sort_unstable();
        times.get(times.len() / 2).copied().context("there are batches")
    };
    let in_small = time(&|n| Outpoint::new(txid(SMALL, n), 0), 0)?;
    let in_large = time(&|n| Outpoint::new(large, n), LARGE)?;
    Ok(in_large.as_secs_f64() / in_small.as_secs_f64())
}

fn apply(engine: &impl Engine, batch: &[Operation]) -> Result<()> {
    let outcomes = engine.apply(&CONTEXT, batch)?;
    match outcomes.into_iter().find_map(|outcome| outcome.result.err()) {
        Some(failure) => bail!("an operation failed: {failure}"),
        None => Ok(()),
    }
}

fn txid(kind: u32, number: u32) -> Txid {
    let mut bytes = [0; 32];
    // Spread as hashes are.
    let mut word = u64::from(kind) << 32 | u64::from(number);
    for part in bytes.as_chunks_mut::<8>().0 {
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        *part = (word ^ word >> 31).to_le_bytes();
    }
    Txid::from_bytes(bytes)
}

fn hash(outpoint: &Outpoint) -> UtxoHash {
    let mut bytes = outpoint.txid.to_bytes();
    let (last, _) = bytes.split_at_mut(4);
    last.copy_from_slice(&outpoint.vout.to_le_bytes());
    UtxoHash::from_bytes(bytes)
}

fn spends(outpoint: Outpoint) -> SpendPart {
    let spend = Spend { outpoint, hash: hash(&outpoint), vin: 0 };
    SpendPart { spends: vec![spend], rules: SpendRules::at(Height::new(101)) }
}

fn child(number: u32) -> Operation {
    let parent = Outpoint::new(txid(PARENT, number), 0);
    let mut new = new_record(txid(CHILD, number), 2);
    new.inputs = vec![parent];
    let spend = Some(spends(parent));
    Operation::Unit(Box::new(Unit { txid: txid(CHILD, number), spend, create: Some(new) }))
}

fn create(txid: Txid, outputs: u32) -> Operation {
    let new = new_record(txid, outputs);
    Operation::Unit(Box::new(Unit { txid, spend: None, create: Some(new) }))
}

/// A mined record with a transaction of the usual length.
fn new_record(txid: Txid, outputs: u32) -> NewRecord {
    let utxos = (0..outputs).map(|vout| Some(hash(&Outpoint::new(txid, vout)))).collect();
    NewRecord {
        version: 1,
        lock_time: 0,
        fee: Amount::from_sat(100),
        size: 226,
        extended_size: 270,
        is_coinbase: false,
        spending_height: None,
        body: Body::Outputs(vec![7; 270].into()),
        inputs: Vec::new(),
        utxos: Arc::new(utxos),
        batch: BatchSize::new(LARGE).expect("not zero"),
        height: Height::new(100),
        created_at: 1,
        blocks: vec![BlockRef { id: BlockId(1), height: Height::new(90), subtree: 0 }],
        frozen: false,
        conflicting: false,
        locked: false,
        creating: false,
    }
}
