//! The set below one block, for the rules of consensus.
//!
//! A view is made for one block and queries the set once, for everything that a rule may need: the
//! prevouts, and whether the outputs exist already. It owns what it found, so the rules can read it
//! repeatedly and from several threads.

use std::ops::ControlFlow;

use varve_consensus::{BlockAt, CheckError, PrevoutError, Spend, UnspentOutputsView};
use varve_types::{BlockHash, Coin, Network, Outpoint, Tx};

use crate::changes::CoinSource;
use crate::coins::Coins;
use crate::error::Error;
use crate::prepare::{Prepared, Repeats};
use crate::version::Version;

/// What the set says about one block.
#[derive(Debug)]
pub struct DatabaseView {
    block: BlockHash,
    sources: Vec<CoinSource>,
    /// The coins of the prevouts.
    coins: Coins,
    verdict: Result<(), PrevoutError>,
    /// Outputs of the block that are in the set already, with the places of their coins; `None`
    /// when that was not looked up.
    repeated: Option<Vec<(Outpoint, usize)>>,
}

impl DatabaseView {
    /// Looks up what `block` needs in `version`, which should be the set below it.
    pub fn new(version: &Version, network: Network, block: &BlockAt<'_>) -> Result<Self, Error> {
        let prepared = Prepared::new(version, network, block, Repeats::Possible)?;
        Ok(Self::of(prepared, block))
    }

    /// A view of what was found for a block, valid for the set below it.
    pub(crate) fn of(prepared: Prepared, block: &BlockAt<'_>) -> Self {
        let Prepared { repeats, changes, coins, .. } = prepared;
        let verdict = changes.verdict(block, |place| coins.birth(place).is_some());
        let made = changes.keys.iter().enumerate().skip(changes.spends());
        let repeated = made.filter(|(place, _)| coins.birth(*place).is_some());
        let repeated = repeated.map(|(place, outpoint)| (*outpoint, place));
        let repeated = (repeats == Repeats::Possible).then(|| repeated.collect());
        Self { block: block.hash(), sources: changes.sources, coins, verdict, repeated }
    }

    /// The same view with the reason of a refusal changed.
    pub(crate) fn with_reason(self, change: impl FnOnce(PrevoutError) -> PrevoutError) -> Self {
        Self { verdict: self.verdict.map_err(change), ..self }
    }

    /// The coins that the block's outputs overwrite: those of an older transaction with the same
    /// txid (BIP30). None where outputs cannot repeat others ([`Repeats::Impossible`]).
    pub fn overwritten(&self) -> impl Iterator<Item = (Outpoint, Coin<'_>)> {
        let repeated = self.repeated.iter().flatten();
        repeated.filter_map(|(outpoint, place)| Some((*outpoint, self.coins.get(*place)?)))
    }

    fn check(&self, block: &BlockAt<'_>) -> Result<(), Error> {
        let (made_for, asked) = (self.block, block.hash());
        if made_for == asked { Ok(()) } else { Err(Error::OtherBlock { made_for, asked }) }
    }
}

impl UnspentOutputsView for DatabaseView {
    type Error = Error;

    fn query_prevouts_unspent(
        &self,
        block: &BlockAt<'_>,
    ) -> Result<(), CheckError<PrevoutError, Error>> {
        self.check(block).map_err(CheckError::View)?;
        self.verdict.map_err(CheckError::Invalid)
    }

    fn for_each_spend<'v, B, F>(
        &'v self,
        block: &'v BlockAt<'v>,
        mut each: F,
    ) -> Result<ControlFlow<B>, CheckError<PrevoutError, Error>>
    where
        F: FnMut(Spend<'v>) -> ControlFlow<B>,
    {
        self.query_prevouts_unspent(block)?;
        let (height, txs) = (block.height(), block.block().txs());
        let coinbases: Vec<bool> = txs.iter().map(Tx::is_coinbase).collect();
        let mut outputs = Vec::with_capacity(txs.iter().map(|tx| tx.outputs().len()).sum());
        for (tx, coinbase) in txs.iter().zip(&coinbases) {
            outputs.extend(tx.outputs().map(|output| (*coinbase, output)));
        }
        let coin = |source| match source {
            CoinSource::Set(place) => self.coins.get(place as usize),
            CoinSource::Block(place) => outputs.get(place as usize).map(|(coinbase, output)| {
                Coin { height, coinbase: *coinbase, value: output.value, script: output.script }
            }),
        };
        let mut sources = self.sources.iter();
        for ((tx_place, tx), coinbase) in txs.iter().enumerate().zip(coinbases) {
            if coinbase {
                continue;
            }
            for (vin, input) in tx.inputs().enumerate() {
                let coin = sources.next().and_then(|source| coin(*source));
                let coin = coin.expect("a block with the verdict that all is there has all coins");
                let walked = each(Spend { tx: tx_place, vin, input, coin });
                if walked.is_break() {
                    return Ok(walked);
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn find_repeated_output(&self, block: &BlockAt<'_>) -> Result<Option<Outpoint>, Error> {
        self.check(block)?;
        let repeated = self.repeated.as_ref();
        let repeated = repeated.ok_or(Error::RepeatsUnknown { block: self.block })?;
        Ok(repeated.first().map(|(outpoint, _)| *outpoint))
    }
}
