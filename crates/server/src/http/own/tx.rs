//! A transaction whole: what it spends, what it makes, who spends that, and which blocks hold it.

mod shape;

use std::sync::Arc;

use axum::extract::{Path, State};
use hex_conservative::DisplayHex as _;
use serde::Deserialize;
use utoipa::IntoParams;
use varve::types::script::Class;
use varve::types::{Format, Network, Tx, TxIn, Witness, unspendable};
use varve::{Amount, BlockHash, Height, Mempool, MempoolEntry, Outpoint, Output, Snapshot, Txid};

use super::Shared;
use super::block::{limit, rate};
use super::reply::{Asked, Refusals, Refused, Reply, hash};
use super::script_text::{OutputScript, SHOWN, ScriptText, coinbase_text, last_push};
use shape::{
    Holder, InBlock, InMempool, Input, OutputAnswer, Prevout, Standing, TxAnswer, WitnessItem,
};

pub(super) use shape::SpentBy;

/// Inputs and outputs of an answer, by default and at most.
const PAGE: (u32, u32) = (200, 1_000);
/// Inputs up to which all spent outputs are looked up, which the fee needs.
const PAID_INPUTS: usize = 20_000;
/// Unconfirmed relatives that are named.
const KIN: usize = 100;

#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct TxQuery {
    /// The first input and output of the answer; 0 by default.
    from: Option<u32>,
    /// How many inputs and outputs; 200 by default, 1,000 at most.
    limit: Option<u32>,
}

/// A transaction, confirmed, unconfirmed or on a stale branch.
#[utoipa::path(get, path = "/tx/{txid}", tag = "varve",
    params(("txid" = String, Path, description = "A txid"), TxQuery),
    responses((status = 200, body = TxAnswer), Refusals))]
pub(super) async fn tx(
    State(own): State<Shared>,
    Path(txid): Path<String>,
    Asked(asked): Asked<TxQuery>,
) -> Result<Reply<TxAnswer>, Refused> {
    let txid: Txid = hash(&txid, "a txid")?;
    let from = asked.from.unwrap_or_default() as usize;
    let page = from..from.saturating_add(limit(asked.limit, PAGE) as usize);
    own.ask(move |_, snapshot| {
        let mempool = snapshot.mempool();
        let stored = snapshot.tx(txid)?;
        let entry = mempool.as_ref().and_then(|mempool| mempool.entry(&txid)).cloned();
        let moment = Moment { snapshot, mempool, page };
        match (entry, stored) {
            (Some(entry), stored) => {
                let parts = entry.transaction().view();
                let mut answer = moment.answer(&parts, None, stored.as_ref())?;
                answer.state = Standing::Mempool;
                (answer.block, answer.confirmations) = (None, 0);
                answer.mempool = Some(moment.kin(&entry));
                Ok(answer)
            }
            (None, Some(stored)) => {
                moment.answer(&stored.parse()?, Some(stored.block.height), Some(&stored))
            }
            (None, None) => Err(Refused::not_found(
                "no stored block holds this transaction, and it is not in the mempool",
            )),
        }
    })
    .await
}

/// A snapshot, its mempool, and which part of the inputs and outputs is asked for.
struct Moment<'a> {
    snapshot: &'a Snapshot,
    mempool: Option<Arc<Mempool>>,
    page: std::ops::Range<usize>,
}

impl Moment<'_> {
    fn network(&self) -> Network {
        self.snapshot.network()
    }

    fn answer(
        &self,
        tx: &Tx<'_>,
        height: Option<Height>,
        stored: Option<&varve::Transaction>,
    ) -> Result<TxAnswer, Refused> {
        let (txid, tip, coinbase) = (tx.txid(), self.snapshot.tip(), tx.is_coinbase());
        let size = match tx.format() {
            Format::Extended => tx.to_legacy().len(),
            Format::Legacy | Format::Segwit => tx.bytes().len(),
        };
        let weight = (tx.base_len() * 3 + size) as u64;
        let vsize = weight.div_ceil(4);
        let prevouts = self.prevouts(tx)?;
        let value = total(tx.outputs().map(|output| output.value));
        let fee = prevouts.fee(value).filter(|_| !coinbase);
        let confirmed = stored.filter(|stored| stored.is_confirmed());
        let above = confirmed.and_then(|stored| tip.height.since(stored.block.height));
        let holders = stored.map_or(&[][..], |stored| &stored.blocks);
        let holders = holders.iter().map(|hash| self.holder(*hash));
        Ok(TxAnswer {
            tip: tip.into(),
            txid,
            wtxid: tx.wtxid().to_string(),
            version: tx.version(),
            lock_time: tx.lock_time(),
            size,
            weight,
            vsize,
            coinbase,
            value,
            fee,
            rate: fee.map(|fee| rate(fee, vsize)),
            state: if confirmed.is_some() { Standing::Confirmed } else { Standing::Stale },
            confirmations: above.map_or(0, |above| above + 1),
            block: stored.map(InBlock::from),
            blocks: holders.filter_map(Result::transpose).collect::<Result<_, _>>()?,
            mempool: None,
            inputs_total: tx.inputs().len(),
            outputs_total: tx.outputs().len(),
            inputs: self.inputs(tx, prevouts),
            outputs: self.outputs(tx, txid, height)?,
        })
    }

    fn holder(&self, hash: BlockHash) -> Result<Option<Holder>, Refused> {
        let header = self.snapshot.header(hash)?;
        Ok(header.map(|header| Holder {
            hash,
            height: header.height.to_u32(),
            confirmed: header.confirmed,
        }))
    }

    fn kin(&self, entry: &MempoolEntry) -> InMempool {
        let of_mempool = |txid: &Txid| self.mempool.as_ref().is_some_and(|all| all.contains(txid));
        let tx = entry.transaction().view();
        let mut parents: Vec<Txid> = tx.inputs().map(|input| input.outpoint.txid).collect();
        parents.sort_unstable();
        parents.dedup();
        let parents = parents.into_iter().filter(of_mempool).take(KIN);
        let children = self.mempool.as_ref().map(|all| all.spenders_of(entry.txid()));
        let children = children.unwrap_or_default().into_iter().take(KIN);
        InMempool {
            time: entry.time(),
            ancestors: entry.ancestors().into(),
            descendants: entry.descendants().into(),
            parents: parents.map(|txid| txid.to_string()).collect(),
            children: children.map(|txid| txid.to_string()).collect(),
        }
    }

    /// What a transaction spends: all of it where that is not too much, else what the page has.
    fn prevouts(&self, tx: &Tx<'_>) -> Result<Prevouts, Refused> {
        let count = tx.inputs().len();
        if count <= PAID_INPUTS && tx.format() != Format::Extended {
            return Ok(Prevouts { first: 0, found: self.snapshot.spent_outputs(tx)?, all: true });
        }
        let all = count <= PAID_INPUTS;
        let range = if all { 0..count } else { self.page.clone() };
        let (first, inputs) = (range.start, tx.inputs().skip(range.start).take(range.len()));
        let found = inputs.map(|input| self.prevout(&input)).collect::<Result<_, _>>()?;
        Ok(Prevouts { first, found, all })
    }

    /// What an input spends. An unconfirmed transaction carries it along.
    fn prevout(&self, input: &TxIn<'_>) -> Result<Option<Output>, Refused> {
        let stored = match self.snapshot.output(input.outpoint) {
            Err(varve::Error::Pruned { .. }) => None,
            found => found?,
        };
        let carried = input.spent.as_ref().map(|output| Output {
            outpoint: input.outpoint,
            height: Height::GENESIS,
            coinbase: false,
            confirmed: false,
            value: output.value,
            script: output.script.to_vec(),
        });
        Ok(stored.or(carried))
    }

    fn inputs(&self, tx: &Tx<'_>, prevouts: Prevouts) -> Vec<Input> {
        let (coinbase, network) = (tx.is_coinbase(), self.network());
        let mut witnesses = tx.witnesses().skip(self.page.start);
        let inputs = tx.inputs().enumerate().skip(self.page.start).take(self.page.len());
        inputs
            .map(|(n, input)| {
                let prevout = prevouts.at(n).filter(|_| !coinbase);
                Input::new(n, &input, witnesses.next(), prevout, (coinbase, network))
            })
            .collect()
    }

    fn outputs(
        &self,
        tx: &Tx<'_>,
        txid: Txid,
        height: Option<Height>,
    ) -> Result<Vec<OutputAnswer>, Refused> {
        let network = self.network();
        let height = height.unwrap_or(self.snapshot.tip().height);
        let outputs = tx.outputs().enumerate().skip(self.page.start).take(self.page.len());
        let answer = |(n, output): (usize, varve::types::TxOut<'_>)| {
            let outpoint = Outpoint::new(txid, u32::try_from(n).unwrap_or(u32::MAX));
            let (spent_by, other_spends) = self.spends(outpoint)?;
            Ok(OutputAnswer {
                n,
                value: output.value.to_sat(),
                script: OutputScript::new(output.script, network),
                spendable: !unspendable(network, height, output.script),
                spent_by,
                other_spends,
            })
        };
        outputs.map(answer).collect()
    }

    fn spends(&self, outpoint: Outpoint) -> Result<(Option<SpentBy>, Vec<SpentBy>), Refused> {
        let found = match self.snapshot.spends(outpoint) {
            // A spend on a stale branch whose bytes are gone: what is known is said.
            Err(varve::Error::Pruned { .. }) => Vec::new(),
            found => found?,
        };
        let confirmed = found.iter().find(|spend| spend.confirmed).map(SpentBy::from);
        let others = found.iter().filter(|spend| !spend.confirmed).map(SpentBy::from).collect();
        Ok((confirmed.or_else(|| unconfirmed(self.mempool.as_deref(), &outpoint)), others))
    }
}

/// The unconfirmed input that spends an output.
pub(super) fn unconfirmed(mempool: Option<&Mempool>, outpoint: &Outpoint) -> Option<SpentBy> {
    let varve::SpentBy { txid, vin } = mempool?.spender(outpoint)?;
    Some(SpentBy { txid, vin, height: None, block: None, confirmed: false })
}

/// Spent outputs of neighbouring inputs.
struct Prevouts {
    /// The input of the first.
    first: usize,
    found: Vec<Option<Output>>,
    /// Whether they are those of all inputs.
    all: bool,
}

impl Prevouts {
    fn at(&self, input: usize) -> Option<&Output> {
        self.found.get(input.checked_sub(self.first)?)?.as_ref()
    }

    fn fee(&self, made: u64) -> Option<u64> {
        let known: Option<Vec<&Output>> = self.found.iter().map(Option::as_ref).collect();
        let spent = total(known.filter(|_| self.all)?.into_iter().map(|output| output.value));
        spent.checked_sub(made)
    }
}

impl Input {
    fn new(
        n: usize,
        input: &TxIn<'_>,
        witness: Option<Witness<'_>>,
        prevout: Option<&Output>,
        (coinbase, network): (bool, Network),
    ) -> Self {
        let items: Vec<&[u8]> = witness.map(|one| one.items().collect()).unwrap_or_default();
        let class = prevout.map(|output| Class::of(&output.script));
        let redeem = (class == Some(Class::P2sh)).then(|| last_push(input.script)).flatten();
        let inner = redeem.map(Class::of).or(class);
        Self {
            n,
            txid: input.outpoint.txid,
            vout: input.outpoint.vout,
            sequence: input.sequence,
            script: ScriptText::new(input.script),
            text: coinbase.then(|| coinbase_text(input.script)),
            witness: items.iter().map(|item| WitnessItem::new(item)).collect(),
            redeem_script: redeem.map(ScriptText::new),
            witness_script: witness_script(inner, &items).map(ScriptText::new),
            prevout: prevout.map(|output| Prevout {
                value: output.value.to_sat(),
                script: OutputScript::new(&output.script, network),
                height: output.confirmed.then(|| output.height.to_u32()),
                coinbase: output.coinbase,
            }),
        }
    }
}

/// The script that a witness reveals: the last item for P2WSH; for a Taproot script path the one
/// before the control block, behind which an annex may stand.
fn witness_script<'a>(class: Option<Class>, items: &[&'a [u8]]) -> Option<&'a [u8]> {
    match class? {
        Class::P2wsh => items.last().copied(),
        Class::P2tr => {
            let has_annex = items.len() > 1 && items.last()?.first() == Some(&0x50);
            let items = if has_annex { items.split_last()?.1 } else { items };
            let (_control, rest) = items.split_last()?;
            rest.last().copied()
        }
        _ => None,
    }
}

impl WitnessItem {
    fn new(item: &[u8]) -> Self {
        let shown = item.get(..SHOWN).unwrap_or(item);
        Self { hex: shown.to_lower_hex_string(), size: item.len() }
    }
}

impl From<&varve::Transaction> for InBlock {
    fn from(tx: &varve::Transaction) -> Self {
        let block = &tx.block;
        let (height, time, position) = (block.height.to_u32(), block.time, tx.position);
        Self { hash: block.hash, height, time, position }
    }
}

fn total(amounts: impl Iterator<Item = Amount>) -> u64 {
    amounts.fold(0, |sum, amount| amount.to_sat().saturating_add(sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_that_a_witness_reveals() {
        let items: [&[u8]; 3] = [b"signature", b"script", b"\xc0control"];
        assert_eq!(witness_script(Some(Class::P2wsh), &items), Some(&b"\xc0control"[..]));
        assert_eq!(witness_script(Some(Class::P2tr), &items), Some(&b"script"[..]));
        let annexed: [&[u8]; 3] = [b"script", b"\xc0control", b"\x50annex"];
        assert_eq!(witness_script(Some(Class::P2tr), &annexed), Some(&b"script"[..]));
        let key_path: [&[u8]; 1] = [b"signature"];
        assert_eq!(witness_script(Some(Class::P2tr), &key_path), None);
        assert_eq!(witness_script(Some(Class::P2wpkh), &items), None);
        assert_eq!(witness_script(Some(Class::P2tr), &[]), None);
    }
}
