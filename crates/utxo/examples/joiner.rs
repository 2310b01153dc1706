//! What the joiner makes of dense blocks, beside a plain map in memory.
//!
//! ```text
//! cargo run --release -p varve-utxo --example joiner [COINS] [BLOCKS] [WORKERS] [DIRECTORY]
//! ```
//!
//! A set of random coins (2,000,000) is imported; then blocks (300) of 7,500 inputs and 7,500
//! outputs are joined by the workers (2), with a check that sums all amounts. A quarter of the
//! inputs spend imported coins, which lie in a run; the others spend outputs of the blocks before,
//! mostly young ones. The map holds whole coins inline and does the same in one thread: it removes
//! what a block spends and inserts what it makes. Parsing is timed on neither side.

#![expect(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "random numbers below a limit, in a program that measures"
)]

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hashbrown::HashMap;
use varve_consensus::contract::draft::{BlockDraft, OutputDraft, TxDraft};
use varve_consensus::{BlockAt, UnspentOutputsView as _};
use varve_io::{Disk, StoreId};
use varve_types::{Amount, Block, BlockHash, Coin, Height, Network, Outpoint, Txid, compact_size};
use varve_utxo::{
    Database, DatabaseView, Joiner, JoinerOptions, Options, Repeats, Secret, StoreKey, pack,
};

const KEY: StoreKey = StoreKey { id: StoreId([1; 16]), secret: Secret::new([2; 16]) };
const BASE: Height = Height::new(1000);
/// Transactions of a block, with three inputs and three outputs each.
const TXS: usize = 2_500;
const EACH: usize = 3;
/// Blocks that are parsed and joined at a time.
const STRETCH: usize = 50;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let coins: usize = arguments.next().map_or(Ok(2_000_000), |count| count.parse())?;
    let blocks: usize = arguments.next().map_or(Ok(300), |count| count.parse())?;
    let workers: NonZeroUsize = arguments.next().map_or(Ok("2".parse()?), |n| n.parse())?;
    let temporary = tempfile::tempdir()?;
    let directory = arguments.next().map_or(temporary.path().to_path_buf(), PathBuf::from);

    let mut old: Vec<Outpoint> = (0..coins).map(|number| old_outpoint(number as u64)).collect();
    old.sort_unstable();
    let disk = Arc::new(Disk::open(&directory.join("joiner"))?);
    let mut set = Database::open(disk, Options::new(Network::Regtest, KEY))?;
    set.import(&snapshot(&old)?[..], BASE, &mut |_, _| {})?;
    set.snapshot().runs().as_slice().iter().try_for_each(|run| run.warm())?;
    let mut map: HashMap<Outpoint, InlineCoin, foldhash::fast::RandomState> =
        HashMap::with_capacity_and_hasher(coins * 5 / 4, Default::default());
    map.extend(old.iter().map(|outpoint| (*outpoint, InlineCoin::new(&old_coin()))));

    let mut chain =
        Chain { random: Random(7), old, young: Vec::new(), tip: BlockHash::ZERO, height: BASE };
    let (mut ours, mut ours_cpu, mut theirs) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    for _ in 0..blocks / STRETCH {
        let bytes: Vec<Vec<u8>> = (0..STRETCH).map(|_| chain.block()).collect();
        let parsed = bytes.iter().map(|bytes| Block::parse(bytes, Network::Regtest.format()));
        let parsed: Vec<Block<'_>> = parsed.collect::<Result<_, _>>()?;
        let first = chain.height.to_u32() + 1 - STRETCH as u32;
        let at = |(height, block)| BlockAt::new(Height::new(height), block);
        let parsed: Vec<BlockAt<'_>> = (first..).zip(&parsed).map(at).collect();
        let (start, cpu) = (Instant::now(), cpu_time());
        join(&mut set, &parsed, workers)?;
        ours += start.elapsed();
        ours_cpu += cpu_time() - cpu;
        let start = Instant::now();
        let sum: u64 = parsed.iter().map(|block| apply(&mut map, block)).sum();
        theirs += start.elapsed();
        std::hint::black_box(sum);
    }
    set.flush()?;
    assert_eq!(set.snapshot().coin_count(), map.len() as u64);
    let a_block = |time: Duration| time.as_secs_f64() * 1e3 / blocks as f64;
    println!(
        "{workers} workers: {:.2} ms a block ({:.2} of CPU); map: {:.2}; ratio {:.2}",
        a_block(ours),
        a_block(ours_cpu),
        a_block(theirs),
        theirs.as_secs_f64() / ours.as_secs_f64()
    );
    Ok(())
}

fn join(set: &mut Database, blocks: &[BlockAt<'_>], workers: NonZeroUsize) -> Result<(), Error> {
    let options = JoinerOptions::new(workers);
    let sum = |block: &BlockAt<'_>, view: &DatabaseView| {
        let mut sum = 0;
        view.for_each_spend(block, |spend| {
            sum += spend.coin.value.to_sat() + spend.coin.script.len() as u64;
            ControlFlow::<()>::Continue(())
        })
        .map(|_| sum)
        .map_err(|error| error.to_string())
    };
    Joiner::scope(set, &options, sum, |joiner| {
        for block in blocks {
            while joiner.is_full() {
                joiner.retire().ok_or("stuck")?.result?;
            }
            joiner.submit(block, Repeats::Impossible).map_err(|error| error.to_string())?;
        }
        while let Some(done) = joiner.retire() {
            done.result?;
        }
        Ok(())
    })?
}

/// A coin of the map: everything in one place.
struct InlineCoin {
    height: u32,
    coinbase: bool,
    value: u64,
    length: u8,
    script: [u8; 39],
}

impl InlineCoin {
    fn new(coin: &Coin<'_>) -> Self {
        let mut script = [0; 39];
        script[..coin.script.len()].copy_from_slice(coin.script);
        let (height, value) = (coin.height.to_u32(), coin.value.to_sat());
        Self { height, coinbase: coin.coinbase, value, length: coin.script.len() as u8, script }
    }
}

fn apply<S: std::hash::BuildHasher>(
    map: &mut HashMap<Outpoint, InlineCoin, S>,
    block: &BlockAt<'_>,
) -> u64 {
    let (mut sum, height) = (0, block.height());
    for (txid, tx) in block.txs() {
        let coinbase = tx.is_coinbase();
        for input in tx.inputs().filter(|_| !coinbase) {
            let coin = map.remove(&input.outpoint).expect("blocks spend what exists");
            let script = &coin.script[..usize::from(coin.length)];
            std::hint::black_box((coin.height, coin.coinbase, script));
            sum += coin.value + u64::from(coin.length);
        }
        for (vout, output) in (0..).zip(tx.outputs()) {
            let coin = Coin { height, coinbase, value: output.value, script: output.script };
            map.insert(Outpoint::new(txid, vout), InlineCoin::new(&coin));
        }
    }
    sum
}

/// Makes blocks on top of each other.
struct Chain {
    random: Random,
    old: Vec<Outpoint>,
    young: Vec<Outpoint>,
    tip: BlockHash,
    height: Height,
}

impl Chain {
    fn block(&mut self) -> Vec<u8> {
        if self.tip == BlockHash::ZERO {
            self.tip = base_hash();
        }
        self.height = self.height.checked_add(1).expect("a short chain");
        let mut txs = vec![TxDraft::coinbase(self.height, 50)];
        let mut made = Vec::new();
        for _ in 0..TXS {
            let inputs: [Outpoint; EACH] = std::array::from_fn(|_| self.spend());
            let mut tx = TxDraft::spending(&inputs, 0);
            tx.outputs.extend((0..EACH).map(|_| self.output()));
            made.push(tx.txid());
            txs.push(tx);
        }
        let made = made.iter().flat_map(|txid| (0..3).map(|vout| Outpoint::new(*txid, vout)));
        self.young.extend(made);
        let bytes = BlockDraft { previous: self.tip, ..BlockDraft::new(txs) }.bytes();
        let parsed = Block::parse(&bytes, Network::Regtest.format()).expect("a draft parses");
        self.tip = parsed.hash();
        bytes
    }

    /// An old coin once in four, otherwise one of the young: twice as likely the younger it is.
    fn spend(&mut self) -> Outpoint {
        if self.young.len() < 4 * TXS * EACH || self.random.below(4) == 0 {
            let place = self.random.below(self.old.len());
            return self.old.swap_remove(place);
        }
        let len = self.young.len();
        let back = self.random.below(len).min(self.random.below(len));
        self.young.swap_remove(len - 1 - back)
    }

    fn output(&mut self) -> OutputDraft {
        let mut script = vec![0, 20];
        script.extend_from_slice(&self.random.next().to_le_bytes());
        script.extend_from_slice(&self.random.next().to_le_bytes());
        script.extend_from_slice(&[7; 4]);
        OutputDraft { value: self.random.next() % 1_000_000, script }
    }
}

fn old_outpoint(number: u64) -> Outpoint {
    let mut random = Random(number);
    let mut txid = [0; 32];
    txid.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&random.next().to_le_bytes()));
    Outpoint::new(Txid::from_bytes(txid), 0)
}

const fn old_coin() -> Coin<'static> {
    const SCRIPT: [u8; 22] = [0; 22];
    Coin { height: Height::new(9), coinbase: false, value: Amount::from_sat(1234), script: &SCRIPT }
}

const fn base_hash() -> BlockHash {
    BlockHash::from_bytes([5; 32])
}

/// Core's snapshot file of the old coins.
fn snapshot(old: &[Outpoint]) -> Result<Vec<u8>, Error> {
    let mut bytes = b"utxo\xff\x02\x00".to_vec();
    bytes.extend_from_slice(&Network::Regtest.disk_magic());
    bytes.extend_from_slice(base_hash().as_bytes());
    bytes.extend_from_slice(&u64::try_from(old.len())?.to_le_bytes());
    for outpoint in old {
        bytes.extend_from_slice(outpoint.txid.as_bytes());
        compact_size::write(1, &mut bytes);
        compact_size::write(0, &mut bytes);
        pack(&old_coin(), &mut bytes);
    }
    Ok(bytes)
}

/// The time all threads of this process have had on a CPU.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}
