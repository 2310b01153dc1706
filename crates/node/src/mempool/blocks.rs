//! What a move of the tip does: one step, however many blocks leave and join.
//!
//! 1. *Mined*: what joined blocks hold leaves the mempool.
//! 2. *Conflicts*: what spends an output that a joined block spends leaves, with all that builds on
//!    it.
//! 3. When blocks left: their transactions, coinbases apart, that no joined block holds come back,
//!    parents first. Every unconfirmed transaction that a shorter chain could make invalid is
//!    taken out and judged again behind them: what builds on a transaction of a block that left,
//!    has a lock time that the new tip has not passed or a relative one, or spends a coinbase that
//!    is young again. What fails is a loser when a joined block spends what it or its parent spent,
//!    otherwise invalid: descendants of coinbases that left are so.
//! 4. *Orphans* that waited for a transaction of a joined block are tried.
//! 5. The mempool is brought back within its memory share.
//!
//! The step is applied once for each commit: a commit sequence that is not above that of the
//! version changes nothing.

use std::collections::HashMap;
use std::sync::Arc;

use varve_consensus::{WITNESS_SCALE, block_weight};
use varve_records::Transaction;
use varve_types::{BlockHash, Format, Outpoint, Txid};

use super::admission::{Admission, Terms};
use super::chain::{ChainBlock, ChainChange, Moment};
use super::draft::Draft;
use super::entry::Body;
use super::event::{Removal, Sink};
use super::order::parents_first;
use super::policy::Judge;
use super::pool::{Mempool, adopt, verdict};
use super::reject::MempoolError;
use super::version::Ids;

/// Which transactions joined, and what they spend.
#[derive(Default)]
struct Joined {
    blocks: HashMap<Txid, BlockHash>,
    spends: HashMap<Outpoint, Txid>,
}

/// Losers of double spends with those they lost to.
type Losers = HashMap<Txid, Txid>;

impl Mempool {
    /// Follows a move of the tip, to the chain of the moment.
    pub fn follow(
        &mut self,
        at: Moment<'_>,
        change: ChainChange<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), MempoolError> {
        let tip = at.chain.tip();
        if tip.sequence <= self.version.tip.sequence {
            return Ok(());
        }
        let mut draft = Draft::new(&self.version);
        draft.version.tip = tip;
        let joined = Joined::of(change.connected);
        note_blocks(&mut draft, change);
        remove_mined(&mut draft, change.connected);
        remove_conflicts(&mut draft, &joined, change.connected);
        let returned = returned(change.disconnected, &joined, self.params.network.format())?;
        let mut admission = self.admission(at)?;
        joined.blocks.keys().for_each(|txid| drop(admission.orphans.remove(txid)));
        if !change.disconnected.is_empty() {
            reconsider(&mut admission, &mut draft, &returned, (change, &joined))?;
        }
        let arrived = change.connected.iter().flat_map(|block| block.block.txids());
        let arrived = arrived.chain(returned.iter().map(Transaction::txid));
        adopt(&mut admission, &mut draft, arrived.collect())?;
        admission.floor.make_room(&mut draft, admission.policy, at.now);
        self.finish(draft, at.now, sink).map(drop)
    }
}

impl Joined {
    fn of(blocks: &[ChainBlock<'_>]) -> Self {
        let mut joined = Self::default();
        for block in blocks {
            let hash = block.block.hash();
            for (tx, txid) in block.block.txs().iter().zip(block.block.txids()) {
                joined.blocks.insert(txid, hash);
                if !tx.is_coinbase() {
                    joined.spends.extend(tx.inputs().map(|input| (input.outpoint, txid)));
                }
            }
        }
        joined
    }

    /// Whom a transaction lost to: one that spends what it spends, or what its parent spent.
    fn winner(&self, tx: &Transaction, losers: &Losers) -> Option<Txid> {
        tx.outpoints().iter().find_map(|outpoint| {
            let rival = self.spends.get(outpoint).filter(|rival| **rival != tx.txid());
            rival.or_else(|| losers.get(&outpoint.txid)).copied()
        })
    }
}

/// Notes for the records which blocks left and joined.
fn note_blocks(draft: &mut Draft, change: ChainChange<'_>) {
    let txids = |block: &ChainBlock<'_>| (block.height, block.block.txids());
    draft.blocks.unset = change.disconnected.iter().map(txids).collect();
    draft.blocks.set = change.connected.iter().map(txids).collect();
    change.disconnected.iter().for_each(|_| draft.version.recent.pop());
}

fn remove_mined(draft: &mut Draft, connected: &[ChainBlock<'_>]) {
    for block in connected {
        let txids = block.block.txids();
        let ids: Ids = txids.iter().filter_map(|txid| draft.version.id(txid)).collect();
        let rates = ids.iter().map(|id| draft.version.at(*id));
        let rates = rates.map(|entry| (entry.rate(), entry.vsize())).collect();
        draft.remove(&ids, Removal::Mined { block: block.block.hash() });
        let vsize = block_weight(block.block).div_ceil(WITNESS_SCALE);
        draft.version.recent.push(rates, vsize);
    }
}

fn remove_conflicts(draft: &mut Draft, joined: &Joined, connected: &[ChainBlock<'_>]) {
    for block in connected {
        for tx in block.block.txs().iter().filter(|tx| !tx.is_coinbase()) {
            for input in tx.inputs() {
                let Some(loser) = draft.version.spends.get(&input.outpoint).copied() else {
                    continue;
                };
                let with = joined.spends.get(&input.outpoint).copied();
                let with = with.expect("every spend of a joined block is listed");
                let losers = draft.version.with_descendants(&Ids::from([loser.id]));
                draft.remove(&losers, Removal::Conflict { with });
            }
        }
    }
}

/// What comes back out of blocks that left, parents first.
fn returned(
    disconnected: &[ChainBlock<'_>],
    joined: &Joined,
    format: Format,
) -> Result<Vec<Transaction>, MempoolError> {
    let mut txs = Vec::new();
    for block in disconnected.iter().rev() {
        for (tx, txid) in block.block.txs().iter().zip(block.block.txids()) {
            if !tx.is_coinbase() && !joined.blocks.contains_key(&txid) {
                let bytes = tx.bytes().to_vec().into();
                txs.push(Transaction::parse_with_txid(bytes, format, txid)?);
            }
        }
    }
    Ok(parents_first(txs, |tx| tx))
}

/// Judges again what a chain that lost blocks may have made invalid, behind what came back.
fn reconsider(
    admission: &mut Admission<'_>,
    draft: &mut Draft,
    returned: &[Transaction],
    (change, joined): (ChainChange<'_>, &Joined),
) -> Result<(), MempoolError> {
    let left = change.disconnected.iter().flat_map(|block| block.block.txids());
    let mut unsure: Ids = left.flat_map(|txid| draft.version.children(txid)).collect();
    let timed = draft.version.entries.iter().filter(|(_, entry)| {
        let body = &entry.body;
        body.timed && admission.next.is_unsure(&body.tx.view(), &body.coins)
    });
    unsure.extend(timed.map(|(id, _)| *id));
    let pulled = draft.version.with_descendants(&unsure);
    let pulled = draft.version.remove(&pulled);
    let mut losers = Losers::new();
    let now = admission.now;
    for tx in returned {
        let terms = Terms { judge: Judge::Before, time: now, fee_waived: true };
        if verdict(admission.admit(draft, tx, terms))?.is_err()
            && let Some(with) = joined.winner(tx, &losers)
        {
            losers.insert(tx.txid(), with);
            draft.blocks.losers.push(tx.txid());
        }
    }
    for body in pulled {
        readmit(admission, draft, body, (joined, &mut losers))?;
    }
    Ok(())
}

fn readmit(
    admission: &mut Admission<'_>,
    draft: &mut Draft,
    body: Arc<Body>,
    (joined, losers): (&Joined, &mut Losers),
) -> Result<(), MempoolError> {
    let terms = Terms { judge: Judge::Before, time: body.time, fee_waived: true };
    let plain = plain(&body.tx);
    if verdict(admission.admit(draft, &plain, terms))?.is_ok() {
        return Ok(());
    }
    let reason = match joined.winner(&plain, losers) {
        Some(with) => {
            losers.insert(body.txid(), with);
            Removal::Conflict { with }
        }
        None => Removal::Invalidated,
    };
    draft.note_removed(body, reason);
    Ok(())
}

/// The same transaction without what it spends.
pub(super) fn plain(tx: &Transaction) -> Transaction {
    let bytes = match tx.format() {
        Format::Extended => tx.view().to_legacy(),
        _ => tx.view().bytes().to_vec(),
    };
    let format = match tx.format() {
        Format::Segwit => Format::Segwit,
        _ => Format::Legacy,
    };
    let parsed = Transaction::parse_with_txid(bytes.into(), format, tx.txid());
    parsed.expect("it was parsed before")
}
