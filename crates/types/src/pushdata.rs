//! The pushdata walk: every item that a script pushes.
//!
//! An indexer finds a script by what is pushed in it: key hashes, keys, script hashes, data. The
//! index holds `SHA-256(item)` for each item. This is the walk of the Conduit indexer:
//!
//! 1. Every push is an item, except the empty ones.
//! 2. Items behind an `OP_RETURN` are data, up to an `OP_ELSE`: they cannot be reached.
//! 3. The walk ends at a push that goes beyond the end of the script. (Conduit takes what is left
//!    of it as an item. Nobody can have pushed that, so here it is none.)
//!
//! Conduit's index keeps only the items that [`Push::is_key_or_hash`] says, once a script, though
//! its documents speak of more: see `crates/types/tests/real_data/pushdata.rs`, which compares
//! with its published hashes.

use crate::script::opcode::{OP_ELSE, OP_RETURN};
use crate::script::{Instruction, Instructions};

/// An item that a script pushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Push<'a> {
    /// The bytes, at least one.
    pub data: &'a [u8],
    /// The opcode that pushes them.
    pub opcode: u8,
    /// Whether the push is behind an `OP_RETURN`.
    pub after_return: bool,
}

impl Push<'_> {
    /// The name of the item in an index: SHA-256, shown in this order, not reversed.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        varve_sha256::digest(self.data)
    }

    /// Whether the item has the form of a key or a hash: 20, 32, 33 or 65 bytes that are pushed
    /// by the opcode of that number.
    #[must_use]
    pub const fn is_key_or_hash(&self) -> bool {
        matches!(self.opcode, 20 | 32 | 33 | 65)
    }
}

/// The items that a script pushes, in order.
#[derive(Clone, Debug)]
pub struct Pushes<'a> {
    walk: Instructions<'a>,
    after_return: bool,
}

impl<'a> Pushes<'a> {
    /// Begins at the first opcode.
    #[must_use]
    pub const fn new(script: &'a [u8]) -> Self {
        Self { walk: Instructions::new(script), after_return: false }
    }
}

impl<'a> Iterator for Pushes<'a> {
    type Item = Push<'a>;

    fn next(&mut self) -> Option<Push<'a>> {
        loop {
            match self.walk.next()?.ok()? {
                Instruction { opcode, data: Some(data) } if !data.is_empty() => {
                    return Some(Push { data, opcode, after_return: self.after_return });
                }
                Instruction { opcode: OP_RETURN, .. } => self.after_return = true,
                Instruction { opcode: OP_ELSE, .. } => self.after_return = false,
                Instruction { .. } => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushes_of_every_opcode() {
        let mut script = vec![0x00, 0x51, 0x02, 1, 2];
        script.extend([0x4c, 0x01, 3, 0x4d, 0x01, 0, 4, 0x4e, 0x01, 0, 0, 0, 5, 0x4c, 0x00]);
        let items: Vec<_> = Pushes::new(&script).map(|push| push.data.to_vec()).collect();
        assert_eq!(items, [vec![1, 2], vec![3], vec![4], vec![5]]);
    }

    #[test]
    fn data_behind_a_return_until_an_else() {
        let script = [0x01, 1, OP_RETURN, 0x01, 2, OP_ELSE, 0x01, 3, OP_RETURN, 0x01, 4];
        let flags: Vec<_> = Pushes::new(&script).map(|push| push.after_return).collect();
        assert_eq!(flags, [false, true, false, true]);
    }

    #[test]
    fn a_cut_push_is_no_item() {
        let items: Vec<_> = Pushes::new(&[0x01, 9, 0x05, 1, 2]).map(|push| push.data).collect();
        assert_eq!(items, [&[9][..]]);
    }

    #[test]
    fn keys_and_hashes_by_the_opcode() {
        let mut script = vec![20];
        script.extend([7; 20]);
        script.extend([0x4c, 20]);
        script.extend([7; 20]);
        script.push(21);
        script.extend([7; 21]);
        let pushes: Vec<_> = Pushes::new(&script).collect();
        assert_eq!(
            pushes.iter().map(Push::is_key_or_hash).collect::<Vec<_>>(),
            [true, false, false]
        );
        assert_eq!(pushes[0].hash(), pushes[1].hash());
    }
}
