//! The coins that are there before the first block.
//!
//! A transaction of the stock is one random 64-bit number, the first eight bytes of its txid;
//! everything else about it follows from the number: the rest of the txid, one to three coins,
//! their amounts, heights and scripts. So a stock of 20 million coins takes 110 MB, sorted, and any
//! coin of it can be named without knowing the others. Scripts come in the mix of mainnet's set.
//!
//! The stock is written as Core's snapshot file: every side loads the same bytes.

use std::io::{self, Write};

use varve_types::{Amount, BlockHash, Coin, Height, Network, Outpoint, Txid, compact_size};
use varve_utxo::parts::pack;

use varve_testdata::Random;

/// The height of the stock's base block.
pub(crate) const BASE_HEIGHT: Height = Height::new(900_000);
/// Its hash, which no block has.
pub(crate) const BASE: BlockHash = BlockHash::from_bytes([0xba; 32]);
/// The chain that everything here is of.
pub(crate) const NETWORK: Network = Network::Regtest;
/// The most coins that a transaction of the stock has.
const COINS_MAX: u32 = 3;

/// All coins of the stock, and which of them are still available.
#[derive(Debug)]
pub(crate) struct Stock {
    /// One number a transaction, sorted.
    transactions: Vec<u64>,
    coins: u64,
    /// How many places were taken, in the order of a permutation.
    taken: u64,
    left: u64,
}

impl Stock {
    /// A stock of about `coins` coins: a transaction has 1.5 on average.
    pub(crate) fn new(coins: u64, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let wanted = coins * 2 / 3;
        let mut transactions: Vec<u64> = (0..wanted).map(|_| random.bits()).collect();
        transactions.sort_unstable();
        transactions.dedup();
        let coins = transactions.iter().map(|number| u64::from(coins_of(*number))).sum();
        Self { transactions, coins, taken: 0, left: coins }
    }

    /// How many coins are still available.
    pub(crate) const fn left(&self) -> u64 {
        self.left
    }

    /// Takes a random coin, none twice.
    pub(crate) fn take(&mut self) -> Option<Outpoint> {
        // Places are numbered as if all transactions had the most coins; a step that shares no
        // factor with their number visits each once.
        let places = self.transactions.len() as u64 * u64::from(COINS_MAX);
        while self.taken < places {
            let place = u128::from(self.taken) * u128::from(step(places)) % u128::from(places);
            self.taken += 1;
            let transaction = usize::try_from(place / u128::from(COINS_MAX)).ok()?;
            let vout = u32::try_from(place % u128::from(COINS_MAX)).ok()?;
            let number = *self.transactions.get(transaction)?;
            if vout < coins_of(number) {
                self.left -= 1;
                return Some(Outpoint::new(txid(number), vout));
            }
        }
        None
    }

    /// Writes the whole stock as Core's snapshot, including coins already taken.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"utxo\xff")?;
        out.write_all(&2_u16.to_le_bytes())?;
        out.write_all(&NETWORK.wire_magic())?;
        out.write_all(BASE.as_bytes())?;
        out.write_all(&self.coins.to_le_bytes())?;
        let (mut bytes, mut script) = (Vec::new(), Vec::new());
        for number in &self.transactions {
            bytes.clear();
            bytes.extend_from_slice(txid(*number).as_bytes());
            let coins = coins_of(*number);
            compact_size::write(u64::from(coins), &mut bytes);
            for vout in 0..coins {
                compact_size::write(u64::from(vout), &mut bytes);
                pack(&coin(*number, vout, &mut script), &mut bytes);
            }
            out.write_all(&bytes)?;
        }
        Ok(())
    }
}

/// A step near the golden ratio of `places` that shares no factor with it.
fn step(places: u64) -> u64 {
    let golden = places / 1_000 * 618 + 1;
    (golden..).find(|step| gcd(*step, places) == 1).unwrap_or(1)
}

const fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Five of eight transactions have one coin, two have two, one has three.
const fn coins_of(number: u64) -> u32 {
    match Random::new(number ^ 1).bits() % 8 {
        0..5 => 1,
        5..7 => 2,
        _ => COINS_MAX,
    }
}

fn txid(number: u64) -> Txid {
    let mut bytes = [0; 32];
    Random::new(number).fill(&mut bytes);
    bytes.iter_mut().zip(number.to_be_bytes()).for_each(|(place, byte)| *place = byte);
    Txid::from_bytes(bytes)
}

fn coin(number: u64, vout: u32, script: &mut Vec<u8>) -> Coin<'_> {
    let mut random = Random::new(number.wrapping_add(u64::from(vout) + 1));
    let kind = match random.index(100) {
        0..51 => ScriptKind::P2wpkh,
        51..67 => ScriptKind::P2tr,
        67..87 => ScriptKind::P2pkh,
        _ => ScriptKind::P2sh,
    };
    script.clear();
    kind.write(&mut random, script);
    let height = random.index(BASE_HEIGHT.to_u32() as usize);
    let height = Height::new(u32::try_from(height).unwrap_or_default());
    Coin { height, coinbase: false, value: amount(&mut random), script }
}

/// Of any size from dust to a hundred coins, uniform over powers of two.
pub(crate) fn amount(random: &mut Random) -> Amount {
    let bits = 10 + random.index(23);
    Amount::from_sat(random.bits() >> (64 - bits))
}

/// A standard script.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ScriptKind {
    P2wpkh,
    P2tr,
    P2pkh,
    P2sh,
}

impl ScriptKind {
    /// Appends a script of this kind.
    pub(crate) fn write(self, random: &mut Random, out: &mut Vec<u8>) {
        let (before, len, after): (&[u8], usize, &[u8]) = match self {
            Self::P2wpkh => (&[0x00, 20], 20, &[]),
            Self::P2tr => (&[0x51, 32], 32, &[]),
            Self::P2pkh => (&[0x76, 0xa9, 20], 20, &[0x88, 0xac]),
            Self::P2sh => (&[0xa9, 20], 20, &[0x87]),
        };
        let mut hash = [0; 32];
        random.fill(&mut hash);
        out.extend_from_slice(before);
        out.extend(hash.iter().take(len));
        out.extend_from_slice(after);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_coin_is_given_away_once() {
        let mut stock = Stock::new(3_000, 7);
        let coins = stock.coins;
        assert!((2_700..3_300).contains(&coins));
        let mut taken = HashSet::new();
        while let Some(outpoint) = stock.take() {
            assert!(taken.insert(outpoint), "{outpoint}");
        }
        assert_eq!((taken.len() as u64, stock.left()), (coins, 0));
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes() {
        let bytes = |seed| {
            let mut bytes = Vec::new();
            Stock::new(1_000, seed).write(&mut bytes).unwrap();
            bytes
        };
        assert_eq!(bytes(1), bytes(1));
        assert_ne!(bytes(1), bytes(2));
    }
}
