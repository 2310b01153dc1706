//! One moment of a node, and the questions that it answers.

use std::fmt;
use std::sync::Arc;

use varve_archive::{ArchiveError, HeaderLink, TxPlace};
use varve_node::{ArchiveView, ChainTip, Invalid, NodeReader, NodeSnapshot, ScriptsChecked};
use varve_types::{BlockHash, Height, Network, Outpoint, ScriptHash, Tx, Txid};
use varve_utxo::{SetHash, Statistics};

use crate::answer::{Block, BlockHeader, BlockId, Output, Spender, Tip, Transaction};
use crate::at_rest::{AtRest, State};
use crate::error::Error;
use crate::node::Front;
use crate::proof::Proof;
use crate::script::Script;
use crate::unspent_set::UnspentSet;

/// One moment of a node: every answer is that of one [tip](Self::tip), however long the snapshot is
/// held and whatever is synced meanwhile.
///
/// Cheap to take and to clone, and usable from any thread. Bytes of blocks that are pruned after
/// the snapshot was taken are gone for it too ([`Error::Pruned`]).
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
    snapshot: Arc<NodeSnapshot>,
    view: ArchiveView,
    /// Keeps the folder locked.
    _reader: NodeReader,
}

impl Snapshot {
    pub(crate) fn of(front: &Front, network: Network) -> Self {
        let moment = match front {
            Front::AtRest(at_rest) => Moment::AtRest(Arc::clone(at_rest)),
            Front::Live(reader) => {
                let snapshot = reader.snapshot();
                Moment::Live(Arc::new(Live {
                    view: snapshot.view(),
                    snapshot,
                    _reader: reader.clone(),
                }))
            }
        };
        Self { network, moment }
    }

    /// Asks the history. Must not be called within another question.
    fn ask<T>(&self, question: impl FnOnce(&ArchiveView) -> Result<T, Error>) -> Result<T, Error> {
        match &self.moment {
            Moment::AtRest(at_rest) => at_rest.ask(|state| question(state.view())),
            Moment::Live(live) => question(&live.view),
        }
    }

    /// The last block of the confirmed chain.
    #[must_use]
    pub fn tip(&self) -> Tip {
        match &self.moment {
            Moment::AtRest(at_rest) => at_rest.reading.tip().into(),
            Moment::Live(live) => live.snapshot.tip.into(),
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
            Some((BlockHeader { hash, .. }, None)) => Err(match self.invalid(hash)? {
                Some(invalid) => Error::Refused { hash, reason: invalid.reason.to_string() },
                None => Error::NotStored { hash },
            }),
        }
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
            Moment::Live(live) => live.snapshot.script_histories()?,
        };
        Script::new(scripts, hash)
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
            Moment::Live(live) => Arc::clone(&live.snapshot.utxo),
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
            Moment::Live(live) => live.snapshot.chain_tips(),
        }
    }

    /// The height of the best header, which is above the tip while blocks are still to come.
    #[must_use]
    pub fn header_height(&self) -> Height {
        match &self.moment {
            Moment::AtRest(at_rest) => at_rest.reading.header_height(),
            Moment::Live(live) => live.snapshot.header_height(),
        }
    }

    /// Whether and why a block cannot be in the chain: it was found invalid, or one below it was.
    pub fn invalid(&self, hash: BlockHash) -> Result<Option<Invalid>, Error> {
        match &self.moment {
            Moment::AtRest(at_rest) => at_rest.ask(|state| match state {
                State::Asleep(at_rest) => Ok(at_rest.reading.invalid(&hash)?),
                State::Woken(woken) => Ok(woken.snapshot.invalid(&hash)),
            }),
            Moment::Live(live) => Ok(live.snapshot.invalid(&hash)),
        }
    }

    /// The blocks that are invalid themselves, and why, in the order of their hashes.
    #[must_use]
    pub fn invalid_blocks(&self) -> Vec<Invalid> {
        match &self.moment {
            Moment::AtRest(at_rest) => at_rest.reading.invalid_blocks().collect(),
            Moment::Live(live) => live.snapshot.invalid_blocks(),
        }
    }

    /// Up to where the scripts of the confirmed chain were checked.
    #[must_use]
    pub fn scripts(&self) -> ScriptsChecked {
        match &self.moment {
            Moment::AtRest(at_rest) => at_rest.reading.scripts(),
            Moment::Live(live) => live.snapshot.scripts(),
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
