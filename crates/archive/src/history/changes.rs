//! What connecting a block changes for scripts: the table's input.
//!
//! Whoever joins a block with the coins it spends has all of it, and hands it over in two flat
//! lists. Outputs that nobody looks for are left out ([`is_indexed`]).

use varve_types::{Amount, Height, Outpoint};

use varve_types::ScriptHash;

/// The longest script that is indexed; longer ones cannot be spent.
const SCRIPT_MAX: usize = 10_000;
const OP_RETURN: u8 = 0x6a;

/// Whether outputs with this script have rows.
#[must_use]
pub fn is_indexed(script: &[u8]) -> bool {
    script.len() <= SCRIPT_MAX && script.first() != Some(&OP_RETURN)
}

/// An output of a block, whose script [is indexed](is_indexed).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Funded {
    /// The place of its transaction in the block.
    pub position: u32,
    /// The transaction and the output's number there.
    pub outpoint: Outpoint,
    /// What it is worth.
    pub value: Amount,
    /// Whom it pays.
    pub script: ScriptHash,
}

/// An output that a block spends, of an earlier block or its own, and whose script is indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent {
    /// The place of the spending transaction in the block.
    pub position: u32,
    /// The output.
    pub outpoint: Outpoint,
    /// The height of the block that created it.
    pub height: Height,
    /// What it is worth.
    pub value: Amount,
    /// Who spends.
    pub script: ScriptHash,
}

/// Everything a block changes, in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockChanges {
    /// The height of the block. At [`Height::GENESIS`] nothing is indexed: the coinbase of the
    /// genesis block cannot be spent.
    pub height: Height,
    /// Its outputs.
    pub funded: Vec<Funded>,
    /// What it spends.
    pub spent: Vec<Spent>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_that_return_or_are_too_long_are_not_indexed() {
        assert!(is_indexed(&[]) && is_indexed(&[0x00, OP_RETURN]) && is_indexed(&[0x51; 10_000]));
        assert!(!is_indexed(&[OP_RETURN]) && !is_indexed(&[0x51; 10_001]));
    }
}
