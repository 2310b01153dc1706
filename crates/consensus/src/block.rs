//! The rules of a block's own bytes.
//!
//! 1. The merkle root is that of the header, and no list of transactions with a repeated tail has
//!    the same root (CVE-2012-2459).
//! 2. It is not too large.
//! 3. The first transaction is a coinbase, the only one. (If it is not and some have 64 bytes, they
//!    may be inner nodes of the merkle tree of another block with this hash, which must not be
//!    marked invalid.)
//! 4. Every transaction is valid by itself ([`check_transaction`]).
//! 5. Its scripts do not have too many signature operations, counting only what is in the block.
//!
//! Rules that also need the headers below are in [`check_block_context`], those that need the
//! unspent outputs in [`check_spends`](crate::check_spends). The rules of a header, including its
//! work, are in [`check_header`](crate::check_header).
//!
//! BSV: the size is limited in bytes, by the node's setting; signature operations are limited to
//! 20,000 a million bytes before the Genesis upgrade and not at all after it.

mod context;
#[cfg(test)]
mod tests;

pub use context::check_block_context;
#[cfg(feature = "test-suite")]
pub(crate) use context::height_push;

use std::borrow::Cow;

use varve_types::merkle::merkle_root;
use varve_types::{MerkleRoot, Tx, Txid};

use crate::ancestors::MissingAncestorError;
use crate::block_at::BlockAt;
use crate::params::Params;
use crate::sigops::MAX_BLOCK_SIGOP_COST;
use crate::transaction::{TransactionError, check_transaction};
use crate::weight::{MAX_BLOCK_WEIGHT, WITNESS_SCALE, base_size, block_base_size};

/// The length of an inner node of the merkle tree: two hashes.
const TREE_NODE_LEN: u64 = 64;

/// Why a block is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// A header below is not available. No verdict.
    #[error(transparent)]
    MissingAncestor(#[from] MissingAncestorError),
    /// The transactions are not those of the header.
    #[error("the transactions have the merkle root {computed}, but the header says {header}")]
    MerkleRoot {
        /// In the header.
        header: MerkleRoot,
        /// Of the transactions.
        computed: MerkleRoot,
    },
    /// A repeated tail of transactions that leaves the root unchanged.
    #[error("transactions are repeated so that the merkle root does not change")]
    RepeatedTransactions,
    /// Too many bytes, not counting witnesses.
    #[error("{size} bytes without witnesses, but at most {limit} are allowed")]
    TooLarge {
        /// Bytes without witnesses.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// Too heavy.
    #[error("the weight is {weight}, but at most {MAX_BLOCK_WEIGHT} is allowed")]
    TooHeavy {
        /// The weight.
        weight: u64,
    },
    /// No transactions, or the first is not a coinbase.
    #[error("the first transaction is not a coinbase")]
    NoCoinbase,
    /// No coinbase, and a transaction as long as two hashes: these may be inner nodes of the merkle
    /// tree, presented as transactions under the same root.
    #[error("the first transaction is not a coinbase, and one is as long as a node of the tree")]
    TreeNodes,
    /// A coinbase in another place.
    #[error("transaction {index} is a second coinbase")]
    SecondCoinbase {
        /// Its place.
        index: usize,
    },
    /// A transaction is wrong by itself.
    #[error("transaction {txid}: {error}")]
    Transaction {
        /// Its txid.
        txid: Txid,
        /// Why.
        error: TransactionError,
    },
    /// Too many signature operations.
    #[error("signature operations cost {cost}, but at most {limit} is allowed")]
    Sigops {
        /// What they cost.
        cost: u64,
        /// The limit.
        limit: u64,
    },
    /// A lock time that has not been reached.
    #[error("the lock time of transaction {txid} has not been reached")]
    NotFinal {
        /// The transaction.
        txid: Txid,
    },
    /// The coinbase does not begin with the height (BIP34).
    #[error("the script of the coinbase does not begin with the height of the block")]
    CoinbaseHeight,
    /// The coinbase lacks the reserved value of the witness commitment.
    #[error("the witness of the coinbase is not one item of 32 bytes")]
    WitnessReservedValue,
    /// The witnesses are not those of the commitment.
    #[error("the witnesses are not those that the coinbase commits to")]
    WitnessCommitment,
    /// A witness without a commitment to it.
    #[error("transaction {txid} has a witness that the coinbase does not commit to")]
    UnexpectedWitness {
        /// The transaction.
        txid: Txid,
    },
    /// The signature of a signet block is missing or wrong (BIP325).
    #[error("the signet solution is wrong: {reason}")]
    SignetSolution {
        /// What is wrong.
        reason: &'static str,
    },
}

impl BlockError {
    /// The reason as Core gives it, or `None` when the block could not be checked.
    #[must_use]
    pub fn reject_reason(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(match self {
            Self::MissingAncestor(_) => return None,
            Self::MerkleRoot { .. } => "bad-txnmrklroot",
            Self::RepeatedTransactions => "bad-txns-duplicate",
            Self::TooLarge { .. } => "bad-blk-length",
            Self::TooHeavy { .. } => "bad-blk-weight",
            Self::NoCoinbase | Self::TreeNodes => "bad-cb-missing",
            Self::SecondCoinbase { .. } => "bad-cb-multiple",
            Self::Transaction { error, .. } => return error.reject_reason(),
            Self::Sigops { .. } => "bad-blk-sigops",
            Self::NotFinal { .. } => "bad-txns-nonfinal",
            Self::CoinbaseHeight => "bad-cb-height",
            Self::WitnessReservedValue => "bad-witness-nonce-size",
            Self::WitnessCommitment => "bad-witness-merkle-match",
            Self::UnexpectedWitness { .. } => "unexpected-witness",
            Self::SignetSolution { .. } => "bad-signet-blksig",
        }))
    }

    /// Whether other bytes with the same block hash may be valid: then the hash must not be
    /// remembered as that of an invalid block; only these bytes are dropped.
    #[must_use]
    pub const fn is_mutation(&self) -> bool {
        matches!(
            self,
            Self::MerkleRoot { .. }
                | Self::RepeatedTransactions
                | Self::TreeNodes
                | Self::WitnessReservedValue
                | Self::WitnessCommitment
                | Self::UnexpectedWitness { .. }
        )
    }
}

/// Checks a block without the headers and outputs below it.
pub fn check_block(params: &Params, block: &BlockAt<'_>) -> Result<(), BlockError> {
    check_merkle_root(block)?;
    check_size(params, block)?;
    check_coinbases(block)?;
    for (txid, tx) in block.txs() {
        check_transaction(params, block.height(), tx)
            .map_err(|error| BlockError::Transaction { txid, error })?;
    }
    check_sigops(params, block, block.legacy_sigops().iter().sum())
}

fn check_merkle_root(block: &BlockAt<'_>) -> Result<(), BlockError> {
    let header = block.block().header().merkle_root();
    let tree = merkle_root(block.txids().iter().map(|txid| txid.to_bytes()).collect());
    if tree.root != header {
        return Err(BlockError::MerkleRoot { header, computed: tree.root });
    }
    if tree.mutated { Err(BlockError::RepeatedTransactions) } else { Ok(()) }
}

fn check_size(params: &Params, block: &BlockAt<'_>) -> Result<(), BlockError> {
    let limit = match params.network.is_bsv() {
        false => MAX_BLOCK_WEIGHT / WITNESS_SCALE,
        true => params.max_block_size,
    };
    let size = block_base_size(block.block());
    if size > limit { Err(BlockError::TooLarge { size, limit }) } else { Ok(()) }
}

fn check_coinbases(block: &BlockAt<'_>) -> Result<(), BlockError> {
    let mut txs = block.block().txs().iter().enumerate();
    if !txs.next().is_some_and(|(_, tx)| tx.is_coinbase()) {
        // A coinbase has 32 zeroes where a node has a hash, so a node never looks like a coinbase.
        let is_node = |tx: &Tx<'_>| base_size(tx) == TREE_NODE_LEN;
        return Err(match block.block().txs().iter().any(is_node) {
            true => BlockError::TreeNodes,
            false => BlockError::NoCoinbase,
        });
    }
    match txs.find(|(_, tx)| tx.is_coinbase()) {
        Some((index, _)) => Err(BlockError::SecondCoinbase { index }),
        None => Ok(()),
    }
}

/// Checks the number of legacy operations against the limit of the chain.
fn check_sigops(params: &Params, block: &BlockAt<'_>, legacy: u64) -> Result<(), BlockError> {
    let cost = WITNESS_SCALE * legacy;
    match sigop_limit(params, block) {
        Some(limit) if cost > limit => Err(BlockError::Sigops { cost, limit }),
        _ => Ok(()),
    }
}

/// The most that the signature operations of a block may cost; `None` where nothing limits them.
pub(crate) fn sigop_limit(params: &Params, block: &BlockAt<'_>) -> Option<u64> {
    if !params.network.is_bsv() {
        return Some(MAX_BLOCK_SIGOP_COST);
    }
    // 20,000 for every million bytes that was begun.
    let millions = (block.block().bytes().len() as u64).div_ceil(1_000_000);
    let limit = WITNESS_SCALE * 20_000 * millions;
    (!params.is_genesis_upgraded(block.height())).then_some(limit)
}
