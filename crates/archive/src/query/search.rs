//! Transactions by txid.
//!
//! ```text
//! txid ──search──► candidate rows ──wanted?──► bytes ──hash──► found: the txid is this one
//!                                                └──pruned──► doubtful: it may be this one
//! ```
//!
//! A search returns every row of the txid and occasionally another row; only the transaction's
//! bytes distinguish them. Candidates of all txids are read in the order of their rows, each
//! transaction once. A candidate whose bytes are pruned stays *doubtful*. Where the answer depends
//! on it, the answer is [`ArchiveError::Pruned`]; where a row that was found decides alone, as the
//! highest one of a chain does over doubtful ones below it, that is the answer.

use varve_types::{Outpoint, Tx, Txid};

use super::candidate::Candidate;
use super::{Branch, Output, RowPlace, TxPlace};
use crate::backend::Tables;
use crate::error::{ArchiveError, Result};
use crate::link::HeaderLink;
use crate::source::BlockSource;
use crate::view::View;

/// The verdict on the candidates of one txid.
#[derive(Clone, Debug, Default)]
struct Sought {
    /// Its rows, oldest first.
    found: Vec<TxPlace>,
    /// Rows that may belong to it, oldest first: their bytes are pruned.
    doubtful: Vec<RowPlace>,
}

impl Sought {
    /// The rows, unless there may be more.
    fn all(self) -> Result<Vec<TxPlace>> {
        match self.doubtful.last() {
            Some(row) => Err(row.pruned()),
            None => Ok(self.found),
        }
    }

    /// The row in the highest block, of candidates that are all on one branch.
    fn highest(&self) -> Result<Option<TxPlace>> {
        let best = self.found.iter().max_by_key(|place| place.height);
        let doubt = self.doubtful.iter().max_by_key(|row| row.height);
        match doubt {
            Some(row) if best.is_none_or(|best| best.height < row.height) => Err(row.pruned()),
            _ => Ok(best.copied()),
        }
    }

    /// The row that was written last.
    fn newest(&self) -> Result<Option<TxPlace>> {
        let best = self.found.last();
        match self.doubtful.last() {
            Some(row) if best.is_none_or(|best| best.link < row.link) => Err(row.pruned()),
            _ => Ok(best.copied()),
        }
    }

    /// The candidates in confirmed blocks, and the others.
    fn split(self) -> (Self, Self) {
        let (found, other) = self.found.into_iter().partition(|place| place.confirmed);
        let (doubtful, others) = self.doubtful.into_iter().partition(|row| row.confirmed);
        (Self { found, doubtful }, Self { found: other, doubtful: others })
    }
}

impl<T: Tables, S: BlockSource> View<T, S> {
    /// Every row of a transaction, newest first: one for each block that holds it.
    pub fn txs(&self, txid: Txid) -> Result<Vec<TxPlace>> {
        let mut places = self.seek_one(txid, |_| true)?.all()?;
        places.reverse();
        match self.base() {
            Some(height) if places.is_empty() => Err(ArchiveError::BelowBase { height }),
            _ => Ok(places),
        }
    }

    /// The row of a transaction: the confirmed one where there is one (the highest of several),
    /// else the newest.
    pub fn to_tx(&self, txid: Txid) -> Result<Option<TxPlace>> {
        let (confirmed, other) = self.seek_one(txid, |_| true)?.split();
        match (confirmed.highest()?, self.base()) {
            (Some(place), _) => Ok(Some(place)),
            (None, base) => match (other.newest()?, base) {
                (None, Some(height)) => Err(ArchiveError::BelowBase { height }),
                (place, _) => Ok(place),
            },
        }
    }

    /// The row of a transaction in the highest block of a branch that holds it.
    pub fn tx_on(&self, branch: &Branch<'_, T>, txid: Txid) -> Result<Option<TxPlace>> {
        match (self.seek_one(txid, |row| row.is_on(branch))?.highest()?, self.base()) {
            (None, Some(height)) => Err(ArchiveError::BelowBase { height }),
            (place, _) => Ok(place),
        }
    }

    /// The row of each of these transactions in one block.
    pub fn txs_in(&self, block: HeaderLink, txids: &[Txid]) -> Result<Vec<Option<TxPlace>>> {
        let sought = self.seek(txids, |_, row| row.block == block, |_, _, _| ())?;
        sought.iter().map(Sought::highest).collect()
    }

    /// The blocks that hold a transaction, and whether each is confirmed: `varve tx` shows them.
    pub fn blocks_of(&self, txid: Txid) -> Result<Vec<(HeaderLink, bool)>> {
        Ok(self.txs(txid)?.into_iter().map(|place| (place.block, place.confirmed)).collect())
    }

    /// Whether a branch holds each of these transactions.
    pub(crate) fn are_on(&self, branch: &Branch<'_, T>, txids: &[Txid]) -> Result<Vec<bool>> {
        let sought = self.seek(txids, |_, row| row.is_on(branch), |_, _, _| ())?;
        sought.iter().map(|sought| Ok(sought.highest()?.is_some())).collect()
    }

    /// The outputs at these points, each from the highest block of the branch that holds it. (Only
    /// two transactions of mainnet are in two blocks of one chain.)
    pub(crate) fn prevouts(
        &self,
        branch: &Branch<'_, T>,
        points: &[Outpoint],
    ) -> Result<Vec<Option<Output>>> {
        let mut asked: Vec<_> = (0..).zip(points).map(|(index, point)| (*point, index)).collect();
        asked.sort_unstable();
        let by_txid = |one: &(Outpoint, usize), next: &(Outpoint, usize)| one.0.txid == next.0.txid;
        let groups: Vec<_> = asked.chunk_by(by_txid).collect();
        let txids = groups.iter().filter_map(|group| group.first()).map(|(point, _)| point.txid);
        let mut outputs: Vec<Option<Output>> = vec![None; points.len()];
        let sought = self.seek(
            &txids.collect::<Vec<_>>(),
            |_, row| row.is_on(branch),
            |index, place, tx| {
                let wanted = groups.get(index).copied().unwrap_or_default();
                take_outputs(place, tx, wanted, &mut outputs);
            },
        )?;
        for (group, sought) in groups.iter().zip(sought) {
            match (sought.highest()?, self.base(), group.first()) {
                (None, Some(height), Some((point, _))) if !point.is_null() => {
                    return Err(ArchiveError::BelowBase { height });
                }
                _ => {}
            }
        }
        Ok(outputs)
    }

    fn seek_one(&self, txid: Txid, is_wanted: impl Fn(&RowPlace) -> bool) -> Result<Sought> {
        let mut sought = self.seek(&[txid], |_, row| is_wanted(row), |_, _, _| ())?;
        Ok(sought.pop().unwrap_or_default())
    }

    /// Searches for transactions among the wanted rows, and passes each one found to `each` with
    /// the index of its txid.
    fn seek(
        &self,
        txids: &[Txid],
        is_wanted: impl Fn(usize, &RowPlace) -> bool,
        mut each: impl FnMut(usize, &TxPlace, &Tx<'_>),
    ) -> Result<Vec<Sought>> {
        let mut matches = Vec::new();
        self.tables.find_txs(txids, &mut matches)?;
        let candidates = self.candidates(&matches, is_wanted)?;
        let mut sought = vec![Sought::default(); txids.len()];
        for of_row in candidates.chunk_by(|one, next| one.row.link == next.row.link) {
            let Some(Candidate { row, .. }) = of_row.first() else { continue };
            let read = self.with_tx(row.block, &row.slice, |tx| {
                let place = row.with(tx.txid());
                for Candidate { key, .. } in of_row {
                    if txids.get(*key) == Some(&place.txid)
                        && let Some(sought) = sought.get_mut(*key)
                    {
                        each(*key, &place, tx);
                        sought.found.push(place);
                    }
                }
            });
            match read {
                Err(ArchiveError::Pruned { .. }) => doubt(&mut sought, of_row),
                read => read?,
            }
        }
        Ok(sought)
    }
}

/// Marks candidates whose bytes cannot be read as doubtful.
fn doubt(sought: &mut [Sought], of_row: &[Candidate]) {
    for Candidate { key, row } in of_row {
        if let Some(sought) = sought.get_mut(*key) {
            sought.doubtful.push(*row);
        }
    }
}

/// Puts the outputs of a transaction at the indexes of the points that ask for them, which are
/// sorted. When a transaction is in several blocks, the highest block wins.
fn take_outputs(
    place: &TxPlace,
    tx: &Tx<'_>,
    wanted: &[(Outpoint, usize)],
    outputs: &mut [Option<Output>],
) {
    let mut made = (0..).zip(tx.outputs()).peekable();
    for (point, index) in wanted {
        while made.next_if(|(vout, _)| *vout < point.vout).is_some() {}
        let output = made.peek().filter(|(vout, _)| *vout == point.vout);
        let higher = |known: &Output| known.tx.height < place.height;
        if let Some(known) =
            outputs.get_mut(*index).filter(|known| known.as_ref().is_none_or(higher))
        {
            *known = output.map(|(vout, output)| Output::new(place, *vout, output));
        }
    }
}
