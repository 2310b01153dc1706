//! The script checks of one block, cut into chunks that any number of threads take.
//!
//! 1. [`ScriptChecks::new`] walks the spends of the block and prepares each transaction once. What
//!    it makes borrows nothing: threads that outlive the view can take part.
//! 2. [`ScriptChecks::run`] is called by as many threads as are available, at any time. It takes
//!    chunks in block order from a shared counter. After a failure no more are taken, but those
//!    already taken are checked, and all below the failure are among them. So the answer does not
//!    depend on the number of threads.
//! 3. When all of them have returned, [`ScriptChecks::verdict`] names the first input in block
//!    order that fails.
//!
//! The prepared transactions take about 500 bytes an input and a copy of each script that is spent.
//! Scripts are usually short, and a full block takes less than 10 MB. The bound is 24,390 inputs
//! (4,000,000 weight units of 164 each) that spend scripts of 10,000 bytes: 244 MB. An attacker
//! must first have put as many bytes of such outputs into the chain.

use std::convert::Infallible;
use std::ops::{ControlFlow, Range};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use varve_types::TxOut;

use super::{ScriptError, ScriptFlags};
use crate::block_at::BlockAt;
use crate::params::Params;
use crate::verifier::{PreparedTx, ScriptVerifier, SpendingTx, VerifyError};
use crate::view::{CheckError, Spend, UnspentOutputsView};

/// Inputs in a chunk: half a millisecond, much more than taking a chunk costs, and few enough that
/// threads finish at about the same time.
const CHUNK: usize = 16;

/// The script checks of one block.
#[derive(Debug)]
pub struct ScriptChecks<P> {
    flags: ScriptFlags,
    /// The transactions that spend, in block order.
    txs: Vec<P>,
    chunks: Vec<Chunk>,
    /// The next chunk to take.
    next: AtomicUsize,
    /// How many chunks have been checked.
    done: AtomicUsize,
    failed: AtomicBool,
}

/// Some inputs of one transaction.
#[derive(Debug)]
struct Chunk {
    /// The place of the transaction in the block.
    place: usize,
    /// Its place among those that spend.
    tx: usize,
    inputs: Range<usize>,
    /// The first input that failed. Set by the one thread that took the chunk.
    failure: OnceLock<(usize, VerifyError)>,
}

impl<P: PreparedTx> ScriptChecks<P> {
    /// Prepares the transactions of a block whose spends are in `view`.
    pub fn new<V: UnspentOutputsView>(
        params: &Params,
        block: &BlockAt<'_>,
        view: &V,
        verifier: &impl ScriptVerifier<Prepared = P>,
    ) -> Result<Self, CheckError<ScriptError, V::Error>> {
        let network = params.network;
        if network.is_bsv() {
            return Err(CheckError::Invalid(ScriptError::Unsupported { network }));
        }
        let mut spends = Vec::new();
        let walk = view.for_each_spend(block, |spend| {
            spends.push(spend);
            ControlFlow::<Infallible>::Continue(())
        });
        let ControlFlow::Continue(()) = walk.map_err(|error| error.map(ScriptError::Prevout))?;
        let mut checks = Self {
            flags: ScriptFlags::of(params, block),
            txs: Vec::new(),
            chunks: Vec::new(),
            next: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
        };
        let mut spent = Vec::new();
        for of_one_tx in spends.chunk_by(|one, next| one.tx == next.tx) {
            spent.clear();
            spent.extend(
                of_one_tx
                    .iter()
                    .map(|Spend { coin, .. }| TxOut { value: coin.value, script: coin.script }),
            );
            let place = of_one_tx.first().map_or(0, |spend| spend.tx);
            let prepared = prepare(block, place, &spent, verifier);
            checks.push(place, prepared.map_err(CheckError::Invalid)?, spent.len());
        }
        Ok(checks)
    }

    fn push(&mut self, place: usize, prepared: P, inputs: usize) {
        let tx = self.txs.len();
        self.txs.push(prepared);
        for first in (0..inputs).step_by(CHUNK) {
            let inputs = first..inputs.min(first + CHUNK);
            self.chunks.push(Chunk { place, tx, inputs, failure: OnceLock::new() });
        }
    }

    /// How many threads can take part.
    #[must_use]
    pub const fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// Whether there is something left to take.
    #[must_use]
    pub fn has_work(&self) -> bool {
        !self.failed.load(Ordering::Relaxed)
            && self.next.load(Ordering::Relaxed) < self.chunks.len()
    }

    /// Takes chunks and checks them, until none is left or `go_on`, which is called before each
    /// chunk, returns false.
    pub fn run(&self, go_on: impl Fn() -> bool) {
        while self.has_work() && go_on() {
            let taken = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(chunk) = self.chunks.get(taken) else { return };
            if let Some(failure) = self.check(chunk) {
                self.failed.store(true, Ordering::Relaxed);
                // No other thread has taken this chunk.
                let _ = chunk.failure.set(failure);
            }
            self.done.fetch_add(1, Ordering::Release);
        }
    }

    fn check(&self, chunk: &Chunk) -> Option<(usize, VerifyError)> {
        let tx = self.txs.get(chunk.tx).expect("a chunk is of a transaction in the list");
        chunk.inputs.clone().find_map(|input| {
            let failed = tx.verify(input, self.flags).err();
            failed.map(|error| (input, error))
        })
    }

    /// The first failure in block order. Every thread has returned from [`ScriptChecks::run`], and
    /// at least one was not stopped early. `block` is the one that this was made of.
    ///
    /// # Panics
    ///
    /// When chunks are left that nobody has checked: a block never passes by mistake.
    pub fn verdict(&self, block: &BlockAt<'_>) -> Result<(), ScriptError> {
        let failure = self.chunks.iter().find_map(|chunk| {
            let (input, error) = chunk.failure.get()?;
            Some((chunk.place, *input, error.clone()))
        });
        match failure {
            None => {
                let done = self.done.load(Ordering::Acquire);
                assert_eq!(done, self.chunks.len(), "a verdict before all scripts are checked");
                Ok(())
            }
            Some((place, input, error)) => Err(failed(block, place, input, error)),
        }
    }
}

fn prepare<S: ScriptVerifier>(
    block: &BlockAt<'_>,
    place: usize,
    spent: &[TxOut<'_>],
    verifier: &S,
) -> Result<S::Prepared, ScriptError> {
    let tx = block.block().txs().get(place).expect("the view gives the spends of the block");
    let prepared = verifier.prepare(&SpendingTx { tx, spent });
    prepared.map_err(|error| failed(block, place, 0, error))
}

fn failed(block: &BlockAt<'_>, place: usize, vin: usize, error: VerifyError) -> ScriptError {
    let tx = block.block().txs().get(place).expect("the view gives the spends of the block");
    let input = tx.inputs().nth(vin).expect("every spend is an input of its transaction");
    let txid = *block.txids().get(place).expect("every transaction has a txid");
    ScriptError::Failed { txid, vin, outpoint: input.outpoint, error }
}
