//! The chains that Varve knows, and how they differ.
//!
//! | name | wire magic | block-file magic | halving | segwit |
//! |---|---|---|---|---|
//! | `mainnet` | f9beb4d9 | same | 210,000 | yes |
//! | `testnet3` | 0b110907 | same | 210,000 | yes |
//! | `testnet4` | 1c163f28 | same | 210,000 | yes |
//! | `signet` | 0a03cf40 | same | 210,000 | yes |
//! | `regtest` | fabfb5da | same | 150 | yes |
//! | `bsv` | e3e1f3e8 | f9beb4d9 | 210,000 | no |
//! | `bsv-regtest` | dab5bffa | fabfb5da | 150 | no |
//!
//! The BSV node changed its magic on the wire when it split from Bitcoin, but not in its files.

use std::fmt;
use std::str::FromStr;

use crate::amount::Amount;
use crate::format::Format;
use crate::height::Height;

/// A chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Network {
    /// Bitcoin.
    Mainnet,
    /// Bitcoin's third test network.
    Testnet3,
    /// Bitcoin's fourth test network (BIP94).
    Testnet4,
    /// The default signet (BIP325).
    Signet,
    /// Bitcoin's regression test network.
    Regtest,
    /// Bitcoin SV.
    Bsv,
    /// Bitcoin SV's regression test network.
    BsvRegtest,
}

/// A text that names no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a network: expected mainnet, testnet3, testnet4, signet, regtest, bsv or \
     bsv-regtest"
)]
pub struct ParseNetworkError {
    text: String,
}

impl Network {
    /// Every network.
    pub const ALL: [Self; 7] = [
        Self::Mainnet,
        Self::Testnet3,
        Self::Testnet4,
        Self::Signet,
        Self::Regtest,
        Self::Bsv,
        Self::BsvRegtest,
    ];

    /// The name, as on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mainnet => "mainnet",
            Self::Testnet3 => "testnet3",
            Self::Testnet4 => "testnet4",
            Self::Signet => "signet",
            Self::Regtest => "regtest",
            Self::Bsv => "bsv",
            Self::BsvRegtest => "bsv-regtest",
        }
    }

    /// The four bytes that begin every message between nodes.
    #[must_use]
    pub const fn wire_magic(self) -> [u8; 4] {
        match self {
            Self::Bsv => [0xe3, 0xe1, 0xf3, 0xe8],
            Self::BsvRegtest => [0xda, 0xb5, 0xbf, 0xfa],
            bitcoin => bitcoin.disk_magic(),
        }
    }

    /// The four bytes that begin every record of a block file.
    #[must_use]
    pub const fn disk_magic(self) -> [u8; 4] {
        match self {
            Self::Mainnet | Self::Bsv => [0xf9, 0xbe, 0xb4, 0xd9],
            Self::Testnet3 => [0x0b, 0x11, 0x09, 0x07],
            Self::Testnet4 => [0x1c, 0x16, 0x3f, 0x28],
            Self::Signet => [0x0a, 0x03, 0xcf, 0x40],
            Self::Regtest | Self::BsvRegtest => [0xfa, 0xbf, 0xb5, 0xda],
        }
    }

    /// Whether this is a chain of Bitcoin SV.
    #[must_use]
    pub const fn is_bsv(self) -> bool {
        matches!(self, Self::Bsv | Self::BsvRegtest)
    }

    /// How the transactions in its blocks are serialised.
    #[must_use]
    pub const fn format(self) -> Format {
        if self.is_bsv() { Format::Legacy } else { Format::Segwit }
    }

    /// After how many blocks the subsidy halves.
    const fn halving_interval(self) -> u32 {
        match self {
            Self::Regtest | Self::BsvRegtest => 150,
            _ => 210_000,
        }
    }

    /// The new coin that a block at this height may create.
    #[must_use]
    pub const fn subsidy(self, height: Height) -> Amount {
        let halvings = height.to_u32() / self.halving_interval();
        match (50 * Amount::COIN.to_sat()).checked_shr(halvings) {
            Some(satoshi) => Amount::from_sat(satoshi),
            None => Amount::ZERO,
        }
    }

    /// The height of BSV's Genesis upgrade, from which `OP_RETURN` no longer fails a script. `None`
    /// on Bitcoin's networks.
    #[must_use]
    pub const fn genesis_upgrade(self) -> Option<Height> {
        match self {
            Self::Bsv => Some(Height::new(620_538)),
            Self::BsvRegtest => Some(Height::new(10_000)),
            _ => None,
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Network {
    type Err = ParseNetworkError;

    fn from_str(text: &str) -> Result<Self, ParseNetworkError> {
        Self::ALL
            .into_iter()
            .find(|network| network.name() == text)
            .ok_or_else(|| ParseNetworkError { text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for network in Network::ALL {
            assert_eq!(network.to_string().parse(), Ok(network));
        }
        assert!("Mainnet".parse::<Network>().is_err());
        assert!("testnet".parse::<Network>().is_err());
    }

    #[test]
    fn magic_as_the_bitcoin_crate_has_it() {
        use bitcoin::Network as Other;
        let pairs = [
            (Network::Mainnet, Other::Bitcoin),
            (Network::Testnet3, Other::Testnet),
            (Network::Testnet4, Other::Testnet4),
            (Network::Signet, Other::Signet),
            (Network::Regtest, Other::Regtest),
        ];
        for (ours, theirs) in pairs {
            assert_eq!(ours.wire_magic(), theirs.magic().to_bytes());
            assert_eq!(ours.disk_magic(), theirs.magic().to_bytes());
        }
        assert_ne!(Network::Bsv.wire_magic(), Network::Bsv.disk_magic());
    }

    #[test]
    fn subsidy_halves_and_ends() {
        let subsidy = |network: Network, height| network.subsidy(Height::new(height)).to_sat();
        assert_eq!(subsidy(Network::Mainnet, 0), 5_000_000_000);
        assert_eq!(subsidy(Network::Mainnet, 209_999), 5_000_000_000);
        assert_eq!(subsidy(Network::Mainnet, 210_000), 2_500_000_000);
        assert_eq!(subsidy(Network::Mainnet, 840_000), 312_500_000);
        assert_eq!(subsidy(Network::Mainnet, 32 * 210_000), 1);
        assert_eq!(subsidy(Network::Mainnet, 33 * 210_000), 0);
        assert_eq!(subsidy(Network::Mainnet, 64 * 210_000), 0);
        assert_eq!(subsidy(Network::Mainnet, u32::MAX), 0);
        assert_eq!(subsidy(Network::Regtest, 150), 2_500_000_000);
        // All that will ever be mined.
        let all: u64 = (0..33).map(|era| 210_000 * subsidy(Network::Mainnet, era * 210_000)).sum();
        assert_eq!(all, 2_099_999_997_690_000);
    }
}
