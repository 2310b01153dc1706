//! The figures of Core's `gettxoutsetinfo`: counts, total amount, and a hash of all coins.
//!
//! One walk over a [`Version`], so all figures are of one moment, whatever the writer does. Every
//! coin becomes the bytes of `Coin::write_for_hash`; what happens to them depends on the requested
//! hash:
//!
//! ```text
//!                 ┌─ None             nothing
//!  walk ─► bytes ─┼─ HashSerialized3  into one SHA-256, in the order of the walk
//!                 └─ Muhash           into batches of 256 KiB ─► bounded channel ─► N threads;
//!                                     each multiplies a product, and these are combined
//! ```
//!
//! Multiplication is commutative, so no thread waits for another. The walk produces coins many
//! times faster than one thread multiplies them; the bounded channel throttles it. Memory: the
//! walk's, and two batches a thread.

use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use bitcoin_hashes::{Hash as _, HashEngine as _, sha256};
use varve_types::muhash::MuHash;
use varve_types::{Amount, BlockHash, Coin, Height, Outpoint, Txid};

use crate::error::Error;
use crate::version::Version;

/// A batch is handed to a thread when it has this many bytes.
const BATCH_BYTES: usize = 256 << 10;
/// Progress is reported once per this many coins.
pub(crate) const PROGRESS_INTERVAL: u64 = 1 << 16;

/// Which hash of all coins to compute. Their costs differ widely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetHash {
    /// No hash: counts and sums only.
    None,
    /// MuHash3072: a few microseconds a coin, divided among the threads.
    Muhash,
    /// Double SHA-256 of all coins in order: cheap, but one thread.
    HashSerialized3,
}

/// Counts, sums and the hash of a set at one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// The last block of the set; `None` for the empty set.
    pub tip: Option<(Height, BlockHash)>,
    /// The number of coins.
    pub txouts: u64,
    /// The number of transactions that have a coin.
    pub transactions: u64,
    /// Core's measure of size, independent of any database.
    pub bogosize: u64,
    /// The sum of all coins; `None` when it exceeds 64 bits, as a forged snapshot may cause.
    pub total_amount: Option<Amount>,
    /// The requested hash, in internal byte order: Core shows it reversed.
    pub hash: Option<[u8; 32]>,
}

impl Version {
    /// Walks the whole set once. `progress` gets the number of coins done and the total.
    pub fn statistics(
        &self,
        hash: SetHash,
        threads: NonZeroUsize,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Statistics, Error> {
        match hash {
            SetHash::None => self.count(progress, |_, _| {}),
            SetHash::HashSerialized3 => self.count_serialized(progress),
            SetHash::Muhash => self.count_muhash(threads, progress),
        }
    }

    fn count_serialized(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Statistics, Error> {
        let mut engine = sha256::Hash::engine();
        let mut bytes = Vec::new();
        let counted = self.count(progress, |outpoint, coin| {
            bytes.clear();
            coin.write_for_hash(outpoint, &mut bytes);
            engine.input(&bytes);
        })?;
        let hash = sha256::Hash::from_engine(engine).hash_again().to_byte_array();
        Ok(Statistics { hash: Some(hash), ..counted })
    }

    fn count_muhash(
        &self,
        threads: NonZeroUsize,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Statistics, Error> {
        let (sender, receiver) = sync_channel(threads.get());
        let receiver = Mutex::new(receiver);
        let (counted, product) = thread::scope(|scope| {
            let multiplying: Vec<_> =
                (0..threads.get()).map(|_| scope.spawn(|| multiply(&receiver))).collect();
            let mut batches = Batches { batch: Batch::default(), sender };
            let counted = self.count(progress, |outpoint, coin| batches.push(outpoint, coin));
            batches.send();
            // Without a sender the channel ends, and so do the threads.
            drop(batches);
            let mut product = MuHash::new();
            for thread in multiplying {
                product.combine(&thread.join().expect("multiplying does not panic"));
            }
            (counted, product)
        });
        Ok(Statistics { hash: Some(product.finalize()), ..counted? })
    }

    /// Everything but the hash; `each` sees all coins in order.
    fn count(
        &self,
        progress: &mut dyn FnMut(u64, u64),
        mut each: impl FnMut(&Outpoint, &Coin<'_>),
    ) -> Result<Statistics, Error> {
        let expected = self.coin_count();
        let mut statistics = Statistics {
            tip: self.tip(),
            txouts: 0,
            transactions: 0,
            bogosize: 0,
            total_amount: Some(Amount::ZERO),
            hash: None,
        };
        let mut last: Option<Txid> = None;
        let mut walk = self.coins()?;
        while let Some((outpoint, coin)) = walk.next_coin()? {
            statistics.txouts += 1;
            statistics.transactions +=
                u64::from(last.replace(outpoint.txid) != Some(outpoint.txid));
            statistics.bogosize += coin.bogosize();
            statistics.total_amount =
                statistics.total_amount.and_then(|total| total.checked_add(coin.value));
            each(&outpoint, &coin);
            if statistics.txouts.is_multiple_of(PROGRESS_INTERVAL) {
                progress(statistics.txouts, expected);
            }
        }
        progress(statistics.txouts, expected);
        Ok(statistics)
    }
}

/// The bytes of some coins, and where each ends.
#[derive(Debug, Default)]
struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// Collects coins and hands them to the threads.
struct Batches {
    batch: Batch,
    sender: SyncSender<Batch>,
}

impl Batches {
    fn push(&mut self, outpoint: &Outpoint, coin: &Coin<'_>) {
        coin.write_for_hash(outpoint, &mut self.batch.bytes);
        self.batch.ends.push(self.batch.bytes.len());
        if self.batch.bytes.len() >= BATCH_BYTES {
            self.send();
        }
    }

    fn send(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        self.sender.send(batch).expect("the receiver outlives the threads and the sender");
    }
}

/// The product of all batches that this thread gets.
fn multiply(receiver: &Mutex<Receiver<Batch>>) -> MuHash {
    let mut product = MuHash::new();
    let next = || receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
    while let Ok(Batch { bytes, ends }) = next() {
        let mut start = 0;
        for end in ends {
            product.insert(bytes.get(start..end).unwrap_or_default());
            start = end;
        }
    }
    product
}
