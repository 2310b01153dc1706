//! Queries on the history: where a transaction is, and what spends an output.
//!
//! Probes are taken evenly from all blocks and shuffled. Each is queried once before the clock
//! starts; then two threads query one half each, three times, and the fastest time counts. A query
//! is complete: *where is this transaction* ends with its block, height, position and whether it is
//! confirmed, *what spends this output* with the block, height and position of the transaction and
//! its input, found in the bytes of the transaction. `spender_txid` also hashes these bytes, for
//! callers that show the txid.

use anyhow::{Context as _, Result, ensure};
use varve_bench::clock::Clock;
use varve_bench::figures::Figures;
use varve_node::{ArchiveView, Organizer};
use varve_testdata::Random;
use varve_types::{Block, Height, Outpoint, Txid};

use super::node::NETWORK;

const PROBES: usize = 400_000;
const THREADS: usize = 2;
const ROUNDS: usize = 3;
/// Outputs queried at once: about what a page of an explorer or a wallet shows.
const BATCH: usize = 64;

/// Reports `tx_lookup`, `spender_lookup`, `spender_txid` and `spender_batch` in answers a second.
pub(super) fn run(node: &Organizer) -> Result<()> {
    let view = node.snapshot().view();
    let (mut txids, mut points) = probes(&view)?;
    // The same order in every run.
    let mut random = Random::new(7);
    random.shuffle(&mut txids);
    random.shuffle(&mut points);
    rate("tx_lookup", &view, &txids, |view, txids| {
        for txid in txids {
            let place = view.to_tx(*txid)?.context("a transaction is not found")?;
            ensure!(place.confirmed && place.txid == *txid, "{txid}: another answer");
        }
        Ok(())
    })?;
    rate("spender_lookup", &view, &points, |view, points| {
        for point in points {
            view.confirmed_spender(*point)?.context("a spender is not found")?;
        }
        Ok(())
    })?;
    rate("spender_txid", &view, &points, |view, points| {
        for point in points {
            let spender = view.confirmed_spender(*point)?.context("a spender is not found")?;
            std::hint::black_box(view.txid(&spender.tx)?);
        }
        Ok(())
    })?;
    rate("spender_batch", &view, &points, |view, points| {
        for points in points.chunks(BATCH) {
            let spenders = view.spenders_of(points)?;
            let found = |spenders: &Vec<_>| !spenders.is_empty();
            ensure!(spenders.iter().all(found), "a spender is not found");
        }
        Ok(())
    })
}

/// Transactions, and outputs that are spent.
fn probes(view: &ArchiveView) -> Result<(Vec<Txid>, Vec<Outpoint>)> {
    let (mut txids, mut points) = (Vec::new(), Vec::new());
    let total = usize::try_from(view.bounds().txs)?;
    let every = total.div_ceil(PROBES).max(1);
    let mut number = 0;
    for height in (0..).map(Height::new) {
        let Some(link) = view.to_confirmed(height) else { break };
        let bytes = view.raw_block(link)?.context("a block has no bytes")?;
        let block = Block::parse(&bytes, NETWORK.format())?;
        for (txid, tx) in block.txids().into_iter().zip(block.txs()) {
            number += 1;
            if number % every != 0 {
                continue;
            }
            txids.push(txid);
            let input = tx.inputs().next().filter(|_| !tx.is_coinbase());
            points.extend(input.map(|input| input.outpoint));
        }
    }
    Ok((txids, points))
}

fn rate<T: Sync>(
    name: &str,
    view: &ArchiveView,
    probes: &[T],
    ask: impl Fn(&ArchiveView, &[T]) -> Result<()> + Sync,
) -> Result<()> {
    let ask = &ask;
    ask(view, probes)?;
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let mut clock = Clock::new();
        clock.start();
        std::thread::scope(|scope| {
            let part = |part| scope.spawn(move || ask(view, part));
            let parts = probes.chunks(probes.len().div_ceil(THREADS));
            let threads: Vec<_> = parts.map(part).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
        })?;
        clock.stop();
        best = best.min(clock.measured().wall);
    }
    Figures::report(name, probes.len() as f64 / best);
    Ok(())
}
