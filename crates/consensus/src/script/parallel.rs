//! The threads that check scripts.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use varve_types::TxOut;

use super::ScriptFlags;
use crate::block_at::BlockAt;
use crate::verifier::{ScriptVerifier, SpendingTx, VerifyError};
use crate::view::Spend;

/// Inputs in a chunk: half a millisecond, much more than taking a chunk costs, and few
/// enough that threads end together.
const CHUNK: usize = 16;

/// Some inputs of one transaction.
struct Chunk {
    tx: usize,
    /// The spends of the whole transaction, in the list of the block.
    spends: Range<usize>,
    /// The inputs to check.
    inputs: Range<usize>,
}

/// The first spend in block order whose script fails.
pub(super) fn first_failure<'s, S: ScriptVerifier>(
    block: &BlockAt<'_>,
    spends: &'s [Spend<'s>],
    flags: ScriptFlags,
    verifier: &S,
    threads: NonZeroUsize,
) -> Option<(&'s Spend<'s>, VerifyError)> {
    let outputs: Vec<_> = spends
        .iter()
        .map(|spend| TxOut { value: spend.coin.value, script: spend.coin.script })
        .collect();
    let chunks = chunks(spends);
    let check = |chunk: &Chunk| {
        let tx = block.block().txs().get(chunk.tx).expect("the view gives the spends of the block");
        let spent = outputs.get(chunk.spends.clone()).expect("a chunk is within the list");
        let result = verifier.verify(&SpendingTx { tx, spent }, chunk.inputs.clone(), flags);
        result.err().map(|(vin, error)| (chunk.spends.start + vin, error))
    };

    // Threads take chunks in block order by `next`, until one has failed. All chunks below that
    // one have been taken by then, and a chunk that was taken is checked.
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let work = || {
        while !failed.load(Ordering::Relaxed) {
            let chunk = chunks.get(next.fetch_add(1, Ordering::Relaxed))?;
            if let Some(failure) = check(chunk) {
                failed.store(true, Ordering::Relaxed);
                return Some(failure);
            }
        }
        None
    };
    let helpers = threads.get().min(chunks.len()).saturating_sub(1);
    let failure = std::thread::scope(|scope| {
        let helpers: Vec<_> = (0..helpers).map(|_| scope.spawn(work)).collect();
        let own = work();
        let others = helpers.into_iter().map(|helper| helper.join().expect("no check panics"));
        others.chain([own]).flatten().min_by_key(|(spend, _)| *spend)
    });
    failure.and_then(|(spend, error)| spends.get(spend).map(|spend| (spend, error)))
}

fn chunks(spends: &[Spend<'_>]) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    let mut start = 0;
    for of_one_tx in spends.chunk_by(|one, next| one.tx == next.tx) {
        let count = of_one_tx.len();
        let tx = of_one_tx.first().map_or(0, |spend| spend.tx);
        for first in (0..count).step_by(CHUNK) {
            let inputs = first..count.min(first + CHUNK);
            chunks.push(Chunk { tx, spends: start..start + count, inputs });
        }
        start += count;
    }
    chunks
}
