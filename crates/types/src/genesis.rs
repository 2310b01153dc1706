//! The first block of each chain.
//!
//! A genesis block is a header and one coinbase transaction. Only the time, the target and the
//! nonce differ between most networks, so the bytes are assembled from these:
//!
//! ```text
//! version 1 │ previous 0 │ merkle root = txid of coinbase │ time │ bits │ nonce │ 01 │ coinbase
//! ```

use crate::hash::{BlockHash, sha256d};
use crate::network::Network;

/// Everything before the signature script of the coinbase: version 1, one input, no outpoint.
const COINBASE_HEAD: &[u8] = b"\x01\0\0\0\x01\
    \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff\xff\xff\xff";

/// Pushes of the first target and of the number 4.
const TARGET_AND_4: &[u8] = b"\x04\xff\xff\0\x1d\x01\x04";

const TIMES: &[u8] = b"The Times 03/Jan/2009 Chancellor on brink of second bailout for banks";
const TESTNET4_TEXT: &[u8] =
    b"03/May/2024 000000000000000000001ebd58c244970b3aa9d783bb001011fbe8ea8e98e00e";

/// The sequence of the input, one output, 50 coins.
const ONE_OUTPUT_OF_50: &[u8] = b"\xff\xff\xff\xff\x01\0\xf2\x05\x2a\x01\0\0\0";

/// The public key that the first coinbase pays to. It can never be spent.
const SATOSHI_KEY: &[u8; 65] = b"\x04\x67\x8a\xfd\xb0\xfe\x55\x48\x27\x19\x67\xf1\xa6\x71\x30\xb7\
    \x10\x5c\xd6\xa8\x28\xe0\x39\x09\xa6\x79\x62\xe0\xea\x1f\x61\xde\xb6\x49\xf6\xbc\x3f\x4c\xef\
    \x38\xc4\xf3\x55\x04\xe5\x1e\xc1\x12\xde\x5c\x38\x4d\xf7\xba\x0b\x8d\x57\x8a\x4c\x70\x2b\x6b\
    \xf1\x1d\x5f";

const OP_PUSHDATA1: u8 = 0x4c;
const OP_CHECKSIG: u8 = 0xac;

impl Network {
    /// The serialised genesis block.
    #[must_use]
    pub fn genesis_block(self) -> Vec<u8> {
        let (time, bits, nonce): (u32, u32, u32) = match self {
            Self::Mainnet | Self::Bsv => (1_231_006_505, 0x1d00_ffff, 2_083_236_893),
            Self::Testnet3 => (1_296_688_602, 0x1d00_ffff, 414_098_458),
            Self::Testnet4 => (1_714_777_860, 0x1d00_ffff, 393_743_547),
            Self::Signet => (1_598_918_400, 0x1e03_77ae, 52_613_770),
            Self::Regtest | Self::BsvRegtest => (1_296_688_602, 0x207f_ffff, 2),
        };
        let coinbase = match self {
            Self::Testnet4 => coinbase(TESTNET4_TEXT, &[0; 33]),
            _ => coinbase(TIMES, SATOSHI_KEY),
        };
        let mut block = Vec::with_capacity(81 + coinbase.len());
        block.extend_from_slice(&1_u32.to_le_bytes());
        block.extend_from_slice(BlockHash::ZERO.as_bytes());
        block.extend_from_slice(&sha256d(&coinbase));
        for field in [time, bits, nonce] {
            block.extend_from_slice(&field.to_le_bytes());
        }
        block.push(1);
        block.extend_from_slice(&coinbase);
        block
    }

    /// The hash of the genesis block.
    #[must_use]
    pub fn genesis_hash(self) -> BlockHash {
        let block = self.genesis_block();
        BlockHash::from_bytes(sha256d(block.get(..80).expect("a block begins with 80 bytes")))
    }
}

fn coinbase(text: &[u8], key: &[u8]) -> Vec<u8> {
    let length = |bytes: &[u8]| u8::try_from(bytes.len()).expect("texts and keys are short");
    let mut script = TARGET_AND_4.to_vec();
    if text.len() >= usize::from(OP_PUSHDATA1) {
        script.push(OP_PUSHDATA1);
    }
    script.push(length(text));
    script.extend_from_slice(text);

    let mut coinbase = COINBASE_HEAD.to_vec();
    coinbase.push(length(&script));
    coinbase.extend_from_slice(&script);
    coinbase.extend_from_slice(ONE_OUTPUT_OF_50);
    coinbase.push(length(key) + 2);
    coinbase.push(length(key));
    coinbase.extend_from_slice(key);
    coinbase.push(OP_CHECKSIG);
    coinbase.extend_from_slice(&0_u32.to_le_bytes());
    coinbase
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_the_published_ones() {
        let mainnet = "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f";
        let regtest = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206";
        let hashes = [
            (Network::Mainnet, mainnet),
            (Network::Testnet3, "000000000933ea01ad0ee984209779baaec3ced90fa3f408719526f8d77f4943"),
            (Network::Testnet4, "00000000da84f2bafbbc53dee25a72ae507ff4914b867c565be350b0da8bf043"),
            (Network::Signet, "00000008819873e925422c1ff0f99f7cc9bbb232af63a077a480a3633bee1ef6"),
            (Network::Regtest, regtest),
            (Network::Bsv, mainnet),
            (Network::BsvRegtest, regtest),
        ];
        assert_eq!(hashes.map(|(network, _)| network), Network::ALL);
        for (network, hash) in hashes {
            assert_eq!(network.genesis_hash().to_string(), hash, "{network}");
        }
    }

    #[test]
    fn bytes_are_those_of_the_bitcoin_crate() {
        use bitcoin::Network as Other;
        let networks = [
            (Network::Mainnet, Other::Bitcoin),
            (Network::Testnet3, Other::Testnet),
            (Network::Testnet4, Other::Testnet4),
            (Network::Signet, Other::Signet),
            (Network::Regtest, Other::Regtest),
        ];
        for (ours, theirs) in networks {
            let block = bitcoin::constants::genesis_block(theirs);
            assert_eq!(ours.genesis_block(), bitcoin::consensus::serialize(&block), "{ours}");
        }
    }
}
