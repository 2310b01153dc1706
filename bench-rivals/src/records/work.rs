//! The work of a race as one file, which the parent pipes into each child.
//!
//! ```text
//! │ stock u32 │ transaction │ … │ batches u32 │ units u32 │ transaction │ … │ …
//!               length u32, extended form        a batch
//! ```
//!
//! The stock is sorted by txid, so that stores of keys and values can load it as they like best.
//! Batch *n* belongs to caller *n* mod 2. A caller spends only its own outputs: the stock with its
//! parity, and what it created. So the result does not depend on which caller is faster.
//!
//! Half of the spends take any unspent output of the stock, half one of the last 50,000
//! transactions of the caller, some of them in the same batch.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use varve_records::engine::Context;
use varve_records::operation::Unit;
use varve_records::record::{BlockId, BlockRef};
use varve_records::{CreateOptions, Operation, Settings, SpendRules, Transaction};
use varve_types::{Height, Outpoint, Txid};

use super::transaction::{self, Output, STOCK_VALUE, TxNumber};
use varve_testdata::Random;

/// Callers at the same time.
pub(super) const CALLERS: u32 = 2;
/// Units of a batch.
pub(super) const BATCH: u32 = 1_000;
/// The last transactions of a caller, which half of the spends use.
const YOUNG: usize = 50_000;
/// No transaction of ours is near this.
const TRANSACTION_MAX: u32 = 4 << 20;
const SEED: u64 = 42;

/// How large a race is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Records there are before the first batch.
    pub(super) stock: u32,
    /// Batches before the clock starts.
    pub(super) warm_up: u32,
    /// Batches by the clock.
    pub(super) timed: u32,
}

impl Plan {
    /// Records at the end.
    pub(super) fn records(&self) -> u64 {
        u64::from(self.stock) + u64::from((self.warm_up + self.timed) * BATCH)
    }

    /// Writes the work.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let file = File::create(path).with_context(|| format!("cannot make {}", path.display()))?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        out.write_all(&self.stock.to_le_bytes())?;
        let mut sorted = Vec::with_capacity(self.stock as usize);
        for number in 0..self.stock {
            let bytes = transaction::stock(TxNumber(u64::from(number)), 2);
            sorted.push((transaction::parse(bytes)?.txid(), number));
        }
        sorted.sort_unstable();
        for (_, number) in &sorted {
            put(&transaction::stock(TxNumber(u64::from(*number)), 2), &mut out)?;
        }
        let batches = self.warm_up + self.timed;
        out.write_all(&batches.to_le_bytes())?;
        let mut callers: Vec<Caller> =
            (0..CALLERS).map(|caller| Caller::new(caller, self)).collect();
        let mut txids = vec![Txid::ZERO; self.stock as usize];
        for (txid, number) in sorted {
            *txids.get_mut(number as usize).context("a number of the stock")? = txid;
        }
        for batch in 0..batches {
            let caller = callers.get_mut((batch % CALLERS) as usize).context("a caller")?;
            out.write_all(&BATCH.to_le_bytes())?;
            for _ in 0..BATCH {
                put(&caller.next(&txids)?, &mut out)?;
            }
        }
        out.flush()?;
        Ok(())
    }
}

fn put(bytes: &[u8], out: &mut impl Write) -> Result<()> {
    out.write_all(&u32::try_from(bytes.len())?.to_le_bytes())?;
    out.write_all(bytes)?;
    Ok(())
}

/// Makes the transactions of one caller.
#[derive(Debug)]
struct Caller {
    parity: u32,
    random: Random,
    next: u64,
    /// Which outputs of the stock are spent, by number and output.
    spent: Vec<[bool; 2]>,
    /// What it created and did not spend yet.
    young: Vec<Output>,
}

impl Caller {
    fn new(parity: u32, plan: &Plan) -> Self {
        let random = Random::new(SEED + u64::from(parity));
        let next = u64::from(plan.stock.next_multiple_of(CALLERS) + parity);
        let spent = vec![[false; 2]; plan.stock as usize];
        Self { parity, random, next, spent, young: Vec::new() }
    }

    fn next(&mut self, stock: &[Txid]) -> Result<Vec<u8>> {
        let old = self.random.index(2) == 0 || self.young.is_empty();
        let spent = if old { self.old(stock)? } else { self.young() };
        let number = TxNumber(self.next);
        self.next += u64::from(CALLERS);
        let bytes = transaction::child(number, &spent);
        let txid = transaction::parse(bytes.clone())?.txid();
        for vout in 0..2 {
            let (outpoint, value) = (Outpoint::new(txid, vout), spent.value / 2);
            self.young.push(Output { of: number, outpoint, value });
        }
        Ok(bytes)
    }

    /// Any unspent output of the stock with the caller's parity.
    fn old(&mut self, stock: &[Txid]) -> Result<Output> {
        loop {
            let half = self.random.index(stock.len() / CALLERS as usize);
            let number = half * CALLERS as usize + self.parity as usize;
            let vout = self.random.index(2);
            let places = self.spent.get_mut(number).context("the stock is too small")?;
            let place = places.get_mut(vout).context("two outputs")?;
            if std::mem::replace(place, true) {
                continue;
            }
            let txid = *stock.get(number).context("the stock is too small")?;
            let outpoint = Outpoint::new(txid, u32::try_from(vout)?);
            return Ok(Output { of: TxNumber(number as u64), outpoint, value: STOCK_VALUE });
        }
    }

    /// An output of the last transactions.
    fn young(&mut self) -> Output {
        let far = self.young.len().min(2 * YOUNG);
        let place = self.young.len() - 1 - self.random.index(far);
        self.young.swap_remove(place)
    }
}

/// The height and retention passed to the engine with every unit.
pub(super) const CONTEXT: Context = Context { height: Height::new(100), retention: 288 };

/// What the stock is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StockState {
    /// Transactions that no block has.
    Unmined,
    /// Transactions in a block, as most of a large store are.
    Mined,
}

/// Turns transactions into units, which is not part of the race.
#[derive(Debug)]
pub(super) struct Preparer {
    settings: Settings,
    stock: CreateOptions,
    options: CreateOptions,
}

impl Preparer {
    pub(super) fn new(state: StockState) -> Self {
        let options =
            CreateOptions { height: CONTEXT.height, created_at: 1, ..CreateOptions::default() };
        let block = BlockRef { id: BlockId(1), height: Height::new(90), subtree: 0 };
        let blocks = if state == StockState::Mined { vec![block] } else { Vec::new() };
        let stock = CreateOptions { blocks, ..options.clone() };
        Self { settings: Settings::default(), stock, options }
    }

    /// Creates a record of the stock.
    pub(super) fn create(&self, tx: &Transaction) -> Result<Operation> {
        Ok(Unit::create(tx, &self.stock, &self.settings)?.into())
    }

    /// Spends and creates.
    pub(super) fn both(&self, tx: &Transaction) -> Result<Operation> {
        let unit = Unit::spend_and_create(tx, rules(), &self.options, &self.settings)?;
        Ok(unit.into())
    }

    /// Spends.
    pub(super) fn spend(&self, tx: &Transaction) -> Result<Operation> {
        Ok(Unit::spend(tx, rules())?.into())
    }
}

const fn rules() -> SpendRules {
    SpendRules::at(Height::new(101))
}

/// Reads the work, in the order in which it was written.
#[derive(Debug)]
pub(super) struct Work<R> {
    input: R,
}

impl<R: Read> Work<R> {
    pub(super) const fn new(input: R) -> Self {
        Self { input }
    }

    /// A number: of the transactions of the stock, of the batches, of the units of a batch.
    pub(super) fn count(&mut self) -> Result<u32> {
        let mut bytes = [0; 4];
        self.input.read_exact(&mut bytes).context("the work ends too early")?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// The next transaction.
    pub(super) fn transaction(&mut self) -> Result<Transaction> {
        let len = self.count()?;
        ensure!(len <= TRANSACTION_MAX, "a transaction of {len} bytes in the work");
        let mut bytes = vec![0; len as usize];
        self.input.read_exact(&mut bytes)?;
        transaction::parse(bytes)
    }
}
