//! The cost of a spend in records of few and of many outputs, ours alone.
//!
//! The total number of outputs is fixed, and so is the number in each record; half of them are
//! spent, in batches that visit all records of their caller in turn, each time at another output.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use varve_records::Operation;
use varve_types::{Outpoint, Txid};

use super::embedded;
use super::race::{do_all, report};
use super::side::{Memory, Side as _};
use super::transaction::{self, Output, STOCK_VALUE, TxNumber};
use super::work::{BATCH, CALLERS, Preparer, StockState};
use varve_bench::clock::Clock;

/// Outputs in all.
const OUTPUTS: u32 = 800_000;
/// Batches of each caller that are made ready at a time.
const READY: u32 = 10;
/// Records created in one batch, of any size.
const CREATED: usize = 10;
/// A prime that divides no number of outputs: walks over all of them in no order.
const STRIDE: u64 = 7_919;

/// Measures records of `outputs` outputs.
pub(super) fn run(folder: &Path, memory: Memory, outputs: u32) -> Result<()> {
    let mut side = embedded::open(folder, memory)?;
    let preparer = Preparer::new(StockState::Unmined);
    let count = OUTPUTS / outputs;
    let mut txids = Vec::with_capacity(count as usize);
    let chunk = if outputs > 100 { CREATED } else { BATCH as usize };
    let numbers: Vec<u64> = (0..u64::from(count)).collect();
    for numbers in numbers.chunks(chunk) {
        let mut units = Vec::with_capacity(numbers.len());
        for number in numbers {
            let tx = transaction::parse(transaction::stock(TxNumber(*number), outputs))?;
            txids.push(tx.txid());
            units.push(preparer.create(&tx)?);
        }
        side.load(&units)?;
    }
    let mut spender = Spender { preparer, txids, outputs, next: [0; CALLERS as usize] };
    let mut clock = Clock::new();
    let mut times: Vec<Duration> = Vec::new();
    let batches = OUTPUTS / 2 / BATCH;
    for _ in 0..batches / (READY * CALLERS) {
        let callers: Vec<Vec<Vec<Operation>>> = (0..CALLERS)
            .map(|caller| (0..READY).map(|_| spender.batch(caller)).collect())
            .collect::<Result<_>>()?;
        clock.start();
        times.extend(do_all(&side, &callers)?);
        clock.stop();
    }
    report(&clock.measured(), times);
    Ok(())
}

struct Spender {
    preparer: Preparer,
    txids: Vec<Txid>,
    outputs: u32,
    /// Spends that each caller has made.
    next: [u64; CALLERS as usize],
}

impl Spender {
    fn batch(&mut self, caller: u32) -> Result<Vec<Operation>> {
        (0..BATCH).map(|_| self.spend(caller)).collect()
    }

    fn spend(&mut self, caller: u32) -> Result<Operation> {
        let next = self.next.get_mut(caller as usize).context("a caller")?;
        let own = self.txids.len() as u64 / u64::from(CALLERS);
        let number = *next % own * u64::from(CALLERS) + u64::from(caller);
        let vout = u32::try_from(*next / own * STRIDE % u64::from(self.outputs))?;
        *next += 1;
        let txid = *self.txids.get(usize::try_from(number)?).context("a record")?;
        let outpoint = Outpoint::new(txid, vout);
        let spent = Output { of: TxNumber(number), outpoint, value: STOCK_VALUE };
        let tx = transaction::parse(transaction::child(TxNumber(u64::MAX - *next), &spent))?;
        self.preparer.spend(&tx)
    }
}
