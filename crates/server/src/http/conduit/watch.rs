//! The task that reports spends of watched outputs and matches of filters.
//!
//! It wakes when the node has moved, at most every [`PAUSE`], and then
//!
//! 1. looks which watched outputs have another spender than was last reported, and pushes those. As
//!    long as the tip is the same only the mempool is asked;
//! 2. searches the blocks between the one it searched last and the tip for what filters watch for,
//!    one by one, from the fork up when the last one has left the chain. The matches of a block are
//!    handed over before the next is searched. When that fails it waits for [`RETRY`] and tries the
//!    same block again: nothing is queued, because the chain still has it;
//! 3. at the tip, does the same for unconfirmed transactions that it has not reported.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::Bytes;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};
use varve::types::PushdataHash;
use varve::types::pushdata::{PushdataFlags, PushedItem};
use varve::{Error, Outpoint, Side, Tip, Txid};

use super::super::answer::Refusal;
use super::super::api::{Moment, Shared, Spend};
use super::super::esplora::shown;
use super::super::serve::stopped;
use super::delivery::{Batch, Entry, ReferenceServer, TipMatch};
use super::{filters, spends, wire};
use crate::log::{self, Level};
use crate::service::Shutdown;

/// The least time between two looks.
const PAUSE: Duration = Duration::from_millis(300);
/// How long to wait before a failed delivery is tried again, as Conduit does.
const RETRY: Duration = Duration::from_secs(120);
/// How often the file of the filters is brought up to date when nothing was sent.
const SAVE: Duration = Duration::from_secs(30);
/// How often to look whether filters are over when nothing happens.
const IDLE: Duration = Duration::from_secs(60);

/// Watches until the server stops.
pub(crate) async fn watch(
    api: Shared,
    reference_server: Option<ReferenceServer>,
    mut shutdown: Shutdown,
) {
    let mut watcher = Watcher {
        api: Shared::clone(&api),
        reference_server,
        last_tip: None,
        reported: HashSet::new(),
        not_before: None,
        saved: Instant::now(),
    };
    let mut changes = api.service.changes();
    let work = async {
        loop {
            watcher.look().await;
            sleep(PAUSE).await;
            let _ = timeout(watcher.patience(), changes.changed()).await;
        }
    };
    tokio::select! {
        () = work => {}
        () = stopped(&mut shutdown) => {}
    }
    api.conduit.closing.send_replace(true);
}

struct Watcher {
    api: Shared,
    reference_server: Option<ReferenceServer>,
    /// The tip at which watched outputs were last looked at.
    last_tip: Option<Tip>,
    /// Unconfirmed matches that were handed over, by account.
    reported: HashSet<(i64, TipMatch)>,
    /// When a delivery may be tried again.
    not_before: Option<Instant>,
    saved: Instant,
}

impl Watcher {
    /// How long to wait for a change.
    fn patience(&self) -> Duration {
        self.not_before.map_or(IDLE, |then| then.saturating_duration_since(Instant::now()))
    }

    async fn look(&mut self) {
        self.look_for_spends().await;
        if self.not_before.is_some_and(|then| Instant::now() < then) {
            return;
        }
        self.not_before = None;
        if let Err(why) = self.look_for_matches().await {
            log::event(Level::Warn, "conduit_matches_wait", &json!({ "why": why }));
            self.not_before = Some(Instant::now() + RETRY);
        }
    }

    async fn look_for_spends(&mut self) {
        let watched = spends::lock(&self.api).watched();
        if watched.is_empty() {
            self.last_tip = None;
            return;
        }
        let (api, last_tip) = (Shared::clone(&self.api), self.last_tip);
        let question = move |snapshot: &varve::Snapshot| {
            let moment = Moment::new(&api, snapshot);
            let is_same_tip = last_tip == Some(moment.tip());
            for (outpoint, known) in watched {
                // An error of one output, whose block was pruned, must not hide the others.
                let Ok(found) = spender(&moment, outpoint, known, is_same_tip) else { continue };
                let news = spends::lock(&api).note(outpoint, found);
                if let Some(found) = found.filter(|_| news) {
                    let record = wire::spend(outpoint, &found);
                    api.conduit.sockets.push(Bytes::copy_from_slice(&record));
                }
            }
            moment.tip()
        };
        self.last_tip = Some(self.api.service.ask(question).await);
    }

    /// Searches blocks up to the tip, then the mempool.
    async fn look_for_matches(&mut self) -> Result<(), String> {
        loop {
            if filters::lock(&self.api).is_empty() {
                self.reported.clear();
                return Ok(());
            }
            let api = Shared::clone(&self.api);
            let step = move |snapshot: &varve::Snapshot| step(&Moment::new(&api, snapshot), &api);
            let step = self.api.service.ask(step).await;
            match step.map_err(|refusal| format!("{refusal:?}"))? {
                Step::Block(tip, batch) => {
                    let sent = self.hand_over(batch).await?;
                    filters::lock(&self.api).search_reached(tip);
                    self.save(sent).await;
                }
                Step::Unconfirmed(found) => return self.hand_over_unconfirmed(found).await,
            }
        }
    }

    /// Hands a batch over, if it has any match and there is somebody to take it; returns whether.
    async fn hand_over(&self, batch: Batch) -> Result<bool, String> {
        let Some(server) = self.reference_server.as_ref().filter(|_| !batch.entries.is_empty())
        else {
            return Ok(false);
        };
        let delivered = server.deliver(&batch).await;
        delivered.map(|()| true).map_err(|error| format!("{server}: {error}"))
    }

    async fn hand_over_unconfirmed(
        &mut self,
        found: HashSet<(i64, TipMatch)>,
    ) -> Result<(), String> {
        self.reported.retain(|reported| found.contains(reported));
        let new: Vec<_> = found.difference(&self.reported).cloned().collect();
        self.hand_over(batch(None, new.iter().cloned())).await?;
        self.reported.extend(new);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let is_over = filters::lock(&self.api).expire(now);
        self.save(is_over).await;
        Ok(())
    }

    /// Brings the file up to date, at once or when it has not been for a while.
    async fn save(&mut self, at_once: bool) {
        if !at_once && self.saved.elapsed() < SAVE {
            return;
        }
        self.saved = Instant::now();
        let api = Shared::clone(&self.api);
        let saved = self.api.service.act(move || filters::lock(&api).save()).await;
        if let Err(error) = saved {
            let fields = json!({ "error": error.to_string() });
            log::event(Level::Error, "conduit_filters_not_saved", &fields);
        }
    }
}

/// The input that spends a watched output. At the same tip a confirmed spend stays, and an output
/// that was unspent can be spent by the mempool alone.
fn spender(
    moment: &Moment<'_>,
    outpoint: Outpoint,
    known: Option<Spend>,
    is_same_tip: bool,
) -> Result<Option<Spend>, Refusal> {
    let is_settled = known.is_some_and(|known| known.block.is_some());
    if !is_same_tip {
        return moment.spend(outpoint);
    }
    if is_settled {
        return Ok(known);
    }
    let spender = moment.mempool.as_ref().and_then(|mempool| mempool.spender(&outpoint));
    Ok(spender.map(|spender| Spend { txid: spender.txid, vin: spender.vin, block: None }))
}

/// What is to be handed over next.
enum Step {
    /// The matches of a block, and the block.
    Block(Tip, Batch),
    /// At the tip: the matches of all unconfirmed transactions.
    Unconfirmed(HashSet<(i64, TipMatch)>),
}

fn step(moment: &Moment<'_>, api: &Shared) -> Result<Step, Refusal> {
    let searched = filters::lock(api).searched();
    let mut last = searched.unwrap_or_else(|| moment.tip());
    // Down to the fork, when the block searched last has left the chain.
    while let Some(header) = moment.snapshot.header(last.hash)?.filter(|header| !header.confirmed) {
        let below = header.height.checked_sub(1).zip(header.previous);
        let Some((height, hash)) = below else { break };
        last = Tip { height, hash };
    }
    let above = last.height.checked_add(1).map(|height| moment.snapshot.header(height));
    let Some(header) = above.transpose()?.flatten() else {
        return Ok(Step::Unconfirmed(unconfirmed_matches(moment, api)));
    };
    let tip = Tip { height: header.height, hash: header.hash };
    let found = match moment.snapshot.block(tip.hash) {
        // Nothing is left to search.
        Err(Error::Pruned { .. }) | Ok(None) => Vec::new(),
        Err(error) => return Err(error.into()),
        Ok(Some(block)) => block_matches(moment, api, &block)?,
    };
    Ok(Step::Block(tip, batch(Some(shown(tip.hash.to_bytes())), found.into_iter())))
}

/// The matches of all transactions of a block.
fn block_matches(
    moment: &Moment<'_>,
    api: &Shared,
    block: &varve::Block,
) -> Result<Vec<(i64, TipMatch)>, Refusal> {
    let Some(rule) = moment.snapshot.pushdata_rule()? else { return Ok(Vec::new()) };
    let parsed = block.parse()?;
    let filters = filters::lock(api);
    let mut found = Vec::new();
    for (tx, txid) in parsed.txs().iter().zip(&block.txids) {
        let mut note = |item: PushedItem<'_>, index| {
            let hash = item.hash();
            let matched = |account| (account, tip_match(hash, *txid, index, item.flags));
            found.extend(filters.watching(&hash).map(matched));
        };
        for (index, output) in (0..).zip(tx.outputs()) {
            rule.of_output(output.script).for_each(|item| note(item, index));
        }
        for (index, input) in (0..).zip(tx.inputs()).filter(|_| !tx.is_coinbase()) {
            rule.of_input(input.script).for_each(|item| note(item, index));
        }
    }
    Ok(found)
}

fn unconfirmed_matches(moment: &Moment<'_>, api: &Shared) -> HashSet<(i64, TipMatch)> {
    let Some(mempool) = &moment.mempool else { return HashSet::new() };
    let hashes = filters::lock(api).hashes();
    let mut found = HashSet::new();
    for hash in hashes {
        for row in mempool.pushes(hash) {
            let (Side::Output(index) | Side::Input(index)) = row.side;
            let matched = tip_match(hash, row.txid, index, row.flags);
            let filters = filters::lock(api);
            found.extend(filters.watching(&hash).map(|account| (account, matched.clone())));
        }
    }
    found
}

fn tip_match(hash: PushdataHash, txid: Txid, index: u32, flags: PushdataFlags) -> TipMatch {
    TipMatch {
        push_data_hash_hex: hash.to_string(),
        transaction_id: shown(txid.to_bytes()),
        transaction_index: index,
        flags: flags.bits(),
    }
}

/// Matches by account, each once, in an order that is always the same.
fn batch(block_id: Option<String>, found: impl Iterator<Item = (i64, TipMatch)>) -> Batch {
    let mut accounts: BTreeMap<i64, Vec<TipMatch>> = BTreeMap::new();
    for (account, matched) in found {
        accounts.entry(account).or_default().push(matched);
    }
    let entry = |(account_id, mut matches): (i64, Vec<TipMatch>)| {
        matches.sort_unstable();
        matches.dedup();
        Entry { account_id, matches }
    };
    Batch { block_id, entries: accounts.into_iter().map(entry).collect() }
}
