//! The witnesses of a transaction: for each input a stack of byte strings.

use super::CHECKED;
use crate::compact_size;
use crate::error::DecodeError;
use crate::reader::Reader;

/// The witness of one input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Witness<'a> {
    /// The items with their lengths, without the count.
    bytes: &'a [u8],
    count: usize,
}

impl<'a> Witness<'a> {
    /// The items, the bottom of the stack first.
    #[must_use]
    pub const fn items(&self) -> WitnessItems<'a> {
        WitnessItems { reader: Reader::new(self.bytes), left: self.count }
    }

    /// How many items there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether the input has no witness.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Appends the witness as the segwit format has it.
    pub fn write(&self, out: &mut Vec<u8>) {
        compact_size::write(self.count as u64, out);
        out.extend_from_slice(self.bytes);
    }

    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let count = compact_size::read(reader, u64::MAX, "a witness")?;
        let start = reader.offset();
        for _ in 0..count {
            read_item(reader)?;
        }
        let count = usize::try_from(count).expect(CHECKED);
        Ok(Self { bytes: reader.since(start), count })
    }
}

/// The items of a witness, in order.
#[derive(Clone, Debug)]
pub struct WitnessItems<'a> {
    reader: Reader<'a>,
    left: usize,
}

impl<'a> Iterator for WitnessItems<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        Some(read_item(&mut self.reader).expect(CHECKED))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for WitnessItems<'_> {}

/// The witnesses of a transaction, one for each input.
#[derive(Clone, Debug)]
pub struct Witnesses<'a> {
    reader: Option<Reader<'a>>,
    left: usize,
}

impl<'a> Witnesses<'a> {
    pub(super) const fn new(reader: Option<Reader<'a>>, left: usize) -> Self {
        Self { reader, left }
    }
}

impl<'a> Iterator for Witnesses<'a> {
    type Item = Witness<'a>;

    fn next(&mut self) -> Option<Witness<'a>> {
        self.left = self.left.checked_sub(1)?;
        Some(match &mut self.reader {
            Some(reader) => Witness::read(reader).expect(CHECKED),
            None => Witness::default(),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Witnesses<'_> {}

fn read_item<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    let length = compact_size::read(reader, u64::MAX, "a witness item")?;
    reader.take(length, "a witness item")
}
