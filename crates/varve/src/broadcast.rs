//! Transactions that a user hands in.
//!
//! | source of the sync | who decides | then |
//! |---|---|---|
//! | a node's RPC interface | that node (`sendrawtransaction`) | our mempool takes it too |
//! | peers | our mempool: consensus, scripts and a few rules | it is announced to all peers |
//! | files, pipes, makers in this process | our mempool | nobody else is told |
//!
//! All of it needs a sync that follows and has caught up, in any thread of this process.

use bytes::Bytes;
use varve_node::mempool::{Acceptance, Judge, Reject};
use varve_node::source::transactions::GatewayError;
use varve_node::{Desk, DeskError, Order, Reply};
use varve_types::{Network, Tx, Txid};

use crate::node::{Front, Node};

/// Why a transaction was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BroadcastError {
    /// The bytes are no transaction.
    #[error("the bytes are no transaction: {reason}")]
    Decode {
        /// What is wrong with them.
        reason: String,
    },
    /// The mempool, ours or that of the node that decides, does not take it.
    #[error("the transaction is refused: {reason}")]
    Refused {
        /// Why.
        reason: String,
    },
    /// There is no mempool, or the node that decides does not answer.
    #[error("transactions cannot be sent now: {reason}")]
    Unavailable {
        /// Why, and what to do.
        reason: String,
    },
}

impl Node {
    /// Hands a transaction in. One that is in the mempool already is announced again.
    pub fn broadcast(&self, tx: &[u8]) -> Result<Txid, BroadcastError> {
        let bytes = decoded(self.network(), &[tx])?;
        let desk = self.desk()?;
        if let Some(gateway) = desk.gateway()? {
            let txid = gateway.send(tx)?;
            taken_by_node(&desk, bytes);
            return Ok(txid);
        }
        let reply = desk.hand_in(Order::Accept(bytes, Judge::Ours))?;
        match verdicts(reply).pop() {
            Some(Ok(txid)) => Ok(txid),
            Some(Err(reason)) => Err(BroadcastError::Refused { reason }),
            None => Err(unavailable("the mempool gave no answer")),
        }
    }

    /// Hands a child and its unconfirmed parents in, the child last: their fees count together.
    /// What became of each, in their order.
    pub fn broadcast_package(
        &self,
        txs: &[Vec<u8>],
    ) -> Result<Vec<Result<Txid, String>>, BroadcastError> {
        let bytes = decoded(self.network(), txs)?;
        let desk = self.desk()?;
        if let Some(gateway) = desk.gateway()? {
            let answers = gateway.send_package(&bytes)?;
            if answers.iter().any(Result::is_ok) {
                let taken = bytes.into_iter().zip(&answers).filter(|(_, answer)| answer.is_ok());
                taken_by_node(&desk, taken.map(|(tx, _)| tx).collect());
            }
            return Ok(answers);
        }
        Ok(verdicts(desk.hand_in(Order::Package(bytes))?))
    }

    /// What would become of transactions that were handed in now, each after those before it.
    /// Nothing is sent.
    pub fn test_accept(&self, txs: &[Vec<u8>]) -> Result<Vec<Acceptance>, BroadcastError> {
        let bytes = decoded(self.network(), txs)?;
        let desk = self.desk()?;
        if let Some(gateway) = desk.gateway()? {
            return Ok(gateway.test(&bytes)?);
        }
        let tested = match desk.hand_in(Order::Test(bytes))? {
            Reply::Tested(tested) => tested,
            Reply::Verdicts(_) => Vec::new(),
        };
        let decoded = |one: Result<Acceptance, Reject>| {
            one.map_err(|reject| BroadcastError::Decode { reason: reject.to_string() })
        };
        tested.into_iter().map(decoded).collect()
    }

    fn desk(&self) -> Result<Desk, BroadcastError> {
        match self.front() {
            Front::Live(reader) => Ok(reader.desk().clone()),
            Front::AtRest(_) => {
                Err(unavailable("no sync follows; start one with `sync --follow` or `serve`"))
            }
        }
    }
}

/// The bytes of transactions, all of which must decode.
fn decoded<T: AsRef<[u8]>>(network: Network, txs: &[T]) -> Result<Vec<Bytes>, BroadcastError> {
    let one = |tx: &T| {
        let bytes = tx.as_ref();
        let parsed = Tx::parse(bytes, network.format());
        parsed.map_err(|error| BroadcastError::Decode { reason: error.to_string() })?;
        Ok(Bytes::copy_from_slice(bytes))
    };
    txs.iter().map(one).collect()
}

/// The node has taken these, and so does our mempool, at once: whoever asks next finds them. What
/// is not taken here for some reason comes with the node's next listing.
fn taken_by_node(desk: &Desk, txs: Vec<Bytes>) {
    drop(desk.hand_in(Order::Accept(txs, Judge::Node)));
}

/// What became of each transaction. One that is here already was taken.
fn verdicts(reply: Reply) -> Vec<Result<Txid, String>> {
    let Reply::Verdicts(verdicts) = reply else { return Vec::new() };
    let one = |verdict| match verdict {
        Ok(txid) | Err(Reject::Here(txid)) => Ok(txid),
        Err(reject) => Err(reject.to_string()),
    };
    verdicts.into_iter().map(one).collect()
}

fn unavailable(reason: &str) -> BroadcastError {
    BroadcastError::Unavailable { reason: reason.to_owned() }
}

impl From<DeskError> for BroadcastError {
    fn from(error: DeskError) -> Self {
        Self::Unavailable { reason: error.to_string() }
    }
}

impl From<GatewayError> for BroadcastError {
    fn from(error: GatewayError) -> Self {
        match error {
            GatewayError::Refused(reason) => Self::Refused { reason },
            GatewayError::Unreachable(reason) => Self::Unavailable { reason },
        }
    }
}
