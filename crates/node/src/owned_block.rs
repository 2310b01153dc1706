//! A block that owns its bytes: read once, parsed once, hashed once.
//!
//! A [`BlockAt`] borrows from a parsed block, which borrows from the bytes. Between the source, the
//! stores and the workers of the joiner they travel together.

use self_cell::self_cell;
use varve_blocks::BlockBytes;
use varve_consensus::BlockAt;
use varve_types::{Block, DecodeError, Format, Height};
use varve_utxo::AsBlock;

/// Bytes from a source, or lent by the block store.
pub(crate) enum Bytes {
    Given(Vec<u8>),
    Stored(BlockBytes),
}

impl Bytes {
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Given(bytes) => bytes,
            Self::Stored(bytes) => bytes,
        }
    }
}

self_cell!(
    struct Parsed {
        owner: Bytes,
        #[covariant]
        dependent: Block,
    }
);

self_cell!(
    struct Placed {
        owner: Parsed,
        #[covariant]
        dependent: BlockAt,
    }
);

/// A block with its bytes.
pub(crate) struct OwnedBlock(Placed);

impl OwnedBlock {
    /// Parses a block that stands at this height, and computes its hashes.
    pub(crate) fn parse(bytes: Bytes, format: Format, height: Height) -> Result<Self, DecodeError> {
        let parsed = Parsed::try_new(bytes, |bytes| Block::parse(bytes.as_slice(), format))?;
        Ok(Self(Placed::new(parsed, |parsed| BlockAt::new(height, parsed.borrow_dependent()))))
    }

    /// About the bytes of memory it takes: with those of a dense block's hashes and offsets half as
    /// much again.
    pub(crate) fn memory(&self) -> u64 {
        self.size() / 2 * 3
    }

    /// Its length in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.as_block().block().bytes().len() as u64
    }
}

impl AsBlock for OwnedBlock {
    fn as_block(&self) -> &BlockAt<'_> {
        self.0.borrow_dependent()
    }
}

impl std::fmt::Debug for OwnedBlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OwnedBlock({})", self.as_block().hash())
    }
}
