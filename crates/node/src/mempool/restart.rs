//! The mempool after a restart, out of its records.
//!
//! 1. All records of transactions are read, losers of double spends left out. The transactions come
//!    from the records, or from the blobs of large ones. Those that were mined are among them: a
//!    crash may have come between a commit that took their block away and the step that follows it.
//!    They are in no block now if what they spend is unspent.
//! 2. Parents first, otherwise in the order of their creation, each is judged again by consensus
//!    against the tip: the chain may have moved while nobody looked. Policy and scripts were judged
//!    when it came.
//! 3. What is not valid any more loses its record, and what is still mined keeps it for a while.
//! 4. For the others, parents are imported where they are missing, spends are made good, and what a
//!    crash left locked is unlocked.
//! 5. Every other record is put on the list of those that go.

use std::sync::Arc;

use varve_records::engine::Scan;
use varve_records::record::{Body as RecordBody, Record};
use varve_records::{Fields, Store, StoreError, Transaction};
use varve_types::{Height, Txid};

use super::admission::Terms;
use super::chain::Moment;
use super::draft::Draft;
use super::eviction::Floor;
use super::ledger::Ledger;
use super::order::parents_first;
use super::orphanage::Orphanage;
use super::policy::Judge;
use super::pool::{Mempool, MempoolParts, verdict};
use super::reject::MempoolError;
use super::version::Version;

/// Records that are read together.
const PAGE: usize = 1_000;

/// What a restart found.
#[derive(Clone, Debug, Default)]
pub struct Reloaded {
    /// Transactions that are in the mempool again.
    pub kept: usize,
    /// Transactions that are confirmed or no longer valid.
    pub dropped: Vec<Txid>,
}

/// A transaction out of its record.
struct Waiting {
    tx: Transaction,
    /// Milliseconds.
    created_at: u64,
    /// The heights of the blocks that have it, as far as the records know.
    mined: Vec<Height>,
}

impl Mempool {
    /// Opens the mempool that is in a store, at the tip of the moment's chain.
    pub fn open(parts: MempoolParts, at: Moment<'_>) -> Result<(Self, Reloaded), MempoolError> {
        let MempoolParts { store, params, policy, verifier } = parts;
        let version = Arc::new(Version::new(at.chain.tip(), policy.push_rule));
        let mut mempool = Self {
            params,
            policy,
            verifier,
            ledger: Ledger::new(Arc::clone(&store)),
            orphans: Orphanage::default(),
            floor: Floor::default(),
            version,
        };
        let waiting = waiting(&store)?;
        let reloaded = mempool.reload(at, waiting)?;
        mempool.list_leaving(&store)?;
        Ok((mempool, reloaded))
    }

    fn reload(&mut self, at: Moment<'_>, waiting: Vec<Waiting>) -> Result<Reloaded, MempoolError> {
        let mut draft = Draft::new(&self.version);
        let mut reloaded = Reloaded::default();
        let mut dropped = Vec::new();
        let mut admission = self.admission(at)?;
        let inputs = waiting.iter().flat_map(|waiting| waiting.tx.outpoints());
        admission.coins.fetch(inputs)?;
        for Waiting { tx, created_at, mined } in waiting {
            let time = created_at / 1_000;
            let terms = Terms { judge: Judge::Before, time, fee_waived: true };
            match verdict(admission.admit(&mut draft, &tx, terms))? {
                Ok(txid) => {
                    let left = mined.into_iter().map(|height| (height, vec![txid]));
                    draft.blocks.unset.extend(left);
                }
                Err(_) if mined.is_empty() => dropped.push(tx),
                Err(_) => {}
            }
        }
        admission.floor.make_room(&mut draft, admission.policy, at.now);
        self.ledger.forget(&dropped)?;
        let (net, refused) = self.write(&mut draft)?;
        reloaded.kept = net.added.len();
        reloaded.dropped = dropped.iter().map(Transaction::txid).collect();
        reloaded.dropped.extend(refused.keys());
        draft.version.min_rate = self.floor.rate(&self.policy, at.now);
        self.version = Arc::new(draft.version);
        self.ledger.unlock(&net.added)?;
        Ok(reloaded)
    }

    /// Lists the records that are not of unconfirmed transactions: they go when nobody needs them.
    fn list_leaving(&mut self, store: &Store) -> Result<(), StoreError> {
        let tip = self.version.tip.height;
        let retention = store.settings().retention;
        let version = Arc::clone(&self.version);
        each_record(store, Scan::All, Fields::HEAD, |record| {
            if version.contains(&record.txid) {
                return;
            }
            let kept = if record.conflicting { retention } else { 0 };
            let at = record.unmined_since.unwrap_or(tip).checked_add(kept);
            let at = at.unwrap_or(tip).max(tip.checked_add(1).unwrap_or(tip));
            self.ledger.leave_at(Height::max(at, tip), record.txid, record.conflicting);
        })
    }
}

/// The transactions that wait for a block, parents first.
fn waiting(store: &Store) -> Result<Vec<Waiting>, StoreError> {
    let mut found = Vec::new();
    each_record(store, Scan::All, Fields::TX, |record| {
        let Record { conflicting, created_at, body, blocks, .. } = record;
        // A record of outputs alone was a parent whose block left; it cannot wait for one.
        if let (false, Some(RecordBody::Transaction(tx))) = (conflicting, body) {
            let mined = blocks.iter().map(|block| block.height).collect();
            found.push(Waiting { tx: super::blocks::plain(&tx), created_at, mined });
        }
    })?;
    found.sort_by_key(|waiting| (waiting.created_at, waiting.tx.txid()));
    Ok(parents_first(found, |waiting| &waiting.tx))
}

fn each_record(
    store: &Store,
    scan: Scan,
    fields: Fields,
    mut each: impl FnMut(Record),
) -> Result<(), StoreError> {
    let mut cursor = None;
    loop {
        let page = store.engine().scan(scan, cursor, PAGE)?;
        let records = store.batch_decorate(&page.txids, fields)?;
        records.into_iter().flatten().for_each(&mut each);
        cursor = page.next;
        if cursor.is_none() {
            return Ok(());
        }
    }
}
