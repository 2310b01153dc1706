//! What the large transactions look like.

use bytes::Bytes;
use varve_records::Transaction;
use varve_records::contract::EXTERNAL_CACHE;
use varve_records::contract::draft::Coin;
use varve_types::{Amount, Format, TxIn, TxOut, compact_size};

const MIB: u64 = 1 << 20;
/// The value of every output.
const VALUE: u64 = 1_000;

/// A large transaction to be.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// Outputs that can be spent.
    pub(crate) outputs: u32,
    /// Bytes of data: half of it in an input, half of it in an output that nobody can spend.
    data: usize,
    /// The sizes of the engine: a file of the log, and what it keeps in memory.
    pub(crate) segment_size: u64,
    pub(crate) cache: u64,
}

impl Shape {
    /// The shape of this name, in the form that this run asks for.
    pub(crate) fn named(name: &str) -> Self {
        let long = std::env::var_os("VARVE_SEQUENCES").is_some();
        let (segment_size, cache) = if long { (128 * MIB, 256 * MIB) } else { (4 * MIB, 4 * MIB) };
        let (name, outputs, data) = match (name, long) {
            ("wide", false) => ("wide", 600_000, 0),
            ("wide", true) => ("wide", 5_000_000, 0),
            ("long", false) => ("long", 3, 64 << 20),
            ("long", true) => ("long", 3, 1 << 30),
            _ => panic!("no shape {name}"),
        };
        Self { name, outputs, data, segment_size, cache }
    }

    /// The length of the transaction.
    pub(crate) fn bytes(&self) -> u64 {
        self.data as u64 + 34 * u64::from(self.outputs)
    }

    /// The most memory that the process may have during a step.
    pub(crate) fn bound(&self, step: &str) -> u64 {
        // Whether the step has the transaction in memory, and what it needs for each output: hashes
        // of 33 bytes to create, slots of 72 to read them, an entry for every eight to remove them.
        let (bytes, output) = match step {
            "create" | "create-again" => (self.bytes(), 50),
            "get-tx" | "previous-outputs" => (self.bytes(), 0),
            "get-all" => (self.bytes(), 80),
            "conflict" => (0, 80),
            "prune" | "delete" => (0, 40),
            "reopen" => (0, 30),
            "get-meta" | "spend" | "mined" | "clean" => (0, 0),
            other => panic!("no step {other}"),
        };
        // What outlives the steps: the log of the record with its index, and the outputs in the
        // cache that decorates their spenders. Of the log, files that were written by this process
        // are in memory as far as the engine keeps them; older ones are maps, and the system counts
        // what it has of those.
        let log = 52 * u64::from(self.outputs);
        let written = ["create", "get-meta", "get-tx", "spend", "mined"].contains(&step);
        let log = if written { log.min(self.cache + 2 * self.segment_size) } else { log };
        let decorated = self.bytes().min(EXTERNAL_CACHE);
        let decorated = if written { 0 } else { decorated };
        bytes + output * u64::from(self.outputs) + log + decorated + 12 * MIB
    }

    /// The transaction, which spends `coin`.
    pub(crate) fn transaction(&self, coin: &Coin) -> Transaction {
        let data = vec![0x61; self.data / 2];
        let mut bytes = Vec::with_capacity(usize::try_from(self.bytes()).unwrap() + 1_000);
        bytes.extend([1, 0, 0, 0, 0, 0, 0, 0, 0, 0xef, 1]);
        let input = TxIn { outpoint: coin.outpoint, script: &data, sequence: 0, spent: None };
        let value = Amount::from_sat(coin.value);
        input.write(&mut bytes);
        TxOut { value, script: &coin.script }.write(&mut bytes);
        compact_size::write(u64::from(self.outputs) + 1, &mut bytes);
        for vout in 0..self.outputs {
            TxOut { value: Amount::from_sat(VALUE), script: &script(vout) }.write(&mut bytes);
        }
        // The same data again, as an output that begins with OP_FALSE OP_RETURN.
        let mut data = data;
        data.splice(..data.len().min(2), [0x00, 0x6a]);
        TxOut { value: Amount::ZERO, script: &data }.write(&mut bytes);
        bytes.extend([0; 4]);
        Transaction::parse(Bytes::from(bytes), Format::Legacy).unwrap()
    }

    /// What the transaction spends is worth this.
    pub(crate) fn value(&self) -> u64 {
        VALUE * (u64::from(self.outputs) + 1)
    }
}

/// The script of an output: it pays to the hash of a key.
pub(crate) fn script(vout: u32) -> [u8; 25] {
    let mut script = [0x55; 25];
    for (place, byte) in script.iter_mut().zip([0x76, 0xa9, 20].iter().chain(&vout.to_le_bytes())) {
        *place = *byte;
    }
    for (place, byte) in script.iter_mut().rev().zip([0xac, 0x88]) {
        *place = byte;
    }
    script
}

/// An output of a large transaction, made without it.
pub(crate) fn coin(txid: varve_types::Txid, vout: u32) -> Coin {
    let outpoint = varve_types::Outpoint::new(txid, vout);
    Coin { outpoint, value: VALUE, script: script(vout).to_vec() }
}
