//! Addresses: a text for an output script of one of the common forms.
//!
//! | script | address |
//! |---|---|
//! | `DUP HASH160 <20> EQUALVERIFY CHECKSIG` (P2PKH) | base58 with checksum of `prefix ‖ hash` |
//! | `HASH160 <20> EQUAL` (P2SH) | base58 with checksum of `prefix ‖ hash` |
//! | `version <2..40>` (witness program) | bech32 for version 0, bech32m for the others |
//!
//! | network | P2PKH | P2SH | bech32 |
//! |---|---|---|---|
//! | mainnet | `00` | `05` | `bc` |
//! | bsv | `00` | `05` | none |
//! | testnet3, testnet4, signet | `6f` | `c4` | `tb` |
//! | regtest | `6f` | `c4` | `bcrt` |
//! | bsv-regtest | `6f` | `c4` | none |
//!
//! Several networks share their prefixes, so an address does not identify its network: the caller
//! names the network.

use bech32::{Fe32, Hrp, segwit};

use crate::network::Network;
use crate::script::Class;
use crate::script::opcode::{
    OP_0, OP_1, OP_CHECKSIG, OP_DUP, OP_EQUAL, OP_EQUALVERIFY, OP_HASH160,
};

const HASH_LEN: u8 = 20;

/// A text that is not an address of the network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Neither base58 nor bech32 with a valid checksum, or of a length that no script has.
    #[error("{text:?} is not an address: a character or the checksum is wrong; copy it again")]
    Malformed {
        /// What was given.
        text: String,
    },
    /// A well-formed address with the prefix of other networks.
    #[error("{text:?} is not an address of {network}; choose the network it belongs to")]
    OtherNetwork {
        /// The text given.
        text: String,
        /// The network asked for.
        network: Network,
    },
}

/// The address of an output script, `None` when scripts of its kind have none on this network.
#[must_use]
pub fn encode(script: &[u8], network: Network) -> Option<String> {
    let prefixes = Prefixes::of(network);
    match (Class::of(script), script) {
        (Class::P2pkh, [OP_DUP, OP_HASH160, HASH_LEN, hash @ .., _, _]) => {
            Some(base58(prefixes.p2pkh, hash))
        }
        (Class::P2sh, [OP_HASH160, HASH_LEN, hash @ .., _]) => Some(base58(prefixes.p2sh, hash)),
        (
            Class::P2wpkh | Class::P2wsh | Class::P2tr | Class::P2a | Class::OtherWitness,
            [version, _, program @ ..],
        ) => {
            let version = Fe32::try_from(version.saturating_sub(OP_1 - 1)).ok()?;
            segwit::encode(prefixes.bech32?, version, program).ok()
        }
        _ => None,
    }
}

/// The output script that an address of this network stands for.
pub fn decode(text: &str, network: Network) -> Result<Vec<u8>, AddressError> {
    let prefixes = Prefixes::of(network);
    let other_network = || AddressError::OtherNetwork { text: text.to_owned(), network };
    if let Ok((prefix, version, program)) = segwit::decode(text) {
        if prefixes.bech32 != Some(prefix) {
            return Err(other_network());
        }
        return Ok(witness_script(version.to_u8(), &program));
    }
    let malformed = || AddressError::Malformed { text: text.to_owned() };
    let payload = base58ck::decode_check(text).map_err(|_| malformed())?;
    match payload.split_first() {
        Some((prefix, hash)) if hash.len() == usize::from(HASH_LEN) => match *prefix {
            prefix if prefix == prefixes.p2pkh => {
                Ok([&[OP_DUP, OP_HASH160, HASH_LEN][..], hash, &[OP_EQUALVERIFY, OP_CHECKSIG]]
                    .concat())
            }
            prefix if prefix == prefixes.p2sh => {
                Ok([&[OP_HASH160, HASH_LEN][..], hash, &[OP_EQUAL]].concat())
            }
            _ => Err(other_network()),
        },
        _ => Err(malformed()),
    }
}

struct Prefixes {
    p2pkh: u8,
    p2sh: u8,
    bech32: Option<Hrp>,
}

impl Prefixes {
    fn of(network: Network) -> Self {
        let (p2pkh, p2sh) = match network {
            Network::Mainnet | Network::Bsv => (0x00, 0x05),
            _ => (0x6f, 0xc4),
        };
        let bech32 = match network {
            Network::Mainnet => Some(bech32::hrp::BC),
            Network::Testnet3 | Network::Testnet4 | Network::Signet => Some(bech32::hrp::TB),
            Network::Regtest => Some(bech32::hrp::BCRT),
            Network::Bsv | Network::BsvRegtest => None,
        };
        Self { p2pkh, p2sh, bech32 }
    }
}

fn base58(prefix: u8, hash: &[u8]) -> String {
    debug_assert_eq!(hash.len(), usize::from(HASH_LEN));
    base58ck::encode_check(&[&[prefix], hash].concat())
}

/// `version <program>`, of a version and a length that bech32 has checked.
fn witness_script(version: u8, program: &[u8]) -> Vec<u8> {
    let opcode = if version == 0 { OP_0 } else { OP_1 - 1 + version };
    let length = u8::try_from(program.len()).expect("a program has at most 40 bytes");
    [&[opcode, length], program].concat()
}

#[cfg(test)]
mod tests {
    use hex_conservative::FromHex as _;

    use super::*;

    const P2PKH: &str = "76a91462e907b15cbf27d5425399ebf6f0fb50ebb88f1888ac";
    const P2WPKH: &str = "0014751e76e8199196d454941c45d1b3a323f1433bd6";
    const P2TR: &str = "512079be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";

    fn bytes(hex: &str) -> Vec<u8> {
        Vec::from_hex(hex).unwrap()
    }

    /// Scripts and addresses as Core and the BIPs pair them.
    #[test]
    fn both_ways_on_every_network() {
        for (script, network, address) in [
            (P2PKH, Network::Mainnet, "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"),
            (P2PKH, Network::Bsv, "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"),
            (P2PKH, Network::Testnet3, "mpXwg4jMtRhuSpVq4xS3HFHmCmWp9NyGKt"),
            (P2PKH, Network::BsvRegtest, "mpXwg4jMtRhuSpVq4xS3HFHmCmWp9NyGKt"),
            (P2WPKH, Network::Mainnet, "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"),
            (P2WPKH, Network::Signet, "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx"),
            (P2WPKH, Network::Testnet4, "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx"),
            (P2WPKH, Network::Regtest, "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"),
            (
                P2TR,
                Network::Mainnet,
                "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
            ),
            ("51024e73", Network::Mainnet, "bc1pfeessrawgf"),
        ] {
            assert_eq!(encode(&bytes(script), network).as_deref(), Some(address));
            assert_eq!(decode(address, network), Ok(bytes(script)), "{address} on {network}");
        }
    }

    #[test]
    fn scripts_without_an_address() {
        // Data, nothing, a key, a program of version 0 that has no valid length.
        let key = format!("21{}ac", &"02".repeat(33));
        for script in ["6a0102", "", &key, "0003010203"] {
            assert_eq!(encode(&bytes(script), Network::Mainnet), None, "{script}");
        }
        assert_eq!(encode(&bytes(P2WPKH), Network::Bsv), None);
    }

    #[test]
    fn other_networks_are_named_in_the_error() {
        let segwit = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4";
        for network in [Network::Regtest, Network::Bsv] {
            for text in [segwit, "2N5338aAPYmKM59AKpvxDB6FRAnGNXRsfBp"] {
                if network == Network::Regtest && text != segwit {
                    continue;
                }
                let error = decode(text, network).unwrap_err();
                assert!(matches!(error, AddressError::OtherNetwork { .. }), "{error}");
                assert!(error.to_string().contains(network.name()), "{error}");
            }
        }
    }

    #[test]
    fn texts_that_are_no_address() {
        for text in ["", "1", "bc1", "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb", "not an address"] {
            let error = decode(text, Network::Mainnet).unwrap_err();
            assert_eq!(error, AddressError::Malformed { text: text.to_owned() });
        }
    }
}
