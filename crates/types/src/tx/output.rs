//! The outputs of a transaction.

use super::CHECKED;
use crate::amount::Amount;
use crate::compact_size;
use crate::error::DecodeError;
use crate::reader::Reader;

/// One output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxOut<'a> {
    /// The amount.
    pub value: Amount,
    /// The locking script.
    pub script: &'a [u8],
}

impl<'a> TxOut<'a> {
    /// Appends the output as every format has it.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.value.to_sat().to_le_bytes());
        compact_size::write(self.script.len() as u64, out);
        out.extend_from_slice(self.script);
    }

    #[inline]
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let value = Amount::from_sat(reader.u64("a value")?);
        let length = compact_size::read(reader, u64::MAX, "an output script")?;
        let script = reader.take(length, "an output script")?;
        Ok(Self { value, script })
    }
}

/// The outputs of a transaction, in order.
#[derive(Clone, Debug)]
pub struct Outputs<'a> {
    reader: Reader<'a>,
    left: usize,
}

impl<'a> Outputs<'a> {
    pub(super) const fn new(reader: Reader<'a>, left: usize) -> Self {
        Self { reader, left }
    }
}

impl<'a> Iterator for Outputs<'a> {
    type Item = TxOut<'a>;

    #[inline]
    fn next(&mut self) -> Option<TxOut<'a>> {
        self.left = self.left.checked_sub(1)?;
        Some(TxOut::read(&mut self.reader).expect(CHECKED))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Outputs<'_> {}
