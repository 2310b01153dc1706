//! The inputs of a transaction.

use super::{CHECKED, TxOut};
use crate::compact_size;
use crate::error::DecodeError;
use crate::outpoint::Outpoint;
use crate::reader::Reader;

/// One input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxIn<'a> {
    /// The output that it spends.
    pub outpoint: Outpoint,
    /// The script that satisfies the script of that output.
    pub script: &'a [u8],
    /// The sequence number.
    pub sequence: u32,
    /// The output that it spends, which only the extended format carries.
    pub spent: Option<TxOut<'a>>,
}

impl<'a> TxIn<'a> {
    /// Appends the input as the legacy and segwit formats have it.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.outpoint.to_bytes());
        compact_size::write(self.script.len() as u64, out);
        out.extend_from_slice(self.script);
        out.extend_from_slice(&self.sequence.to_le_bytes());
    }

    #[inline]
    fn read(reader: &mut Reader<'a>, extended: bool) -> Result<Self, DecodeError> {
        let outpoint = Outpoint::from_bytes(reader.array("an outpoint")?);
        let length = compact_size::read(reader, u64::MAX, "an input script")?;
        let script = reader.take(length, "an input script")?;
        let sequence = reader.u32("a sequence")?;
        let spent = if extended { Some(TxOut::read(reader)?) } else { None };
        Ok(Self { outpoint, script, sequence, spent })
    }
}

/// The inputs of a transaction, in order.
#[derive(Clone, Debug)]
pub struct Inputs<'a> {
    reader: Reader<'a>,
    left: usize,
    extended: bool,
}

impl<'a> Inputs<'a> {
    pub(super) const fn new(reader: Reader<'a>, left: usize, extended: bool) -> Self {
        Self { reader, left, extended }
    }
}

impl<'a> Iterator for Inputs<'a> {
    type Item = TxIn<'a>;

    #[inline]
    fn next(&mut self) -> Option<TxIn<'a>> {
        self.left = self.left.checked_sub(1)?;
        Some(TxIn::read(&mut self.reader, self.extended).expect(CHECKED))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Inputs<'_> {}
