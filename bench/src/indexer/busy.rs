//! A script of very many transactions, in a child: its first page and its balance.
//!
//! ```text
//!  coinbase of block 1 ─► script ─► script ─► script ─► …     each transaction spends the last
//! ```
//!
//! Blocks of 10,000 transactions, each with one input and one output of the same script, go
//! through a pipe into a node with the index `script`.

use std::ffi::OsString;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use varve_archive::search::Order;
use varve_bench::figures::Figures;
use varve_node::{ScriptPage, Scripts};
use varve_types::merkle::merkle_root;
use varve_types::{BlockHash, Header, Outpoint, ScriptHash, Txid, sha256d};

use crate::chain::node::{NETWORK, open_with};
use crate::chain::reorg::{push_bytes, take};

/// Transactions of a block.
const BLOCK: u32 = 10_000;
/// Blocks before a coinbase can be spent, and one more.
const FIRST: u32 = 101;
/// The script: true, with a push before it.
const SCRIPT: [u8; 4] = [0x01, 0x07, 0x75, 0x51];
const SUBSIDY: u64 = 50 * 100_000_000;
/// Questions of each kind; the median counts.
const ROUNDS: usize = 101;

/// Runs a child, which reports `busy_txs`, `busy_page` and `busy_balance` in seconds: `DATA COUNT`.
pub(crate) fn run(words: &[OsString]) -> Result<()> {
    let [data, count] = words else { bail!("busy wants DATA COUNT") };
    let count: u32 = count.to_str().and_then(|count| count.parse().ok()).context("no number")?;
    let mut node = open_with(Path::new(data), "script")?;
    let mut maker = Maker::new();
    let mut piece = Vec::new();
    for height in 1..=FIRST {
        push_bytes(&maker.block(height, Vec::new())?, &mut piece)?;
    }
    let mut from = maker.first.context("the first coinbase was made")?;
    for block in 0..count / BLOCK {
        let mut txs = Vec::new();
        for _ in 0..BLOCK {
            let tx = transaction(&from.to_bytes(), &[], SUBSIDY);
            from = Outpoint::new(Txid::from_bytes(sha256d(&tx)), 0);
            txs.push(tx);
        }
        push_bytes(&maker.block(FIRST + 1 + block, txs)?, &mut piece)?;
        if piece.len() > 32 << 20 {
            take(&mut node, &mut piece)?;
        }
    }
    take(&mut node, &mut piece)?;
    ensure!(node.snapshot().tip.1 == maker.tip, "the chain was not synced to its end");
    let scripts = node.snapshot().script_histories()?;
    ask(&scripts, count / BLOCK * BLOCK)
}

fn ask(scripts: &Scripts, count: u32) -> Result<()> {
    let script = ScriptHash::of(&SCRIPT);
    let sums = scripts.sums(&script, None)?;
    // The coinbases pay it too.
    let expected = i64::from(count) + i64::from(FIRST) + i64::from(count / BLOCK);
    ensure!(sums.txs == expected, "{} transactions in place of {expected}", sums.txs);
    Figures::report("busy_txs", sums.txs);
    let balance = median(|| {
        std::hint::black_box(scripts.sums(&script, None)?);
        Ok(())
    })?;
    Figures::report("busy_balance", balance);
    let mut slowest = 0.0_f64;
    for order in [Order::Descending, Order::Ascending] {
        let page = ScriptPage { order, cursor: None, limit: 25 };
        let took = median(|| {
            let txs = scripts.history(&script, None, page)?.txs;
            ensure!(txs.len() == 25, "a short page");
            Ok(())
        })?;
        slowest = slowest.max(took);
    }
    Figures::report("busy_page", slowest);
    Ok(())
}

fn median(mut question: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        question()?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    times.get(ROUNDS / 2).copied().context("some rounds")
}

/// Makes blocks one above the other.
struct Maker {
    tip: BlockHash,
    time: u32,
    /// The first coinbase.
    first: Option<Outpoint>,
}

impl Maker {
    fn new() -> Self {
        let genesis = NETWORK.genesis_block();
        let time = genesis.first_chunk().map_or(0, |header| Header::new(header).time());
        Self { tip: NETWORK.genesis_hash(), time, first: None }
    }

    /// A block of these transactions behind a coinbase that pays the script.
    fn block(&mut self, height: u32, txs: Vec<Vec<u8>>) -> Result<Vec<u8>> {
        let value = SUBSIDY >> (height / 150);
        let mut script = vec![3];
        script.extend(height.to_le_bytes().iter().take(3));
        let coinbase = transaction(&[&[0; 32][..], &[0xff; 4]].concat(), &script, value);
        let txid = Txid::from_bytes(sha256d(&coinbase));
        self.first.get_or_insert(Outpoint::new(txid, 0));
        let count = txs.len() + 1;
        let leaves = std::iter::once(&coinbase).chain(&txs).map(|tx| sha256d(tx)).collect();
        let root = merkle_root(leaves).root;
        self.time += 600;
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&0x2000_0000_u32.to_le_bytes());
        bytes.extend_from_slice(self.tip.as_bytes());
        bytes.extend_from_slice(root.as_bytes());
        bytes.extend_from_slice(&self.time.to_le_bytes());
        bytes.extend_from_slice(&0x207f_ffff_u32.to_le_bytes());
        let nonce = (0_u32..).find(|nonce| {
            let hash = sha256d(&[bytes.as_slice(), &nonce.to_le_bytes()].concat());
            hash.last().is_some_and(|byte| *byte < 0x7f)
        });
        bytes.extend_from_slice(&nonce.context("half of all hashes do")?.to_le_bytes());
        self.tip = BlockHash::from_bytes(sha256d(&bytes));
        bytes.push(0xfd);
        bytes.extend_from_slice(&u16::try_from(count)?.to_le_bytes());
        if count < 0xfd {
            bytes.truncate(Header::LEN);
            bytes.push(u8::try_from(count)?);
        }
        bytes.extend(std::iter::once(coinbase).chain(txs).flatten());
        Ok(bytes)
    }
}

/// A transaction with one input and one output, which pays the script.
fn transaction(outpoint: &[u8], input: &[u8], value: u64) -> Vec<u8> {
    let mut tx = Vec::with_capacity(70);
    tx.extend_from_slice(&1_u32.to_le_bytes());
    tx.push(1);
    tx.extend_from_slice(outpoint);
    tx.push(u8::try_from(input.len()).unwrap_or_default());
    tx.extend_from_slice(input);
    tx.extend_from_slice(&u32::MAX.to_le_bytes());
    tx.push(1);
    tx.extend_from_slice(&value.to_le_bytes());
    tx.push(u8::try_from(SCRIPT.len()).unwrap_or_default());
    tx.extend_from_slice(&SCRIPT);
    tx.extend_from_slice(&0_u32.to_le_bytes());
    tx
}
