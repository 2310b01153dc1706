//! A transaction as one piece of shared bytes, in standard or extended form.
//!
//! ```text
//! standard   version 4 │ inputs │ outputs │ lock time 4
//! extended   version 4 │ 00 00 00 00 00 ef │ inputs │ outputs │ lock time 4       (BIP239)
//!            an input ends with what it spends: value u64le │ CompactSize │ script
//! witness    standard form, with its witness │ what each input spends, as above, in their order
//! ```
//!
//! The extended form has no place for a witness. So a transaction that has one keeps its standard
//! form, and what it spends stands behind: the front of the bytes is what blocks and peers have.
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
use varve_types::{
    Amount, DecodeError, Format, Outpoint, Reader, Tx, TxIn, TxOut, Txid, compact_size,
};

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
    /// Where the outputs begin that are spent, when they stand behind a witness.
    spent_at: Option<usize>,
    txid: Txid,
}

impl Transaction {
    /// Takes a transaction that fills the bytes: in extended form, as the blocks of the chain have
    /// it ([`Format::Legacy`] or [`Format::Segwit`]), or with what it spends behind its witness.
    pub fn parse(bytes: Bytes, format: Format) -> Result<Self, DecodeError> {
        Self::checked(bytes, format, txid_of)
    }

    /// The same with a txid that the caller knows. It is not compared with the bytes: outputs
    /// that are imported without their inputs hash to something else.
    pub fn parse_with_txid(bytes: Bytes, format: Format, txid: Txid) -> Result<Self, DecodeError> {
        Self::checked(bytes, format, |_| txid)
    }

    fn checked(
        bytes: Bytes,
        format: Format,
        txid: impl FnOnce(&Tx<'_>) -> Txid,
    ) -> Result<Self, DecodeError> {
        let tx = Tx::parse_first(&bytes, form_of(&bytes, format))?;
        let mut behind = Reader::at(&bytes, tx.bytes().len());
        let has_spent = tx.has_witness() && !behind.rest().is_empty();
        let spent_at = has_spent.then_some(behind.offset());
        if has_spent {
            tx.inputs().try_for_each(|_| read_output(&mut behind).map(drop))?;
        }
        behind.end()?;
        let (format, txid) = (tx.format(), txid(&tx));
        Ok(Self { bytes, format, spent_at, txid })
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

    /// Whether the outputs that it spends are known.
    #[must_use]
    pub fn is_extended(&self) -> bool {
        self.format == Format::Extended || self.spent_at.is_some()
    }

    /// The inputs, each with the output that it spends where that is known.
    pub fn inputs(&self) -> impl Iterator<Item = TxIn<'_>> {
        self.inputs_of(self.view())
    }

    /// The same from fields that are already known.
    pub(crate) fn inputs_of<'a>(&'a self, view: Tx<'a>) -> impl Iterator<Item = TxIn<'a>> {
        let mut behind = self.spent_at.map(|at| Reader::at(&self.bytes, at));
        view.inputs().map(move |input| match &mut behind {
            Some(reader) => {
                let spent = read_output(reader).expect("checked when it was taken");
                TxIn { spent: Some(spent), ..input }
            }
            None => input,
        })
    }

    /// The length of the form that blocks have: the standard form, with its witness if it has one.
    #[must_use]
    pub fn size(&self) -> u64 {
        match self.format {
            Format::Extended => standard_len(&self.view()) as u64,
            Format::Legacy | Format::Segwit => self.spent_at.unwrap_or(self.bytes.len()) as u64,
        }
    }

    /// The length with what it spends, where an unknown spent output is a value of zero and an
    /// empty script.
    #[must_use]
    pub fn extended_size(&self) -> u64 {
        if self.is_extended() {
            return self.bytes.len() as u64;
        }
        let tx = self.view();
        let form =
            if tx.has_witness() { tx.bytes().len() } else { MARKER.len() + standard_len(&tx) };
        (form + tx.inputs().len() * NOTHING_LEN) as u64
    }

    /// The same transaction with the outputs that it spends, which come in the order of the
    /// inputs. `None` when there are not as many.
    #[must_use]
    pub fn extend(&self, spent: &[TxOut<'_>]) -> Option<Self> {
        let tx = self.view();
        if tx.inputs().len() != spent.len() {
            return None;
        }
        if !tx.has_witness() {
            let bytes = write_extended(&tx, spent).into();
            return Some(Self { bytes, format: Format::Extended, spent_at: None, txid: self.txid });
        }
        let mut bytes = Vec::with_capacity(tx.bytes().len() + outputs_len(spent));
        bytes.extend_from_slice(tx.bytes());
        let spent_at = Some(bytes.len());
        spent.iter().for_each(|output| output.write(&mut bytes));
        Some(Self { bytes: bytes.into(), format: self.format, spent_at, txid: self.txid })
    }

    /// The bytes of the extended form: without its witness, and with a value of zero and an empty
    /// script for an output that is not known.
    #[must_use]
    pub fn extended_bytes(&self) -> Bytes {
        if self.format == Format::Extended {
            return self.bytes.clone();
        }
        let nothing = TxOut { value: Amount::ZERO, script: &[] };
        let view = self.view();
        let spent = self.inputs_of(view).map(|input| input.spent.unwrap_or(nothing));
        write_extended(&view, &spent.collect::<Vec<_>>()).into()
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

/// A transaction in extended form, with what it spends.
fn write_extended(tx: &Tx<'_>, spent: &[TxOut<'_>]) -> Vec<u8> {
    let mut out = Vec::with_capacity(tx.bytes().len() + MARKER.len() + outputs_len(spent));
    out.extend_from_slice(&tx.version().to_le_bytes());
    out.extend_from_slice(&MARKER);
    compact_size::write(tx.inputs().len() as u64, &mut out);
    for (input, spent) in tx.inputs().zip(spent) {
        write_input(&input, spent, &mut out);
    }
    compact_size::write(tx.outputs().len() as u64, &mut out);
    tx.outputs().for_each(|output| output.write(&mut out));
    out.extend_from_slice(&tx.lock_time().to_le_bytes());
    out
}

fn read_output<'a>(reader: &mut Reader<'a>) -> Result<TxOut<'a>, DecodeError> {
    let value = Amount::from_sat(reader.u64("the value of a spent output")?);
    let length = compact_size::read(reader, u64::MAX, "the script of a spent output")?;
    Ok(TxOut { value, script: reader.take(length, "the script of a spent output")? })
}

/// Appends an input in extended form: as in the standard form, and what it spends.
pub(crate) fn write_input(input: &TxIn<'_>, spent: &TxOut<'_>, out: &mut Vec<u8>) {
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

fn outputs_len(outputs: &[TxOut<'_>]) -> usize {
    outputs.iter().map(output_len).sum()
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
