//! Where a slot is: which part of its record, and which place in that part.
//!
//! A transaction with many outputs is kept in parts of a fixed number of slots (the *batch*):
//! part 0 is the master record, the others are its children.
//!
//! ```text
//! part = vout div batch      offset = vout mod batch
//! key of part 0     │ txid 32 │
//! key of part n     │ txid 32 │ n u32le │
//! ```
//!
//! The key of a child and spending data have the same length and look alike; the types keep them
//! apart.

use varve_types::Txid;

/// How many slots one part of a record has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BatchSize(u32);

/// The place of a slot in its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The part: 0 is the master, the others are children.
    pub part: u32,
    /// The place in that part.
    pub offset: u32,
}

/// The key of one part of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartKey {
    /// The transaction.
    pub txid: Txid,
    /// The part of its record.
    pub part: u32,
}

/// Bytes that are not the key of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{len} bytes are no key: expected 32, or 36 with a part number above 0")]
pub struct PartKeyError {
    /// The length found.
    pub len: usize,
}

impl BatchSize {
    /// This many slots a part; `None` for zero, with which no slot has a place.
    #[must_use]
    pub const fn new(slots: u32) -> Option<Self> {
        if slots == 0 { None } else { Some(Self(slots)) }
    }

    /// The number of slots a part.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Where the slot of output `vout` is.
    #[must_use]
    pub const fn place(self, vout: u32) -> Place {
        Place { part: vout / self.0, offset: vout % self.0 }
    }

    /// How many parts a record of this many outputs has: at least one, the master.
    #[must_use]
    pub const fn parts(self, outputs: u32) -> u32 {
        if outputs == 0 { 1 } else { outputs.div_ceil(self.0) }
    }
}

impl PartKey {
    /// The key of the part that has the slot of output `vout`.
    #[must_use]
    pub const fn of(txid: Txid, vout: u32, batch: BatchSize) -> Self {
        Self { txid, part: batch.place(vout).part }
    }

    /// The 32 or 36 bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.txid.as_bytes().to_vec();
        if self.part > 0 {
            bytes.extend_from_slice(&self.part.to_le_bytes());
        }
        bytes
    }

    /// Decodes a key.
    pub fn decode(bytes: &[u8]) -> Result<Self, PartKeyError> {
        let error = PartKeyError { len: bytes.len() };
        let (txid, rest) = bytes.split_first_chunk().ok_or(error)?;
        let part = match rest.len() {
            0 => 0,
            _ => u32::from_le_bytes(rest.try_into().map_err(|_| error)?),
        };
        if part == 0 && !rest.is_empty() {
            return Err(error);
        }
        Ok(Self { txid: Txid::from_bytes(*txid), part })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the original: 45,000 outputs in parts of 20,000.
    #[test]
    fn forty_five_thousand_outputs_are_three_parts() {
        let batch = BatchSize::new(20_000).unwrap();
        assert_eq!(batch.parts(45_000), 3);
        assert_eq!(batch.parts(40_000), 2);
        assert_eq!(batch.parts(0), 1);
        assert_eq!(batch.place(19_999), Place { part: 0, offset: 19_999 });
        assert_eq!(batch.place(20_000), Place { part: 1, offset: 0 });
        assert_eq!(batch.place(44_999), Place { part: 2, offset: 4_999 });
        assert_eq!(BatchSize::new(0), None);
    }

    #[test]
    fn a_child_has_its_number_in_the_key() {
        let txid = Txid::from_bytes([5; 32]);
        let batch = BatchSize::new(128).unwrap();
        let master = PartKey::of(txid, 127, batch);
        assert_eq!(master.to_bytes(), [5; 32]);
        let child = PartKey::of(txid, 128 * 0x0102, batch);
        let mut expected = vec![5; 32];
        expected.extend([2, 1, 0, 0]);
        assert_eq!(child.to_bytes(), expected);
        for key in [master, child] {
            assert_eq!(PartKey::decode(&key.to_bytes()), Ok(key));
        }
        for bytes in [vec![], vec![0; 31], vec![0; 33], vec![0; 36], vec![1; 37]] {
            assert!(PartKey::decode(&bytes).is_err(), "{} bytes", bytes.len());
        }
    }
}
