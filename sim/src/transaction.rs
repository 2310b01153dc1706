//! Building a transaction: its parts, then its bytes.
//!
//! 1. A [`Draft`] has the coins it spends and its outputs.
//! 2. [`Draft::build`] writes the scripts of the inputs and hashes the txid. From here on other
//!    transactions can spend it.
//! 3. [`Transaction::finish`] makes the witness and the wtxid. It needs nothing but the
//!    transaction itself, so a block's transactions are finished in parallel.

use varve_types::{Txid, compact_size, sha256d};

use crate::coins::Coin;
use crate::keys::Keys;
use crate::profile::Table;
use crate::rng::Rng;
use crate::script::{Kind, Script};
use crate::sighash::{LOCK_TIME, SEQUENCE, Sighash, VERSION};
use crate::unlock::Unlock;

/// A transaction that is being put together.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) inputs: Vec<Coin>,
    /// Serialised outputs, without their number.
    outputs: Vec<u8>,
    output_count: usize,
    spendable: Vec<Spendable>,
    paid: u64,
    sigops: u32,
}

/// An output that may be spent later.
#[derive(Clone, Copy, Debug)]
struct Spendable {
    vout: u32,
    value: u64,
    script: Script,
}

/// A transaction with its txid, and after [`Transaction::finish`] with all of its bytes.
pub(crate) struct Transaction {
    pub(crate) txid: Txid,
    pub(crate) wtxid: [u8; 32],
    /// The whole serialisation, empty until finished.
    pub(crate) bytes: Vec<u8>,
    pub(crate) fee: u64,
    pub(crate) inputs: Vec<Coin>,
    /// An upper bound of the weight.
    pub(crate) weight: u32,
    /// The bytes without the witness.
    pub(crate) base_len: u32,
    pub(crate) sigops: u32,
    /// The serialisation without witness, empty once finished.
    stripped: Vec<u8>,
    /// Where the serialised outputs begin in `stripped`.
    outputs_at: usize,
    output_count: usize,
    spendable: Vec<Spendable>,
}

impl Draft {
    pub(crate) fn new(inputs: Vec<Coin>) -> Self {
        // Room for three usual outputs, which most transactions do not exceed.
        Self { inputs, outputs: Vec::with_capacity(128), ..Self::default() }
    }

    /// Adds an output that will be spent, or at least could be.
    pub(crate) fn pay(&mut self, value: u64, script: Script, keys: &Keys) {
        let vout = u32::try_from(self.output_count).expect("outputs are fewer than 2^32");
        self.spendable.push(Spendable { vout, value, script });
        self.pay_never_spent(value, script, keys);
    }

    /// Adds an output that the simulator will not spend.
    pub(crate) fn pay_never_spent(&mut self, value: u64, script: Script, keys: &Keys) {
        self.begin_output(value);
        let length_at = self.outputs.len();
        self.outputs.push(0);
        script.write(keys, &mut self.outputs);
        let length = self.outputs.len() - length_at - 1;
        let length = u8::try_from(length).expect("the kinds' scripts are short");
        *self.outputs.get_mut(length_at).expect("the byte was just pushed") = length;
        self.sigops += script.kind().output_sigops();
    }

    /// Adds an output with a script of data.
    pub(crate) fn data(&mut self, script: &[u8]) {
        self.begin_output(0);
        compact_size::write(script.len() as u64, &mut self.outputs);
        self.outputs.extend_from_slice(script);
    }

    fn begin_output(&mut self, value: u64) {
        self.output_count += 1;
        self.paid += value;
        self.outputs.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes everything but the witness.
    pub(crate) fn build(self, table: &Table, keys: &Keys, rng: &mut Rng) -> Transaction {
        let mut sighash = Sighash::new(&self.inputs, &self.outputs, self.output_count);
        let mut stripped = Vec::with_capacity(self.inputs.len() * 150 + self.outputs.len() + 30);
        stripped.extend_from_slice(&VERSION);
        compact_size::write(self.inputs.len() as u64, &mut stripped);
        let mut script = Vec::with_capacity(300);
        let mut sigops = self.sigops;
        let mut witness_weight = 2;
        for (index, coin) in self.inputs.iter().enumerate() {
            script.clear();
            let unlock = Unlock { keys, coin, index, bsv: table.bsv };
            unlock.script(&mut sighash, rng, &mut script);
            stripped.extend_from_slice(&coin.outpoint().to_bytes());
            compact_size::write(script.len() as u64, &mut stripped);
            stripped.extend_from_slice(&script);
            stripped.extend_from_slice(&SEQUENCE);
            sigops += coin.script.kind().input_sigops();
            witness_weight += witness_bound(coin.script, keys);
        }
        compact_size::write(self.output_count as u64, &mut stripped);
        let outputs_at = stripped.len();
        stripped.extend_from_slice(&self.outputs);
        stripped.extend_from_slice(&LOCK_TIME);
        let funds: u64 = self.inputs.iter().map(|coin| coin.value).sum();
        Transaction {
            txid: Txid::from_bytes(sha256d(&stripped)),
            wtxid: [0; 32],
            bytes: Vec::new(),
            fee: funds.checked_sub(self.paid).expect("outputs are drawn from the inputs' value"),
            weight: u32::try_from(stripped.len() * 4 + witness_weight).expect("far below 4 GiB"),
            base_len: u32::try_from(stripped.len()).expect("far below 4 GiB"),
            sigops,
            inputs: self.inputs,
            stripped,
            outputs_at,
            output_count: self.output_count,
            spendable: self.spendable,
        }
    }
}

/// The most weight that the witness of one input can have.
fn witness_bound(script: Script, keys: &Keys) -> usize {
    match script.kind() {
        Kind::P2wpkh | Kind::P2shWpkh => 109,
        Kind::P2tr => 66,
        Kind::P2wsh => 256,
        Kind::Inscription => 1 + 65 + 3 + keys.leaf_len(script) + 34,
        _ => 1,
    }
}

impl Transaction {
    /// Makes the witness, if any input has one, and the final bytes. Does nothing the second time.
    pub(crate) fn finish(&mut self, table: &Table, keys: &Keys) {
        if !self.bytes.is_empty() {
            return;
        }
        let witness = !table.bsv && self.inputs.iter().any(|c| c.script.kind().has_witness());
        if !witness {
            self.wtxid = self.txid.to_bytes();
            self.bytes = std::mem::take(&mut self.stripped);
            return;
        }
        let (head, lock_time) = self.stripped.split_at(self.stripped.len() - LOCK_TIME.len());
        let (version, body) = head.split_at(VERSION.len());
        let (_, outputs) = head.split_at(self.outputs_at);
        let mut bytes = Vec::with_capacity(self.stripped.len() + self.inputs.len() * 112 + 2);
        bytes.extend_from_slice(version);
        bytes.extend_from_slice(&[0, 1]);
        bytes.extend_from_slice(body);
        let mut sighash = Sighash::new(&self.inputs, outputs, self.output_count);
        let mut rng = Rng::keyed(self.txid.to_bytes());
        for (index, coin) in self.inputs.iter().enumerate() {
            let unlock = Unlock { keys, coin, index, bsv: false };
            unlock.witness(&mut sighash, &mut rng, &mut bytes);
        }
        bytes.extend_from_slice(lock_time);
        self.wtxid = sha256d(&bytes);
        self.bytes = bytes;
        self.stripped = Vec::new();
    }

    /// The coins that it makes when it is in the block at `height`.
    pub(crate) fn coins(&self, height: u32) -> impl Iterator<Item = Coin> + '_ {
        self.spendable.iter().map(move |output| Coin {
            txid: self.txid,
            value: output.value,
            vout: output.vout,
            height,
            script: output.script,
            coinbase: false,
        })
    }
}
