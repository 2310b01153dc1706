//! The digests that prove that all sides did the same work.

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _};

use varve_types::{Coin, Outpoint};

/// The coins that were looked up and removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) coins: u64,
    /// The sum of amounts.
    pub(crate) satoshi: u64,
    /// The sum of all bytes of all scripts, so that each must be read.
    pub(crate) scripts: u64,
}

impl Found {
    pub(crate) fn add(&mut self, satoshi: u64, script: &[u8]) {
        self.coins += 1;
        self.satoshi = self.satoshi.wrapping_add(satoshi);
        self.scripts += script.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    }

    pub(crate) const fn join(&mut self, other: &Self) {
        self.coins += other.coins;
        self.satoshi = self.satoshi.wrapping_add(other.satoshi);
        self.scripts += other.scripts;
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:x}-{:x}", self.coins, self.satoshi, self.scripts)
    }
}

/// A whole set: how many coins, and a sum of their hashes that does not depend on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SetDigest {
    pub(crate) coins: u64,
    sum: u64,
}

impl SetDigest {
    pub(crate) fn add(&mut self, outpoint: &Outpoint, coin: &Coin<'_>) {
        let mut hasher = foldhash::quality::FixedState::default().build_hasher();
        hasher.write(&outpoint.to_bytes());
        hasher.write_u64(coin.code());
        hasher.write_u64(coin.value.to_sat());
        hasher.write(coin.script);
        self.coins += 1;
        self.sum = self.sum.wrapping_add(hasher.finish());
    }
}

impl fmt::Display for SetDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:016x}", self.coins, self.sum)
    }
}
