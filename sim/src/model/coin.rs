//! A coin in the model's map: 56 bytes for every usual script, without a heap allocation.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use varve_types::{Amount, Coin, Height, Outpoint};

/// The longest script that is kept inline: P2TR and P2WSH have 34 bytes, P2PK 35.
const SHORT: usize = 38;

/// A script's bytes.
#[derive(Clone)]
enum Script {
    Short { length: u8, bytes: [u8; SHORT] },
    Long(Box<[u8]>),
}

/// An unspent output.
#[derive(Clone)]
pub(crate) struct StoredCoin {
    pub(crate) value: u64,
    /// Height times two, and one for a coinbase.
    code: u32,
    script: Script,
}

const _: () = assert!(size_of::<StoredCoin>() == 56);

impl StoredCoin {
    pub(crate) fn new(value: u64, height: u32, coinbase: bool, script: &[u8]) -> Self {
        let mut bytes = [0; SHORT];
        let script = match (bytes.get_mut(..script.len()), u8::try_from(script.len())) {
            (Some(target), Ok(length)) => {
                target.copy_from_slice(script);
                Script::Short { length, bytes }
            }
            _ => Script::Long(script.into()),
        };
        Self { value, code: height << 1 | u32::from(coinbase), script }
    }

    pub(crate) const fn height(&self) -> u32 {
        self.code >> 1
    }

    pub(crate) const fn coinbase(&self) -> bool {
        self.code & 1 == 1
    }

    pub(crate) fn script(&self) -> &[u8] {
        match &self.script {
            Script::Short { length, bytes } => {
                bytes.get(..usize::from(*length)).expect("the length was checked when it was made")
            }
            Script::Long(bytes) => bytes,
        }
    }

    /// The coin as the set hashes take it.
    pub(crate) fn view(&self) -> Coin<'_> {
        Coin {
            height: Height::new(self.height()),
            coinbase: self.coinbase(),
            value: Amount::from_sat(self.value),
            script: self.script(),
        }
    }
}

/// Coins by outpoint. Txids are hashes already, so hashing them again would be a waste.
pub(crate) type CoinMap = HashMap<Outpoint, StoredCoin, BuildHasherDefault<OutpointHasher>>;

/// Takes the first eight bytes of the txid, and mixes in what follows.
#[derive(Default)]
pub(crate) struct OutpointHasher(u64);

impl Hasher for OutpointHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(word) = bytes.first_chunk::<8>() {
            self.0 ^= u64::from_le_bytes(*word);
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.0 = self.0.wrapping_add(u64::from(word).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }

    fn write_usize(&mut self, _length: usize) {}
}
