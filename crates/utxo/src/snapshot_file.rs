//! Core's snapshot of the set (`dumptxoutset`, `loadtxoutset`), version 2, byte for byte.
//!
//! ```text
//!  0          5         7         11          43      51
//!  ┌──────────┬─────────┬─────────┬───────────┬───────┐
//!  │ utxo\xff │ version │ network │ base block│ coins │
//!  │          │ u16 = 2 │ magic 4 │ hash 32   │ u64   │
//!  └──────────┴─────────┴─────────┴───────────┴───────┘
//!  then for every transaction:
//!  ┌─────────┬───────────────┬──────────────────┬─────────────┐
//!  │ txid 32 │ CompactSize n │ CompactSize vout │ packed coin │
//!  └─────────┴───────────────┴──────────────────┴─────────────┘
//!                            └─────────── n times ────────────┘
//! ```
//!
//! A coin is packed as in our pages (`packed`). Transactions are in the order of the bytes of their
//! txids. Within one, coins are in the order of Core's database keys, which end in VARINT(vout).
//! These bytes sort like the numbers only below 16,512, whose `80 80 00` comes before the `81 00`
//! of 256. The set hashes take the coins by number.
//!
//! **There is no checksum.** A damaged file that still decodes to coins in order is a different
//! set, and only the hash of the set shows it: after an import, compare the
//! [`Statistics`](crate::Statistics) with a hash that you trust, as Core does with the one built
//! into it. The base block's height is not in the file either.
//!
//! [`Version::export`](crate::Version::export) writes one,
//! [`Database::import`](crate::Database::import) fills an empty set from one.

mod export;
mod import;
mod input;

use std::cmp::Ordering;
use std::io;

use varve_types::{BlockHash, DecodeError, Height, Network, Outpoint, Txid, varint};

use input::Input;

pub(crate) use import::SnapshotReader;

const MAGIC: [u8; 5] = *b"utxo\xff";
const VERSION: u16 = 2;
const HEADER_LEN: usize = 51;
const _: () = assert!(HEADER_LEN == MAGIC.len() + 2 + 4 + 32 + 8);

/// Why a snapshot could not be written or was refused. The set is as it was before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// Writing failed.
    #[error("cannot write the snapshot: {0}; remove the partial file and write it again")]
    Write(#[source] io::Error),
    /// Reading failed.
    #[error("cannot read the snapshot: {0}; nothing was imported")]
    Read(#[source] io::Error),
    /// The set has no block.
    #[error("a set without a block cannot be exported; append blocks first")]
    NoBlock,
    /// The set to import into is not new.
    #[error("a snapshot can be imported only into a new set; open an empty directory")]
    NotNew,
    /// The header is not that of a snapshot.
    #[error("this is not a snapshot of the set; pass a file that dumptxoutset wrote")]
    Foreign,
    /// The header is of another version.
    #[error("the snapshot has version {found}, not 2; write it with a newer node")]
    Version {
        /// The version found.
        found: u16,
    },
    /// The snapshot is of another chain.
    #[error(
        "the snapshot is of the network with magic {}, not of {wanted}; open a directory of its \
         network", magic_name(.found)
    )]
    OtherNetwork {
        /// The magic found.
        found: [u8; 4],
        /// The network of the set.
        wanted: Network,
    },
    /// The base block has a height that no block can have.
    #[error("{height} is not the height of a block; pass that of the base block {base}")]
    Height {
        /// The height passed.
        height: Height,
        /// The base block.
        base: BlockHash,
    },
    /// The file ends too early.
    #[error("the snapshot ends within {what}, which begins at byte {at}; get the whole file")]
    Truncated {
        /// Where the truncated field begins.
        at: u64,
        /// The field.
        what: &'static str,
    },
    /// Something is wrong with a transaction or its number of coins.
    #[error("the snapshot is damaged before byte {at}: {what}; fetch the file again")]
    Damaged {
        /// The offset after what is wrong.
        at: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// A coin does not decode.
    #[error(
        "the snapshot is damaged: coin {outpoint}, before byte {at}, does not unpack: {error}; \
         fetch the file again"
    )]
    Coin {
        /// The coin's outpoint.
        outpoint: Outpoint,
        /// The offset after its transaction.
        at: u64,
        /// What is wrong.
        error: DecodeError,
    },
    /// A coin of a block above the base block.
    #[error(
        "coin {outpoint} is of height {height}, above the base block at {base}; pass the height \
         of the base block, or fetch the file again"
    )]
    AboveBase {
        /// The coin's outpoint.
        outpoint: Outpoint,
        /// The height of its block.
        height: Height,
        /// The height of the base block.
        base: Height,
    },
    /// The walk found another number of coins than the header says.
    #[error(
        "the set has {found} coins, but its runs count {expected}; rebuild the set from the blocks"
    )]
    Count {
        /// Coins in the header.
        expected: u64,
        /// Coins written.
        found: u64,
    },
}

fn magic_name(magic: &[u8; 4]) -> String {
    format!("{:08x}", u32::from_be_bytes(*magic))
}

/// The first 51 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotHeader {
    /// The magic of the network.
    pub magic: [u8; 4],
    /// The last block of the set.
    pub base: BlockHash,
    /// How many coins follow.
    pub coins: u64,
}

impl SnapshotHeader {
    /// Reads the header of a snapshot, which must be of `network`, and no bytes after it.
    pub fn read(input: impl io::Read, network: Network) -> Result<Self, SnapshotError> {
        import::read_header(&mut Input::new(input.take(HEADER_LEN as u64)), network)
    }

    fn encode(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        let version = VERSION.to_le_bytes();
        let coins = self.coins.to_le_bytes();
        let fields = MAGIC.iter().chain(&version).chain(&self.magic);
        let fields = fields.chain(self.base.as_bytes()).chain(&coins);
        bytes.iter_mut().zip(fields).for_each(|(byte, field)| *byte = *field);
        bytes
    }
}

/// The first number whose VARINT has three bytes and sorts before some that have two.
const DISORDER_FROM: u32 = 16_512;

/// The order of two outputs of a transaction in Core's database.
fn core_order(left: u32, right: u32) -> Ordering {
    if left.max(right) < DISORDER_FROM {
        return left.cmp(&right);
    }
    let key = |vout: u32| {
        let mut bytes = Vec::with_capacity(5);
        varint::write(u64::from(vout), &mut bytes);
        bytes
    };
    key(left).cmp(&key(right))
}

/// The coins of one transaction, packed.
#[derive(Debug)]
struct TxCoins {
    txid: Txid,
    /// Output index, and the range of its coin in `packed`.
    coins: Vec<(u32, std::ops::Range<usize>)>,
    packed: Vec<u8>,
}

impl TxCoins {
    fn new(txid: Txid) -> Self {
        Self { txid, coins: Vec::new(), packed: Vec::new() }
    }

    /// Clears it for another transaction, keeping the memory.
    fn restart(&mut self, txid: Txid) {
        self.txid = txid;
        self.coins.clear();
        self.packed.clear();
    }

    fn packed(&self, range: &std::ops::Range<usize>) -> &[u8] {
        self.packed.get(range.clone()).expect("ranges are of bytes that were put there")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_core_is_not_that_of_numbers() {
        let mut vouts = [65_535, 256, 255, 16_512, 16_511, 128, 127, 0, 20_000, u32::MAX];
        vouts.sort_by(|left, right| core_order(*left, *right));
        // 00, 7f, 8000, 807f, 808000, 809b20, 8100, 82fe7f, 8efefefe7f, ff7f
        assert_eq!(vouts, [0, 127, 128, 255, 16_512, 20_000, 256, 65_535, u32::MAX, 16_511]);
    }
}
