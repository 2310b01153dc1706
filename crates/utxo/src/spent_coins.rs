//! Spent coins that neither the set nor its undo log has any longer, supplied by a keeper of the
//! blocks.
//!
//! A block below the last undo record can be disconnected if a source supplies the coins that it
//! took from the set. The outputs that it created are looked up in the set, with their births.
//!
//! **Births of restored coins.** Their original births are lost with the record, so they are born
//! again in the step that restores them. This is right, because
//!
//! 1. no entry has that birth yet, as it is above every birth before it, so nothing old can cancel
//!    the new coin, and an old pair of add and delete still cancels itself;
//! 2. one step restores an outpoint once, so outpoint and birth still name one coin for ever;
//! 3. a later spend reads the birth together with the coin. Only the undo record of the block that
//!    *created* a coin assumes its birth; but that block lies below one without a record, so it has
//!    no record either.
//!
//! A delete of the old birth may even arrive later than the restored coin, in a younger part of the
//! set: births decide, not their position (`docs/adr/0005-unspent-set.md`).

use std::collections::HashSet;

use varve_consensus::{BlockAt, OwnedCoin};
use varve_runs::Sequence;
use varve_types::{Block, BlockHash, DecodeError, Height, Network, Outpoint};

use crate::changes::Changes;
use crate::entry::Entry;
use crate::entry_list::EntryList;
use crate::error::Error;
use crate::prepare::Repeats;
use crate::version::Version;
use crate::window::Spend;

/// Why a source could not answer, in its own words.
pub type SourceFailure = Box<dyn std::error::Error + Send + Sync>;

/// A source of old blocks and of the coins that they took from the set.
pub trait SpentCoins {
    /// The bytes of a block of the chain.
    fn block(&self, height: Height, hash: BlockHash) -> Result<Vec<u8>, SourceFailure>;

    /// The coin at `outpoint` in the set below `block`. Called for everything that the block
    /// spends, and for everything that it makes, because that may have replaced a coin (BIP30); in
    /// the latter case the answer is nearly always `None`.
    fn coin_below(
        &self,
        block: &BlockAt<'_>,
        outpoint: &Outpoint,
    ) -> Result<Option<OwnedCoin>, SourceFailure>;
}

/// Why a block could not be disconnected with the help of a source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The source failed.
    #[error("the source of spent coins failed: {0}")]
    Failed(SourceFailure),
    /// The source returned something that is not a block.
    #[error("the source of spent coins returned a block that does not decode: {0}")]
    Decode(#[from] DecodeError),
    /// The source returned another block.
    #[error("the source of spent coins returned block {given} for {asked}")]
    OtherBlock {
        /// The block asked for.
        asked: BlockHash,
        /// The block it returned.
        given: BlockHash,
    },
    /// The source does not have a coin that the block spent, or has one that cannot be it.
    #[error("the source of spent coins does not have {outpoint} as it was below the block")]
    NoCoin {
        /// The coin.
        outpoint: Outpoint,
    },
}

/// The changes that disconnect a block.
#[derive(Debug)]
pub(crate) struct Disconnect {
    /// The block below.
    pub(crate) previous: BlockHash,
    /// The coins to restore.
    pub(crate) adds: EntryList,
    /// The coins to remove.
    pub(crate) spends: Vec<Spend>,
}

impl Disconnect {
    /// Computes from `source` and the set what the step `sequence` has to change to disconnect the
    /// tip. `None` when the set lacks outputs of its tip and so is damaged.
    pub(crate) fn ask(
        version: &Version,
        network: Network,
        sequence: Sequence,
        tip: (Height, BlockHash),
        source: &dyn SpentCoins,
    ) -> Result<Option<Self>, Error> {
        let (height, hash) = tip;
        let failed = |error| Error::Source { height, error };
        let bytes =
            source.block(height, hash).map_err(|error| failed(SourceError::Failed(error)))?;
        let block = Block::parse(&bytes, network.format()).map_err(|error| failed(error.into()))?;
        let block = BlockAt::new(height, &block);
        if block.hash() != hash {
            return Err(failed(SourceError::OtherBlock { asked: hash, given: block.hash() }));
        }
        let hasher = version.window().hasher();
        let changes = Changes::of(network, hasher, &block, Repeats::Possible);
        let adds = coins_below(&block, &changes, sequence, source).map_err(failed)?;
        let created: Vec<Outpoint> = changes.left(&block).collect();
        let coins = version.get(&created)?;
        let mut spends = Vec::with_capacity(created.len());
        let mut place = 0;
        changes.for_each_created(&block, |outpoint, coin| {
            let birth = coins.birth(place).filter(|_| coins.get(place) == Some(coin));
            let location = coins.location(place);
            spends.extend(birth.map(|birth| Spend { outpoint, birth, location }));
            place += 1;
        });
        if spends.len() < created.len() {
            return Ok(None);
        }
        let previous = block.block().header().previous();
        Ok(Some(Self { previous, adds, spends }))
    }
}

/// The coins that the block took from the set, born by step `sequence`.
fn coins_below(
    block: &BlockAt<'_>,
    changes: &Changes,
    sequence: Sequence,
    source: &dyn SpentCoins,
) -> Result<EntryList, SourceError> {
    let mut adds = EntryList::new();
    let mut add = |outpoint: &Outpoint, is_spent: bool| {
        let coin = source.coin_below(block, outpoint).map_err(SourceError::Failed)?;
        match coin {
            Some(coin) if coin.height < block.height() => {
                adds.push(&Entry::add(*outpoint, sequence, coin.as_coin()));
            }
            None if !is_spent => {}
            _ => return Err(SourceError::NoCoin { outpoint: *outpoint }),
        }
        Ok(())
    };
    // A coin that the block both spends and makes again is restored once.
    let prevouts = changes.prevouts();
    let spent: HashSet<&Outpoint> = prevouts.iter().collect();
    prevouts.iter().try_for_each(|outpoint| add(outpoint, true))?;
    let made = changes.keys.iter().skip(prevouts.len());
    let mut replaced = made.filter(|outpoint| !spent.contains(outpoint));
    replaced.try_for_each(|outpoint| add(outpoint, false))?;
    Ok(adds)
}
