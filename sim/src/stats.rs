//! The figures of a chain: what the profiles are measured by.
//!
//! Blocks of one branch go in, in order; coinbases are left out, as in the figures of the main
//! chain that the `mainnet` profile follows.

use std::collections::HashMap;

use varve_types::script::Class;
use varve_types::{Block, DecodeError, Height, Network, Outpoint, unspendable};

/// An output of less satoshi is small, unless it is data.
const SMALL: u64 = 1_000;

/// The figures of the blocks from a height on.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Blocks measured.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Transactions.
    pub transactions: u64,
    /// Bytes of transactions.
    pub transaction_bytes: u64,
    /// Inputs.
    pub inputs: u64,
    /// Outputs.
    pub outputs: u64,
    /// Bytes of output scripts.
    pub script_bytes: u64,
    /// Outputs that hold less than 1,000 satoshi and are not data.
    pub small_outputs: u64,
    /// Outputs by script class.
    pub classes: HashMap<Class, u64>,
    /// Transactions with 1, 2, 3 to 10, and more inputs.
    pub inputs_histogram: [u64; 4],
    /// Transactions with 1, 2, 3 to 10, and more outputs.
    pub outputs_histogram: [u64; 4],
    /// Inputs that spend the same block, up to 144 blocks back, and further back.
    pub ages: [u64; 3],
    /// The most outputs that one transaction has.
    pub most_outputs: u64,
    /// The longest output script.
    pub longest_script: u64,
}

/// Measures a chain.
pub struct Meter {
    network: Network,
    from: u32,
    height: u32,
    /// The height of every unspent output.
    heights: HashMap<Outpoint, u32>,
    stats: Stats,
}

impl Meter {
    /// Measures blocks from the height `from` on.
    #[must_use]
    pub fn new(network: Network, from: u32) -> Self {
        Self { network, from, height: 0, heights: HashMap::new(), stats: Stats::default() }
    }

    /// Takes the next block, genesis first.
    ///
    /// # Errors
    ///
    /// When the bytes are not a block.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        let block = Block::parse(bytes, self.network.format())?;
        let measured = self.height >= self.from;
        if measured {
            self.stats.blocks += 1;
            self.stats.bytes += bytes.len() as u64;
        }
        for (transaction, txid) in block.txs().iter().zip(block.txids()) {
            let mut inputs = 0;
            let mut outputs = 0;
            let counted = measured && !transaction.is_coinbase();
            for input in transaction.inputs() {
                inputs += 1;
                let made = self.heights.remove(&input.outpoint);
                if let Some(made) = made.filter(|_| counted) {
                    self.stats.count_age(self.height - made);
                }
            }
            for (vout, output) in (0..).zip(transaction.outputs()) {
                outputs += 1;
                self.heights.insert(Outpoint::new(txid, vout), self.height);
                if counted {
                    let data = unspendable(self.network, Height::new(self.height), output.script);
                    let small = !data && output.value.to_sat() < SMALL;
                    self.stats.count_output(output.script, small);
                }
            }
            if counted {
                self.stats.count_transaction(transaction.bytes().len() as u64, inputs, outputs);
            }
        }
        self.height += 1;
        Ok(())
    }

    /// The figures so far.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }
}

impl Stats {
    fn count_transaction(&mut self, bytes: u64, inputs: u64, outputs: u64) {
        self.transactions += 1;
        self.transaction_bytes += bytes;
        self.inputs += inputs;
        self.outputs += outputs;
        self.most_outputs = self.most_outputs.max(outputs);
        count(&mut self.inputs_histogram, inputs);
        count(&mut self.outputs_histogram, outputs);
    }

    fn count_output(&mut self, script: &[u8], small: bool) {
        *self.classes.entry(Class::of(script)).or_default() += 1;
        self.script_bytes += script.len() as u64;
        self.longest_script = self.longest_script.max(script.len() as u64);
        self.small_outputs += u64::from(small);
    }

    fn count_age(&mut self, age: u32) {
        let [same_block, young, older] = &mut self.ages;
        match age {
            0 => *same_block += 1,
            1..=144 => *young += 1,
            _ => *older += 1,
        }
    }
}

fn count(histogram: &mut [u64; 4], number: u64) {
    let [one, two, few, many] = histogram;
    match number {
        0 | 1 => *one += 1,
        2 => *two += 1,
        3..=10 => *few += 1,
        _ => *many += 1,
    }
}
