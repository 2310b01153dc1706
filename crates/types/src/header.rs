//! Block headers.
//!
//! ```text
//! │ version i32le │ previous 32 │ merkle root 32 │ time u32le │ bits u32le │ nonce u32le │
//! 0               4             36               68           72           76            80
//! ```

use crate::hash::{BlockHash, MerkleRoot, sha256d};

/// The 80 bytes of a block header, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a>(&'a [u8; Header::LEN]);

impl<'a> Header<'a> {
    /// The length of a header.
    pub const LEN: usize = 80;

    /// The header in these bytes. Any 80 bytes are a header.
    #[must_use]
    pub const fn new(bytes: &'a [u8; Header::LEN]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn bytes(self) -> &'a [u8; Header::LEN] {
        self.0
    }

    /// The hash, which is the hash of the block.
    #[must_use]
    pub fn hash(self) -> BlockHash {
        BlockHash::from_bytes(sha256d(self.0))
    }

    /// The version, which carries the signals of BIP9.
    #[must_use]
    pub fn version(self) -> i32 {
        i32::from_le_bytes(self.field(0))
    }

    /// The hash of the block below.
    #[must_use]
    pub fn previous(self) -> BlockHash {
        BlockHash::from_bytes(self.field(4))
    }

    /// The root of the merkle tree over the txids.
    #[must_use]
    pub fn merkle_root(self) -> MerkleRoot {
        MerkleRoot::from_bytes(self.field(36))
    }

    /// The time, in seconds since 1970.
    #[must_use]
    pub fn time(self) -> u32 {
        u32::from_le_bytes(self.field(68))
    }

    /// The target of the proof of work, in compact form.
    #[must_use]
    pub fn bits(self) -> u32 {
        u32::from_le_bytes(self.field(72))
    }

    /// The nonce, which miners vary.
    #[must_use]
    pub fn nonce(self) -> u32 {
        u32::from_le_bytes(self.field(76))
    }

    fn field<const N: usize>(self, at: usize) -> [u8; N] {
        let field = self.0.get(at..).and_then(<[u8]>::first_chunk);
        *field.expect("the fields lie within the 80 bytes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Network;

    #[test]
    fn fields_of_the_genesis_header() {
        let block = Network::Mainnet.genesis_block();
        let header = Header::new(block.first_chunk().unwrap());
        assert_eq!(header.version(), 1);
        assert_eq!(header.previous(), BlockHash::ZERO);
        let root = "4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b";
        assert_eq!(header.merkle_root().to_string(), root);
        assert_eq!(header.time(), 1_231_006_505);
        assert_eq!(header.bits(), 0x1d00_ffff);
        assert_eq!(header.nonce(), 2_083_236_893);
        assert_eq!(header.hash(), Network::Mainnet.genesis_hash());
    }
}
