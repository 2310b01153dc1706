//! How fast the embedded engine is: create and spend of transactions with one input and two
//! outputs, in batches, durable.
//!
//! ```text
//! cargo run --release -p varve-records --example embedded_speed -- DIRECTORY [options]
//!   --threads N     callers at once (2)
//!   --batch N       units a batch (1000)
//!   --units N       units in all (1000000)
//!   --near N        a unit spends an output of the last N (1000000): small is warm
//!   --outputs N     every unit only spends, from transactions of N outputs (0: off)
//!   --cache N       megabytes of the log in memory (256)
//!   --reopen        opens the store again at the end and tells the time
//! ```

#![expect(clippy::unwrap_used, reason = "a measurement that fails is told by its panic")]
#![expect(clippy::indexing_slicing, reason = "a measurement that fails is told by its panic")]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use varve_io::{Disk, StoreId};
use varve_records::engine::Context;
use varve_records::operation::Unit;
use varve_records::{
    CreateOptions, EmbeddedEngine, EmbeddedOptions, Engine, Operation, Settings, SpendRules,
    StoreKey, Transaction,
};
use varve_types::{Format, Height, Outpoint, Txid};

/// As the command has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// An extended transaction of one input and some outputs that pay to a key's hash.
fn transaction(number: u64, input: &Outpoint, value: u64, outputs: u32) -> Transaction {
    let script = |number: u64| {
        let mut script = vec![0x76, 0xa9, 20];
        script.extend_from_slice(&number.to_le_bytes());
        script.extend_from_slice(&[0x55; 12]);
        script.extend_from_slice(&[0x88, 0xac]);
        script
    };
    let mut bytes = vec![1, 0, 0, 0, 0, 0, 0, 0, 0, 0xef, 1];
    bytes.extend_from_slice(&input.to_bytes());
    bytes.push(107);
    bytes.extend_from_slice(&[number.to_le_bytes()[0]; 107]);
    bytes.extend_from_slice(&[0xff; 4]);
    bytes.extend_from_slice(&value.to_le_bytes());
    bytes.push(25);
    bytes.extend_from_slice(&script(u64::from(input.vout)));
    varve_types::compact_size::write(u64::from(outputs), &mut bytes);
    for vout in 0..outputs {
        bytes.extend_from_slice(&0_u64.to_le_bytes());
        bytes.push(25);
        bytes.extend_from_slice(&script(u64::from(vout)));
    }
    bytes.extend_from_slice(&u32::try_from(number & 0xffff_ffff).unwrap().to_le_bytes());
    Transaction::parse(Bytes::from(bytes), Format::Legacy).unwrap()
}

struct Arguments(HashMap<String, u64>);

impl Arguments {
    fn get(&self, name: &str, default: u64) -> u64 {
        self.0.get(name).copied().unwrap_or(default)
    }
}

/// The work of one caller, made beforehand.
struct Plan {
    batches: Vec<Vec<Operation>>,
}

struct Maker {
    settings: Settings,
    options: CreateOptions,
    chance: u64,
    number: u64,
    /// Transactions with outputs that nobody has spent: the txid, and the next output.
    open: Vec<(Txid, u32)>,
}

impl Maker {
    fn below(&mut self, limit: usize) -> usize {
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        usize::try_from(self.chance >> 33).unwrap() % limit.max(1)
    }

    fn root(&mut self, outputs: u32) -> Operation {
        self.number += 1;
        let none = Outpoint::new(Txid::from_bytes([0xaa; 32]), 0);
        let tx = transaction(self.number, &none, 0, outputs);
        self.open.push((tx.txid(), 0));
        Unit::create(&tx, &self.options, &self.settings).unwrap().into()
    }

    fn unit(&mut self, near: usize) -> Operation {
        self.number += 1;
        let far = self.open.len().min(near);
        let place = self.open.len() - 1 - self.below(far);
        let (txid, vout) = self.open[place];
        if vout == 1 {
            self.open.swap_remove(place);
        } else {
            self.open[place].1 += 1;
        }
        let tx = transaction(self.number, &Outpoint::new(txid, vout), 0, 2);
        self.open.push((tx.txid(), 0));
        let rules = SpendRules::at(Height::new(101));
        let unit = Unit::spend_and_create(&tx, rules, &self.options, &self.settings);
        unit.unwrap().into()
    }

    fn spend(&mut self, place: usize, vout: u32) -> Operation {
        self.number += 1;
        let (txid, _) = self.open[place];
        let tx = transaction(self.number, &Outpoint::new(txid, vout), 0, 2);
        Unit::spend(&tx, SpendRules::at(Height::new(101))).unwrap().into()
    }
}

fn plan(thread: u64, arguments: &Arguments, engine: &EmbeddedEngine, context: &Context) -> Plan {
    let threads = arguments.get("threads", 2);
    let batch = usize::try_from(arguments.get("batch", 1000)).unwrap();
    let units = usize::try_from(arguments.get("units", 1_000_000) / threads).unwrap();
    let near = usize::try_from(arguments.get("near", 1_000_000)).unwrap();
    let outputs = u32::try_from(arguments.get("outputs", 0)).unwrap();
    let options =
        CreateOptions { height: Height::new(100), created_at: 1, ..CreateOptions::default() };
    let settings = Settings::default();
    let mut maker =
        Maker { settings, options, chance: thread + 7, number: thread << 28, open: Vec::new() };
    let roots = if outputs > 0 { units.div_ceil(outputs as usize) } else { batch };
    let roots: Vec<_> = (0..roots).map(|_| maker.root(outputs.max(2))).collect();
    for roots in roots.chunks(1000) {
        engine.apply(context, roots).unwrap();
    }
    let make = |index: usize| {
        let unit = |n: usize| {
            let all = index * batch + n;
            if outputs == 0 {
                return maker.unit(near);
            }
            // Every record is spent from in turn, so that a batch meets many of them.
            let count = maker.open.len();
            // And outputs that are spent together lie apart.
            let vout = u32::try_from(all / count * 7919 % outputs as usize).unwrap();
            maker.spend(all % count, vout)
        };
        (0..batch).map(unit).collect()
    };
    Plan { batches: (0..units / batch).map(make).collect() }
}

/// What all threads of this process have had of the processors.
fn processor_time() -> Duration {
    let status = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields = status.rsplit(')').next().unwrap().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(10 * ticks)
}

fn main() {
    let mut words = std::env::args().skip(1);
    let directory = words.next().expect("name a directory");
    let (mut arguments, mut reopen) = (Arguments(HashMap::new()), false);
    while let Some(word) = words.next() {
        match word.strip_prefix("--").expect("options begin with --") {
            "reopen" => reopen = true,
            name => {
                let value = words.next().unwrap().parse().unwrap();
                arguments.0.insert(name.to_owned(), value);
            }
        }
    }
    let key = StoreKey { id: StoreId([1; 16]), secret: [2; 16] };
    let open = || {
        let disk = Disk::open(std::path::Path::new(&directory)).unwrap();
        let cache = arguments.get("cache", 256) << 20;
        let options = EmbeddedOptions { cache, ..EmbeddedOptions::new(key) };
        EmbeddedEngine::open(Arc::new(disk), options).unwrap()
    };
    let engine = open();
    let context = Context { height: Height::new(100), retention: 288 };
    let threads = arguments.get("threads", 2);
    let plans: Vec<Plan> =
        (0..threads).map(|thread| plan(thread, &arguments, &engine, &context)).collect();
    let before = engine.status().unwrap();
    let done = AtomicU64::new(0);
    let (begun, busy) = (Instant::now(), processor_time());
    let run = |plan: Plan| {
        let mut times = Vec::new();
        for batch in &plan.batches {
            let begun = Instant::now();
            let outcomes = engine.apply(&context, batch).unwrap();
            times.push(begun.elapsed());
            assert!(outcomes.iter().all(|outcome| outcome.result.is_ok()));
            done.fetch_add(batch.len() as u64, Ordering::Relaxed);
        }
        times
    };
    let mut times: Vec<Duration> = std::thread::scope(|scope| {
        let run = &run;
        let spawn = |plan| scope.spawn(move || run(plan));
        let threads: Vec<_> = plans.into_iter().map(spawn).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let (elapsed, units) = (begun.elapsed(), done.load(Ordering::Relaxed));
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100];
    let after = engine.status().unwrap();
    let rate = units as f64 / elapsed.as_secs_f64();
    let busy = (processor_time() - busy).as_secs_f64() * 1e6 / units as f64;
    println!("{units} units in {elapsed:.2?}: {rate:.0} units/s, {busy:.2} µs of processor each");
    println!("a batch: p50 {:.2?}, p99 {:.2?}, longest {:.2?}", at(50), at(99), at(100));
    println!("log {} bytes a unit; {after:?}", (after.stored - before.stored) / units.max(1));
    if reopen {
        drop(engine);
        let begun = Instant::now();
        let engine = open();
        println!("opened {:?} in {:.2?}", engine.status().unwrap(), begun.elapsed());
    }
}
