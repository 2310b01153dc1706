//! A transaction as one piece of shared bytes, in standard or extended form.
//!
//! ```text
//! standard   version 4 │ inputs │ outputs │ lock time 4
//! extended   version 4 │ 00 00 00 00 00 ef │ inputs │ outputs │ lock time 4       (BIP239)
//!            an input ends with what it spends: value u64le │ CompactSize │ script
//! ```
//!
//! The bytes are checked once and then shared, never copied: [`Transaction::view`] walks them in
//! place, and a transaction of a gigabyte costs its bytes and nothing more. The txid is the double
//! SHA-256 of the standard form, which for an extended transaction exists nowhere as bytes: its
//! pieces are fed to the hash one after the other.
//!
//! Bytes 4 to 10 decide: an input count of zero, an output count of zero and `00 00 00 ef` mean
//! extended. Any other four bytes there are the lock time of an empty transaction.

use bitcoin_hashes::{Hash as _, HashEngine, sha256d};
use bytes::Bytes;
use varve_types::{DecodeError, Format, Outpoint, Tx, TxIn, TxOut, Txid, compact_size};

/// What follows the version in extended form.
const MARKER: [u8; 6] = [0, 0, 0, 0, 0, 0xef];

/// The length of an unknown spent output: a value of zero, an empty script.
const NOTHING_LEN: usize = 8 + 1;

/// A transaction in shared bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    bytes: Bytes,
    /// The form that the bytes really have.
    format: Format,
    txid: Txid,
}

impl Transaction {
    /// Takes a transaction that fills the bytes: in extended form, or as the blocks of the chain
    /// have it ([`Format::Legacy`] or [`Format::Segwit`]).
    pub fn parse(bytes: Bytes, format: Format) -> Result<Self, DecodeError> {
        let tx = Tx::parse(&bytes, form_of(&bytes, format))?;
        let (format, txid) = (tx.format(), txid_of(&tx));
        Ok(Self { bytes, format, txid })
    }

    /// The same with a txid that the caller knows. It is not compared with the bytes: outputs
    /// that are imported without their inputs hash to something else.
    pub fn parse_with_txid(bytes: Bytes, format: Format, txid: Txid) -> Result<Self, DecodeError> {
        let tx = Tx::parse(&bytes, form_of(&bytes, format))?;
        let format = tx.format();
        Ok(Self { bytes, format, txid })
    }

    /// The fields, read in place.
    #[must_use]
    pub fn view(&self) -> Tx<'_> {
        Tx::parse_first(&self.bytes, self.format).expect("checked when the transaction was taken")
    }

    /// The bytes as they were given.
    #[must_use]
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The form of the bytes.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
    }

    /// The double SHA-256 of the standard form, or what the caller said.
    #[must_use]
    pub const fn txid(&self) -> Txid {
        self.txid
    }

    /// Whether every input carries the output that it spends.
    #[must_use]
    pub fn is_extended(&self) -> bool {
        self.format == Format::Extended
    }

    /// The length of the form that blocks have: the standard form, with its witness if it has one.
    #[must_use]
    pub fn size(&self) -> u64 {
        match self.format {
            Format::Extended => standard_len(&self.view()) as u64,
            Format::Legacy | Format::Segwit => self.bytes.len() as u64,
        }
    }

    /// The length of the extended form, which has no witness and in which an unknown spent output
    /// is a value of zero and an empty script.
    #[must_use]
    pub fn extended_size(&self) -> u64 {
        match self.format {
            Format::Extended => self.bytes.len() as u64,
            Format::Legacy | Format::Segwit => {
                let tx = self.view();
                (MARKER.len() + standard_len(&tx) + tx.inputs().len() * NOTHING_LEN) as u64
            }
        }
    }

    /// The same transaction in extended form, its inputs with the outputs that they spend, which
    /// come in the order of the inputs. `None` when there are not as many.
    #[must_use]
    pub fn extend(&self, spent: &[TxOut<'_>]) -> Option<Self> {
        let tx = self.view();
        if tx.inputs().len() != spent.len() {
            return None;
        }
        let extra: usize = spent.iter().map(output_len).sum();
        let mut out = Vec::with_capacity(self.bytes.len() + MARKER.len() + extra);
        out.extend_from_slice(&tx.version().to_le_bytes());
        out.extend_from_slice(&MARKER);
        compact_size::write(tx.inputs().len() as u64, &mut out);
        for (input, spent) in tx.inputs().zip(spent) {
            write_input(&input, spent, &mut out);
        }
        compact_size::write(tx.outputs().len() as u64, &mut out);
        tx.outputs().for_each(|output| output.write(&mut out));
        out.extend_from_slice(&tx.lock_time().to_le_bytes());
        Some(Self { bytes: out.into(), format: Format::Extended, txid: self.txid })
    }

    /// The outpoints that it spends, in the order of its inputs; none for a coinbase.
    #[must_use]
    pub fn outpoints(&self) -> Vec<Outpoint> {
        let tx = self.view();
        if tx.is_coinbase() {
            return Vec::new();
        }
        tx.inputs().map(|input| input.outpoint).collect()
    }
}

/// Appends an input in extended form: as in the standard form, and what it spends.
pub fn write_input(input: &TxIn<'_>, spent: &TxOut<'_>, out: &mut Vec<u8>) {
    input.write(out);
    spent.write(out);
}

/// The form to parse these bytes in, when the blocks of the chain have `format`.
fn form_of(bytes: &[u8], format: Format) -> Format {
    if Tx::is_extended(bytes) { Format::Extended } else { format }
}

/// The length of the standard form.
fn standard_len(tx: &Tx<'_>) -> usize {
    let count = |count: usize| compact_size::len(count as u64);
    let script = |script: &[u8]| count(script.len()) + script.len();
    let inputs: usize = tx.inputs().map(|input| 36 + script(input.script) + 4).sum();
    let outputs: usize = tx.outputs().map(|output| output_len(&output)).sum();
    4 + count(tx.inputs().len()) + inputs + count(tx.outputs().len()) + outputs + 4
}

fn output_len(output: &TxOut<'_>) -> usize {
    8 + compact_size::len(output.script.len() as u64) + output.script.len()
}

/// The txid without the standard form in memory.
fn txid_of(tx: &Tx<'_>) -> Txid {
    if tx.format() != Format::Extended {
        return tx.txid();
    }
    let mut engine = sha256d::Hash::engine();
    let mut head = Vec::with_capacity(64);
    engine.input(&tx.version().to_le_bytes());
    feed_count(&mut engine, tx.inputs().len());
    for input in tx.inputs() {
        head.clear();
        head.extend_from_slice(&input.outpoint.to_bytes());
        compact_size::write(input.script.len() as u64, &mut head);
        engine.input(&head);
        engine.input(input.script);
        engine.input(&input.sequence.to_le_bytes());
    }
    feed_count(&mut engine, tx.outputs().len());
    for output in tx.outputs() {
        head.clear();
        head.extend_from_slice(&output.value.to_sat().to_le_bytes());
        compact_size::write(output.script.len() as u64, &mut head);
        engine.input(&head);
        engine.input(output.script);
    }
    engine.input(&tx.lock_time().to_le_bytes());
    Txid::from_bytes(sha256d::Hash::from_engine(engine).to_byte_array())
}

fn feed_count(engine: &mut impl HashEngine, count: usize) {
    let mut bytes = Vec::with_capacity(compact_size::MAX_LEN);
    compact_size::write(count as u64, &mut bytes);
    engine.input(&bytes);
}

#[cfg(test)]
mod tests;
