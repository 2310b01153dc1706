//! The key of a coin in a store of keys and values: the txid, then the number of the output.
//!
//! ```text
//! │ txid 32 │ vout 1, or 255 and 4 big-endian │
//! ```
//!
//! Core's keys are of the same kind. Nearly all take 33 bytes, and they sort as outpoints do.

use anyhow::{Context as _, Result};
use varve_types::{Outpoint, Txid};

const WIDE: u8 = 0xff;

/// An outpoint as a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    bytes: [u8; 37],
    len: u8,
}

impl Key {
    pub(crate) fn of(outpoint: &Outpoint) -> Self {
        let mut bytes = [0; 37];
        let (txid, vout) = bytes.split_at_mut(32);
        txid.copy_from_slice(outpoint.txid.as_bytes());
        let len = match (u8::try_from(outpoint.vout), vout) {
            (Ok(small), [first, ..]) if small < WIDE => {
                *first = small;
                33
            }
            (_, [first, rest @ ..]) => {
                *first = WIDE;
                rest.copy_from_slice(&outpoint.vout.to_be_bytes());
                37
            }
            (_, []) => 0,
        };
        Self { bytes, len }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// The outpoint of a key's bytes.
    pub(crate) fn outpoint(bytes: &[u8]) -> Result<Outpoint> {
        let (txid, vout) = bytes.split_first_chunk::<32>().context("a key that is too short")?;
        let vout = match vout {
            [vout] => u32::from(*vout),
            [WIDE, rest @ ..] => u32::from_be_bytes(rest.try_into()?),
            _ => anyhow::bail!("a key of {} bytes", bytes.len()),
        };
        Ok(Outpoint::new(Txid::from_bytes(*txid), vout))
    }
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_outpoints_and_come_back() {
        let at = |vout| Outpoint::new(Txid::from_bytes([7; 32]), vout);
        let keys = [0, 1, 254, 255, 256, u32::MAX].map(|vout| (at(vout), Key::of(&at(vout))));
        assert!(keys.is_sorted_by(|(_, a), (_, b)| a.as_bytes() < b.as_bytes()));
        for (outpoint, key) in keys {
            assert_eq!(Key::outpoint(key.as_bytes()).unwrap(), outpoint);
        }
        assert!(Key::outpoint(&[0; 32]).is_err());
        assert!(Key::outpoint(&[0; 34]).is_err());
    }
}
