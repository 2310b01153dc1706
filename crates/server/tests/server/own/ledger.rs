//! What a walk over the bytes of all blocks says about the chain.

use std::collections::{BTreeMap, HashMap};

use varve::types::{Block as Parsed, Tx, unspendable};
use varve::{BlockHash, Height, Outpoint, ScriptHash, Txid};
use varve_sim::Block;

use super::rig::NETWORK;

/// An output of any branch.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) value: u64,
    pub(crate) script: Vec<u8>,
}

/// An input of any block that spends an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spend {
    pub(crate) block: BlockHash,
    pub(crate) height: u32,
    pub(crate) txid: Txid,
    pub(crate) vin: u32,
    pub(crate) confirmed: bool,
}

/// What a confirmed transaction does to a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Touch {
    pub(crate) received: u64,
    pub(crate) sent: u64,
    pub(crate) funded: u64,
    pub(crate) spent: u64,
}

/// A block that holds a transaction: hash, height, position, whether confirmed.
pub(crate) type Holder = (BlockHash, u32, u32, bool);

/// By height and position, the transaction and what it does.
pub(crate) type History = BTreeMap<(u32, u32), (Txid, Touch)>;

/// All of it.
#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) outputs: HashMap<Outpoint, Made>,
    pub(crate) spends: HashMap<Outpoint, Vec<Spend>>,
    /// Blocks that hold a transaction.
    pub(crate) holders: HashMap<Txid, Vec<Holder>>,
    /// By script.
    pub(crate) scripts: HashMap<ScriptHash, History>,
    /// Outputs that enter the set: where they were made, and the confirmed height of their spend.
    pub(crate) coins: HashMap<Outpoint, (u32, Option<u32>)>,
}

impl Ledger {
    pub(crate) fn of(blocks: &[Block]) -> Self {
        let mut ledger = Self::default();
        for block in blocks {
            let parsed = Parsed::parse(&block.bytes, NETWORK.format()).unwrap();
            for (position, (tx, txid)) in (0..).zip(parsed.txs().iter().zip(parsed.txids())) {
                ledger.make(block, tx, txid, position);
            }
        }
        for block in blocks {
            let parsed = Parsed::parse(&block.bytes, NETWORK.format()).unwrap();
            for (position, (tx, txid)) in (0..).zip(parsed.txs().iter().zip(parsed.txids())) {
                ledger.spend(block, tx, txid, position);
            }
        }
        ledger
    }

    fn make(&mut self, block: &Block, tx: &Tx<'_>, txid: Txid, position: u32) {
        let holder = (block.hash, block.height, position, !block.stale);
        self.holders.entry(txid).or_default().push(holder);
        for (vout, output) in (0..).zip(tx.outputs()) {
            let outpoint = Outpoint::new(txid, vout);
            let made = Made { value: output.value.to_sat(), script: output.script.to_vec() };
            self.outputs.insert(outpoint, made);
            let height = Height::new(block.height);
            let enters = block.height > 0 && !unspendable(NETWORK, height, output.script);
            if !block.stale && enters {
                self.coins.insert(outpoint, (block.height, None));
                let touch = self.touch(output.script, block, txid, position);
                touch.received += output.value.to_sat();
                touch.funded += 1;
            }
        }
    }

    fn spend(&mut self, block: &Block, tx: &Tx<'_>, txid: Txid, position: u32) {
        for (vin, input) in (0..).zip(tx.inputs()).filter(|_| !tx.is_coinbase()) {
            let (hash, height, confirmed) = (block.hash, block.height, !block.stale);
            let spend = Spend { block: hash, height, txid, vin, confirmed };
            self.spends.entry(input.outpoint).or_default().push(spend);
            if confirmed {
                let made = self.outputs[&input.outpoint].clone();
                self.coins.get_mut(&input.outpoint).unwrap().1 = Some(height);
                let touch = self.touch(&made.script, block, txid, position);
                touch.sent += made.value;
                touch.spent += 1;
            }
        }
    }

    fn touch(&mut self, script: &[u8], block: &Block, txid: Txid, position: u32) -> &mut Touch {
        let of_script = self.scripts.entry(ScriptHash::of(script)).or_default();
        let entry = of_script.entry((block.height, position));
        &mut entry.or_insert((txid, Touch::default())).1
    }

    /// The fee of a transaction that is no coinbase.
    pub(crate) fn fee(&self, tx: &Tx<'_>) -> u64 {
        let spent: u64 = tx.inputs().map(|input| self.outputs[&input.outpoint].value).sum();
        let made: u64 = tx.outputs().map(|output| output.value.to_sat()).sum();
        spent - made
    }

    /// Number and value of the unspent outputs as of a height.
    pub(crate) fn set_at(&self, height: u32) -> (u64, u64) {
        let living = self.coins.iter().filter(|(_, (made, spent))| {
            *made <= height && spent.is_none_or(|spent| spent > height)
        });
        living.fold((0, 0), |sum, (outpoint, _)| (sum.0 + 1, sum.1 + self.outputs[outpoint].value))
    }
}
