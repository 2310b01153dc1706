//! One moment of a node, and the questions that it answers.

mod block_summary;
mod figures;

use std::fmt;
use std::sync::Arc;

use varve_archive::{ArchiveError, HeaderLink, TxLink, TxPlace};
use varve_node::mempool::Version as Mempool;
use varve_node::{ArchiveView, ChainTip, Invalid, NodeReader, NodeSnapshot, ScriptsChecked};
use varve_types::pushdata::PushdataRule;
use varve_types::{BlockHash, Height, Network, Outpoint, PushdataHash, ScriptHash, Tx, Txid};
use varve_utxo::{SetHash, Statistics};

use crate::answer::{Block, BlockHeader, BlockId, Output, Spender, Tip, Transaction};
use crate::at_rest::{AtRest, State};
use crate::error::Error;
use crate::lease::{Lease, Leases};
use crate::node::Front;
use crate::proof::Proof;
use crate::pushdata::{PushdataMatch, PushdataPage};
use crate::script::Script;
use crate::system;
use crate::unspent_set::UnspentSet;

pub use block_summary::{BlockSummary, BlockTx, PaidRate};

/// One moment of a node: every answer is that of one [tip](Self::tip), however long the snapshot is
/// held and whatever is synced meanwhile.
///
/// Cheap to take and to clone, and usable from any thread. Of a running node it is good for a
/// [lease](crate::Builder::snapshot_lease): bytes of blocks that it can reach are not pruned until
/// then, and later its questions are answered [`Error::SnapshotExpired`], so that a reader who
/// never lets go does not hold memory for ever. Of those that
/// cannot fail, the tip stays, [`mempool`](Self::mempool) is `None`, and branches
/// and refusals are those of now.
#[derive(Clone)]
pub struct Snapshot {
    network: Network,
    moment: Moment,
}

#[derive(Clone)]
enum Moment {
    AtRest(Arc<AtRest>),
    Live(Arc<Live>),
}

struct Live {
    tip: Tip,
    lease: Lease,
    /// Keeps the folder locked, and answers for what is known now.
    reader: NodeReader,
}

impl Live {
    /// The moment, or the one that is published now when the lease is over.
    fn or_now(&self) -> Arc<NodeSnapshot> {
        let held = self.lease.held().map(|held| Arc::clone(&held.snapshot));
        held.unwrap_or_else(|_| self.reader.snapshot())
    }
}

impl Snapshot {
    pub(crate) fn of(front: &Front, network: Network, leases: &Leases) -> Self {
        let moment = match front {
            Front::AtRest(at_rest) => Moment::AtRest(Arc::clone(at_rest)),
            Front::Live(reader) => {
                let (lease, reader) = (leases.take(reader), reader.clone());
                let held = lease.held().map(|held| held.snapshot.tip);
                let tip = held.unwrap_or_else(|_| reader.snapshot().tip).into();
                Moment::Live(Arc::new(Live { tip, lease, reader }))
            }
        };
        Self { network, moment }
    }

    /// Asks the history. Must not be called within another question.
    pub(crate) fn ask<T>(
        &self,
        question: impl FnOnce(&ArchiveView) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match &self.moment {
            Moment::AtRest(at_rest) => at_rest.ask(|state| question(state.view())),
            Moment::Live(live) => question(&live.lease.held()?.view),
        }
    }

    /// The last block of the confirmed chain.
    #[must_use]
    pub fn tip(&self) -> Tip {
        match &self.moment {
            Moment::AtRest(at_rest) => at_rest.reading.tip().into(),
            Moment::Live(live) => live.tip,
        }
    }

    /// The network of the chain.
    #[must_use]
    pub const fn network(&self) -> Network {
        self.network
    }

    /// The header of a block, on any branch; `None` when it is not known.
    pub fn header(&self, block: impl Into<BlockId>) -> Result<Option<BlockHeader>, Error> {
        let block = block.into();
        self.ask(|view| find(view, block)?.map(|link| header_at(view, link)).transpose())
    }

    /// A block, on any branch; `None` when its header is not known. A block whose header alone is
    /// known is [`Error::NotStored`] or [`Error::Refused`].
    pub fn block(&self, block: impl Into<BlockId>) -> Result<Option<Block>, Error> {
        let (block, format) = (block.into(), self.network.format());
        let found = self.ask(|view| {
            let Some(link) = find(view, block)? else { return Ok(None) };
            let stored = view.txids(link)?.zip(view.raw_block(link)?);
            Ok(Some((header_at(view, link)?, stored)))
        })?;
        match found {
            None => Ok(None),
            Some((header, Some((txids, bytes)))) => {
                Ok(Some(Block { header, txids, bytes, format }))
            }
            Some((BlockHeader { hash, .. }, None)) => Err(self.not_stored(hash)?),
        }
    }

    /// The error for a block whose header alone is known.
    fn not_stored(&self, hash: BlockHash) -> Result<Error, Error> {
        Ok(match self.invalid(hash)? {
            Some(invalid) => Error::Refused { hash, reason: invalid.reason.to_string() },
            None => Error::NotStored { hash },
        })
    }

    /// A transaction of a stored block, on any branch; `None` when no stored block holds it.
    pub fn tx(&self, txid: Txid) -> Result<Option<Transaction>, Error> {
        self.ask(|view| {
            let place = view.to_tx(txid)?;
            place.map(|place| self.tx_at(view, &place)).transpose()
        })
    }

    /// A proof that a transaction is in a block: the confirmed one where there is one, else the
    /// newest of those on stale branches. `None` when no stored block holds it. Reads and hashes
    /// the whole block.
    pub fn proof(&self, txid: Txid) -> Result<Option<Proof>, Error> {
        self.ask(|view| {
            let Some(place) = view.to_tx(txid)? else { return Ok(None) };
            let tx = self.tx_at(view, &place)?;
            let hash = tx.block.hash;
            let block = view.raw_block(place.block)?.ok_or(Error::NotStored { hash })?;
            let header = *block.as_ref().first_chunk().ok_or(Error::NotStored { hash })?;
            let proof = Proof { tx, branch: view.tx_branch(&place)?, header };
            if !proof.holds() {
                let what = format!("block {hash} does not have its own merkle root");
                return Err(varve_node::Error::Disagree { what }.into());
            }
            Ok(Some(proof))
        })
    }

    fn tx_at(&self, view: &ArchiveView, place: &TxPlace) -> Result<Transaction, Error> {
        let (block, format) = (header_at(view, place.block)?, self.network.format());
        let hash = block.hash;
        let bytes = view.raw_tx(place.link)?.ok_or(Error::NotStored { hash })?;
        let (txid, position, blocks) = (place.txid, place.position, blocks_of(view, place)?);
        Ok(Transaction { txid, block, position, blocks, bytes, format })
    }

    /// Whether a block of the confirmed chain holds a transaction, as far as its bytes are there.
    pub(crate) fn is_confirmed(&self, txid: Txid) -> Result<bool, Error> {
        self.ask(|view| match view.to_tx(txid) {
            Err(ArchiveError::Pruned { .. } | ArchiveError::BelowBase { .. }) => Ok(false),
            found => Ok(found?.is_some_and(|place| place.confirmed)),
        })
    }

    /// An output of a stored transaction, spent or not; `None` when there is none.
    pub fn output(&self, outpoint: Outpoint) -> Result<Option<Output>, Error> {
        self.ask(|view| Ok(view.output(outpoint)?.map(Output::archived)))
    }

    /// The outputs that a transaction spends, in the order of its inputs. `None` for the input of a
    /// coinbase, and where the output is not known because its block is pruned or was never read.
    pub fn spent_outputs(&self, tx: &Tx<'_>) -> Result<Vec<Option<Output>>, Error> {
        let spent = |view: &ArchiveView, outpoint| match view.output(outpoint) {
            Err(ArchiveError::Pruned { .. } | ArchiveError::BelowBase { .. }) => Ok(None),
            found => Ok(found?.map(Output::archived)),
        };
        if tx.is_coinbase() {
            return Ok(vec![None; tx.inputs().count()]);
        }
        self.ask(|view| tx.inputs().map(|input| spent(view, input.outpoint)).collect())
    }

    /// The input of the confirmed chain that spends an output; `None` when it is unspent. An output
    /// that no stored block has is [`Error::UnknownOutput`].
    pub fn spender(&self, outpoint: Outpoint) -> Result<Option<Spender>, Error> {
        self.ask(|view| {
            if view.output(outpoint)?.is_none() {
                return Err(Error::UnknownOutput { outpoint });
            }
            let Some(spender) = view.confirmed_spender(outpoint)? else { return Ok(None) };
            let block = view.header(spender.tx.block)?.hash;
            let (txid, height) = (view.txid(&spender.tx)?, spender.tx.height);
            Ok(Some(Spender { txid, vin: spender.vin, height, block }))
        })
    }

    /// What a script was paid, has spent and holds. An error where the index `script` is not kept.
    /// On a folder at rest it reads the directories of the index.
    pub fn script(&self, hash: ScriptHash) -> Result<Script, Error> {
        let scripts = match &self.moment {
            Moment::AtRest(at_rest) => at_rest.ask(|state| match state {
                State::Asleep(at_rest) => at_rest.reading.script_histories(),
                State::Woken(woken) => woken.snapshot.script_histories(),
            })?,
            Moment::Live(live) => live.lease.held()?.snapshot.script_histories()?,
        };
        Script::new(scripts, hash)
    }

    /// The confirmed inputs and outputs that push an item with this hash, in chain order: all of
    /// them, so for a client that may ask for anything take
    /// [`pushdata_page`](Self::pushdata_page). An error where the index `pushdata` is not kept.
    pub fn pushdata(&self, hash: PushdataHash) -> Result<Vec<PushdataMatch>, Error> {
        let mut rows = self.pushdata_page(hash, None, usize::MAX)?.rows;
        rows.sort_by_key(|row| (row.height, row.position));
        Ok(rows)
    }

    /// At most about `limit` of them (a transaction is not cut), in the order in which their blocks
    /// came. `cursor` is [`PushdataPage::next`] of the page before; blocks that come between two
    /// pages hide nothing.
    pub fn pushdata_page(
        &self,
        hash: PushdataHash,
        cursor: Option<u64>,
        limit: usize,
    ) -> Result<PushdataPage, Error> {
        self.ask(|view| {
            let page = view.pushed(hash, TxLink::new(cursor.unwrap_or_default()), limit)?;
            let rows = page.rows.iter().map(|row| PushdataMatch::new(view, row));
            Ok(PushdataPage {
                rows: rows.collect::<Result<_, Error>>()?,
                next: page.next.map(TxLink::to_u64),
            })
        })
    }

    /// The rule of the index `pushdata`; `None` where it is not kept.
    pub fn pushdata_rule(&self) -> Result<Option<PushdataRule>, Error> {
        self.ask(|view| Ok(view.indexes().pushdata))
    }

    /// The unconfirmed transactions at this tip; `None` on a folder at rest, while no sync follows
    /// or it has not caught up, and when the lease is over.
    #[must_use]
    pub fn mempool(&self) -> Option<Arc<Mempool>> {
        match &self.moment {
            Moment::AtRest(_) => None,
            Moment::Live(live) => live.lease.held().ok()?.snapshot.mempool.clone(),
        }
    }

    /// The same, and on a folder at rest what the last sync that followed has left there, judged
    /// again at the tip. Opens the unspent set and the stored transactions for that.
    pub fn stored_mempool(&self) -> Result<Option<Arc<Mempool>>, Error> {
        let Moment::AtRest(at_rest) = &self.moment else { return Ok(self.mempool()) };
        let is_kept = at_rest.ask(|state| match state {
            State::Asleep(at_rest) => at_rest.reading.keeps_mempool(),
            State::Woken(_) => Ok(false),
        })?;
        if !is_kept {
            return Ok(None);
        }
        let set = at_rest.set()?;
        let now = u32::try_from(system::unix_seconds()).unwrap_or(u32::MAX);
        Ok(at_rest.ask(|state| match state {
            State::Asleep(at_rest) => at_rest.reading.mempool(set, now),
            State::Woken(woken) => Ok(woken.snapshot.mempool.clone()),
        })?)
    }

    /// An unspent output; `None` when it is spent or never was. For many at once, and for walks
    /// over all of them, see [`unspent`](Self::unspent).
    pub fn utxo(&self, outpoint: Outpoint) -> Result<Option<Output>, Error> {
        Ok(self.unspent()?.get(&[outpoint])?.pop().flatten())
    }

    /// The set of unspent outputs at this moment. On a folder at rest the first call reads the
    /// set's directories and filters, about 1.5 bytes a coin.
    pub fn unspent(&self) -> Result<UnspentSet, Error> {
        let version = match &self.moment {
            Moment::AtRest(at_rest) => at_rest.set()?,
            Moment::Live(live) => Arc::clone(&live.lease.held()?.snapshot.utxo),
        };
        Ok(UnspentSet::of_node(version, self.clone()))
    }

    /// The figures of the unspent set, as Core's `gettxoutsetinfo` has them. Walks the whole set.
    pub fn stats(&self, hash: SetHash) -> Result<Statistics, Error> {
        self.unspent()?.stats(hash, &mut |_, _| {})
    }

    /// The tip of every branch that was known, the confirmed one among them.
    #[must_use]
    pub fn chain_tips(&self) -> Vec<ChainTip> {
        match &self.moment {
            Moment::AtRest(at_rest) => at_rest.reading.chain_tips().to_vec(),
            Moment::Live(live) => live.or_now().chain_tips(),
        }
    }

    /// The height of the best header, which is above the tip while blocks are still to come.
    #[must_use]
    pub fn header_height(&self) -> Height {
        match &self.moment {
            Moment::AtRest(at_rest) => at_rest.reading.header_height(),
            Moment::Live(live) => live.or_now().header_height(),
        }
    }

    /// Whether and why a block cannot be in the chain: it was found invalid, or one below it was.
    pub fn invalid(&self, hash: BlockHash) -> Result<Option<Invalid>, Error> {
        match &self.moment {
            Moment::AtRest(at_rest) => at_rest.ask(|state| match state {
                State::Asleep(at_rest) => Ok(at_rest.reading.invalid(&hash)?),
                State::Woken(woken) => Ok(woken.snapshot.invalid(&hash)),
            }),
            Moment::Live(live) => Ok(live.or_now().invalid(&hash)),
        }
    }

    /// The blocks that are invalid themselves, and why, in the order of their hashes.
    #[must_use]
    pub fn invalid_blocks(&self) -> Vec<Invalid> {
        match &self.moment {
            Moment::AtRest(at_rest) => at_rest.reading.invalid_blocks().collect(),
            Moment::Live(live) => live.or_now().invalid_blocks(),
        }
    }

    /// Up to where the scripts of the confirmed chain were checked.
    #[must_use]
    pub fn scripts(&self) -> ScriptsChecked {
        match &self.moment {
            Moment::AtRest(at_rest) => at_rest.reading.scripts(),
            Moment::Live(live) => live.or_now().scripts(),
        }
    }
}

fn find(view: &ArchiveView, block: BlockId) -> Result<Option<HeaderLink>, Error> {
    match block {
        BlockId::Hash(hash) => Ok(view.to_header(hash)?),
        BlockId::Height(height) => Ok(view.to_confirmed(height)),
    }
}

fn header_at(view: &ArchiveView, link: HeaderLink) -> Result<BlockHeader, Error> {
    let row = view.header(link)?;
    let below = row.parent.map(|parent| view.header(parent)).transpose()?;
    let confirmed = view.to_confirmed(row.height) == Some(link);
    Ok(BlockHeader::new(&row, below.map(|row| row.hash), confirmed))
}

/// The blocks that hold a transaction, newest first, as far as is known: others may be pruned.
fn blocks_of(view: &ArchiveView, place: &TxPlace) -> Result<Vec<BlockHash>, Error> {
    let links = match view.blocks_of(place.txid) {
        Err(ArchiveError::Pruned { .. }) => vec![place.block],
        found => found?.into_iter().map(|(link, _)| link).collect(),
    };
    links.into_iter().map(|link| Ok(view.header(link)?.hash)).collect()
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Snapshot");
        debug.field("network", &self.network).field("tip", &self.tip()).finish_non_exhaustive()
    }
}
