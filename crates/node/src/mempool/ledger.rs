//! The durable half: what a step means for the records.
//!
//! | a transaction | its record | its parents' slots |
//! |---|---|---|
//! | comes in | created locked, unlocked once it is published | spent by it, in the same unit |
//! | is in a block | gets the block, which unlocks it; goes some blocks later | stay spent |
//! | loses a double spend | marked as conflicting; goes after the retention | freed |
//! | is evicted, expires, is dropped | deleted | freed |
//! | comes back from a block | loses the block, is unmined again | spent again |
//!
//! A confirmed parent has no record until somebody spends it: it is imported as outputs alone, with
//! as many as are wanted. When another of its outputs is wanted later, the record is written again
//! with all of them and their spends. A record that orders from outside have touched (a frozen or
//! reassigned output) is never rewritten nor removed here.
//!
//! Blocks are known by their height: the records follow the confirmed chain alone.
//!
//! All writes of a kind are one call of the engine. A crash between two calls leaves records that a
//! restart puts right, because every step here can be repeated.

mod import;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use varve_records::operation::{MinedBlockInfo, SlotRef, SpendRules, Unspend};
use varve_records::record::{BlockId, BlockRef, Body as RecordBody, Record, SpendingData};
use varve_records::store::TxUnit;
use varve_records::{CreateOptions, Fields, RecordError, Store, StoreError, Transaction};
use varve_types::{Height, Outpoint, Txid};

use super::chain::Tip;
use super::draft::{BlockMarks, Net};
use super::entry::Body;
use super::event::Removal;
use super::version::Version;

type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Blocks after which the record of a mined transaction, or of a parent that nobody waits for,
/// goes. A reorganisation that is deeper imports again what it needs.
const RETIRE_AFTER: u32 = 6;

/// Writes steps into records.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) store: Arc<Store>,
    /// Records that can go, by the height at which they do.
    leaving: BTreeMap<Height, Vec<Txid>>,
    /// Records that are marked as conflicting.
    losers: HashSet<Txid>,
}

impl Ledger {
    pub(super) fn new(store: Arc<Store>) -> Self {
        Self { store, leaving: BTreeMap::new(), losers: HashSet::new() }
    }

    /// Writes a step, its new records locked. Returns what the records refuse.
    pub(super) fn write(
        &mut self,
        net: &Net,
        blocks: &BlockMarks,
        version: &Version,
    ) -> Result<HashMap<Txid, RecordError>> {
        let tip = version.tip;
        self.store.set_block_height(tip.height)?;
        self.remove(&net.removed, tip)?;
        self.mark_blocks(blocks, version)?;
        self.prepare_added(&net.added)?;
        self.import(&net.added, tip)?;
        self.free_stale(&net.added, version)?;
        self.create(&net.added, tip)
    }

    /// Frees what left, marks losers, deletes the others. What is mined stays as it is.
    fn remove(&mut self, removed: &[(Arc<Body>, Removal)], tip: Tip) -> Result<()> {
        let is_mined = |reason: &Removal| matches!(reason, Removal::Mined { .. });
        let freed = removed.iter().filter(|(_, reason)| !is_mined(reason));
        let freed: Vec<&Transaction> = freed.map(|(body, _)| &body.tx).collect();
        self.free(&freed)?;
        let of = |wanted: bool| {
            let those = removed.iter().filter(|(_, reason)| !is_mined(reason));
            let those = those.filter(move |(_, reason)| reason.is_conflict() == wanted);
            those.map(|(body, _)| body.txid()).collect::<Vec<Txid>>()
        };
        self.mark_losers(&of(true), tip)?;
        self.delete(&of(false))?;
        let at = above(tip.height, RETIRE_AFTER);
        let leaving = self.leaving.entry(at).or_default();
        for (body, reason) in removed {
            leaving.extend(body.tx.outpoints().into_iter().map(|outpoint| outpoint.txid));
            leaving.extend(is_mined(reason).then(|| body.txid()));
        }
        Ok(())
    }

    /// Takes back what these transactions spend, where the records say that they spend it.
    fn free(&self, txs: &[&Transaction]) -> Result<()> {
        let mut wanted = Vec::new();
        for tx in txs {
            let inputs = (0_u32..).zip(tx.outpoints());
            wanted.extend(
                inputs.map(|(vin, outpoint)| (outpoint, SpendingData::new(tx.txid(), vin))),
            );
        }
        let outpoints: Vec<Outpoint> = wanted.iter().map(|(outpoint, _)| *outpoint).collect();
        let slots = self.store.engine().slots(&outpoints)?;
        let held = wanted.into_iter().zip(slots).filter_map(|((outpoint, by), view)| {
            let slot = view?.slot.filter(|slot| slot.spender() == Some(by))?;
            Some(Unspend { slot: SlotRef { outpoint, hash: slot.hash }, by })
        });
        let held: Vec<Unspend> = held.collect();
        if !held.is_empty() {
            self.store.unspend(held, false)?;
        }
        Ok(())
    }

    fn mark_losers(&mut self, txids: &[Txid], tip: Tip) -> Result<()> {
        for (txid, item) in txids.iter().zip(self.store.set_conflicting(txids, true)?) {
            match item {
                Ok(_) => drop(self.losers.insert(*txid)),
                Err(RecordError::TxNotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let at = above(tip.height, self.store.settings().retention.max(RETIRE_AFTER));
        self.leaving.entry(at).or_default().extend(txids);
        Ok(())
    }

    /// Takes blocks from records and adds them.
    fn mark_blocks(&mut self, blocks: &BlockMarks, version: &Version) -> Result<()> {
        for (height, txids) in &blocks.unset {
            self.set_mined(*height, txids, true)?;
        }
        for (height, txids) in &blocks.set {
            let won = txids.iter().filter(|txid| self.losers.contains(txid));
            let won: Vec<Txid> = won.copied().collect();
            self.store.set_conflicting(&won, false)?;
            for txid in &won {
                self.losers.remove(txid);
            }
            self.set_mined(*height, txids, false)?;
        }
        self.mark_losers(&blocks.losers, version.tip)?;
        // What left the chain and is in no block now has a record only while it waits.
        let set: HashSet<&Txid> = blocks.set.iter().flat_map(|(_, txids)| txids).collect();
        let gone = blocks.unset.iter().flat_map(|(_, txids)| txids).filter(|txid| {
            let lost = self.losers.contains(txid);
            !lost && !set.contains(txid) && !version.contains(txid)
        });
        self.delete(&gone.copied().collect::<Vec<_>>())
    }

    fn set_mined(&self, height: Height, txids: &[Txid], unset: bool) -> Result<()> {
        let info = MinedBlockInfo { block: block_at(height), on_longest_chain: !unset, unset };
        for item in self.store.set_mined_multi(txids, &info)? {
            match item {
                // Most transactions of blocks never had a record here.
                Ok(_) | Err(RecordError::TxNotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// A newcomer whose record lost before, or is one of outputs alone, gets a new one.
    fn prepare_added(&mut self, added: &[Arc<Body>]) -> Result<()> {
        let txids: Vec<Txid> = added.iter().map(|body| body.txid()).collect();
        let mut stale = Vec::new();
        for record in self.store.batch_decorate(&txids, Fields::TX)?.into_iter().flatten() {
            let outputs = matches!(record.body, Some(RecordBody::Outputs(_)));
            if record.conflicting || outputs {
                stale.push(record.txid);
            }
        }
        for txid in &stale {
            self.losers.remove(txid);
        }
        self.delete(&stale)
    }

    /// Frees what newcomers spend from holders that are no longer unconfirmed: the coin is unspent
    /// on this chain, so the holder left it with a block.
    fn free_stale(&self, added: &[Arc<Body>], version: &Version) -> Result<()> {
        let outpoints: Vec<Outpoint> = added.iter().flat_map(|body| body.tx.outpoints()).collect();
        let slots = self.store.engine().slots(&outpoints)?;
        let stale = outpoints.into_iter().zip(slots).filter_map(|(outpoint, view)| {
            let slot = view?.slot?;
            let by = slot.spender().filter(|by| !version.contains(&by.txid))?;
            Some(Unspend { slot: SlotRef { outpoint, hash: slot.hash }, by })
        });
        let stale: Vec<Unspend> = stale.collect();
        if !stale.is_empty() {
            self.store.unspend(stale, false)?;
        }
        Ok(())
    }

    /// Spends the inputs of newcomers and creates their records, locked. A record that is there
    /// already keeps its place; its spends are made good.
    fn create(&self, added: &[Arc<Body>], tip: Tip) -> Result<HashMap<Txid, RecordError>> {
        let height = above(tip.height, 1);
        let here: HashSet<Txid> = added.iter().map(|body| body.txid()).collect();
        let unit = |body: &Arc<Body>| {
            // A parent of the same step is locked still, and is published together with it.
            let together = body.tx.outpoints().iter().any(|input| here.contains(&input.txid));
            let rules = SpendRules { ignore_locked: together, ..SpendRules::at(height) };
            let created_at = body.time.saturating_mul(1_000);
            let create = CreateOptions { height, created_at, locked: true, ..Default::default() };
            (rules, create)
        };
        let units: Vec<TxUnit<'_>> = added
            .iter()
            .map(|body| {
                let (rules, create) = unit(body);
                TxUnit { tx: &body.tx, spend: Some(rules), create: Some(create) }
            })
            .collect();
        let mut refused = HashMap::new();
        for (body, answer) in added.iter().zip(self.store.spend_and_create_multi(&units)?) {
            match answer {
                Ok(_) | Err(RecordError::TxExists { .. }) => {}
                Err(error) => drop(refused.insert(body.txid(), error)),
            }
        }
        Ok(refused)
    }

    /// Takes back the records of transactions that are not to be published after all.
    pub(super) fn undo(&mut self, bodies: &[Arc<Body>], tip: Tip) -> Result<()> {
        let removed = bodies.iter().map(|body| (Arc::clone(body), Removal::Dropped));
        self.remove(&removed.collect::<Vec<_>>(), tip)
    }

    /// Deletes the records of transactions that did not come back at a restart, and frees what they
    /// spend.
    pub(super) fn forget(&self, txs: &[Transaction]) -> Result<()> {
        self.free(&txs.iter().collect::<Vec<_>>())?;
        self.delete(&txs.iter().map(Transaction::txid).collect::<Vec<_>>())
    }

    /// Lets the outputs of published transactions be spent.
    pub(super) fn unlock(&self, added: &[Arc<Body>]) -> Result<()> {
        if added.is_empty() {
            return Ok(());
        }
        let txids: Vec<Txid> = added.iter().map(|body| body.txid()).collect();
        self.store.set_locked(&txids, false)
    }

    /// Removes a record whenever nobody builds on it any more, at this height.
    pub(super) fn leave_at(&mut self, height: Height, txid: Txid, conflicting: bool) {
        self.leaving.entry(height).or_default().push(txid);
        if conflicting {
            self.losers.insert(txid);
        }
    }

    /// Removes the records whose time has come and that no unconfirmed transaction needs. One that
    /// is needed comes back to the list when the transaction leaves.
    pub(super) fn retire(&mut self, version: &Version) -> Result<()> {
        let later = self.leaving.split_off(&above(version.tip.height, 1));
        let due = std::mem::replace(&mut self.leaving, later);
        let mut gone: Vec<Txid> = due.into_values().flatten().collect();
        gone.retain(|txid| !version.contains(txid) && version.children(*txid).is_empty());
        gone.sort_unstable();
        gone.dedup();
        for txid in &gone {
            self.losers.remove(txid);
        }
        self.delete(&gone)
    }

    /// Deletes the records that no order from outside has touched.
    pub(super) fn delete(&self, txids: &[Txid]) -> Result<()> {
        let free = self.untouched(txids, Fields::ALERTS)?;
        if free.is_empty() {
            return Ok(());
        }
        self.store.delete(&free.keys().copied().collect::<Vec<_>>())
    }

    /// The records of these transactions that have no frozen or reassigned output.
    fn untouched(&self, txids: &[Txid], fields: Fields) -> Result<BTreeMap<Txid, Record>> {
        if txids.is_empty() {
            return Ok(BTreeMap::new());
        }
        let found = self.store.batch_decorate(txids, fields)?.into_iter().flatten();
        let free = found.filter(|record| {
            let alerts = &record.alerts;
            let touched = !alerts.windows.is_empty() || !alerts.reassignments.is_empty();
            !record.is_frozen() && !touched
        });
        Ok(free.map(|record| (record.txid, record)).collect())
    }
}

const fn block_at(height: Height) -> BlockRef {
    BlockRef { id: BlockId(height.to_u32()), height, subtree: 0 }
}

fn above(height: Height, count: u32) -> Height {
    height.checked_add(count).unwrap_or(Height::new(u32::MAX))
}
