//! Our own API, below `/api/varve/v1`: what the explorer shows, and what no other API asks for.
//!
//! | file | endpoints |
//! |---|---|
//! | `chain` | `status`, `health`, `ready`, `forks` |
//! | `block` | `blocks`, `block/{id}`, `block/{id}/txs` |
//! | `tx` | `tx/{txid}` |
//! | `outpoint` | `outpoint/{txid}/{vout}`, `proof/{txid}` |
//! | `script` | `script/{id}` and its `history`, `utxos`, `balance-history` |
//! | `set` | `set` |
//! | `mempool` | `mempool` |
//! | `search` | `search` |
//! | `sediment` | `sediment` |
//! | `events` | `events` |
//!
//! Every answer is a JSON object with `tip`, the block at which all of it was read. Hashes are hex
//! in the order in which programs show them, amounts are satoshi, rates satoshi per virtual byte,
//! times seconds since 1970. A refusal is an object with `error`, a sentence.
//!
//! No answer costs more than its limits say: lists have pages, sums over a long history are
//! bounded, and what a block's fee rates are is remembered.

mod block;
mod chain;
mod events;
mod mempool;
mod outpoint;
mod reply;
mod script;
mod script_text;
mod search;
mod sediment;
mod set;
mod tx;

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use varve::{BlockHash, Snapshot};

use crate::service::Service;
use block::FeeRates;
use reply::{Refused, Reply};

/// Streams of events that are open at the same time.
const STREAMS: usize = 1_024;
/// Blocks whose fee rates are remembered.
const REMEMBERED: usize = 1_024;

/// The state of the routes.
pub(crate) type Shared = Arc<Own>;

/// A service, and what is remembered between questions.
#[derive(Debug)]
pub(crate) struct Own {
    service: Arc<Service>,
    rates: Mutex<HashMap<BlockHash, Option<FeeRates>>>,
    projected: Mutex<Option<mempool::Projection>>,
    streams: Arc<Semaphore>,
}

/// The routes, below `/api/varve/v1`.
pub(crate) fn router<S: Clone + Send + Sync + 'static>(service: Arc<Service>) -> OpenApiRouter<S> {
    let own = Arc::new(Own {
        service,
        rates: Mutex::default(),
        projected: Mutex::default(),
        streams: Arc::new(Semaphore::new(STREAMS)),
    });
    OpenApiRouter::new()
        .routes(routes!(chain::status))
        .routes(routes!(chain::health))
        .routes(routes!(chain::ready))
        .routes(routes!(chain::forks))
        .routes(routes!(block::blocks))
        .routes(routes!(block::block))
        .routes(routes!(block::block_txs))
        .routes(routes!(tx::tx))
        .routes(routes!(outpoint::outpoint))
        .routes(routes!(outpoint::proof))
        .routes(routes!(script::script))
        .routes(routes!(script::history))
        .routes(routes!(script::utxos))
        .routes(routes!(script::balance_history))
        .routes(routes!(set::set))
        .routes(routes!(mempool::mempool))
        .routes(routes!(search::search))
        .routes(routes!(sediment::sediment))
        .routes(routes!(events::events))
        .with_state(own)
}

impl Own {
    /// Answers a question at one snapshot, in a thread that may block.
    async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        question: impl FnOnce(&Self, &Snapshot) -> Result<T, Refused> + Send + 'static,
    ) -> Result<Reply<T>, Refused> {
        let own = Arc::clone(self);
        self.service.ask(move |snapshot| question(&own, snapshot)).await.map(Reply)
    }
}

/// Remembers a value, and forgets all others when there are too many.
fn remember<K: Eq + Hash, V>(values: &mut HashMap<K, V>, key: K, value: V) {
    if values.len() >= REMEMBERED {
        values.clear();
    }
    values.insert(key, value);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
