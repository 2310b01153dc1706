//! Reading everything that is stored, and comparing the stores with one another.
//!
//! 1. *Blocks*: every block verifies against its checksum, decodes, hashes to the header it is
//!    stored under, and has the merkle root of that header.
//! 2. *Archive*: every stored block has its rows, which are those that its bytes give; every input
//!    is found as the spender of its point, and every pushed item where those are indexed. The
//!    confirmed heights link down to genesis, and end at
//!    the tip of the commit log.
//! 3. *Unspent set*: every coin is an output of the confirmed chain that no confirmed input spends;
//!    and there are as many as the blocks of that chain make less those that they spend. Together:
//!    the set is exactly what the chain leaves. All undo records in the log decode, also those of
//!    blocks that were disconnected.
//! 4. *Figures*: every row verifies and is of its height; where they are kept up, the coins of the
//!    last row are those of the set. *Script history*: what its scripts hold, outputs and values,
//!    is what the set has.
//! 5. *Checksums*: every page and every block of the archive's files that no question above has
//!    touched, among them those of filters.
//!
//! Of blocks that are pruned only rows are left. They are counted, and what takes their bytes is
//! not compared: their transactions, the coins that they made, and the number of all coins.

use varve_archive::history::{Audit, is_indexed};
use varve_archive::{ArchiveError, Chain as ArchiveChain, Output, TxPlace};
use varve_blocks::BlockNumber;
use varve_consensus::BlockAt;
use varve_types::{Block, Coin, Height, Outpoint, unspendable};

use crate::error::Error;
use crate::organizer::Organizer;
use crate::script_index;
use crate::settings::Index;
use crate::snapshot::{ArchiveView, NodeSnapshot};

/// What was found to be in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Blocks, on every branch, whose bytes are there.
    pub blocks: u64,
    /// Blocks whose bytes are pruned.
    pub pruned: u64,
    /// Their transactions.
    pub transactions: u64,
    /// Their inputs, those of coinbases left out.
    pub inputs: u64,
    /// Unspent outputs.
    pub coins: u64,
}

impl Organizer {
    /// Walks every store. `progress` gets how many blocks are done and how many there are, then
    /// the same of coins. Errors name the first thing that is wrong.
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Verified, Error> {
        let snapshot = self.snapshot();
        let view = snapshot.view();
        let mut verified = Verified::default();
        let (mut balance, mut held) = (0_i64, Audit::default());
        let keys = script_index::keys(&self.directory);
        let (count, first) = (snapshot.blocks.count(), snapshot.blocks.first_held()?);
        verified.pruned = first.get().into();
        for number in first.get()..count {
            let sums = (&mut verified, &mut held);
            balance += self.verify_block(&snapshot, &view, BlockNumber::new(number), sums)?;
            verified.blocks += 1;
            progress(verified.blocks, u64::from(count) - verified.pruned);
        }
        self.verify_chain(&snapshot, &view)?;
        self.stores.archive.verify()?;
        let scripts = self.verify_scripts()?;
        self.verify_rows()?;
        self.utxo.verify_undo()?;
        let coins = snapshot.utxo.coin_count();
        let (mut walk, mut amount) = (snapshot.utxo.coins()?, 0_u64);
        while let Some((point, coin)) = walk.next_coin()? {
            verify_coin(&view, point, &coin)?;
            if scripts.is_some() && is_indexed(coin.script) {
                held.add_coin(&keys, &point, &coin);
            }
            verified.coins += 1;
            amount = amount.saturating_add(coin.value.to_sat());
            progress(verified.coins, coins);
        }
        self.verify_stats((verified.coins, amount))?;
        // Of pruned blocks nobody knows which outputs never entered the set.
        let is_whole = verified.pruned == 0 || !self.options.params.network.is_bsv();
        if scripts.is_some_and(|found| found != held) && is_whole {
            return Err(disagree("the script history does not hold what the set holds".into()));
        }
        if verified.pruned == 0 && i64::try_from(verified.coins).ok() != Some(balance) {
            let found = verified.coins;
            return Err(disagree(format!("the set has {found} coins, the chain leaves {balance}")));
        }
        Ok(verified)
    }

    /// The script history verifies, and ends at a block of the confirmed chain. Returns its sums,
    /// if it ends at the tip.
    fn verify_scripts(&self) -> Result<Option<Audit>, Error> {
        let Some(index) = &self.stores.scripts else { return Ok(None) };
        index.verify()?;
        let Some(tip) = index.tip() else { return Ok(None) };
        let now = self.stores.archive.now();
        let link = now.to_header(tip.hash)?;
        if link.is_none() || now.to_confirmed(tip.height) != link {
            return Err(disagree(format!(
                "the script history ends at {}, off the chain",
                tip.hash
            )));
        }
        let is_at_tip = self.stores.tip_at().1 == tip.hash;
        Ok(if is_at_tip { Some(index.view().0.audit()?) } else { None })
    }

    /// Adds the outputs of a confirmed block that scripts hold and that never enter the set: on BSV
    /// there are such.
    fn add_unspendable(&self, block: &BlockAt<'_>, held: &mut Audit) {
        let (network, height) = (self.options.params.network, block.height());
        if height == Height::GENESIS {
            return;
        }
        let keys = script_index::keys(&self.directory);
        for (txid, tx) in block.txs() {
            for (vout, output) in (0..).zip(tx.outputs()) {
                let (value, script) = (output.value, output.script);
                if is_indexed(script) && unspendable(network, height, script) {
                    let coin = Coin { height, coinbase: tx.is_coinbase(), value, script };
                    held.add_coin(&keys, &Outpoint::new(txid, vout), &coin);
                }
            }
        }
    }

    /// The figures of the tip, if they have been counted, are those of the set.
    fn verify_stats(&self, set: (u64, u64)) -> Result<(), Error> {
        let tip = self.snapshot().tip.0;
        if !self.settings.indexes.has(Index::Stats) || self.indexed(Index::Stats)? != Some(tip) {
            return Ok(());
        }
        let row = self.stats_at(tip, &mut |_, _| {})?;
        if (row.txouts, row.total_amount) != set {
            return Err(disagree(format!("the figures of height {tip} are not those of the set")));
        }
        Ok(())
    }

    /// Checks one block and its rows. Gives how many coins it adds to the confirmed chain's set.
    fn verify_block(
        &self,
        snapshot: &NodeSnapshot,
        view: &ArchiveView,
        number: BlockNumber,
        (verified, held): (&mut Verified, &mut Audit),
    ) -> Result<i64, Error> {
        let hash = snapshot.blocks.hash(number)?;
        let bytes = snapshot.blocks.raw(number)?;
        let block = Block::parse(&bytes, view.network().format())
            .map_err(|source| Error::Undecodable { hash, source })?;
        if block.hash() != hash || block.merkle_tree().root != block.header().merkle_root() {
            return Err(disagree(format!("the bytes of block {hash} are not those of its header")));
        }
        if self.stores.orphans.contains_key(&hash) {
            return Ok(0);
        }
        let link = view.to_header(hash)?;
        let link = link.ok_or_else(|| disagree(format!("block {hash} is not archived")))?;
        let height = view.header(link)?.height;
        let block = BlockAt::new(height, &block);
        let row = view.block(link)?.filter(|row| row.number == number);
        let placed = view.txs_in(link, block.txids())?;
        let is_placed =
            |(position, tx): (u32, &Option<TxPlace>)| tx.is_some_and(|tx| tx.position == position);
        if row.is_none() || !(0..).zip(&placed).all(is_placed) {
            return Err(disagree(format!("the rows of block {hash} are not those of its bytes")));
        }
        let inputs = || block.block().txs().iter().filter(|tx| !tx.is_coinbase());
        let points: Vec<Outpoint> =
            inputs().flat_map(|tx| tx.inputs()).map(|input| input.outpoint).collect();
        let spenders = view.spenders_in(link, &points)?;
        if let Some((point, _)) = points.iter().zip(spenders).find(|(_, by)| by.is_none()) {
            return Err(disagree(format!("no row says that block {hash} spends {point}")));
        }
        if let Some(item) = view.missing_push(link)? {
            return Err(disagree(format!("no row says that block {hash} pushes {item}")));
        }
        verified.transactions += block.txids().len() as u64;
        verified.inputs += points.len() as u64;
        if view.to_confirmed(height) != Some(link) {
            return Ok(0);
        }
        if self.stores.scripts.is_some() {
            self.add_unspendable(&block, held);
        }
        Ok(self.coins_of(&block) - signed(points.len()))
    }

    /// How many coins a block makes. Those that it makes again do not count.
    fn coins_of(&self, block: &BlockAt<'_>) -> i64 {
        let (params, height) = (&self.options.params, block.height());
        let again = params.bip30_exceptions.contains(&(height, block.hash()));
        if height == Height::GENESIS || again {
            return 0;
        }
        let outputs = block.block().txs().iter().flat_map(|tx| tx.outputs());
        let network = params.network;
        signed(outputs.filter(|output| !unspendable(network, height, output.script)).count())
    }

    /// The confirmed heights are the branch of the tip.
    fn verify_chain(&self, snapshot: &NodeSnapshot, view: &ArchiveView) -> Result<(), Error> {
        let (height, hash) = snapshot.tip;
        if snapshot.utxo.tip() != Some(snapshot.tip) {
            return Err(disagree(format!("the set does not stand at {hash}")));
        }
        let top = view.top(ArchiveChain::Confirmed).map(|(top, _)| top);
        if top != Some(height) {
            return Err(disagree(format!("the archive does not end at height {height}")));
        }
        for at in 0..=height.to_u32() {
            let at = Height::new(at);
            let expected = {
                let tree = &self.stores.chain.read().tree;
                tree.ancestor(self.stores.tip, at).map(|id| tree.hash(id))
            };
            let link = view.to_confirmed(at);
            let found = link.map(|link| view.header(link)).transpose()?.map(|row| row.hash);
            if found.is_none() || found != expected {
                return Err(disagree(format!("the archive has another block at height {at}")));
            }
        }
        Ok(())
    }
}

/// A coin is an output of the confirmed chain, and no input of it spends it. Where a row that may
/// be its transaction or its spender is in a pruned block, that is passed over.
fn verify_coin(view: &ArchiveView, point: Outpoint, coin: &Coin<'_>) -> Result<(), Error> {
    let is_it = |output: &Output| {
        let made = (output.tx.height, output.tx.is_coinbase());
        output.tx.confirmed
            && made == (coin.height, coin.coinbase)
            && (output.value, &*output.script) == (coin.value, coin.script)
    };
    let output = unless_pruned(view.output(point))?;
    if output.is_some_and(|output| !output.as_ref().is_some_and(is_it)) {
        return Err(disagree(format!("the coin {point} is no output of the chain")));
    }
    match unless_pruned(view.confirmed_spender(point))?.flatten() {
        Some(_) => Err(disagree(format!("the coin {point} is spent in the chain"))),
        None => Ok(()),
    }
}

/// An answer, or `None` when it takes bytes that are pruned.
fn unless_pruned<A>(answer: Result<A, ArchiveError>) -> Result<Option<A>, Error> {
    match answer {
        Err(ArchiveError::Pruned { .. }) => Ok(None),
        answer => Ok(Some(answer?)),
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn disagree(what: String) -> Error {
    Error::Disagree { what }
}
