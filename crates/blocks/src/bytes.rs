//! Bytes of a block, held for as long as a reader needs them.

use std::ops::Deref;

use varve_io::Map;

/// Bytes of a stored block: a slice of the file's map, or an owned buffer when the block had to be
/// decompressed. The file stays mapped while this is held, even after the block was pruned.
#[derive(Debug, Clone)]
pub struct BlockBytes(Inner);

#[derive(Debug, Clone)]
enum Inner {
    Mapped(Map),
    Owned(Vec<u8>),
}

impl BlockBytes {
    pub(crate) const fn mapped(map: Map) -> Self {
        Self(Inner::Mapped(map))
    }

    pub(crate) const fn owned(bytes: Vec<u8>) -> Self {
        Self(Inner::Owned(bytes))
    }
}

impl Deref for BlockBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Inner::Mapped(map) => map,
            Inner::Owned(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for BlockBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}
