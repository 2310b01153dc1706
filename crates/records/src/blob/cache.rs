//! A short-lived cache of the outputs of external transactions.
//!
//! Validating the spenders of a large transaction needs its outputs again and again. The cache
//! keeps the transaction without its inputs for a few seconds of the caller's clock, and reads a
//! blob once however many threads ask for it:
//!
//! 1. An entry that is there and not too old is the answer.
//! 2. If another thread is reading the blob, wait for it and retry from 1.
//! 3. Otherwise read it, strip the inputs, and keep it, when at least two outputs can be spent: a
//!    transaction with one has one spender.
//!
//! The cache is bounded in bytes: the oldest entry is evicted first, and what is larger than the
//! whole cache is not kept.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use varve_types::script::opcode::{OP_0, OP_RETURN};
use varve_types::{Amount, Format, Tx, TxOut, Txid, compact_size};

use crate::extended::Transaction;

/// Bytes that the cache of a store keeps.
pub(crate) const CACHE_CAPACITY: u64 = 256 << 20;

/// How much is kept and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheConfig {
    /// How long an entry is good, in milliseconds.
    pub lifetime_ms: u64,
    /// The bytes of all entries together.
    pub capacity: u64,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self { lifetime_ms: 10_000, capacity: CACHE_CAPACITY }
    }
}

/// Transactions without inputs, by txid.
#[derive(Debug)]
pub(crate) struct ExternalCache {
    config: CacheConfig,
    state: Mutex<State>,
    read: Condvar,
}

#[derive(Debug, Default)]
struct State {
    entries: BTreeMap<Txid, Entry>,
    /// The order in which entries came.
    order: VecDeque<(Txid, u64)>,
    bytes: u64,
    reading: BTreeSet<Txid>,
}

#[derive(Debug)]
struct Entry {
    tx: Transaction,
    expires: u64,
}

impl ExternalCache {
    /// An empty cache.
    #[must_use]
    pub(crate) fn new(config: CacheConfig) -> Self {
        Self { config, state: Mutex::default(), read: Condvar::new() }
    }

    /// The outputs of a transaction: a transaction without inputs, or all of it when its outputs
    /// are larger than the cache. `load` reads it when it is not here, and is called by one of all
    /// who ask at the same time.
    pub(crate) fn get<E>(
        &self,
        txid: Txid,
        now_ms: u64,
        load: impl FnOnce() -> Result<Transaction, E>,
    ) -> Result<Transaction, E> {
        let mut state = self.lock();
        loop {
            if let Some(entry) = state.entries.get(&txid).filter(|entry| entry.expires > now_ms) {
                return Ok(entry.tx.clone());
            }
            if state.reading.insert(txid) {
                break;
            }
            state = self.read.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        let reading = Reading { cache: self, txid };
        let loaded = load()?;
        let outputs_len = outputs_len(&loaded.view());
        if outputs_len as u64 > self.config.capacity {
            // It is not kept, so a copy without inputs would only be a second one.
            return Ok(loaded);
        }
        let tx = without_inputs(&loaded, outputs_len);
        drop(loaded);
        let active = tx.view().outputs().filter(is_active).take(2).count();
        if active >= 2 {
            self.keep(txid, &tx, now_ms);
        }
        drop(reading);
        Ok(tx)
    }

    /// Forgets a transaction.
    pub(crate) fn forget(&self, txid: Txid) {
        let mut state = self.lock();
        state.remove(txid);
    }

    fn keep(&self, txid: Txid, tx: &Transaction, now_ms: u64) {
        let len = tx.bytes().len() as u64;
        if len > self.config.capacity {
            return;
        }
        let mut state = self.lock();
        state.remove(txid);
        state.expire(now_ms);
        while state.bytes + len > self.config.capacity {
            let Some((oldest, _)) = state.order.pop_front() else { break };
            state.remove(oldest);
        }
        let expires = now_ms.saturating_add(self.config.lifetime_ms);
        state.bytes += len;
        state.order.push_back((txid, expires));
        state.entries.insert(txid, Entry { tx: tx.clone(), expires });
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn remove(&mut self, txid: Txid) {
        if let Some(entry) = self.entries.remove(&txid) {
            self.bytes -= entry.tx.bytes().len() as u64;
            self.order.retain(|(other, _)| *other != txid);
        }
    }

    fn expire(&mut self, now_ms: u64) {
        while let Some((txid, _)) = self.order.front().filter(|(_, expires)| *expires <= now_ms) {
            self.remove(*txid);
        }
    }
}

/// Marks a blob as being read; dropping it wakes the waiters, also after a failure.
struct Reading<'a> {
    cache: &'a ExternalCache,
    txid: Txid,
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.cache.lock().reading.remove(&self.txid);
        self.cache.read.notify_all();
    }
}

/// Looser than [`is_stored`](crate::slot::is_stored): worthless outputs that begin with either
/// opcode do not count.
fn is_active(output: &TxOut<'_>) -> bool {
    let data = matches!(output.script.first(), Some(&(OP_0 | OP_RETURN)));
    output.value > Amount::ZERO || !data
}

/// The bytes of the outputs.
fn outputs_len(tx: &Tx<'_>) -> usize {
    let len = |output: TxOut<'_>| {
        let script = output.script.len();
        8 + compact_size::len(script as u64) + script
    };
    tx.outputs().map(len).sum()
}

/// The same transaction with no inputs, under the same txid.
fn without_inputs(tx: &Transaction, outputs_len: usize) -> Transaction {
    let view = tx.view();
    let mut bytes = Vec::with_capacity(4 + 1 + compact_size::MAX_LEN + outputs_len + 4);
    bytes.extend_from_slice(&view.version().to_le_bytes());
    compact_size::write(0, &mut bytes);
    compact_size::write(view.outputs().len() as u64, &mut bytes);
    view.outputs().for_each(|output| output.write(&mut bytes));
    bytes.extend_from_slice(&view.lock_time().to_le_bytes());
    Transaction::parse_with_txid(bytes.into(), Format::Legacy, tx.txid())
        .expect("made of the parts of a transaction")
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use varve_consensus::contract::draft::TxDraft;
    use varve_types::Outpoint;

    use super::*;

    fn tx(outputs: usize) -> Transaction {
        let draft = TxDraft::spending(&[Outpoint::new(Txid::ZERO, 1)], outputs);
        Transaction::parse(draft.bytes().into(), Format::Legacy).unwrap()
    }

    fn reads(cache: &ExternalCache, tx: &Transaction, now_ms: u64) -> usize {
        let count = Cell::new(0);
        let load = || {
            count.set(count.get() + 1);
            Ok::<_, Infallible>(tx.clone())
        };
        let found = cache.get(tx.txid(), now_ms, load).unwrap();
        assert_eq!(found.txid(), tx.txid());
        let kept = cache.lock().entries.contains_key(&tx.txid());
        assert!(!kept || found.view().inputs().len() == 0);
        assert!(found.view().outputs().eq(tx.view().outputs()));
        count.get()
    }

    #[test]
    fn an_entry_is_good_for_ten_seconds() {
        let cache = ExternalCache::new(CacheConfig::default());
        let tx = tx(2);
        assert_eq!([0, 9_999, 10_000].map(|now| reads(&cache, &tx, now)), [1, 0, 1]);
        cache.forget(tx.txid());
        assert_eq!(reads(&cache, &tx, 10_001), 1);
    }

    #[test]
    fn one_output_is_not_worth_keeping() {
        let cache = ExternalCache::new(CacheConfig::default());
        assert_eq!([0, 1].map(|now| reads(&cache, &tx(1), now)), [1, 1]);
    }

    #[test]
    fn the_oldest_goes_when_the_cache_is_full() {
        let (one, two, three) = (tx(2), tx(3), tx(300));
        let capacity = (one.bytes().len() + two.bytes().len()) as u64 - 83;
        let cache = ExternalCache::new(CacheConfig { capacity, ..CacheConfig::default() });
        assert_eq!([&one, &two, &two].map(|tx| reads(&cache, tx, 0)), [1, 1, 0]);
        assert_eq!(reads(&cache, &one, 0), 1, "it made room");
        assert_eq!([0, 1].map(|now| reads(&cache, &three, now)), [1, 1], "larger than all");
        assert_eq!(reads(&cache, &one, 0), 0);
    }

    #[test]
    fn many_who_ask_at_once_read_once_and_a_failure_lets_the_next_try() {
        let cache = ExternalCache::new(CacheConfig::default());
        let tx = tx(2);
        let count = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    loop {
                        let load = || match count.fetch_add(1, Ordering::SeqCst) {
                            0 => Err("the first one fails"),
                            _ => Ok(tx.clone()),
                        };
                        if cache.get(tx.txid(), 0, load).is_ok() {
                            break;
                        }
                    }
                });
            }
        });
        assert_eq!(count.load(Ordering::SeqCst), 2);
    }
}
