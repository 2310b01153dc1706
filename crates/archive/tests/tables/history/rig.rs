//! An owner of the table, like a node: it archives blocks, knows which are confirmed, and keeps
//! what each of them changes. Answers are compared with a walk over all blocks of its chain.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use varve_archive::TxLink;
use varve_archive::history::{
    Batch, BlockChanges, Connected, Disconnected, Funded, HistoryKeys, HistoryOptions,
    HistoryTable, HistoryView, Mark, Nearer, Negation, Result, Spent, Sums, Unspent, UnspentCursor,
};
use varve_archive::search::Order;
use varve_io::{Storage, StoreId};
use varve_runs::{Compaction, Secret, StoreKey};
use varve_types::{Amount, BlockHash, Height, Outpoint, ScriptHash, Txid};

pub(crate) const KEY: StoreKey = StoreKey { id: StoreId([3; 16]), secret: Secret::new([4; 16]) };

/// A window of four blocks, small runs, two of them merged at a time.
pub(crate) const TINY: HistoryOptions = HistoryOptions {
    memory: 1 << 20,
    fan_in: 2,
    window: 4,
    flush_bytes: 4 << 10,
    flush_blocks: 6,
    compaction: Compaction::Inline,
};

/// Scripts that blocks pay.
pub(crate) const SCRIPTS: u64 = 24;

/// A number for a number, in no order.
pub(crate) const fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

pub(crate) fn script(number: u64) -> ScriptHash {
    let mut bytes = [7; 32];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    ScriptHash::from_bytes(bytes)
}

pub(crate) fn outpoint(tx: u64, vout: u32) -> Outpoint {
    let mut bytes = [5; 32];
    bytes[..8].copy_from_slice(&tx.to_le_bytes());
    Outpoint::new(Txid::from_bytes(bytes), vout)
}

/// A block that was archived, confirmed or not.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) connected: Connected,
    /// The ordinal of its first transaction.
    pub(crate) first: TxLink,
    pub(crate) changes: BlockChanges,
    /// The links of the transactions that made what it spends.
    pub(crate) origins: Vec<TxLink>,
}

impl Block {
    pub(crate) fn mark(&self) -> Mark {
        let Connected { height, hash, count, .. } = self.connected;
        Mark { height, hash, end: self.first.plus(count) }
    }
}

/// A coin of the owner's chain.
type Coin = (Funded, Height, TxLink);

/// The owner's side.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    blocks: HashMap<BlockHash, Block>,
    /// The confirmed chain.
    pub(crate) chain: Vec<BlockHash>,
    pub(crate) keys: HistoryKeys,
    seed: u64,
}

impl Owner {
    pub(crate) fn new(seed: u64, weak: bool) -> Self {
        let keys = if weak { HistoryKeys::one_byte(KEY) } else { HistoryKeys::new(KEY) };
        let (blocks, chain) = (HashMap::new(), Vec::new());
        Self { blocks, chain, keys, seed: mix(seed) }
    }

    pub(crate) fn open(
        &self,
        storage: Arc<dyn Storage>,
        options: HistoryOptions,
    ) -> Result<HistoryTable> {
        HistoryTable::open(storage, self.keys, options)
    }

    fn random(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.seed)
    }

    /// The coins that are unspent behind the first `height` blocks, in the order they were made.
    fn coins(&self, height: usize) -> Vec<Coin> {
        let mut coins: BTreeMap<(u32, u32, Outpoint), Coin> = BTreeMap::new();
        for hash in self.chain.iter().take(height).skip(1) {
            let block = &self.blocks[hash];
            let height = block.connected.height;
            for output in &block.changes.funded {
                let link = block.first.plus(output.position);
                let key = (height.to_u32(), output.position, output.outpoint);
                coins.insert(key, (*output, height, link));
            }
            for spent in &block.changes.spent {
                coins.retain(|_, coin| coin.0.outpoint != spent.outpoint);
            }
        }
        coins.into_values().collect()
    }

    /// Archives a block on the tip and confirms it. One script is in nearly every transaction.
    pub(crate) fn make_block(&mut self) {
        let mut coins = self.coins(self.chain.len());
        let height = Height::new(self.chain.len() as u32);
        let tip = self.chain.last().map(|hash| self.blocks[hash].mark());
        let first = tip.map_or(TxLink::new(0), |tip| tip.end);
        let count = 1 + (self.random() % 6) as u32;
        let mut changes = BlockChanges { height, ..BlockChanges::default() };
        let mut origins = Vec::new();
        for position in 0..count {
            let tx = self.random();
            let spends = if position == 0 { 0 } else { self.random() % 4 };
            for _ in 0..spends.min(coins.len() as u64) {
                // The youngest coins are spent most often, those of the block itself too.
                let back = self.random() % self.random().max(1) % coins.len() as u64;
                let coin = coins.remove(coins.len() - 1 - back as usize);
                let (Funded { outpoint, value, script, .. }, height, link) = coin;
                changes.spent.push(Spent { position, outpoint, height, value, script });
                origins.push(link);
            }
            for vout in 0..1 + (self.random() % 3) as u32 {
                let who = if self.random().is_multiple_of(2) { 0 } else { self.random() % SCRIPTS };
                let value = Amount::from_sat(self.random() % (1 << (self.random() % 40)));
                let (outpoint, script) = (outpoint(tx, vout), script(who));
                let output = Funded { position, outpoint, value, script };
                changes.funded.push(output);
                coins.push((output, height, first.plus(position)));
            }
        }
        let hash = BlockHash::from_bytes([self.random() as u8; 32]);
        let mut bytes = hash.to_bytes();
        bytes[..8].copy_from_slice(&self.random().to_le_bytes());
        let hash = BlockHash::from_bytes(bytes);
        let parent = self.chain.last().copied().unwrap_or(BlockHash::from_bytes([0; 32]));
        let connected = Connected { height, hash, parent, count };
        self.blocks.insert(hash, Block { connected, first, changes, origins });
        self.chain.push(hash);
    }

    /// Brings the table to the confirmed chain, as a node does after a reorganisation or a start.
    pub(crate) fn follow(&self, table: &mut HistoryTable) -> Result<()> {
        let is_confirmed =
            |mark: &Mark| self.chain.get(mark.height.to_u32() as usize) == Some(&mark.hash);
        while let Some(tip) = table.tip().filter(|tip| !is_confirmed(tip)) {
            if table.disconnect() == Disconnected::InRuns {
                let Block { connected, first, changes, origins } = &self.blocks[&tip.hash];
                let negation = Negation::new(&self.keys, changes, *first, origins);
                let parent = self.blocks.get(&connected.parent).map(Block::mark);
                table.negate(parent, negation);
            }
        }
        let next = table.tip().map_or(0, |tip| tip.height.to_u32() as usize + 1);
        for hash in &self.chain[next..] {
            let block = &self.blocks[hash];
            table.tend()?;
            table.connect(&block.connected, Batch::new(&self.keys, &block.changes))?;
        }
        Ok(())
    }

    /// Compares all answers with a walk over the chain, now and at earlier heights.
    pub(crate) fn check(&self, view: &HistoryView) -> Result<()> {
        assert_eq!(view.tip().map(|tip| tip.hash), self.chain.last().copied());
        self.check_at(view, self.chain.len())?;
        for back in [1, 3, 8] {
            let Some(height) = self.chain.len().checked_sub(1 + back) else { continue };
            if let Some(view) = view.at(Height::new(height as u32)) {
                self.check_at(&view, height + 1)?;
            }
        }
        assert!(view.at(Height::new(self.chain.len() as u32)).is_none(), "no such block");
        Ok(())
    }

    fn check_at(&self, view: &HistoryView, blocks: usize) -> Result<()> {
        let scripts: Vec<ScriptHash> = (0..SCRIPTS + 2).map(script).collect();
        let (sums, histories) = self.walk(blocks);
        let found = view.sums(&scripts)?;
        for order in [Order::Ascending, Order::Descending] {
            let pages = view.histories(&scripts, order, 5)?;
            let all = TxLink::new(0)..TxLink::new(1 << 56);
            for (script, page) in scripts.iter().zip(pages) {
                assert_eq!(page, view.history(script, all.clone(), order, 5)?, "{order:?}");
            }
        }
        let coins = self.coins(blocks);
        for (at, script) in scripts.iter().enumerate() {
            assert_eq!(found[at], sums.get(script).copied().unwrap_or_default());
            let none = Vec::new();
            let links = histories.get(script).unwrap_or(&none);
            check_history(view, script, links)?;
            let of_script = coins.iter().filter(|(output, ..)| output.script == *script);
            let mut unspent: Vec<Unspent> = of_script
                .map(|(output, height, link)| {
                    let (tx, vout) = (*link, output.outpoint.vout);
                    let print = view.print(&output.outpoint);
                    Unspent { tx, vout, height: *height, print }
                })
                .collect();
            unspent.sort_unstable_by_key(|output| (output.height, output.tx, output.vout));
            check_unspent(view, script, &unspent)?;
            let value: u64 = coins
                .iter()
                .filter(|(output, ..)| output.script == *script)
                .map(|(output, ..)| output.value.to_sat())
                .sum();
            assert_eq!(found[at].balance(), value);
        }
        Ok(())
    }

    /// Sums and transactions of all scripts behind the first blocks.
    fn walk(&self, blocks: usize) -> (HashMap<ScriptHash, Sums>, HashMap<ScriptHash, Vec<TxLink>>) {
        let mut sums: HashMap<ScriptHash, Sums> = HashMap::new();
        let mut histories: HashMap<ScriptHash, Vec<TxLink>> = HashMap::new();
        // The genesis block is not indexed.
        for hash in self.chain.iter().take(blocks).skip(1) {
            let Block { first, changes, .. } = &self.blocks[hash];
            for output in &changes.funded {
                let sums = sums.entry(output.script).or_default();
                sums.funded += 1;
                sums.received += output.value.to_sat();
                let link = first.plus(output.position);
                histories.entry(output.script).or_default().push(link);
            }
            for output in &changes.spent {
                let sums = sums.entry(output.script).or_default();
                sums.spent += 1;
                sums.sent += output.value.to_sat();
                let link = first.plus(output.position);
                histories.entry(output.script).or_default().push(link);
            }
        }
        for (script, links) in &mut histories {
            links.sort_unstable();
            links.dedup();
            sums.entry(*script).or_default().txs = links.len() as i64;
        }
        (sums, histories)
    }
}

/// Pages through a history both ways and from the middle.
pub(crate) fn check_history(
    view: &HistoryView,
    script: &ScriptHash,
    links: &[TxLink],
) -> Result<()> {
    let all = TxLink::new(0)..TxLink::new(u64::MAX >> 8);
    let middle = links.get(links.len() / 3).copied().unwrap_or(TxLink::new(9));
    let limit = (links.len() / 3).max(3);
    for range in [all.clone(), middle..all.end, all.start..middle] {
        let wanted: Vec<TxLink> =
            links.iter().copied().filter(|link| range.contains(link)).collect();
        for order in [Order::Ascending, Order::Descending] {
            let (mut found, mut rest) = (Vec::new(), Some(range.clone()));
            while let Some(links) = rest {
                let page = view.history(script, links, order, limit)?;
                assert!(page.rows.len() == limit || page.rest.is_none());
                found.extend(page.rows);
                rest = page.rest;
            }
            if order == Order::Descending {
                found.reverse();
            }
            assert_eq!(found, wanted, "{order:?}");
        }
    }
    let below = links.partition_point(|link| *link < middle);
    let nearer = if below < links.len() - below { Nearer::Beginning } else { Nearer::End };
    assert_eq!(view.nearer(script, middle)?, nearer);
    Ok(())
}

/// Pages through the unspent outputs.
pub(crate) fn check_unspent(
    view: &HistoryView,
    script: &ScriptHash,
    wanted: &[Unspent],
) -> Result<()> {
    let whole = view.unspent(script, UnspentCursor::START, wanted.len() + 1)?;
    assert_eq!((whole.rows.as_slice(), whole.rest), (wanted, None));
    let (mut found, mut rest) = (Vec::new(), Some(UnspentCursor::START));
    while let Some(from) = rest {
        let (height, print) = from.to_parts();
        let from = UnspentCursor::from_parts(height, print);
        let page = view.unspent(script, from, 3.max(wanted.len() / 3))?;
        found.extend(page.rows);
        rest = page.rest;
    }
    assert!(found.is_sorted_by_key(|output: &Unspent| output.height));
    found.sort_unstable_by_key(|output| (output.height, output.tx, output.vout));
    assert_eq!(found, wanted);
    Ok(())
}
