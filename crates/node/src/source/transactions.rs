//! The talk about unconfirmed transactions, which begins when the receiver has caught up.
//!
//! Two kinds of sources have transactions, and some have none:
//!
//! | source | who judges | what it says | what it is asked |
//! |---|---|---|---|
//! | `p2p` | we do | `Offered`, `Given` | `want_txs` |
//! | `rpc` | the node | `Listed`, `Changed`, `Fetched` | `list_txs`, `fetch_txs` |
//! | `live` | we do | `Given` | – |
//! | files, pipes | – | – | – |
//!
//! The receiver begins it by [`relay`](super::Source::relay). Transactions that a user hands in go
//! the other way: by [`announce`](super::Source::announce) to peers, once our own mempool has taken
//! them; or through the [`Gateway`] to the node that decides, and into our own mempool afterwards.

use std::fmt;

use bytes::Bytes;
use varve_types::{Txid, Wtxid};

use super::Giver;
use crate::mempool::{Acceptance, FeedEvent, Listing};

/// What a transaction is called between nodes: by its txid, or with witnesses (BIP339).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TxName {
    /// The hash without witnesses.
    Txid(Txid),
    /// The hash with them.
    Wtxid(Wtxid),
}

/// What a source says of unconfirmed transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TxNews {
    /// A giver has these. The receiver asks for those that it wants.
    Offered {
        /// The transactions.
        names: Vec<TxName>,
        /// Who has them.
        giver: Giver,
    },
    /// A transaction that a giver was asked for, or that a maker in this process sends. We judge
    /// it.
    Given {
        /// The transaction.
        tx: Bytes,
        /// Its hash with witnesses.
        wtxid: Wtxid,
        /// Who gave it.
        giver: Giver,
    },
    /// All transactions of the node that decides.
    Listed(Listing),
    /// A change of the mempool of the node that decides.
    Changed(FeedEvent),
    /// Transactions that the node that decides was asked for; `None` where it has one no more.
    Fetched(Vec<(Txid, Option<Bytes>)>),
}

/// A transaction of our own, for peers.
#[derive(Clone, Debug)]
pub struct OwnTx {
    /// Its hash without witnesses.
    pub txid: Txid,
    /// Its hash with them.
    pub wtxid: Wtxid,
    /// Its bytes.
    pub bytes: Bytes,
}

/// Why a node did not take a transaction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GatewayError {
    /// It refuses, for this reason.
    #[error("{0}")]
    Refused(String),
    /// It does not answer.
    #[error("{0}")]
    Unreachable(String),
}

/// The way of a transaction to the node that decides. Each call waits for the node's answer, and
/// may be made in any thread.
pub trait Gateway: fmt::Debug + Send + Sync {
    /// Hands a transaction in (`sendrawtransaction`).
    fn send(&self, tx: &[u8]) -> Result<Txid, GatewayError>;

    /// Hands a child and its parents in, the child last (`submitpackage`). Answers for each in
    /// their order.
    fn send_package(&self, txs: &[Bytes]) -> Result<Vec<Result<Txid, String>>, GatewayError>;

    /// Asks what would become of transactions (`testmempoolaccept`).
    fn test(&self, txs: &[Bytes]) -> Result<Vec<Acceptance>, GatewayError>;
}
