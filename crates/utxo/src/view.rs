//! The set below one block, for the rules of consensus.
//!
//! A view is made for a block and asks the set once, for everything that any rule may want to know:
//! the prevouts, and whether the outputs are there already. What it found it owns, so that the
//! rules can go over it as often as they like, in several threads.

use std::ops::ControlFlow;
use std::sync::Arc;

use varve_consensus::{BlockAt, CheckError, PrevoutError, Spend, UnspentOutputsView};
use varve_types::{BlockHash, Coin, Network, Outpoint};

use crate::changes::{Changes, CoinSource};
use crate::coins::Coins;
use crate::error::Error;
use crate::version::Version;

/// What the set says about one block.
#[derive(Debug)]
pub struct DatabaseView {
    block: BlockHash,
    sources: Vec<CoinSource>,
    /// The coins of the prevouts.
    coins: Coins,
    verdict: Result<(), PrevoutError>,
    repeated: Option<Outpoint>,
}

impl DatabaseView {
    /// Looks up what `block` needs of `version`, which should be the set below it.
    pub fn new(
        version: &Arc<Version>,
        network: Network,
        block: &BlockAt<'_>,
    ) -> Result<Self, Error> {
        let changes = Changes::of(network, block);
        let keys = [&changes.prevouts[..], &changes.made[..]].concat();
        let coins = version.get(&keys)?;
        let verdict = changes.verdict(|place| coins.birth(place).is_some());
        let spends = changes.prevouts.len();
        let mut made = (spends..).zip(&changes.made);
        let repeated = made.find(|(place, _)| coins.birth(*place).is_some());
        let repeated = repeated.map(|(_, outpoint)| *outpoint);
        let Changes { sources, .. } = changes;
        Ok(Self { block: block.hash(), sources, coins, verdict, repeated })
    }

    /// The same with another reason, when the block is refused.
    pub(crate) fn with_reason(self, change: impl FnOnce(PrevoutError) -> PrevoutError) -> Self {
        Self { verdict: self.verdict.map_err(change), ..self }
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
        let outputs: Vec<_> = txs
            .iter()
            .flat_map(|tx| tx.outputs().map(|output| (tx.is_coinbase(), output)))
            .collect();
        let coin = |source| match source {
            CoinSource::Set(place) => self.coins.get(place),
            CoinSource::Block(place) => outputs.get(place).map(|(coinbase, output)| Coin {
                height,
                coinbase: *coinbase,
                value: output.value,
                script: output.script,
            }),
        };
        let mut sources = self.sources.iter();
        for (tx_place, tx) in txs.iter().enumerate().filter(|(_, tx)| !tx.is_coinbase()) {
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
        Ok(self.repeated)
    }
}
