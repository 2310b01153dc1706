//! Small transactions.

use hex_conservative::DisplayHex as _;
use varve_records::Transaction;
use varve_types::{Amount, Format, Outpoint, TxOut, Txid, compact_size};

/// A transaction in both forms.
pub(crate) struct Tx {
    pub(crate) txid: String,
    /// In extended form.
    pub(crate) extended: String,
    /// As it is in a block.
    pub(crate) standard: String,
    id: Txid,
    outputs: Vec<(u64, Vec<u8>)>,
}

/// An output to be spent.
pub(crate) struct Input {
    outpoint: Outpoint,
    value: u64,
    script: Vec<u8>,
}

impl Input {
    /// An output that no record has.
    pub(crate) fn unknown(byte: u8, value: u64) -> Self {
        let outpoint = Outpoint::new(Txid::from_bytes([byte; 32]), 0);
        Self { outpoint, value, script: vec![0x51] }
    }

    /// The same output with a script that it does not have.
    pub(crate) fn with_script(mut self, script: &[u8]) -> Self {
        self.script = script.to_vec();
        self
    }
}

impl Tx {
    /// Spends inputs and pays values to `OP_TRUE`.
    pub(crate) fn paying(inputs: &[Input], values: &[u64]) -> Self {
        Self::new(inputs, &values.iter().map(|value| (*value, vec![0x51])).collect::<Vec<_>>())
    }

    /// Spends inputs and makes outputs.
    pub(crate) fn new(inputs: &[Input], outputs: &[(u64, Vec<u8>)]) -> Self {
        let extended = encode(inputs, outputs, true);
        let parsed = Transaction::parse(extended.clone().into(), Format::Legacy).unwrap();
        Self {
            txid: parsed.txid().to_string(),
            extended: extended.to_lower_hex_string(),
            standard: encode(inputs, outputs, false).to_lower_hex_string(),
            id: parsed.txid(),
            outputs: outputs.to_vec(),
        }
    }

    /// A coinbase that pays one value; the number makes it unlike others.
    pub(crate) fn coinbase(number: u32, value: u64) -> Self {
        let mut bytes = 1_u32.to_le_bytes().to_vec();
        bytes.push(1);
        bytes.extend_from_slice(&[0; 32]);
        bytes.extend_from_slice(&u32::MAX.to_le_bytes());
        bytes.push(4);
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.extend_from_slice(&u32::MAX.to_le_bytes());
        bytes.push(1);
        TxOut { value: Amount::from_sat(value), script: &[0x51] }.write(&mut bytes);
        bytes.extend_from_slice(&[0; 4]);
        let parsed = Transaction::parse(bytes.clone().into(), Format::Legacy).unwrap();
        let hex = bytes.to_lower_hex_string();
        let outputs = vec![(value, vec![0x51])];
        let txid = parsed.txid().to_string();
        Self { txid, extended: hex.clone(), standard: hex, id: parsed.txid(), outputs }
    }

    /// One of its outputs.
    pub(crate) fn output(&self, vout: u32) -> Input {
        let (value, script) = self.outputs[usize::try_from(vout).unwrap()].clone();
        Input { outpoint: Outpoint::new(self.id, vout), value, script }
    }
}

fn encode(inputs: &[Input], outputs: &[(u64, Vec<u8>)], extended: bool) -> Vec<u8> {
    let mut bytes = 1_u32.to_le_bytes().to_vec();
    if extended {
        bytes.extend_from_slice(&[0, 0, 0, 0, 0, 0xef]);
    }
    compact_size::write(inputs.len() as u64, &mut bytes);
    for Input { outpoint, value, script } in inputs {
        bytes.extend_from_slice(&outpoint.to_bytes());
        bytes.push(0);
        bytes.extend_from_slice(&u32::MAX.to_le_bytes());
        if extended {
            TxOut { value: Amount::from_sat(*value), script }.write(&mut bytes);
        }
    }
    compact_size::write(outputs.len() as u64, &mut bytes);
    for (value, script) in outputs {
        TxOut { value: Amount::from_sat(*value), script }.write(&mut bytes);
    }
    bytes.extend_from_slice(&[0; 4]);
    bytes
}
