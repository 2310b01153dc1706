//! Headers for tests: proven at regtest's difficulty, which takes two hashes on average.

use varve_types::{BlockHash, Header, Network};

use crate::source::HeaderBytes;

/// A time at which all headers of the tests have been made.
pub(crate) const NOW: u32 = 2_000_000_000;

/// The header of the genesis block of regtest.
pub(crate) fn genesis() -> HeaderBytes {
    *Network::Regtest.genesis_block().first_chunk().unwrap()
}

/// A header above `parent`; different salts give different headers.
pub(crate) fn header_above(parent: &HeaderBytes, salt: u32) -> HeaderBytes {
    let below = Header::new(parent);
    let mut header = [0; Header::LEN];
    header[..4].copy_from_slice(&4_i32.to_le_bytes());
    header[4..36].copy_from_slice(below.hash().as_bytes());
    header[36..40].copy_from_slice(&salt.to_le_bytes());
    header[68..72].copy_from_slice(&(below.time() + 1).to_le_bytes());
    header[72..76].copy_from_slice(&0x207f_ffff_u32.to_le_bytes());
    prove(&mut header);
    header
}

/// Varies the nonce until the hash meets regtest's target.
pub(crate) fn prove(header: &mut HeaderBytes) {
    let met = |header: &HeaderBytes| Header::new(header).hash().as_bytes()[31] < 0x7f;
    for nonce in 0_u32.. {
        header[76..].copy_from_slice(&nonce.to_le_bytes());
        if met(header) {
            return;
        }
    }
}

/// `count` headers above `parent`, each above the one before.
pub(crate) fn chain_above(parent: &HeaderBytes, count: usize, salt: u32) -> Vec<HeaderBytes> {
    let next = |below: &HeaderBytes| Some(header_above(below, salt));
    std::iter::successors(next(parent), next).take(count).collect()
}

/// The hash of a header.
pub(crate) fn hash_of(header: &HeaderBytes) -> BlockHash {
    Header::new(header).hash()
}
