//! What all routes share, and the one moment at which a request is answered.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, io};

use tokio::sync::Semaphore;
use varve::types::{Block, Tx, compact_size};
use varve::{
    Amount, BlockHash, BlockHeader, Error, Mempool, MempoolEntry, Network, Outpoint, Snapshot,
    Spender, Tip, Transaction, Txid,
};

use super::answer::{Answer, Refusal};
use super::conduit::Conduit;
use super::esplora::AddressBook;
use super::limits::HttpLimits;
use super::streaming::STREAMS;
use crate::service::Service;

/// The state of the routes.
pub(crate) type Shared = Arc<Api>;

/// What all routes share.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) service: Arc<Service>,
    pub(crate) limits: HttpLimits,
    pub(crate) token: Option<Token>,
    pub(crate) conduit: Conduit,
    pub(crate) addresses: Mutex<AddressBook>,
    /// The places of bodies that are produced while they are sent.
    pub(crate) streams: Arc<Semaphore>,
    sizes: Mutex<HashMap<BlockHash, BlockSize>>,
}

/// What a client must know to change things. Never shown.
pub(crate) struct Token(String);

impl Token {
    /// Whether a client knows it. Takes the same time for every wrong guess of the same length.
    pub(crate) fn is(&self, given: &str) -> bool {
        let differs = |(one, other): (u8, u8)| one ^ other;
        let pairs = self.0.bytes().zip(given.bytes()).map(differs);
        self.0.len() == given.len() && pairs.fold(0, |all, pair| all | pair) == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Blocks whose sizes are remembered.
const REMEMBERED: usize = 4_096;

/// How large a block is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockSize {
    pub(crate) tx_count: usize,
    pub(crate) size: usize,
    pub(crate) weight: usize,
}

impl Api {
    pub(crate) fn new(
        service: Arc<Service>,
        limits: HttpLimits,
        token: Option<String>,
    ) -> io::Result<Shared> {
        let conduit = Conduit::open(service.node.path())?;
        let (addresses, sizes) = (Mutex::default(), Mutex::default());
        let token = token.map(Token);
        let streams = Arc::new(Semaphore::new(STREAMS));
        Ok(Arc::new(Self { service, limits, token, conduit, addresses, streams, sizes }))
    }

    /// Answers a request at one snapshot, in a thread that may block.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        question: impl FnOnce(&Moment<'_>) -> Result<Answer, Refusal> + Send + 'static,
    ) -> Answer {
        let api = Arc::clone(self);
        self.service
            .ask(move |snapshot| {
                let moment = Moment::new(&api, snapshot);
                let answer = question(&moment).unwrap_or_else(Answer::from);
                answer.at(moment.tip())
            })
            .await
    }
}

/// One moment of the node, and the questions that routes have in common.
#[derive(Debug)]
pub(crate) struct Moment<'a> {
    pub(crate) api: &'a Api,
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) mempool: Option<Arc<Mempool>>,
}

/// A transaction, confirmed or not.
#[derive(Debug)]
pub(crate) enum Found {
    /// In a stored block, which may be stale.
    Stored(Transaction),
    Unconfirmed(MempoolEntry),
}

/// The input that spends an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spend {
    pub(crate) txid: Txid,
    pub(crate) vin: u32,
    /// Its block; `None` while it is unconfirmed.
    pub(crate) block: Option<BlockHash>,
}

impl<'a> Moment<'a> {
    pub(crate) fn new(api: &'a Api, snapshot: &'a Snapshot) -> Self {
        Self { api, snapshot, mempool: snapshot.mempool() }
    }

    pub(crate) fn tip(&self) -> Tip {
        self.snapshot.tip()
    }

    pub(crate) fn network(&self) -> Network {
        self.snapshot.network()
    }

    /// A transaction of the mempool or of a stored block, on any branch.
    pub(crate) fn tx(&self, txid: Txid) -> Result<Option<Found>, Refusal> {
        if let Some(entry) = self.entry(&txid) {
            return Ok(Some(Found::Unconfirmed(entry.clone())));
        }
        Ok(self.snapshot.tx(txid)?.map(Found::Stored))
    }

    /// An unconfirmed transaction.
    pub(crate) fn entry(&self, txid: &Txid) -> Option<&MempoolEntry> {
        self.mempool.as_ref().and_then(|mempool| mempool.entry(txid))
    }

    /// The input that spends an output, confirmed or not; `None` when nothing does, also when no
    /// such output is known.
    pub(crate) fn spend(&self, outpoint: Outpoint) -> Result<Option<Spend>, Refusal> {
        let unconfirmed = self.mempool.as_ref().and_then(|mempool| mempool.spender(&outpoint));
        if let Some(spender) = unconfirmed {
            return Ok(Some(Spend { txid: spender.txid, vin: spender.vin, block: None }));
        }
        let confirmed = match self.snapshot.spender(outpoint) {
            Err(Error::UnknownOutput { .. }) => None,
            found => found?,
        };
        let spend = |Spender { txid, vin, block, .. }| Spend { txid, vin, block: Some(block) };
        Ok(confirmed.map(spend))
    }

    /// A block's header and size, on any branch; `None` when its bytes were never stored.
    pub(crate) fn block(
        &self,
        hash: BlockHash,
    ) -> Result<Option<(BlockHeader, BlockSize)>, Refusal> {
        let known = self.sizes().get(&hash).copied();
        if let Some(size) = known {
            return Ok(self.snapshot.header(hash)?.map(|header| (header, size)));
        }
        let Some(block) = self.stored(hash)? else { return Ok(None) };
        let size = BlockSize::of(&block.parse()?);
        let mut sizes = self.sizes();
        if sizes.len() >= REMEMBERED {
            sizes.clear();
        }
        sizes.insert(hash, size);
        Ok(Some((block.header, size)))
    }

    fn sizes(&self) -> std::sync::MutexGuard<'a, HashMap<BlockHash, BlockSize>> {
        self.api.sizes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block with its bytes, on any branch; `None` when they were never stored.
    pub(crate) fn stored(&self, hash: BlockHash) -> Result<Option<varve::Block>, Refusal> {
        match self.snapshot.block(hash) {
            Err(Error::NotStored { .. } | Error::Refused { .. }) => Ok(None),
            found => Ok(found?),
        }
    }
}

impl BlockSize {
    fn of(block: &Block<'_>) -> Self {
        let frame = 80 + compact_size::len(block.txs().len() as u64);
        let txs: usize = block.txs().iter().map(weight).sum();
        Self {
            tx_count: block.txs().len(),
            size: block.bytes().len(),
            weight: frame * WITNESS_SCALE + txs,
        }
    }
}

/// How much more a byte outside of the witness weighs (BIP141).
const WITNESS_SCALE: usize = 4;

/// The weight of a transaction in the form that blocks have (BIP141).
pub(crate) fn weight(tx: &Tx<'_>) -> usize {
    tx.base_len() * (WITNESS_SCALE - 1) + tx.bytes().len()
}

/// The sum of amounts, as far as it can be written.
pub(crate) fn total(amounts: impl Iterator<Item = Amount>) -> u64 {
    amounts.fold(0, |sum, amount| amount.to_sat().saturating_add(sum))
}
