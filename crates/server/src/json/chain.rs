//! Answers about the chain: blocks, transactions, spenders, and what a command did to it.

use serde::Serialize;
use varve::{BlockHash, Height, Invalid, Network, Synced, Tip, Txid, Verified};

use super::{hex, optional_text, text, texts};

/// The tip that an answer was read at.
#[derive(Debug, Serialize)]
struct ReadAt {
    height: u32,
    #[serde(serialize_with = "text")]
    hash: BlockHash,
}

impl From<Tip> for ReadAt {
    fn from(tip: Tip) -> Self {
        Self { height: tip.height.to_u32(), hash: tip.hash }
    }
}

/// `varve tx`.
#[derive(Debug, Serialize)]
pub struct Tx<'a> {
    #[serde(serialize_with = "text")]
    txid: Txid,
    #[serde(serialize_with = "hex")]
    hex: &'a [u8],
    height: u32,
    #[serde(serialize_with = "text")]
    blockhash: BlockHash,
    confirmed: bool,
    #[serde(serialize_with = "texts")]
    blocks: &'a [BlockHash],
    tip: ReadAt,
}

impl<'a> Tx<'a> {
    /// The transaction, as it was found at this tip.
    #[must_use]
    pub fn new(tx: &'a varve::Transaction, tip: Tip) -> Self {
        Self {
            txid: tx.txid,
            hex: tx.bytes(),
            height: tx.block.height.to_u32(),
            blockhash: tx.block.hash,
            confirmed: tx.is_confirmed(),
            blocks: &tx.blocks,
            tip: tip.into(),
        }
    }
}

/// `varve block`.
#[derive(Debug, Serialize)]
pub struct Block<'a> {
    #[serde(serialize_with = "text")]
    hash: BlockHash,
    height: u32,
    confirmed: bool,
    invalid: Option<&'a str>,
    #[serde(serialize_with = "optional_text")]
    previousblockhash: Option<BlockHash>,
    #[serde(serialize_with = "text")]
    merkleroot: varve::MerkleRoot,
    time: u32,
    bits: String,
    nonce: u32,
    size: usize,
    #[serde(serialize_with = "texts")]
    tx: &'a [Txid],
    #[serde(serialize_with = "hex")]
    hex: &'a [u8],
    tip: ReadAt,
}

impl<'a> Block<'a> {
    /// The block, and why it cannot be in the chain if it cannot, as they were found at this tip.
    #[must_use]
    pub fn new(block: &'a varve::Block, invalid: Option<&'a Invalid>, tip: Tip) -> Self {
        let header = &block.header;
        Self {
            hash: header.hash,
            height: header.height.to_u32(),
            confirmed: header.confirmed,
            invalid: invalid.map(|invalid| &*invalid.reason),
            previousblockhash: header.previous,
            merkleroot: header.merkle_root,
            time: header.time,
            bits: format!("{:08x}", header.bits),
            nonce: header.nonce,
            size: block.bytes().len(),
            tx: &block.txids,
            hex: block.bytes(),
            tip: tip.into(),
        }
    }
}

/// `varve spender`. Of an unspent output every name but `tip` is `null`.
#[derive(Debug, Serialize)]
pub struct Spender {
    #[serde(serialize_with = "optional_text")]
    txid: Option<Txid>,
    vin: Option<u32>,
    height: Option<u32>,
    #[serde(serialize_with = "optional_text")]
    blockhash: Option<BlockHash>,
    tip: ReadAt,
}

impl Spender {
    /// The input that spends an output at this tip, if one does.
    #[must_use]
    pub fn new(spender: Option<&varve::Spender>, tip: Tip) -> Self {
        Self {
            txid: spender.map(|spender| spender.txid),
            vin: spender.map(|spender| spender.vin),
            height: spender.map(|spender| spender.height.to_u32()),
            blockhash: spender.map(|spender| spender.block),
            tip: tip.into(),
        }
    }
}

/// Up to where scripts were checked: a part of `varve status` and `varve sync`.
#[derive(Debug, Serialize)]
pub struct ScriptsChecked {
    checked_to: u32,
    assumed_to: Option<u32>,
    unchecked: u64,
}

impl From<varve::ScriptsChecked> for ScriptsChecked {
    fn from(scripts: varve::ScriptsChecked) -> Self {
        let varve::ScriptsChecked { checked_to, assumed_to, unchecked } = scripts;
        let assumed_to = assumed_to.map(Height::to_u32);
        Self { checked_to: checked_to.to_u32(), assumed_to, unchecked }
    }
}

/// `varve sync`.
#[derive(Debug, Serialize)]
pub struct Sync {
    #[serde(serialize_with = "text")]
    network: Network,
    height: u32,
    #[serde(serialize_with = "text")]
    bestblock: BlockHash,
    headers: u32,
    connected: u64,
    bytes: u64,
    refused: u64,
    scripts: ScriptsChecked,
    complete: bool,
}

impl Sync {
    /// What a sync came to. It is complete when nothing that was asked for is missing.
    #[must_use]
    pub fn new(network: Network, done: &Synced, complete: bool) -> Self {
        Self {
            network,
            height: done.tip.height.to_u32(),
            bestblock: done.tip.hash,
            headers: done.headers.to_u32(),
            connected: done.connected,
            bytes: done.bytes,
            refused: done.refused,
            scripts: done.scripts.into(),
            complete,
        }
    }
}

/// `varve invalidate` and `varve reconsider`.
#[derive(Debug, Serialize)]
pub struct Verdict<'a> {
    #[serde(serialize_with = "text")]
    block: BlockHash,
    invalid: Option<&'a str>,
    height: u32,
    #[serde(serialize_with = "text")]
    bestblock: BlockHash,
    refused: usize,
}

impl<'a> Verdict<'a> {
    /// What a verdict on this block has led to.
    #[must_use]
    pub fn new(block: BlockHash, verdict: &'a varve::Verdict) -> Self {
        Self {
            block,
            invalid: verdict.invalid.as_ref().map(|invalid| &*invalid.reason),
            height: verdict.tip.height.to_u32(),
            bestblock: verdict.tip.hash,
            refused: verdict.refused.len(),
        }
    }
}

/// `varve verify`.
#[derive(Debug, Serialize)]
pub struct Verify {
    height: u32,
    #[serde(serialize_with = "text")]
    bestblock: BlockHash,
    blocks: u64,
    pruned: u64,
    transactions: u64,
    inputs: u64,
    txouts: u64,
}

impl Verify {
    /// What was found to be in order.
    #[must_use]
    pub const fn new(tip: Tip, verified: &Verified) -> Self {
        let Verified { blocks, pruned, transactions, inputs, coins } = *verified;
        let (height, bestblock) = (tip.height.to_u32(), tip.hash);
        Self { height, bestblock, blocks, pruned, transactions, inputs, txouts: coins }
    }
}

/// `varve repair`.
#[derive(Debug, Serialize)]
pub struct Repair {
    height: u32,
    #[serde(serialize_with = "text")]
    bestblock: BlockHash,
    blocks: u32,
}

impl Repair {
    /// The tip, and the number of blocks that everything was rebuilt from.
    #[must_use]
    pub const fn new(tip: Tip, blocks: u32) -> Self {
        Self { height: tip.height.to_u32(), bestblock: tip.hash, blocks }
    }
}
