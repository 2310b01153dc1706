//! Histories, balances and unspent outputs of scripts, all of one moment.
//!
//! The table gives ordinals and counts; txids, values and positions come from the blocks' bytes.
//! What it takes as of an earlier height H:
//!
//! - history: the part of the list below the first ordinal above H;
//! - counts and balance: [`HistoryView::at`] while the blocks above H are in memory; else the
//!   transactions on the nearer side of H are read, and added up or taken back;
//! - unspent outputs: the present ones up to H, and what transactions above H have spent of those.
//!
//! An unspent output is found by its ordinal, and its keyed outpoint decides. After a deep
//! reorganisation the ordinal may name another transaction of the same block; then the block is
//! searched.

use std::ops::{ControlFlow, Range};

use varve_archive::TxLink;
use varve_archive::history::{HistoryView, Nearer, Sums, Unspent, UnspentCursor};
use varve_archive::search::Order;
use varve_consensus::Params;
use varve_types::{Amount, Block, BlockHash, Height, Outpoint, ScriptHash, Txid};

use crate::error::Error;
use crate::ordinals::{ChainPlace, Ordinals};
use crate::snapshot::ArchiveView;

/// Rows of the table that are asked for at once.
const PAGE: usize = 1_000;

/// The histories of scripts at one moment.
pub struct Scripts {
    view: ArchiveView,
    history: HistoryView,
    ordinals: Ordinals,
}

/// A confirmed transaction of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptTx {
    /// The transaction.
    pub txid: Txid,
    /// The height of its block.
    pub height: Height,
    /// Its block.
    pub block: BlockHash,
    /// Its place in the block; the coinbase is at 0.
    pub position: u32,
    /// How many of its outputs pay the script, and their value.
    pub funded: u32,
    /// The value of those outputs.
    pub received: Amount,
    /// How many outputs of the script it spends.
    pub spent: u32,
    /// The value of those.
    pub sent: Amount,
}

/// Which part of a history is asked for.
#[derive(Clone, Copy, Debug)]
pub struct ScriptPage {
    /// From the oldest transaction up, or from the newest down.
    pub order: Order,
    /// Where the page begins: [`ScriptTxs::cursor`] of the page before; `None` for the first.
    pub cursor: Option<u64>,
    /// The most transactions that the page may have.
    pub limit: usize,
}

/// A page of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptTxs {
    /// The transactions.
    pub txs: Vec<ScriptTx>,
    /// Where the next page begins: how many transactions of the chain lie below it, or above it
    /// when the order is descending.
    pub cursor: Option<u64>,
}

/// An unspent output of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScriptUnspent {
    /// The height of its block.
    pub height: Height,
    /// The place of its transaction in the block.
    pub position: u32,
    /// The output.
    pub outpoint: Outpoint,
    /// What it is worth.
    pub value: Amount,
}

impl Scripts {
    pub(crate) const fn new(view: ArchiveView, history: HistoryView, ordinals: Ordinals) -> Self {
        Self { view, history, ordinals }
    }

    /// The block up to which the index goes; `None` before the first.
    #[must_use]
    pub fn tip(&self) -> Option<(Height, BlockHash)> {
        self.history.tip().map(|tip| (tip.height, tip.hash))
    }

    /// Counts and values of a script, as of a height when one is given.
    pub fn sums(&self, script: &ScriptHash, at: Option<Height>) -> Result<Sums, Error> {
        let Some(height) = at.filter(|height| self.tip().is_some_and(|tip| *height < tip.0)) else {
            return sums_of(&self.history, script);
        };
        if let Some(then) = self.history.at(height) {
            return sums_of(&then, script);
        }
        let end = self.end(Some(height))?;
        let nearer = self.history.nearer(script, end)?;
        let mut sums = Sums::default();
        let links = match nearer {
            Nearer::Beginning => FIRST..end,
            Nearer::End => end..LAST,
        };
        self.walk(script, links, |tx| {
            sums.funded += i64::from(tx.funded);
            sums.spent += i64::from(tx.spent);
            sums.txs += 1;
            sums.received = sums.received.wrapping_add(tx.received.to_sat());
            sums.sent = sums.sent.wrapping_add(tx.sent.to_sat());
        })?;
        if nearer == Nearer::Beginning {
            return Ok(sums);
        }
        let now = sums_of(&self.history, script)?;
        Ok(Sums {
            funded: now.funded - sums.funded,
            spent: now.spent - sums.spent,
            txs: now.txs - sums.txs,
            received: now.received.wrapping_sub(sums.received),
            sent: now.sent.wrapping_sub(sums.sent),
        })
    }

    /// A page of a script's history, as of a height when one is given.
    pub fn history(
        &self,
        script: &ScriptHash,
        at: Option<Height>,
        page: ScriptPage,
    ) -> Result<ScriptTxs, Error> {
        let ScriptPage { order, cursor, limit } = page;
        let end = self.end(at)?;
        let links = match (order, cursor.map(TxLink::new)) {
            (_, None) => FIRST..end,
            (Order::Ascending, Some(from)) => from..end,
            (Order::Descending, Some(to)) => FIRST..to.min(end),
        };
        let page = self.history.history(script, links, order, limit)?;
        let txs = page.rows.iter().map(|ordinal| self.tx(script, *ordinal));
        let txs = txs.collect::<Result<_, Error>>()?;
        let cursor = page.rest.map(|rest| match order {
            Order::Ascending => rest.start.to_u64(),
            Order::Descending => rest.end.to_u64(),
        });
        Ok(ScriptTxs { txs, cursor })
    }

    /// The txid and height of each transaction of a script in blocks from `from` up, in chain
    /// order, as of a height when one is given. Reads a transaction's bytes and nothing of what it
    /// spends. `each` may end the walk.
    pub fn txids(
        &self,
        script: &ScriptHash,
        (from, at): (Height, Option<Height>),
        each: &mut dyn FnMut(Txid, Height) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let end = self.end(at)?;
        let mut rest = Some(self.ordinals.first(&self.view, from)?..end);
        while let Some(links) = rest.filter(|links| links.start < links.end) {
            let page = self.history.history(script, links, Order::Ascending, PAGE)?;
            for ordinal in &page.rows {
                let place = self.place(*ordinal)?;
                let tx = self.view.place(place.link)?.ok_or_else(|| missing(*ordinal))?;
                if each(tx.txid, place.height).is_break() {
                    return Ok(());
                }
            }
            rest = page.rest;
        }
        Ok(())
    }

    /// The cursor of the descending page below the transaction at a place of the confirmed chain.
    pub fn cursor_below(&self, height: Height, position: u32) -> Result<u64, Error> {
        Ok(self.ordinals.first(&self.view, height)?.plus(position).to_u64())
    }

    /// All unspent outputs of a script in chain order, as of a height when one is given.
    pub fn unspent(
        &self,
        script: &ScriptHash,
        at: Option<Height>,
    ) -> Result<Vec<ScriptUnspent>, Error> {
        let at = at.filter(|height| self.tip().is_some_and(|tip| *height < tip.0));
        let then = at.and_then(|height| self.history.at(height));
        let (history, at) = then.as_ref().map_or((&self.history, at), |then| (then, None));
        let mut unspent = Vec::new();
        let mut from = Some(UnspentCursor::START);
        while let Some(cursor) = from {
            let page = history.unspent(script, cursor, PAGE)?;
            for output in &page.rows {
                if at.is_none_or(|height| output.height <= height) {
                    unspent.push(self.unspent_output(script, output)?);
                }
            }
            from = page.rest;
        }
        if let Some(height) = at {
            let end = self.end(Some(height))?;
            self.each_link(script, end..LAST, |place| {
                let spent = self.prevouts(place)?.into_iter();
                unspent.extend(
                    spent
                        .filter(|(hash, coin)| hash == script && coin.height <= height)
                        .map(|(_, coin)| coin),
                );
                Ok(())
            })?;
        }
        unspent.sort_unstable();
        Ok(unspent)
    }

    /// The first ordinal that does not count as of a height.
    fn end(&self, at: Option<Height>) -> Result<TxLink, Error> {
        match at.and_then(|height| height.checked_add(1)) {
            Some(above) => self.ordinals.first(&self.view, above),
            None => Ok(LAST),
        }
    }

    fn each_link(
        &self,
        script: &ScriptHash,
        links: Range<TxLink>,
        mut each: impl FnMut(&ChainPlace) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut rest = Some(links);
        while let Some(links) = rest {
            let page = self.history.history(script, links, Order::Ascending, PAGE)?;
            for ordinal in &page.rows {
                each(&self.place(*ordinal)?)?;
            }
            rest = page.rest;
        }
        Ok(())
    }

    fn walk(
        &self,
        script: &ScriptHash,
        links: Range<TxLink>,
        mut each: impl FnMut(&ScriptTx),
    ) -> Result<(), Error> {
        self.each_link(script, links, |place| {
            each(&self.tx_at(script, place)?);
            Ok(())
        })
    }

    fn place(&self, ordinal: TxLink) -> Result<ChainPlace, Error> {
        self.ordinals.place(&self.view, ordinal)?.ok_or_else(|| missing(ordinal))
    }

    fn tx(&self, script: &ScriptHash, ordinal: TxLink) -> Result<ScriptTx, Error> {
        self.tx_at(script, &self.place(ordinal)?)
    }

    fn tx_at(&self, script: &ScriptHash, place: &ChainPlace) -> Result<ScriptTx, Error> {
        let outputs = self.view.outputs(place.link)?;
        let txid = match outputs.first() {
            Some(output) => output.tx.txid,
            None => self.view.place(place.link)?.map_or(Txid::from_bytes([0; 32]), |tx| tx.txid),
        };
        let is_own = |bytes: &[u8]| ScriptHash::of(bytes) == *script;
        let paid = outputs.iter().filter(|output| is_own(&output.script));
        let (funded, received) = total(paid.map(|output| output.value));
        let spent = self.prevouts(place)?;
        let spent = spent.iter().filter(|(hash, _)| hash == script);
        let (spent, sent) = total(spent.map(|(_, coin)| coin.value));
        let (height, position) = (place.height, place.position);
        let block = self.view.header(place.block)?.hash;
        Ok(ScriptTx { txid, height, block, position, funded, received, spent, sent })
    }

    /// What a transaction spends, with the hashes of the scripts; for the coinbases that repeated
    /// an earlier txid, the coins that they replaced.
    fn prevouts(&self, place: &ChainPlace) -> Result<Vec<(ScriptHash, ScriptUnspent)>, Error> {
        let outputs = if place.position > 0 {
            self.view.tx_prevouts(place.link)?.into_iter().flatten().collect()
        } else {
            self.replaced(place)?
        };
        let coin = |output: varve_archive::Output| {
            let (height, position) = (output.tx.height, output.tx.position);
            let (outpoint, value) = (output.point(), output.value);
            let script = ScriptHash::of(&output.script);
            (script, ScriptUnspent { height, position, outpoint, value })
        };
        Ok(outputs.into_iter().map(coin).collect())
    }

    fn replaced(&self, place: &ChainPlace) -> Result<Vec<varve_archive::Output>, Error> {
        let header = self.view.header(place.block)?;
        let params = Params::new(self.view.network());
        if !params.bip30_exceptions.contains(&(place.height, header.hash)) {
            return Ok(Vec::new());
        }
        let Some(tx) = self.view.place(place.link)? else { return Ok(Vec::new()) };
        let mut replaced = Vec::new();
        for (block, _) in self.view.blocks_of(tx.txid)? {
            let row = self.view.header(block)?;
            let is_confirmed = self.view.to_confirmed(row.height) == Some(block);
            if row.height < place.height && is_confirmed {
                let earlier = self.view.txs_in(block, &[tx.txid])?.pop().flatten();
                let outputs = earlier.map(|earlier| self.view.outputs(earlier.link)).transpose()?;
                replaced.extend(outputs.unwrap_or_default());
            }
        }
        Ok(replaced)
    }

    /// The output of a row of the table.
    fn unspent_output(&self, script: &ScriptHash, row: &Unspent) -> Result<ScriptUnspent, Error> {
        if let Some(place) =
            self.ordinals.place(&self.view, row.tx)?.filter(|place| place.height == row.height)
        {
            let outputs = self.view.outputs(place.link)?;
            let output = outputs.iter().find(|output| output.vout == row.vout);
            if let Some(output) =
                output.filter(|output| self.history.print(&output.point()) == row.print)
            {
                let (height, position) = (place.height, place.position);
                let (outpoint, value) = (output.point(), output.value);
                return Ok(ScriptUnspent { height, position, outpoint, value });
            }
        }
        self.search_block(script, row)
    }

    /// Searches the block at the row's height for its output.
    fn search_block(&self, script: &ScriptHash, row: &Unspent) -> Result<ScriptUnspent, Error> {
        let height = row.height;
        let missing = || Error::Disagree {
            what: format!("block {height} lacks an output of script {script} that the history has"),
        };
        let link = self.view.to_confirmed(height).ok_or_else(missing)?;
        let hash = self.view.header(link)?.hash;
        let bytes = self.view.raw_block(link)?.ok_or_else(missing)?;
        let block = Block::parse(&bytes, self.view.network().format())
            .map_err(|source| Error::Undecodable { hash, source })?;
        for (position, tx) in (0..).zip(block.txs()) {
            let output = tx.outputs().nth(row.vout as usize);
            let output = output.filter(|output| ScriptHash::of(output.script) == *script);
            let Some(output) = output else { continue };
            let outpoint = Outpoint::new(tx.txid(), row.vout);
            if self.history.print(&outpoint) == row.print {
                return Ok(ScriptUnspent { height, position, outpoint, value: output.value });
            }
        }
        Err(missing())
    }
}

const FIRST: TxLink = TxLink::new(0);
const LAST: TxLink = TxLink::new(1 << 56);

fn sums_of(history: &HistoryView, script: &ScriptHash) -> Result<Sums, Error> {
    Ok(history.sums(std::slice::from_ref(script))?.pop().unwrap_or_default())
}

fn missing(ordinal: TxLink) -> Error {
    let what = format!("the script history names transaction {} of the chain", ordinal.to_u64());
    Error::Disagree { what }
}

/// How many there are, and their value.
fn total(values: impl Iterator<Item = Amount>) -> (u32, Amount) {
    let (count, sum) = values
        .fold((0, 0_u64), |(count, sum), value| (count + 1, sum.wrapping_add(value.to_sat())));
    (count, Amount::from_sat(sum))
}
