//! Makes small chains on regtest, with branches, and with whatever is wrong.

use varve_consensus::Params;
use varve_consensus::contract::draft::{BlockDraft, TxDraft};
use varve_node::Options;
use varve_types::{BlockHash, Header, Height, Network, Outpoint};

use crate::rig::options;

pub(crate) const SUBSIDY: u64 = 50 * 100_000_000;

/// A block that was made.
#[derive(Clone)]
pub(crate) struct Mined {
    pub(crate) bytes: Vec<u8>,
    pub(crate) hash: BlockHash,
    pub(crate) height: u32,
    time: u32,
    pub(crate) coinbase: TxDraft,
}

impl Mined {
    pub(crate) fn genesis() -> Self {
        let bytes = Network::Regtest.genesis_block();
        let header = Header::new(bytes.first_chunk().unwrap());
        let (hash, time) = (header.hash(), header.time());
        Self { bytes, hash, height: 0, time, coinbase: TxDraft::coinbase(Height::GENESIS, 0) }
    }

    /// The output of its coinbase, which anyone can spend.
    pub(crate) fn coin(&self) -> Outpoint {
        Outpoint::new(self.coinbase.txid(), 0)
    }

    /// A draft above this block. Different salts give different blocks.
    pub(crate) fn draft(&self, salt: u8, txs: Vec<TxDraft>) -> BlockDraft {
        let mut coinbase = TxDraft::coinbase(Height::new(self.height + 1), SUBSIDY);
        coinbase.inputs[0].script.push(salt);
        let mut draft = BlockDraft::new([vec![coinbase], txs].concat());
        (draft.previous, draft.time) = (self.hash, self.time + 600);
        draft
    }

    /// The block of a draft above this one.
    pub(crate) fn mine(&self, mut draft: BlockDraft) -> Self {
        draft.mine();
        let bytes = draft.bytes();
        let hash = Header::new(bytes.first_chunk().unwrap()).hash();
        let (time, coinbase) = (draft.time, draft.txs[0].clone());
        Self { bytes, hash, height: self.height + 1, time, coinbase }
    }

    /// A good block above this one.
    pub(crate) fn above(&self, salt: u8, txs: Vec<TxDraft>) -> Self {
        self.mine(self.draft(salt, txs))
    }

    /// `count` good blocks above this one, each spending the coinbase of the one below it.
    pub(crate) fn chain(&self, salt: u8, count: usize) -> Vec<Self> {
        let mut chain: Vec<Self> = Vec::new();
        for _ in 0..count {
            let parent = chain.last().unwrap_or(self);
            let spend = TxDraft::spending(&[parent.coin()], 3);
            let txs = if parent.height == 0 { Vec::new() } else { vec![spend] };
            chain.push(parent.above(salt, txs));
        }
        chain
    }

    /// `count` blocks above this one whose coinbases anyone can spend, and nothing else.
    pub(crate) fn plain(&self, count: usize) -> Vec<Self> {
        let next = |below: &Self| Some(below.above(0, Vec::new()));
        std::iter::successors(next(self), next).take(count).collect()
    }

    /// `count` blocks above this one with a coinbase and nothing else. It pays nothing, so the
    /// halvings do not matter.
    pub(crate) fn plain_chain(&self, salt: u8, count: usize) -> Vec<Self> {
        let next = |below: &Self| {
            let mut draft = below.draft(salt, Vec::new());
            draft.txs[0].outputs[0].value = 0;
            Some(below.mine(draft))
        };
        std::iter::successors(next(self), next).take(count).collect()
    }
}

/// Regtest where a coinbase can be spent at once.
pub(crate) fn young_options() -> Options {
    let params = Params { coinbase_maturity: 1, ..Params::new(Network::Regtest) };
    Options { params, ..options(Network::Regtest) }
}

pub(crate) fn bytes_of<'a>(blocks: impl IntoIterator<Item = &'a Mined>) -> Vec<Vec<u8>> {
    blocks.into_iter().map(|block| block.bytes.clone()).collect()
}
