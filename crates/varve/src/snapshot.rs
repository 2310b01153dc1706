//! One moment of a node, and the questions that it answers.

use std::fmt;
use std::sync::Arc;

use varve_archive::{ArchiveError, HeaderLink, TxPlace};
use varve_node::{ArchiveView, ChainTip, Invalid, NodeReader, NodeSnapshot, ScriptsChecked};
use varve_types::{BlockHash, Height, Network, Outpoint, Tx, Txid};
use varve_utxo::{SetHash, Statistics};

use crate::answer::{Block, BlockHeader, BlockId, Output, Spender, Tip, Transaction};
use crate::at_rest::AtRest;
use crate::error::Error;
use crate::node::Front;
use crate::unspent_set::UnspentSet;

/// One moment of a node: every answer is that of one [tip](Self::tip), however long the snapshot is
/// held and whatever is synced meanwhile.
///
/// Cheap to take and to clone, and usable from any thread. Bytes of blocks that are pruned after
/// the snapshot was taken are gone for it too ([`Error::Pruned`]).
#[derive(Clone)]
pub struct Snapshot {
    network: Network,
    view: ArchiveView,
    moment: Moment,
}

#[derive(Clone)]
enum Moment {
    AtRest(Arc<AtRest>),
    /// The reader keeps the folder locked.
    Live {
        snapshot: Arc<NodeSnapshot>,
        _reader: NodeReader,
    },
}

impl Snapshot {
    pub(crate) fn of(front: &Front, network: Network) -> Self {
        let (view, moment) = match front {
            Front::AtRest(at_rest) => (at_rest.reading.view(), Moment::AtRest(Arc::clone(at_rest))),
            Front::Live(reader) => {
                let snapshot = reader.snapshot();
                (snapshot.view(), Moment::Live { snapshot, _reader: reader.clone() })
            }
        };
        Self { network, view, moment }
    }

    /// The last block of the confirmed chain.
    #[must_use]
    pub fn tip(&self) -> Tip {
        match &self.moment {
            Moment::AtRest(at_rest) => at_rest.reading.tip().into(),
            Moment::Live { snapshot, .. } => snapshot.tip.into(),
        }
    }

    /// The network of the chain.
    #[must_use]
    pub const fn network(&self) -> Network {
        self.network
    }

    /// The header of a block, on any branch; `None` when it is not known.
    pub fn header(&self, block: impl Into<BlockId>) -> Result<Option<BlockHeader>, Error> {
        let link = self.link(block.into())?;
        link.map(|link| self.header_at(link)).transpose()
    }

    /// A block, on any branch; `None` when its header is not known. A block whose header alone is
    /// known is [`Error::NotStored`] or [`Error::Refused`].
    pub fn block(&self, block: impl Into<BlockId>) -> Result<Option<Block>, Error> {
        let Some(link) = self.link(block.into())? else { return Ok(None) };
        let header = self.header_at(link)?;
        let stored = self.view.txids(link)?.zip(self.view.raw_block(link)?);
        let Some((txids, bytes)) = stored else {
            let hash = header.hash;
            return Err(match self.invalid(hash)? {
                Some(invalid) => Error::Refused { hash, reason: invalid.reason.to_string() },
                None => Error::NotStored { hash },
            });
        };
        Ok(Some(Block { header, txids, bytes, format: self.network.format() }))
    }

    /// A transaction of a stored block, on any branch; `None` when no stored block holds it.
    pub fn tx(&self, txid: Txid) -> Result<Option<Transaction>, Error> {
        let Some(place) = self.view.to_tx(txid)? else { return Ok(None) };
        let block = self.header_at(place.block)?;
        let hash = block.hash;
        let bytes = self.view.raw_tx(place.link)?.ok_or(Error::NotStored { hash })?;
        let (position, blocks) = (place.position, self.blocks_of(&place)?);
        let format = self.network.format();
        Ok(Some(Transaction { txid, block, position, blocks, bytes, format }))
    }

    /// The blocks that hold a transaction, newest first, as far as is known: others may be pruned.
    fn blocks_of(&self, place: &TxPlace) -> Result<Vec<BlockHash>, Error> {
        let links = match self.view.blocks_of(place.txid) {
            Err(ArchiveError::Pruned { .. }) => vec![place.block],
            found => found?.into_iter().map(|(link, _)| link).collect(),
        };
        links.into_iter().map(|link| Ok(self.view.header(link)?.hash)).collect()
    }

    /// An output of a stored transaction, spent or not; `None` when there is none.
    pub fn output(&self, outpoint: Outpoint) -> Result<Option<Output>, Error> {
        Ok(self.view.output(outpoint)?.map(Output::archived))
    }

    /// The outputs that a transaction spends, in the order of its inputs. `None` for the input of a
    /// coinbase, and where the output is not known because its block is pruned or was never read.
    pub fn spent_outputs(&self, tx: &Tx<'_>) -> Result<Vec<Option<Output>>, Error> {
        let spent = |outpoint| match self.view.output(outpoint) {
            Err(ArchiveError::Pruned { .. } | ArchiveError::BelowBase { .. }) => Ok(None),
            found => Ok(found?.map(Output::archived)),
        };
        let inputs = tx.inputs();
        inputs
            .map(|input| if tx.is_coinbase() { Ok(None) } else { spent(input.outpoint) })
            .collect()
    }

    /// The input of the confirmed chain that spends an output; `None` when it is unspent. An output
    /// that no stored block has is [`Error::UnknownOutput`].
    pub fn spender(&self, outpoint: Outpoint) -> Result<Option<Spender>, Error> {
        if self.view.output(outpoint)?.is_none() {
            return Err(Error::UnknownOutput { outpoint });
        }
        let Some(spender) = self.view.confirmed_spender(outpoint)? else { return Ok(None) };
        let block = self.view.header(spender.tx.block)?.hash;
        let (txid, height) = (spender.tx.txid, spender.tx.height);
        Ok(Some(Spender { txid, vin: spender.vin, height, block }))
    }

    /// An unspent output; `None` when it is spent or never was. For many at once, and for walks over
    /// all of them, see [`unspent`](Self::unspent).
    pub fn utxo(&self, outpoint: Outpoint) -> Result<Option<Output>, Error> {
        Ok(self.unspent()?.get(&[outpoint])?.pop().flatten())
    }

    /// The set of unspent outputs at this moment. On a folder at rest the first call reads the
    /// set's directories and filters, about 1.5 bytes a coin.
    pub fn unspent(&self) -> Result<UnspentSet, Error> {
        let version = match &self.moment {
            Moment::AtRest(at_rest) => at_rest.set()?,
            Moment::Live { snapshot, .. } => Arc::clone(&snapshot.utxo),
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
            Moment::Live { snapshot, .. } => snapshot.chain_tips(),
        }
    }

    /// The height of the best header, which is above the tip while blocks are still to come.
    #[must_use]
    pub fn header_height(&self) -> Height {
        match &self.moment {
            Moment::AtRest(at_rest) => at_rest.reading.header_height(),
            Moment::Live { snapshot, .. } => snapshot.header_height(),
        }
    }

    /// Whether and why a block cannot be in the chain: it was found invalid, or one below it was.
    pub fn invalid(&self, hash: BlockHash) -> Result<Option<Invalid>, Error> {
        match &self.moment {
            Moment::AtRest(at_rest) => Ok(at_rest.reading.invalid(&hash)?),
            Moment::Live { snapshot, .. } => Ok(snapshot.invalid(&hash)),
        }
    }

    /// The blocks that are invalid themselves, and why, in the order of their hashes.
    #[must_use]
    pub fn invalid_blocks(&self) -> Vec<Invalid> {
        match &self.moment {
            Moment::AtRest(at_rest) => at_rest.reading.invalid_blocks().collect(),
            Moment::Live { snapshot, .. } => snapshot.invalid_blocks(),
        }
    }

    /// Up to where the scripts of the confirmed chain were checked.
    #[must_use]
    pub fn scripts(&self) -> ScriptsChecked {
        match &self.moment {
            Moment::AtRest(at_rest) => at_rest.reading.scripts(),
            Moment::Live { snapshot, .. } => snapshot.scripts(),
        }
    }

    fn link(&self, block: BlockId) -> Result<Option<HeaderLink>, Error> {
        match block {
            BlockId::Hash(hash) => Ok(self.view.to_header(hash)?),
            BlockId::Height(height) => Ok(self.view.to_confirmed(height)),
        }
    }

    fn header_at(&self, link: HeaderLink) -> Result<BlockHeader, Error> {
        let row = self.view.header(link)?;
        let below = row.parent.map(|parent| self.view.header(parent)).transpose()?;
        let confirmed = self.view.to_confirmed(row.height) == Some(link);
        Ok(BlockHeader::new(&row, below.map(|row| row.hash), confirmed))
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Snapshot");
        debug.field("network", &self.network).field("tip", &self.tip()).finish_non_exhaustive()
    }
}
