//! Transactions, as views over their bytes.
//!
//! Parsing checks everything in one pass ([`scan`]) and records where the inputs, outputs and
//! witnesses begin. Nothing is copied: the iterators read the fields from the bytes again, and
//! since those have been checked, iterating cannot fail. For the formats see [`Format`].
//!
//! Identifiers are hashes of the same bytes:
//!
//! ```text
//! txid    version │ inputs │ outputs │ lock time        without marker, flag and witness
//! wtxid   all bytes
//! ```

mod input;
mod output;
pub(crate) mod scan;
#[cfg(test)]
mod tests;
mod witness;

pub use input::{Inputs, TxIn};
pub use output::{Outputs, TxOut};
pub use witness::{Witness, WitnessItems, Witnesses};

use varve_sha256::Message;

use crate::compact_size;
use crate::error::DecodeError;
use crate::format::Format;
use crate::hash::{Txid, Wtxid, sha256d};
use crate::outpoint::Outpoint;
use crate::reader::Reader;
use scan::{EXTENDED_MARKER, Layout};

/// The bytes 00 01 after the version of a transaction with a witness.
const MARKER_AND_FLAG: usize = 2;
const LOCK_TIME: usize = size_of::<u32>();

/// A transaction in borrowed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tx<'a> {
    bytes: &'a [u8],
    layout: Layout,
}

impl<'a> Tx<'a> {
    /// Parses a transaction that fills the bytes.
    pub fn parse(bytes: &'a [u8], format: Format) -> Result<Self, DecodeError> {
        let tx = Self::parse_first(bytes, format)?;
        Reader::at(bytes, tx.bytes.len()).end()?;
        Ok(tx)
    }

    /// Parses the transaction at the front of the bytes. Its length is that of its
    /// [`bytes`](Self::bytes).
    #[inline]
    pub fn parse_first(bytes: &'a [u8], format: Format) -> Result<Self, DecodeError> {
        let layout = Layout::scan(bytes, format)?;
        Ok(Self::new(bytes, layout))
    }

    /// The transaction that a finished scan has found in these bytes.
    #[inline]
    pub(crate) fn new(bytes: &'a [u8], layout: Layout) -> Self {
        let bytes = bytes.get(..layout.end).expect("the scan has read up to the end");
        Self { bytes, layout }
    }

    /// Whether a transaction in these bytes is in extended format.
    #[must_use]
    pub fn is_extended(bytes: &[u8]) -> bool {
        bytes.get(4..10) == Some(&EXTENDED_MARKER)
    }

    /// The serialised transaction.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The format: [`Format::Segwit`] only when there is a witness.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.layout.format
    }

    /// The version.
    #[must_use]
    pub fn version(&self) -> u32 {
        Reader::new(self.bytes).u32("a version").expect(CHECKED)
    }

    /// The lock time.
    #[must_use]
    pub fn lock_time(&self) -> u32 {
        u32::from_le_bytes(*self.bytes.last_chunk().expect(CHECKED))
    }

    /// The inputs.
    #[must_use]
    pub fn inputs(&self) -> Inputs<'a> {
        let extended = self.layout.format == Format::Extended;
        Inputs::new(Reader::at(self.bytes, self.layout.inputs), self.layout.input_count, extended)
    }

    /// The outputs.
    #[must_use]
    pub fn outputs(&self) -> Outputs<'a> {
        Outputs::new(Reader::at(self.bytes, self.layout.outputs), self.layout.output_count)
    }

    /// The witness of each input, in order; all are empty when the transaction has none.
    #[must_use]
    pub fn witnesses(&self) -> Witnesses<'a> {
        let reader = match self.layout.format {
            Format::Segwit => Some(Reader::at(self.bytes, self.layout.witness)),
            Format::Legacy | Format::Extended => None,
        };
        Witnesses::new(reader, self.layout.input_count)
    }

    /// Whether some input has a witness.
    #[must_use]
    pub fn has_witness(&self) -> bool {
        self.layout.format == Format::Segwit
    }

    /// The length without marker, flag and witness.
    #[must_use]
    pub const fn base_len(&self) -> usize {
        match self.layout.format {
            // What is before the witness, less marker and flag, and the lock time after it.
            Format::Segwit => self.layout.witness - MARKER_AND_FLAG + LOCK_TIME,
            Format::Legacy | Format::Extended => self.bytes.len(),
        }
    }

    /// Whether this is a coinbase: one input, which spends nothing.
    #[must_use]
    #[inline]
    pub fn is_coinbase(&self) -> bool {
        let mut inputs = Reader::at(self.bytes, self.layout.inputs);
        let outpoint = inputs.array("an outpoint").map(Outpoint::from_bytes);
        self.layout.input_count == 1 && outpoint.is_ok_and(|outpoint| outpoint.is_null())
    }

    /// The hash of the transaction without its witness.
    #[must_use]
    pub fn txid(&self) -> Txid {
        Txid::from_bytes(match self.txid_message() {
            Some(message) => varve_sha256::double(message),
            None => sha256d(&self.to_legacy()),
        })
    }

    /// The hash of the transaction with its witness; the txid when it has none.
    #[must_use]
    pub fn wtxid(&self) -> Wtxid {
        Wtxid::from_bytes(match self.layout.format {
            Format::Legacy | Format::Segwit => sha256d(self.bytes),
            Format::Extended => self.txid().to_bytes(),
        })
    }

    /// The pieces whose hash is the txid; `None` in extended format, where there are too many.
    #[inline]
    fn txid_message(&self) -> Option<Message<'a>> {
        match self.layout.format {
            Format::Legacy => Some(self.bytes.into()),
            Format::Segwit => {
                let (version, rest) = self.bytes.split_first_chunk::<4>().expect(CHECKED);
                let (_, lock_time) = self.bytes.split_last_chunk::<4>().expect(CHECKED);
                let middle = rest.get(MARKER_AND_FLAG..self.layout.witness - 4).expect(CHECKED);
                Some(Message::new(version, middle, lock_time))
            }
            Format::Extended => None,
        }
    }

    /// The transaction in legacy format: the bytes whose hash is the txid.
    #[must_use]
    pub fn to_legacy(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes.len());
        out.extend_from_slice(&self.version().to_le_bytes());
        compact_size::write(self.layout.input_count as u64, &mut out);
        self.inputs().for_each(|input| input.write(&mut out));
        compact_size::write(self.layout.output_count as u64, &mut out);
        self.outputs().for_each(|output| output.write(&mut out));
        out.extend_from_slice(&self.lock_time().to_le_bytes());
        out
    }
}

/// The txids of many transactions, hashed side by side. Extended ones are hashed one by one: they
/// travel alone, not in blocks.
pub(crate) fn txids_of(txs: &[Tx<'_>]) -> Vec<[u8; 32]> {
    if txs.iter().any(|tx| tx.format() == Format::Extended) {
        return txs.iter().map(|tx| tx.txid().to_bytes()).collect();
    }
    let mut hashes = Vec::with_capacity(txs.len());
    let messages = txs.iter().map(|tx| tx.txid_message().expect("none is extended"));
    varve_sha256::double_many(messages, &mut hashes);
    hashes
}

/// Why reading again what parsing has read cannot fail.
const CHECKED: &str = "checked when the transaction was parsed";
