//! The row of a block in the index: its identity and where its bytes are.
//!
//! ```text
//!  0              32                112       120       128        136    140    144
//!  ┌──────────────┬─────────────────┬─────────┬─────────┬──────────┬──────┬──────┐
//!  │ block hash   │ header          │ position│ length  │ offsets  │ txs  │ zero │
//!  │ 32 bytes     │ 80 bytes        │ u64     │ u64     │ at u64   │ u32  │ u32  │
//!  └──────────────┴─────────────────┴─────────┴─────────┴──────────┴──────┴──────┘
//! ```
//!
//! Row `n` is that of block number `n`; it lies at position 144 · n of the log `index`. `position`
//! is where the block's frame begins in the log `blocks`, `length` how long the block is, `offsets
//! at` where its table of transaction offsets lies in the log `offsets` and `txs` how many
//! transactions it has. The hash is that of the header, stored so that it need not be computed
//! again.

use varve_io::{FormatError, GlobalOffset};
use varve_types::{BlockHash, Header};

const HASH_AT: usize = 0;
const HEADER_AT: usize = HASH_AT + 32;
const POSITION_AT: usize = HEADER_AT + Header::LEN;
const LENGTH_AT: usize = POSITION_AT + size_of::<u64>();
const OFFSETS_AT: usize = LENGTH_AT + size_of::<u64>();
const TXS_AT: usize = OFFSETS_AT + size_of::<u64>();
const ZERO_AT: usize = TXS_AT + size_of::<u32>();

/// What the index holds about a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockRow {
    /// The hash of the header.
    pub hash: BlockHash,
    /// The header's bytes.
    pub header: [u8; Header::LEN],
    /// Where the block's frame begins in the log of blocks.
    pub position: GlobalOffset,
    /// The bytes of the block.
    pub length: u64,
    /// Where the table of its transaction offsets lies in the log of those.
    pub offsets_at: GlobalOffset,
    /// The number of transactions.
    pub txs: u32,
}

impl BlockRow {
    /// The length of a row.
    pub const LEN: usize = ZERO_AT + size_of::<u32>();

    /// The header as a view.
    #[must_use]
    pub const fn header(&self) -> Header<'_> {
        Header::new(&self.header)
    }

    /// The row's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let mut put = |at: usize, field: &[u8]| {
            let place = bytes.get_mut(at..at + field.len());
            place.expect("the fields lie within the row").copy_from_slice(field);
        };
        put(HASH_AT, self.hash.as_bytes());
        put(HEADER_AT, &self.header);
        put(POSITION_AT, &self.position.get().to_le_bytes());
        put(LENGTH_AT, &self.length.to_le_bytes());
        put(OFFSETS_AT, &self.offsets_at.get().to_le_bytes());
        put(TXS_AT, &self.txs.to_le_bytes());
        bytes
    }

    /// Decodes a row, which the checksums of the log have verified.
    pub fn decode(bytes: &[u8; Self::LEN]) -> Result<Self, FormatError> {
        if field::<4>(bytes, ZERO_AT) != [0; 4] {
            return Err(FormatError::Damaged {
                at: ZERO_AT,
                what: "the reserved bytes are not zero",
            });
        }
        Ok(Self {
            hash: hash(bytes),
            header: field(bytes, HEADER_AT),
            position: GlobalOffset::new(u64::from_le_bytes(field(bytes, POSITION_AT))),
            length: u64::from_le_bytes(field(bytes, LENGTH_AT)),
            offsets_at: GlobalOffset::new(u64::from_le_bytes(field(bytes, OFFSETS_AT))),
            txs: u32::from_le_bytes(field(bytes, TXS_AT)),
        })
    }
}

const _: () = assert!(BlockRow::LEN == 144);

/// The hash in a row that is not decoded otherwise.
pub(crate) fn hash(bytes: &[u8; BlockRow::LEN]) -> BlockHash {
    BlockHash::from_bytes(field(bytes, HASH_AT))
}

fn field<const N: usize>(bytes: &[u8; BlockRow::LEN], at: usize) -> [u8; N] {
    *bytes.get(at..).and_then(<[u8]>::first_chunk).expect("the fields lie within the row")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_survives_and_reserved_bytes_must_be_zero() {
        let row = BlockRow {
            hash: BlockHash::from_bytes([1; 32]),
            header: [2; 80],
            position: GlobalOffset::new(3 << 40),
            length: 5 << 32,
            offsets_at: GlobalOffset::new(7 << 33),
            txs: u32::MAX - 1,
        };
        let mut bytes = row.encode();
        assert_eq!(BlockRow::decode(&bytes), Ok(row));
        bytes[ZERO_AT] = 1;
        assert!(BlockRow::decode(&bytes).is_err());
    }
}
