//! The chain: blocks in the order in which they arrive.
//!
//! Block 0 is the network's genesis block. Blocks 1 to 100 hold nothing but a coinbase, since
//! nothing can be spent yet. Then the warm-up splits each coinbase that matures into up to 25,000
//! coins (14,000 on BSV), until there are as many as the profile needs. From there on every block
//! has the profile's number of transactions, as far as they fit by the rules of the network
//! (`room`).
//!
//! One thread composes, because each choice depends on those before it. A block's witnesses,
//! which hold most of the signatures, are made by all threads.

use std::collections::{HashSet, VecDeque};

use rayon::prelude::*;
use varve_types::{BlockHash, Txid};

use crate::block::{Block, Template};
use crate::coins::Coin;
use crate::compose::Composer;
use crate::config::{Config, ConfigError};
use crate::profile::mean_per_thousand;
use crate::reorg::{Carried, Fates, Schedule};
use crate::rng::Rng;
use crate::room::Room;
use crate::script::Kind;
use crate::transaction::Transaction;

/// The time from which the blocks after genesis count: 13 September 2020.
const START: u32 = 1_600_000_000;
const SPACING: u32 = 600;
/// No block holds anything but a coinbase up to this height.
const QUIET: u32 = 100;
/// Blocks before the first reorg of a chain that is continued.
const QUIET_BEFORE_REORGS: u32 = 3;
/// Coins that the warm-up makes in a block; 25,000 outputs weigh about 3.4 million.
const WARM_UP: u32 = 25_000;
/// The same on BSV, whose blocks of a megabyte may have 20,000 signature operations: each output
/// has one, a hundredth has 20.
const BSV_WARM_UP: u32 = 14_000;

/// An unconfirmed transaction.
#[derive(Clone, Debug)]
pub struct Unconfirmed {
    /// Its id.
    pub txid: Txid,
    /// Its serialisation.
    pub bytes: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Tip {
    height: u32,
    hash: BlockHash,
}

/// A generator of blocks in the order of arrival, genesis first.
pub struct Chain {
    config: Config,
    composer: Composer,
    /// Transactions a block.
    transactions: usize,
    /// Coins that the warm-up still has to make.
    warm_up: u32,
    schedule: Option<Schedule>,
    rng: Rng,
    /// Transactions of a losing branch that found no room in the winning one.
    left_out: HashSet<Txid>,
    tip: Option<Tip>,
    /// Blocks made so far, on any branch.
    made: u64,
    ready: VecDeque<Block>,
}

impl Chain {
    /// The chain that `config` describes.
    ///
    /// # Errors
    ///
    /// When the description makes no sense.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        config.check()?;
        let table = config.profile.table();
        let transactions = config.transactions.unwrap_or(table.transactions);
        let stock = u64::from(transactions) * mean_per_thousand(table.inputs) * table.stock_blocks;
        let stock = u32::try_from(stock / 1000).unwrap_or(u32::MAX);
        Ok(Self {
            composer: Composer::new(config.seed, table, config.signed_percent),
            transactions: transactions as usize,
            warm_up: config.coins.unwrap_or(stock),
            schedule: config.reorg_depth.map(|depth| Schedule::starting(depth, 0)),
            rng: Rng::new(config.seed, "chain"),
            left_out: HashSet::new(),
            tip: None,
            made: 0,
            ready: VecDeque::new(),
            config: config.clone(),
        })
    }

    /// The bytes of the scripts that are paid most often, for queries.
    #[must_use]
    pub fn hot_scripts(&self) -> Vec<Vec<u8>> {
        let kinds: &[Kind] =
            if self.composer.table.bsv { &[Kind::P2pkh] } else { &[Kind::P2wpkh, Kind::P2tr] };
        let bytes = |script: crate::script::Script| {
            let mut bytes = Vec::new();
            script.write(&self.composer.keys, &mut bytes);
            bytes
        };
        crate::address::Addresses::hottest(kinds).into_iter().map(bytes).collect()
    }

    /// Gives the chain no end, with reorgs of up to `reorg_depth` blocks now and then, the first
    /// after a few blocks. Makes sense once the blocks of the description are there.
    ///
    /// # Errors
    ///
    /// When reorgs cannot be that deep.
    pub fn continue_with_reorgs(&mut self, reorg_depth: u32) -> Result<(), ConfigError> {
        let endless =
            Config { blocks: u32::MAX, reorg_depth: Some(reorg_depth), ..self.config.clone() };
        endless.check()?;
        let height = self.tip.map_or(0, |tip| tip.height);
        self.schedule = Some(Schedule::starting(reorg_depth, height + QUIET_BEFORE_REORGS));
        self.config = endless;
        Ok(())
    }

    /// Transactions that are valid on the last block's tip, parents before children.
    #[must_use]
    pub fn into_mempool(mut self) -> Vec<Unconfirmed> {
        let Some(tip) = self.tip.filter(|tip| tip.height >= QUIET) else {
            return Vec::new();
        };
        self.composer.coins.begin_block(tip.height + 1);
        let mut transactions = Vec::new();
        let mut room = Room::new(self.config.network(), tip.height + 1);
        self.fill(&mut transactions, &mut room, tip.height + 1, self.config.mempool as usize);
        let table = self.composer.table;
        transactions.iter_mut().for_each(|t| t.finish(table, &self.composer.keys));
        transactions.into_iter().map(|t| Unconfirmed { txid: t.txid, bytes: t.bytes }).collect()
    }

    fn advance(&mut self) {
        let Some(tip) = self.tip else {
            return self.genesis();
        };
        let warm = tip.height > QUIET && self.warm_up == 0;
        let depth = match &mut self.schedule {
            Some(schedule) if warm => schedule.due(tip.height, self.config.blocks, &mut self.rng),
            _ => None,
        };
        match depth {
            Some(depth) => self.reorg(tip, depth),
            None => {
                self.extend(Vec::new(), false);
            }
        }
    }

    fn genesis(&mut self) {
        let network = self.config.network();
        let hash = network.genesis_hash();
        self.tip = Some(Tip { height: 0, hash });
        let bytes = network.genesis_block();
        self.ready.push_back(Block { height: 0, hash, bytes, stale: false });
        self.composer.coins.begin_block(0);
    }

    fn reorg(&mut self, fork: Tip, depth: u32) {
        self.composer.coins.mark();
        let stale = (0..depth).map(|_| self.extend(Vec::new(), true)).collect();
        let taken = self.composer.coins.rewind(fork.height);
        self.tip = Some(fork);
        let fates = Fates::decide(stale, fork.height, &mut self.rng);
        for coin in taken {
            if !fates.reserved.contains(&coin.outpoint()) {
                self.composer.coins.put_back(coin);
            }
        }
        self.composer.reserved = fates.reserved;
        for carried in fates.carried {
            self.extend(carried, false);
        }
        self.composer.reserved.clear();
        self.left_out.clear();
    }

    /// Adds a block to the tip and returns its transactions.
    fn extend(&mut self, carried: Vec<Carried>, stale: bool) -> Vec<Transaction> {
        let tip = self.tip.expect("genesis comes first");
        let height = tip.height + 1;
        self.composer.coins.begin_block(height);
        let mut room = Room::new(self.config.network(), height);
        let mut transactions = self.carry(carried, height, &mut room);
        if height > QUIET && self.warm_up > 0 {
            let made =
                self.warm_up.min(if self.composer.table.bsv { BSV_WARM_UP } else { WARM_UP });
            transactions = self.composer.fan_out(made, height);
            // Without a coinbase worth splitting, the warm-up ends early.
            self.warm_up = if transactions.is_empty() { 0 } else { self.warm_up - made };
        } else if height > QUIET {
            self.fill(&mut transactions, &mut room, height, self.transactions);
        }
        let (table, keys) = (self.composer.table, &self.composer.keys);
        transactions.par_iter_mut().for_each(|transaction| transaction.finish(table, keys));

        self.made += 1;
        let time = START + height * SPACING + self.rng.below(SPACING);
        let miner = self.composer.miner();
        let template = Template {
            network: self.config.network(),
            height,
            previous: tip.hash,
            time,
            miner,
            extra: self.made,
            keys: &self.composer.keys,
        };
        let (block, coinbase) = template.assemble(&transactions);
        self.tip = Some(Tip { height, hash: block.hash });
        self.composer.coins.add(coinbase);
        self.ready.push_back(Block { stale, ..block });
        transactions
    }

    /// The transactions that the winning branch takes over from the losing one. One that does not
    /// fit is left out, and so are its spenders.
    fn carry(&mut self, carried: Vec<Carried>, height: u32, room: &mut Room) -> Vec<Transaction> {
        let mut transactions = Vec::with_capacity(self.transactions);
        for carried in carried {
            let left_out = |coin: &Coin| self.left_out.contains(&coin.txid);
            let (transaction, orphaned) = match carried {
                Carried::Again(transaction) => {
                    let orphaned = transaction.inputs.iter().any(left_out);
                    (Some(*transaction), orphaned)
                }
                Carried::Rival(coin) if left_out(&coin) => continue,
                Carried::Rival(coin) => (self.composer.compose_spending(coin), false),
            };
            let Some(transaction) = transaction else { continue };
            if orphaned || !room.take(&transaction) {
                self.left_out.insert(transaction.txid);
                continue;
            }
            self.composer.confirm(&transaction, height);
            transactions.push(transaction);
        }
        transactions
    }

    /// Composes until there are `count` transactions, the block is full or no coin can pay.
    fn fill(
        &mut self,
        transactions: &mut Vec<Transaction>,
        room: &mut Room,
        height: u32,
        count: usize,
    ) {
        let every = self.composer.table.giant_every;
        let mut giant = every > 0 && height.is_multiple_of(every);
        let mut failures = 0;
        while transactions.len() < count && failures < 100 {
            let is_giant = std::mem::take(&mut giant);
            let composed = if is_giant { self.composer.giant() } else { self.composer.compose() };
            let Some(transaction) = composed else {
                failures += 1;
                continue;
            };
            if !room.take(&transaction) {
                let coins = transaction.inputs.iter().rev();
                coins.for_each(|coin| self.composer.coins.put_back(*coin));
                // Smaller ones may still fit in place of a giant.
                if is_giant {
                    continue;
                }
                break;
            }
            self.composer.confirm(&transaction, height);
            transactions.push(transaction);
        }
    }
}

impl Iterator for Chain {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        let done = self.tip.is_some_and(|tip| tip.height >= self.config.blocks);
        if self.ready.is_empty() && !done {
            self.advance();
        }
        self.ready.pop_front()
    }
}
