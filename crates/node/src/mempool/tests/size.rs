//! Sizes and times at mainnet's scale. The figures of `docs/adr/0021-mempool.md` come from
//! `VARVE_MEASURE=300000 cargo test --release -p varve-node measure -- --nocapture`.

use std::sync::Arc;
use std::time::Instant;

use varve_consensus::contract::draft::{InputDraft, OutputDraft, TxDraft};
use varve_records::Transaction;
use varve_types::pushdata::PushdataRule;
use varve_types::{Amount, BlockHash, Format, Height, Outpoint, TxOut, Txid};

use crate::commit_log::CommitSequence;
use crate::mempool::Tip;
use crate::mempool::entry::{Body, CoinAt};
use crate::mempool::version::{Ids, Version};

/// A transaction like most: two inputs of P2WPKH with witnesses, two outputs, 370 bytes.
fn usual(number: u32, parent: Option<Txid>) -> Arc<Body> {
    let mut seed = [0; 32];
    seed[..4].copy_from_slice(&number.to_le_bytes());
    let txid = Txid::from_bytes(varve_sha256::digest(&seed));
    let script = |salt: u8| {
        let hash = varve_sha256::digest(&[&seed[..], &[salt]].concat());
        [vec![0x00, 20], hash[..20].to_vec()].concat()
    };
    let witness = vec![vec![3; 72], vec![2; 33]];
    let input = |outpoint| InputDraft {
        outpoint,
        script: Vec::new(),
        sequence: 0xffff_fffd,
        witness: witness.clone(),
    };
    let first = parent.map_or(Outpoint::new(txid, 0), |parent| Outpoint::new(parent, 0));
    let output = |salt| OutputDraft { value: 50_000, script: script(salt) };
    let draft = TxDraft {
        version: 2,
        inputs: vec![input(first), input(Outpoint::new(txid, 1))],
        outputs: vec![output(1), output(2)],
        lock_time: 0,
    };
    let tx = Transaction::parse(draft.bytes().into(), Format::Segwit).unwrap();
    let scripts = [script(3), script(4)];
    let spent: Vec<TxOut<'_>> =
        scripts.iter().map(|script| TxOut { value: Amount::from_sat(60_000), script }).collect();
    let fee = Amount::from_sat(200 + u64::from(number % 20_000));
    let at = Some(CoinAt { height: Height::new(800_000), coinbase: false });
    let size = draft.bytes().len() as u64;
    Arc::new(Body {
        tx: tx.extend(&spent).unwrap(),
        size,
        weight: 3 * tx.view().base_len() as u64 + size,
        fee,
        time: u64::from(number),
        coins: vec![at; 2],
        sigop_cost: 2,
        timed: false,
    })
}

fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4_096
}

#[test]
fn measure_entries_versions_and_blocks() {
    let count = std::env::var("VARVE_MEASURE").ok().and_then(|count| count.parse().ok());
    let count: u32 = count.unwrap_or(3_000);
    let tip = Tip { height: 1.into(), hash: BlockHash::ZERO, sequence: CommitSequence(1) };
    let mut version = Version::new(tip, Some(PushdataRule::Conduit));
    let before = resident();
    let mut last = None;
    let mut held = Arc::new(version.clone());
    let start = Instant::now();
    for number in 0..count {
        // Every third builds on the one before; a version is published after each arrival.
        let parent = last.filter(|_| number % 3 != 0);
        let body = usual(number, parent);
        last = Some(body.txid());
        version.insert(body);
        held = Arc::new(version.clone());
    }
    let arrival = start.elapsed() / count;
    drop(held);
    let grown = resident().saturating_sub(before);
    let charged = version.totals().memory;
    println!(
        "{count} transactions: {} bytes resident each, {} charged, {arrival:?} an arrival",
        grown / u64::from(count),
        charged / u64::from(count)
    );
    let published = Arc::new(version.clone());
    let block: Ids = version.entries.iter().step_by(7).take(3_300).map(|(id, _)| *id).collect();
    let size = block.len();
    let start = Instant::now();
    version.remove(&block);
    println!("a block of {size}: {:?} to remove", start.elapsed());
    let start = Instant::now();
    let bins = version.electrum_histogram().len();
    println!("a histogram of {bins} bins: {:?}", start.elapsed());
    let start = Instant::now();
    let fee = version.estimate(6);
    println!("an estimate of {fee}: {:?}", start.elapsed());
    assert_eq!(published.totals().sum.count, u64::from(count));
    assert_eq!(version.totals().sum.count, u64::from(count) - size as u64);
    if count >= 100_000 {
        assert!(grown <= charged * 12 / 10, "{grown} bytes are charged as {charged}");
    }
}
