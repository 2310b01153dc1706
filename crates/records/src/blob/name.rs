//! The names of blobs.
//!
//! ```text
//! 4a5e…3b.tx                    the transaction, in extended form
//! 4a5e…3b.outputs               outputs without the rest
//! 4a5e…3b.tx.sha256             "<sha256 of header and data>  <name>\n", as sha256sum writes it
//! 4a5e…3b.tx.dah                the height from which the blob may be removed, decimal
//! 4a5e…3b.tx.preserveUntil      the height to which it must be kept, decimal
//! ```
//!
//! The txid is in display order. With a fan-out the file lies in a directory of the first or last
//! characters of the txid: `4a/4a5e…3b.tx`.

use std::fmt;

use varve_types::Txid;

/// Length of the magic at the head of a blob.
pub(super) const MAGIC_LEN: usize = 8;

/// The kinds of blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BlobKind {
    /// A transaction.
    Tx,
    /// Outputs of a transaction.
    Outputs,
}

impl BlobKind {
    /// Both, in the order in which a reader looks for them.
    pub(crate) const ALL: [Self; 2] = [Self::Tx, Self::Outputs];

    /// The first bytes of the file: ASCII, padded with blanks.
    pub(super) const fn magic(self) -> [u8; MAGIC_LEN] {
        match self {
            Self::Tx => *b"T-1.0   ",
            Self::Outputs => *b"O-1.0   ",
        }
    }

    /// Whether a file that begins with these bytes is of this kind. Files of old programs are
    /// padded with zero bytes.
    pub(super) fn has_magic(self, mut bytes: [u8; MAGIC_LEN]) -> bool {
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        bytes.iter_mut().skip(used).for_each(|byte| *byte = b' ');
        bytes == self.magic()
    }

    const fn extension(self) -> &'static str {
        match self {
            Self::Tx => "tx",
            Self::Outputs => "outputs",
        }
    }
}

/// What lies beside a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sidecar {
    Checksum,
    DeleteAt,
    PreserveUntil,
}

impl Sidecar {
    pub(super) const ALL: [Self; 3] = [Self::Checksum, Self::DeleteAt, Self::PreserveUntil];

    const fn ending(self) -> &'static str {
        match self {
            Self::Checksum => ".sha256",
            Self::DeleteAt => ".dah",
            Self::PreserveUntil => ".preserveUntil",
        }
    }
}

/// Into which directories blobs are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fanout {
    /// All in one directory.
    #[default]
    None,
    /// By the first characters of the txid.
    First(u8),
    /// By the last characters of the txid, which spread evenly even when miners choose txids.
    Last(u8),
}

/// The most characters of a fan-out, more count as this many: 4,096 directories.
const MAX_FANOUT: u8 = 3;

impl Fanout {
    fn characters(self) -> usize {
        match self {
            Self::None => 0,
            Self::First(count) | Self::Last(count) => usize::from(count.min(MAX_FANOUT)),
        }
    }

    /// Every directory that a name can be in.
    pub(super) fn directories(self) -> impl Iterator<Item = String> {
        let width = self.characters();
        let count = if width == 0 { 0 } else { 1_u32 << (4 * width) };
        (0..count).map(move |number| format!("{number:0width$x}"))
    }

    /// The directory of a file with this txid.
    fn directory(self, hex: &str) -> Option<&str> {
        let width = self.characters();
        match self {
            Self::None => None,
            Self::First(_) => hex.get(..width),
            Self::Last(_) => hex.get(hex.len() - width..),
        }
        .filter(|directory| !directory.is_empty())
    }
}

/// The name of one blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BlobName {
    key: String,
}

impl BlobName {
    pub(super) fn new(txid: Txid, kind: BlobKind, fanout: Fanout) -> Self {
        let hex = txid.to_string();
        let file = format!("{hex}.{}", kind.extension());
        let key = match fanout.directory(&hex) {
            Some(directory) => format!("{directory}/{file}"),
            None => file,
        };
        Self { key }
    }

    /// The key of the blob.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// The name without the directory.
    pub(super) fn file(&self) -> &str {
        self.key.rsplit('/').next().unwrap_or(&self.key)
    }

    /// The key of what lies beside it.
    pub(super) fn sidecar(&self, sidecar: Sidecar) -> String {
        format!("{}{}", self.key, sidecar.ending())
    }

    /// The txid of any file of a blob, sidecars among them.
    pub(super) fn txid_of(key: &str) -> Option<Txid> {
        let file = key.rsplit('/').next()?;
        file.split_once('.')?.0.parse().ok()
    }
}

impl fmt::Display for BlobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_display_order_with_a_directory() {
        let mut bytes = [0; 32];
        (bytes[31], bytes[0]) = (0xab, 0xcd);
        let txid = Txid::from_bytes(bytes);
        let hex = format!("ab{}cd", "0".repeat(60));
        let key = |fanout| BlobName::new(txid, BlobKind::Tx, fanout).key;
        assert_eq!(key(Fanout::None), format!("{hex}.tx"));
        assert_eq!(key(Fanout::First(2)), format!("ab/{hex}.tx"));
        assert_eq!(key(Fanout::Last(3)), format!("0cd/{hex}.tx"));
        let name = BlobName::new(txid, BlobKind::Outputs, Fanout::First(1));
        assert_eq!(name.sidecar(Sidecar::DeleteAt), format!("a/{hex}.outputs.dah"));
        assert_eq!(BlobName::txid_of(&name.sidecar(Sidecar::Checksum)), Some(txid));
        assert_eq!(BlobName::txid_of("lock"), None);
    }

    #[test]
    fn a_fanout_of_two_characters_has_256_directories() {
        assert_eq!(Fanout::First(2).directories().count(), 256);
        assert_eq!(Fanout::None.directories().count(), 0);
    }
}
