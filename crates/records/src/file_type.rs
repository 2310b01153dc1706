//! The kinds of files, each known by its first eight bytes.
//!
//! ```text
//! │ magic 8: ASCII, padded with blanks │ …
//! ```
//!
//! Files of old programs are padded with zero bytes; those read as blanks.

/// The length of the magic.
pub const MAGIC_LEN: usize = 8;

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileType {
    /// Outputs that a block creates.
    UtxoAdditions,
    /// Outputs that a block spends.
    UtxoDeletions,
    /// Headers beside a set of unspent outputs.
    UtxoHeaders,
    /// A set of unspent outputs.
    UtxoSet,
    /// A block.
    Block,
    /// A subtree of a block.
    Subtree,
    /// A subtree that is not validated.
    SubtreeToCheck,
    /// The transactions of a subtree.
    SubtreeData,
    /// What is known of the transactions of a subtree.
    SubtreeMeta,
    /// A transaction.
    Tx,
    /// Outputs of a transaction.
    Outputs,
    /// A filter.
    BloomFilter,
    /// A block as the network sends it.
    MsgBlock,
    /// Data of no special kind.
    Dat,
    /// The data of a batch.
    BatchData,
    /// The keys of a batch.
    BatchKeys,
    /// A height to which another file must be kept.
    PreserveUntil,
    /// Used by tests.
    Testing,
}

/// The kinds, with the ending of the name and the magic.
const TYPES: [(FileType, &str, &[u8; MAGIC_LEN]); 18] = [
    (FileType::UtxoAdditions, "utxo-additions", b"U-A-1.0 "),
    (FileType::UtxoDeletions, "utxo-deletions", b"U-D-1.0 "),
    (FileType::UtxoHeaders, "utxo-headers", b"U-H-1.0 "),
    (FileType::UtxoSet, "utxo-set", b"U-S-1.0 "),
    (FileType::Block, "block", b"B-1.0   "),
    (FileType::Subtree, "subtree", b"S-1.0   "),
    (FileType::SubtreeToCheck, "subtreeToCheck", b"SC-1.0  "),
    (FileType::SubtreeData, "subtreeData", b"SD-1.0  "),
    (FileType::SubtreeMeta, "subtreeMeta", b"SM-1.0  "),
    (FileType::Tx, "tx", b"T-1.0   "),
    (FileType::Outputs, "outputs", b"O-1.0   "),
    (FileType::BloomFilter, "bloomfilter", b"BF-1.0  "),
    (FileType::MsgBlock, "msgBlock", b"MB-1.0  "),
    (FileType::Dat, "dat", b"DAT-1.0 "),
    (FileType::BatchData, "batch-data", b"BD-1.0  "),
    (FileType::BatchKeys, "batch-keys", b"BK-1.0  "),
    (FileType::PreserveUntil, "preserveUntil", b"PU-1.0  "),
    (FileType::Testing, "testing", b"TESTING "),
];

impl FileType {
    /// The first eight bytes of a file of this kind.
    #[must_use]
    pub fn magic(self) -> [u8; MAGIC_LEN] {
        *self.row().2
    }

    /// The ending of its name, without the dot.
    #[must_use]
    pub fn extension(self) -> &'static str {
        self.row().1
    }

    /// The kind of a file that begins with these bytes.
    #[must_use]
    pub fn from_magic(magic: &[u8; MAGIC_LEN]) -> Option<Self> {
        let mut padded = *magic;
        let used = padded.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        padded.iter_mut().skip(used).for_each(|byte| *byte = b' ');
        TYPES.iter().find(|(_, _, magic)| **magic == padded).map(|(kind, _, _)| *kind)
    }

    fn row(self) -> &'static (Self, &'static str, &'static [u8; MAGIC_LEN]) {
        TYPES.iter().find(|(kind, _, _)| *kind == self).expect("every kind has a row")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_known_by_its_magic() {
        for (kind, extension, magic) in TYPES {
            assert_eq!(kind.magic(), *magic);
            assert_eq!(kind.extension(), extension);
            assert_eq!(FileType::from_magic(magic), Some(kind));
            let zeros = magic.map(|byte| if byte == b' ' { 0 } else { byte });
            assert_eq!(FileType::from_magic(&zeros), Some(kind), "as old files have it");
        }
        for magic in [b"        ", b"\0\0\0\0\0\0\0\0", b"U-S-2.0 ", b"U-S\0 1.0"] {
            assert_eq!(FileType::from_magic(magic), None);
        }
    }
}
