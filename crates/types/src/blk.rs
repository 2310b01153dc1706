//! The records of a node's block files, `blk?????.dat`.
//!
//! ```text
//! │ magic 4 │ size u32le │ block │ magic 4 │ size u32le │ block │ … │ zeros to the end
//! ```
//!
//! Nodes append blocks in the order in which they arrive and preallocate with zeros, so:
//!
//! * the records end where the magic does not match;
//! * a record may be incomplete at the end of a file that is still growing, and its size is not
//!   to be trusted: such a record is reported ([`End::Incomplete`]), never returned.
//!
//! Since version 28 Core XORs its files with the eight bytes in `blocks/xor.dat`, repeated from the
//! start of each file. The zeros are written plain, so they read as the repeated key.
//! [`XorKey::apply`] undoes it; the walk itself is over plain bytes.

use crate::reader::Reader;

/// The key that Core XORs its block files with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XorKey([u8; 8]);

impl XorKey {
    /// The key with these bytes, which are the content of `xor.dat`.
    #[must_use]
    pub const fn new(key: [u8; 8]) -> Self {
        Self(key)
    }

    /// Whether the key leaves bytes as they are.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.0 == [0; 8]
    }

    /// XORs `bytes`, which begin at `offset` in their file. Applying it twice restores the bytes.
    pub fn apply(&self, offset: u64, bytes: &mut [u8]) {
        if self.is_zero() {
            return;
        }
        let mut key = self.0;
        key.rotate_left((offset % 8) as usize);
        let word = u64::from_le_bytes(key);
        let (words, rest) = bytes.as_chunks_mut();
        for bytes in words {
            *bytes = (u64::from_le_bytes(*bytes) ^ word).to_le_bytes();
        }
        for (byte, key) in rest.iter_mut().zip(key) {
            *byte ^= key;
        }
    }
}

/// One block in a block file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The offset of the block's first byte, after magic and size.
    pub offset: usize,
    /// The bytes of the block.
    pub block: &'a [u8],
}

/// Why the records end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The bytes end with a record.
    Clean,
    /// The magic does not match at this offset: the rest of the file is not yet used.
    NoMagic {
        /// Where a record could be written.
        offset: usize,
    },
    /// The record at this offset goes beyond the end of the bytes.
    Incomplete {
        /// Where the record begins.
        offset: usize,
    },
}

/// Appends a record.
///
/// # Panics
///
/// When the block is 4 GiB or more, which the format cannot express.
pub fn write_record(magic: [u8; 4], block: &[u8], out: &mut Vec<u8>) {
    let size = u32::try_from(block.len()).expect("block files hold blocks below 4 GiB");
    out.extend_from_slice(&magic);
    out.extend_from_slice(&size.to_le_bytes());
    out.extend_from_slice(block);
}

/// Walks over the records of a block file.
///
/// ```
/// use varve_types::blk::{End, Records, write_record};
///
/// let mut file = Vec::new();
/// write_record(*b"mgic", b"block", &mut file);
/// file.extend_from_slice(&[0; 16]);
/// let mut records = Records::new(&file, *b"mgic");
/// assert_eq!(records.next().map(|record| record.block), Some(&b"block"[..]));
/// assert_eq!(records.next(), None);
/// assert_eq!(records.end(), End::NoMagic { offset: 13 });
/// ```
#[derive(Clone, Debug)]
pub struct Records<'a> {
    reader: Reader<'a>,
    magic: [u8; 4],
}

impl<'a> Records<'a> {
    /// Begins at the first byte of a file that is not (or no longer) XORed.
    #[must_use]
    pub const fn new(bytes: &'a [u8], magic: [u8; 4]) -> Self {
        Self { reader: Reader::new(bytes), magic }
    }

    /// Why the walk has ended. Only meaningful after the last record.
    #[must_use]
    pub fn end(&self) -> End {
        let rest = self.reader.rest();
        let offset = self.reader.offset();
        let known = rest.len().min(self.magic.len());
        if rest.is_empty() {
            End::Clean
        } else if rest.get(..known) == self.magic.get(..known) {
            End::Incomplete { offset }
        } else {
            End::NoMagic { offset }
        }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let mut reader = self.reader.clone();
        if *reader.array("a magic").ok()? != self.magic {
            return None;
        }
        let size = reader.u32("a size").ok()?;
        let offset = reader.offset();
        let block = reader.take(u64::from(size), "a block").ok()?;
        self.reader = reader;
        Some(Record { offset, block })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAGIC: [u8; 4] = [0xf9, 0xbe, 0xb4, 0xd9];

    fn file(blocks: &[Vec<u8>]) -> Vec<u8> {
        let mut file = Vec::new();
        blocks.iter().for_each(|block| write_record(MAGIC, block, &mut file));
        file
    }

    #[test]
    fn a_size_is_not_believed() {
        let mut bytes = file(&[vec![1; 5]]);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&u32::MAX.to_le_bytes());
        bytes.extend_from_slice(&[0; 9]);
        let mut records = Records::new(&bytes, MAGIC);
        assert_eq!(records.by_ref().count(), 1);
        assert_eq!(records.end(), End::Incomplete { offset: 13 });
    }

    #[test]
    fn a_preallocated_tail_reads_as_the_key() {
        let key = XorKey::new([1, 2, 3, 4, 5, 6, 7, 8]);
        let mut bytes = file(&[vec![1; 5], vec![2; 6]]);
        let used = bytes.len();
        key.apply(0, &mut bytes);
        bytes.extend_from_slice(&[0; 20]);
        key.apply(0, &mut bytes);
        let mut records = Records::new(&bytes, MAGIC);
        assert_eq!(records.by_ref().map(|record| record.block.len()).collect::<Vec<_>>(), [5, 6]);
        assert_eq!(records.end(), End::NoMagic { offset: used });
    }

    proptest! {
        #[test]
        fn records_round_trip_and_cuts_are_seen(
            blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..8),
            cut: prop::sample::Index,
        ) {
            let bytes = file(&blocks);
            let mut records = Records::new(&bytes, MAGIC);
            let mut read = Vec::new();
            for record in records.by_ref() {
                prop_assert_eq!(&bytes[record.offset..][..record.block.len()], record.block);
                read.push(record.block.to_vec());
            }
            prop_assert_eq!(&read, &blocks);
            prop_assert_eq!(records.end(), End::Clean);

            let mut records = Records::new(&bytes[..cut.index(bytes.len() + 1)], MAGIC);
            let whole: Vec<_> = records.by_ref().map(|record| record.block.to_vec()).collect();
            prop_assert_eq!(&whole[..], &blocks[..whole.len()]);
            let unused = matches!(records.end(), End::NoMagic { .. });
            prop_assert!(!unused, "a cut is not the end of the records");
        }

        #[test]
        fn hostile_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let file = [&MAGIC[..], &bytes].concat();
            let mut records = Records::new(&file, MAGIC);
            records.by_ref().for_each(drop);
            let _ = records.end();
        }

        #[test]
        fn xor_in_pieces_is_xor_of_the_whole(
            key: [u8; 8],
            bytes in prop::collection::vec(any::<u8>(), 0..60),
            at: prop::sample::Index,
        ) {
            let plain = |at: usize| bytes[at] ^ key[at % 8];
            let mut pieces = bytes.clone();
            let at = at.index(bytes.len() + 1);
            let (first, second) = pieces.split_at_mut(at);
            XorKey::new(key).apply(0, first);
            XorKey::new(key).apply(at as u64, second);
            prop_assert_eq!(pieces, (0..bytes.len()).map(plain).collect::<Vec<_>>());
        }
    }
}
