//! Transactions made by hand.

use varve_types::{Amount, Format, Outpoint, TxIn, TxOut, Txid, compact_size};

use crate::extended::{Transaction, write_input};
use crate::operation::SlotRef;
use crate::utxo_hash::UtxoHash;

/// An output, as its spender has to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coin {
    /// Where it is.
    pub outpoint: Outpoint,
    /// What it is worth.
    pub value: u64,
    /// What spending it takes.
    pub script: Vec<u8>,
}

impl Coin {
    /// Output `vout` of a transaction.
    ///
    /// # Panics
    ///
    /// When there is no such output.
    #[must_use]
    pub fn of(tx: &Transaction, vout: u32) -> Self {
        let output = tx.view().outputs().nth(vout as usize).expect("a test knows its outputs");
        Self {
            outpoint: Outpoint::new(tx.txid(), vout),
            value: output.value.to_sat(),
            script: output.script.to_vec(),
        }
    }

    /// The hash of the output.
    #[must_use]
    pub fn hash(&self) -> UtxoHash {
        UtxoHash::of(&self.outpoint, &self.output())
    }

    /// The output with its hash.
    #[must_use]
    pub fn slot(&self) -> SlotRef {
        SlotRef { outpoint: self.outpoint, hash: self.hash() }
    }

    fn output(&self) -> TxOut<'_> {
        TxOut { value: Amount::from_sat(self.value), script: &self.script }
    }
}

/// A transaction to be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxDraft {
    /// What it spends; nothing for a coinbase.
    pub inputs: Vec<Coin>,
    /// Values and scripts.
    pub outputs: Vec<(u64, Vec<u8>)>,
    /// Tells transactions apart that are otherwise the same.
    pub tag: u32,
}

impl TxDraft {
    /// A coinbase with `outputs` outputs.
    #[must_use]
    pub fn coinbase(tag: u32, outputs: u32) -> Self {
        Self { inputs: Vec::new(), outputs: outputs_of(1_000_000, outputs), tag }
    }

    /// Spends these coins and has `outputs` outputs of the same value.
    #[must_use]
    pub fn spending(inputs: &[Coin], outputs: u32) -> Self {
        let total: u64 = inputs.iter().map(|coin| coin.value).sum();
        let value = total / (u64::from(outputs) + 1);
        Self { inputs: inputs.to_vec(), outputs: outputs_of(value, outputs), tag: 0 }
    }

    /// Spends what no record has, and has `outputs` outputs.
    #[must_use]
    pub fn root(tag: u32, outputs: u32) -> Self {
        let outpoint = Outpoint::new(Txid::from_bytes([0xee; 32]), tag);
        let value = (u64::from(outputs) + 1) * 1_000_000;
        let coin = Coin { outpoint, value, script: vec![0x51] };
        Self { tag, ..Self::spending(&[coin], outputs) }
    }

    /// The same with another tag.
    #[must_use]
    pub fn tag(self, tag: u32) -> Self {
        Self { tag, ..self }
    }

    /// The same with an output that can never be spent behind the others.
    #[must_use]
    pub fn with_data(mut self) -> Self {
        self.outputs.push((0, vec![0x6a, 0x01, 0x02]));
        self
    }

    /// The transaction: a coinbase in standard form, any other in extended form.
    ///
    /// # Panics
    ///
    /// Never: what is built here parses.
    #[must_use]
    pub fn build(&self) -> Transaction {
        let mut bytes = vec![1, 0, 0, 0];
        if self.inputs.is_empty() {
            bytes.push(1);
            let script = self.tag.to_le_bytes();
            let sequence = u32::MAX;
            let input = TxIn { outpoint: Outpoint::NULL, script: &script, sequence, spent: None };
            input.write(&mut bytes);
        } else {
            bytes.extend([0, 0, 0, 0, 0, 0xef]);
            compact_size::write(self.inputs.len() as u64, &mut bytes);
            for coin in &self.inputs {
                let outpoint = coin.outpoint;
                let input = TxIn { outpoint, script: &[0x01, 0x02], sequence: 5, spent: None };
                write_input(&input, &coin.output(), &mut bytes);
            }
        }
        compact_size::write(self.outputs.len() as u64, &mut bytes);
        for (value, script) in &self.outputs {
            TxOut { value: Amount::from_sat(*value), script }.write(&mut bytes);
        }
        bytes.extend(self.tag.to_le_bytes());
        Transaction::parse(bytes.into(), Format::Legacy).expect("it was built just now")
    }
}

/// Outputs of this value, each with its own script.
fn outputs_of(value: u64, count: u32) -> Vec<(u64, Vec<u8>)> {
    let script = |vout: u32| [&[0x51], vout.to_le_bytes().as_slice()].concat();
    (0..count).map(|vout| (value, script(vout))).collect()
}
