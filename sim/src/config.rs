//! What to generate.

use varve_types::Network;

use crate::profile::Profile;

/// Deeper reorgs would disconnect coinbases that are already spent.
const MAX_REORG_DEPTH: u32 = 99;

/// The description of a chain. The same description gives the same bytes everywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// What the chain looks like.
    pub profile: Profile,
    /// The height of the tip. Stale blocks are additional.
    pub blocks: u32,
    /// The seed of all random choices.
    pub seed: u64,
    /// How many of a hundred inputs carry real signatures. With 100 the chain is valid for a real
    /// node; below that it is valid for a node that does not check scripts.
    pub signed_percent: u32,
    /// Reorgs of 1 to this many blocks; `None` for a chain without branches.
    pub reorg_depth: Option<u32>,
    /// Transactions a block, if not the profile's.
    pub transactions: Option<u32>,
    /// Coins that the warm-up makes, if not the profile's.
    pub coins: Option<u32>,
    /// Unconfirmed transactions left at the end.
    pub mempool: u32,
    /// XOR the block files with a key, as Bitcoin Core does.
    pub xor: bool,
}

impl Config {
    /// A chain of a profile with the defaults: 5 % of inputs signed, no reorgs, 300 transactions
    /// left in the mempool.
    #[must_use]
    pub const fn new(profile: Profile, blocks: u32, seed: u64) -> Self {
        Self {
            profile,
            blocks,
            seed,
            signed_percent: 5,
            reorg_depth: None,
            transactions: None,
            coins: None,
            mempool: 300,
            xor: false,
        }
    }

    /// The network whose rules the chain follows.
    #[must_use]
    pub const fn network(&self) -> Network {
        match self.profile {
            Profile::Mainnet | Profile::Dense => Network::Regtest,
            Profile::Bsv => Network::BsvRegtest,
        }
    }

    pub(crate) const fn check(&self) -> Result<(), ConfigError> {
        if self.signed_percent > 100 {
            return Err(ConfigError::Signed { percent: self.signed_percent });
        }
        match self.reorg_depth {
            Some(depth) if depth == 0 || depth > MAX_REORG_DEPTH => {
                Err(ConfigError::ReorgDepth { depth })
            }
            _ => Ok(()),
        }
    }
}

/// A [`Config`] that describes no chain.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// More than all inputs signed.
    #[error("{percent} percent of inputs cannot be signed: use 0 to 100")]
    Signed {
        /// The value given.
        percent: u32,
    },
    /// An impossible depth.
    #[error("reorgs cannot be {depth} deep: use 1 to 99")]
    ReorgDepth {
        /// The value given.
        depth: u32,
    },
}
