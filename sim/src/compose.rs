//! Composing transactions: how many inputs and outputs, of which age and kind, with what values.
//!
//! 1. Draw the number of inputs and outputs, and what each output is for.
//! 2. Draw the coins: the first rich enough to pay for everything, the others small, which is what
//!    consolidations do. A transaction with many outputs spends a mature coinbase if there is one,
//!    like a miner's payout.
//! 3. Take the fee and the fixed outputs (dust, small ones) off the value, and share the rest among
//!    the paying outputs. When the value does not suffice, there are fewer outputs.
//!
//! At least one output must carry the value. When the draw gave only data and dust, one of them is
//! postponed to a later transaction that has two paying outputs, so the mix stays as in the table.

use std::collections::HashSet;

use varve_types::Outpoint;

use crate::address::Addresses;
use crate::coins::{Coin, Coins, Want};
use crate::keys::Keys;
use crate::profile::{Purpose, Table};
use crate::rng::Rng;
use crate::script::{Kind, Script, push_len};
use crate::transaction::{Draft, Transaction};

/// No paying output is worth less.
const LEAST_PAYMENT: u64 = 1_200;
/// A transaction with at least this many outputs is a payout and spends a coinbase.
const PAYOUT: u32 = 11;
/// Outputs of one transaction of the warm-up.
const FAN_OUT: u32 = 2_500;
/// Outputs of a giant transaction.
const GIANT: u32 = 20_000;
/// How many of them can be spent. A transaction may have 20,000 signature operations: each of these
/// outputs has one, a hundredth has 20. The others are notes.
const GIANT_COINS: u32 = 15_000;
/// Bytes of a note.
const NOTE: usize = 8;

/// Composes transactions of one chain.
pub(crate) struct Composer {
    pub(crate) table: &'static Table,
    pub(crate) keys: Keys,
    pub(crate) coins: Coins,
    rng: Rng,
    addresses: Addresses,
    /// Purposes that did not fit in an earlier transaction.
    owed: Vec<Purpose>,
    /// Coins reserved for later transactions.
    pub(crate) reserved: HashSet<Outpoint>,
}

impl Composer {
    pub(crate) fn new(seed: u64, table: &'static Table, signed_percent: u32) -> Self {
        Self {
            table,
            keys: Keys::new(seed, table),
            coins: Coins::default(),
            rng: Rng::new(seed, "transactions"),
            addresses: Addresses::new(signed_percent),
            owed: Vec::new(),
            reserved: HashSet::new(),
        }
    }

    /// The kind that coinbases and fan-outs pay to.
    pub(crate) const fn main_kind(&self) -> Kind {
        if self.table.bsv { Kind::P2pkh } else { Kind::P2wpkh }
    }

    /// The script of a coinbase.
    pub(crate) fn miner(&mut self) -> Script {
        self.addresses.draw(self.main_kind(), &mut self.rng)
    }

    /// Makes a transaction's outputs coins of the block being filled.
    pub(crate) fn confirm(&mut self, transaction: &Transaction, height: u32) {
        for coin in transaction.coins(height) {
            if self.reserved.is_empty() || !self.reserved.contains(&coin.outpoint()) {
                self.coins.add(coin);
            }
        }
    }

    /// The next transaction of the profile; `None` when the coins drawn cannot pay for one.
    pub(crate) fn compose(&mut self) -> Option<Transaction> {
        let inputs = self.rng.span(self.table.inputs);
        let outputs = self.rng.span(self.table.outputs);
        let purposes = self.purposes(outputs);
        let rate = self.rng.span(&[self.table.fee_rate]);
        let need = u64::from(inputs * 70 + outputs * 35 + 12) * u64::from(rate) / 1000
            + u64::from(outputs) * 2 * LEAST_PAYMENT;
        let payout = if outputs >= PAYOUT { self.coins.take_coinbase() } else { None };
        let mut coins = Vec::with_capacity(inputs as usize);
        let ages = &self.table.ages;
        for index in 0..inputs {
            let want = if index == 0 { Want::AtLeast(need) } else { Want::Small };
            let coin = match payout {
                Some(coinbase) if index == 0 => Some(coinbase),
                _ => self.coins.take(ages, want, &mut self.rng),
            };
            coins.extend(coin);
        }
        self.pay(coins, purposes, rate)
    }

    /// A transaction that spends one given coin in the profile's way.
    pub(crate) fn compose_spending(&mut self, coin: Coin) -> Option<Transaction> {
        let outputs = self.rng.span(self.table.outputs);
        let purposes = self.purposes(outputs);
        let rate = self.rng.span(&[self.table.fee_rate]);
        self.pay(vec![coin], purposes, rate)
    }

    /// A transaction that splits a coin into `count` equal ones, with `notes` outputs of data.
    fn split(&mut self, coin: Coin, count: u32, notes: u32) -> Transaction {
        let fee = u64::from(count + notes) * 40 + 200;
        let share = (coin.value - fee) / u64::from(count);
        let mut draft = Draft::new(vec![coin]);
        for _ in 0..count {
            let kind = loop {
                let row = self.rng.weighted(self.table.mix, |row| row.weight);
                if let Purpose::Pay(kind) = row.purpose {
                    break kind;
                }
            };
            let script = self.addresses.draw(kind, &mut self.rng);
            draft.pay(share, script, &self.keys);
        }
        for _ in 0..notes {
            let script = self.data_script(NOTE);
            draft.data(&script);
        }
        draft.build(self.table, &self.keys, &mut self.rng)
    }

    /// The warm-up: splits a mature coinbase in two steps into at most `count` coins. Empty when
    /// none is worth it.
    pub(crate) fn fan_out(&mut self, count: u32, height: u32) -> Vec<Transaction> {
        let Some(coinbase) = self.coins.take_coinbase() else {
            return Vec::new();
        };
        let affordable = coinbase.value / (4 * LEAST_PAYMENT);
        let count = u32::try_from(affordable).map_or(count, |affordable| count.min(affordable));
        if count == 0 {
            self.coins.put_back(coinbase);
            return Vec::new();
        }
        let first = self.split(coinbase, count.div_ceil(FAN_OUT), 0);
        let rich: Vec<Coin> = first.coins(height).collect();
        let mut left = count;
        let mut transactions = vec![first];
        for coin in rich {
            let part = left.min(FAN_OUT);
            left -= part;
            let transaction = self.split(coin, part, 0);
            self.confirm(&transaction, height);
            transactions.push(transaction);
        }
        transactions
    }

    /// A transaction with more than 20,000 outputs, if a coin is found that can pay for it.
    pub(crate) fn giant(&mut self) -> Option<Transaction> {
        let count = GIANT + self.rng.below(GIANT / 20);
        let need = u64::from(count) * 2 * LEAST_PAYMENT;
        let coin = match self.coins.take_coinbase() {
            Some(coinbase) => coinbase,
            None => self.coins.take(&self.table.ages, Want::AtLeast(need), &mut self.rng)?,
        };
        if coin.value < need {
            self.coins.put_back(coin);
            return None;
        }
        Some(self.split(coin, GIANT_COINS, count - GIANT_COINS))
    }

    /// What each of `count` outputs is for; at least one pays.
    fn purposes(&mut self, count: u32) -> Vec<Purpose> {
        let mut purposes: Vec<Purpose> = (0..count).map(|_| self.purpose()).collect();
        let pays = |purpose: &Purpose| matches!(purpose, Purpose::Pay(_));
        let paying = purposes.iter().filter(|purpose| pays(purpose)).count();
        if paying == 0 {
            let pay = loop {
                let purpose = self.purpose();
                if pays(&purpose) {
                    break purpose;
                }
            };
            let first = purposes.first_mut().expect("a transaction has an output");
            self.owed.push(std::mem::replace(first, pay));
        } else if paying >= 2
            && let Some(owed) = self.owed.pop()
        {
            let last = purposes.iter_mut().rfind(|purpose| pays(purpose));
            *last.expect("two outputs pay") = owed;
        }
        purposes
    }

    fn purpose(&mut self) -> Purpose {
        self.rng.weighted(self.table.mix, |row| row.weight).purpose
    }

    /// Steps 2 and 3: values, and the transaction itself.
    fn pay(&mut self, coins: Vec<Coin>, purposes: Vec<Purpose>, rate: u32) -> Option<Transaction> {
        let mut fixed: Vec<(Purpose, u64)> = Vec::new();
        let mut kinds = Vec::new();
        for purpose in purposes {
            match purpose {
                Purpose::Pay(kind) => kinds.push(kind),
                Purpose::Small(Kind::P2a) => fixed.push((purpose, 240)),
                Purpose::Small(_) => fixed.push((purpose, u64::from(self.rng.between(546, 999)))),
                Purpose::Dust if self.rng.chance(1, 2) => fixed.push((purpose, 330)),
                Purpose::Dust => fixed.push((purpose, 546)),
                Purpose::Data => fixed.push((purpose, 0)),
            }
        }
        let mut data = self.data_scripts(&fixed);
        let funds: u64 = coins.iter().map(|coin| coin.value).sum();
        let input_size: u32 = coins.iter().map(|c| c.script.kind().input_weight() / 4 + 1).sum();
        let data_size: usize = data.iter().map(Vec::len).sum();
        let outputs = (fixed.len() + kinds.len()) as u64;
        let size = u64::from(input_size) + outputs * 36 + data_size as u64 + 12;
        let fee = size * u64::from(rate) / 1000;
        let set = fee + fixed.iter().map(|(_, value)| value).sum::<u64>();
        let affordable = funds.saturating_sub(set) / LEAST_PAYMENT;
        if affordable == 0 || coins.is_empty() {
            coins.into_iter().rev().for_each(|coin| self.coins.put_back(coin));
            return None;
        }
        kinds.truncate(usize::try_from(affordable).unwrap_or(usize::MAX));
        let mut draft = Draft::new(coins);
        let shares = self.shares(funds - set, kinds.len());
        for (kind, value) in kinds.into_iter().zip(shares) {
            let script = self.addresses.draw(kind, &mut self.rng);
            draft.pay(value, script, &self.keys);
        }
        for (purpose, value) in fixed {
            match purpose {
                Purpose::Data => draft.data(&data.pop().expect("one was made for each")),
                Purpose::Dust => {
                    let script = self.addresses.fresh(Kind::P2tr);
                    draft.pay_never_spent(value, script, &self.keys);
                }
                Purpose::Small(kind) | Purpose::Pay(kind) => {
                    let script = self.addresses.draw(kind, &mut self.rng);
                    draft.pay(value, script, &self.keys);
                }
            }
        }
        Some(draft.build(self.table, &self.keys, &mut self.rng))
    }

    /// The scripts of the data outputs among `fixed`.
    fn data_scripts(&mut self, fixed: &[(Purpose, u64)]) -> Vec<Vec<u8>> {
        let count = fixed.iter().filter(|(purpose, _)| *purpose == Purpose::Data).count();
        let one = |_| {
            let length = self.rng.span(self.table.data) as usize;
            self.data_script(length)
        };
        (0..count).map(one).collect()
    }

    /// A script of `length` bytes of data.
    fn data_script(&mut self, length: usize) -> Vec<u8> {
        let mut script = Vec::with_capacity(length + 7);
        // BSV puts OP_FALSE before OP_RETURN.
        let head: &[u8] = if self.table.bsv { &[0x00, 0x6a] } else { &[0x6a] };
        script.extend_from_slice(head);
        push_len(length, &mut script);
        self.rng.fill(length, &mut script);
        script
    }

    /// Shares `value` among `count` outputs, none below the least payment.
    fn shares(&mut self, value: u64, count: usize) -> Vec<u64> {
        let weights: Vec<u64> = (0..count).map(|_| u64::from(self.rng.between(1, 16))).collect();
        let total: u64 = weights.iter().sum();
        let spare = value - LEAST_PAYMENT * count as u64;
        let mut shares: Vec<u64> =
            weights.iter().map(|weight| LEAST_PAYMENT + spare / total * weight).collect();
        let given: u64 = shares.iter().sum();
        *shares.last_mut().expect("at least one output pays") += value - given;
        shares
    }
}
