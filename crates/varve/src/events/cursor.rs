//! A cursor: the block that was delivered last, and a digest of what was unconfirmed then.
//!
//! ```text
//!  840000 : 0000000000000000000320283a032748…f23f1cda83a5 : 00112233445566778899aabbccddeeff
//!  height   block hash, 64 digits                           digest, 32 digits; no spaces
//! ```

use std::fmt;
use std::str::FromStr;

use varve_types::{Height, sha256d};

use super::{Unconfirmed, Watched};
use crate::answer::Tip;

/// A digest of unconfirmed transactions.
pub(super) type Digest = [u8; 16];

/// That of a subscriber to whom none were stated.
pub(super) const NOTHING: Digest = [0; 16];

/// A place in the events of a node, to resume from: `Display` and `FromStr` are its durable form.
/// It is valid for every copy of the chain that knows its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventCursor {
    pub(super) block: Tip,
    pub(super) digest: Digest,
}

impl EventCursor {
    /// The block that was delivered last.
    #[must_use]
    pub const fn block(&self) -> Tip {
        self.block
    }
}

/// The digest of what is watched and unconfirmed.
pub(super) fn digest(unconfirmed: &Unconfirmed) -> Digest {
    let mut bytes = vec![1];
    for (watched, txid) in unconfirmed.keys() {
        match watched {
            Watched::Tx => bytes.push(0),
            Watched::Script(script) => {
                bytes.push(1);
                bytes.extend_from_slice(script.as_bytes());
            }
            Watched::Outpoint(outpoint) => {
                bytes.push(2);
                bytes.extend_from_slice(&outpoint.to_bytes());
            }
        }
        bytes.extend_from_slice(txid.as_bytes());
    }
    let hash = sha256d(&bytes);
    *hash.first_chunk().expect("a hash has 32 bytes")
}

impl fmt::Display for EventCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:", self.block.height, self.block.hash)?;
        self.digest.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A text that is no cursor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a cursor: pass one that came with an event")]
pub struct ParseCursorError {
    text: String,
}

impl FromStr for EventCursor {
    type Err = ParseCursorError;

    fn from_str(text: &str) -> Result<Self, ParseCursorError> {
        let mut parts = text.split(':');
        let mut parse = || {
            let height = parts.next()?.parse().ok()?;
            let hash = parts.next()?.parse().ok()?;
            let digest = parts.next().filter(|hex| hex.len() == 32 && hex.is_ascii())?;
            let digest = u128::from_str_radix(digest, 16).ok()?.to_be_bytes();
            let block = Tip { height: Height::new(height), hash };
            parts.next().is_none().then_some(Self { block, digest })
        };
        parse().ok_or_else(|| ParseCursorError { text: text.to_owned() })
    }
}
