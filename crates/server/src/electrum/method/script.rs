//! Methods about scripts, which clients name by hash, by bytes (1.7) or by address (Fulcrum).
//!
//! Lists are written into the answer as they are read, one entry at a time. How long a list is, is
//! known from the counts of the index before it is read.

use std::collections::HashSet;
use std::io::Write as _;
use std::ops::ControlFlow;

use serde_json::json;
use varve::types::address;
use varve::types::script::MAX_SCRIPT_SIZE;
use varve::{BlockHash, Height, HistoryItem, Order, Script, ScriptHash};

use super::{Call, Method, Naming, Subject, Topic};
use crate::electrum::fault::Fault;
use crate::electrum::params::Params;

const HASH: Naming = Naming::Hash;
const SCRIPT: Naming = Naming::Script;
const ADDRESS: Naming = Naming::Address;

pub(super) const METHODS: &[Method] = &[
    Method("blockchain.scripthash.get_balance", &["scripthash"], |c, p| balance(c, p, HASH)),
    Method(
        "blockchain.scripthash.get_history",
        &["scripthash", "from_height", "to_height"],
        |c, p| history(c, p, HASH),
    ),
    Method("blockchain.scripthash.get_mempool", &["scripthash"], |c, p| mempool(c, p, HASH)),
    Method("blockchain.scripthash.listunspent", &["scripthash"], |c, p| unspent(c, p, HASH)),
    Method("blockchain.scripthash.get_first_use", &["scripthash"], |c, p| first_use(c, p, HASH)),
    Method("blockchain.scripthash.get_status", &["scripthash"], |c, p| status(c, p, HASH)),
    Method("blockchain.scripthash.subscribe", &["scripthash"], |c, p| subscribe(c, p, HASH)),
    Method("blockchain.scripthash.unsubscribe", &["scripthash"], |c, p| unsubscribe(c, p, HASH)),
    Method("blockchain.scriptpubkey.get_balance", &["scriptpubkey"], |c, p| balance(c, p, SCRIPT)),
    Method(
        "blockchain.scriptpubkey.get_history",
        &["scriptpubkey", "from_height", "to_height"],
        |c, p| history(c, p, SCRIPT),
    ),
    Method("blockchain.scriptpubkey.get_mempool", &["scriptpubkey"], |c, p| mempool(c, p, SCRIPT)),
    Method("blockchain.scriptpubkey.listunspent", &["scriptpubkey"], |c, p| unspent(c, p, SCRIPT)),
    Method("blockchain.scriptpubkey.get_first_use", &["scriptpubkey"], |c, p| {
        first_use(c, p, SCRIPT)
    }),
    Method("blockchain.scriptpubkey.get_status", &["scriptpubkey"], |c, p| status(c, p, SCRIPT)),
    Method("blockchain.scriptpubkey.subscribe", &["scriptpubkey"], |c, p| subscribe(c, p, SCRIPT)),
    Method("blockchain.scriptpubkey.unsubscribe", &["scriptpubkey"], |c, p| {
        unsubscribe(c, p, SCRIPT)
    }),
    Method("blockchain.address.get_balance", &["address"], |c, p| balance(c, p, ADDRESS)),
    Method("blockchain.address.get_history", &["address", "from_height", "to_height"], |c, p| {
        history(c, p, ADDRESS)
    }),
    Method("blockchain.address.get_mempool", &["address"], |c, p| mempool(c, p, ADDRESS)),
    Method("blockchain.address.listunspent", &["address"], |c, p| unspent(c, p, ADDRESS)),
    Method("blockchain.address.get_first_use", &["address"], |c, p| first_use(c, p, ADDRESS)),
    Method("blockchain.address.get_status", &["address"], |c, p| status(c, p, ADDRESS)),
    Method("blockchain.address.get_scripthash", &["address"], |c, p| {
        let named = Named::of(c, p, ADDRESS)?;
        c.answer(&named.hash.to_string())
    }),
    Method("blockchain.address.subscribe", &["address"], |c, p| subscribe(c, p, ADDRESS)),
    Method("blockchain.address.unsubscribe", &["address"], |c, p| unsubscribe(c, p, ADDRESS)),
];

/// A script as a client has named it.
struct Named {
    hash: ScriptHash,
    /// The address, which notifications repeat.
    address: Option<String>,
}

impl Named {
    fn of(call: &Call<'_>, params: &Params<'_>, naming: Naming) -> Result<Self, Fault> {
        match naming {
            Naming::Hash => Ok(Self { hash: params.script_hash(0)?, address: None }),
            Naming::Script => {
                let script = params.bytes(0)?;
                if script.len() > MAX_SCRIPT_SIZE {
                    return Err(Fault::bad("no history is kept of scripts over 10,000 bytes"));
                }
                Ok(Self { hash: ScriptHash::of(&script), address: None })
            }
            Naming::Address => {
                let text = params.text(0)?;
                let network = call.snapshot.network();
                let wrong = || Fault::bad("address cannot be read, or is of another network");
                let script = address::decode(&text, network).map_err(|_| wrong())?;
                Ok(Self { hash: ScriptHash::of(&script), address: Some(text) })
            }
        }
    }
}

fn balance(call: &mut Call<'_>, params: &Params<'_>, naming: Naming) -> Result<(), Fault> {
    let hash = Named::of(call, params, naming)?.hash;
    let confirmed = call.snapshot.script(hash)?.summary()?.balance.to_sat();
    let mempool = call.snapshot.mempool();
    let unconfirmed = mempool.map_or(0, |mempool| mempool.script_delta(hash).balance());
    write(call, format_args!(r#"{{"confirmed":{confirmed},"unconfirmed":{unconfirmed}}}"#))
}

/// All transactions, or those of blocks from one height up to below another (Fulcrum); those of the
/// mempool come last, unless an upper height is given.
fn history(call: &mut Call<'_>, params: &Params<'_>, naming: Naming) -> Result<(), Fault> {
    let hash = Named::of(call, params, naming)?.hash;
    let from = Height::new(params.number_or(1, 0)?);
    let to: Option<i64> = params.optional(2)?;
    let to = to.filter(|to| *to >= 0);
    let script = call.snapshot.script(hash)?;
    open(call, naming, "history")?;
    let (limit, mut count) = (call.shared.limits.history, 0);
    let mut all = Ok(());
    script.txids(from, &mut |txid, height| {
        if to.is_some_and(|to| i64::from(height.to_u32()) >= to) {
            return ControlFlow::Break(());
        }
        // Asked once, when it may be more than a page; a part of a long history is counted.
        if count == PAGE && from == Height::GENESIS && to.is_none() {
            all = check_length(&script, limit);
        }
        if count == limit {
            all = Err(Fault::history_too_long(limit));
        }
        if all.is_err() {
            return ControlFlow::Break(());
        }
        separate(call, count);
        count += 1;
        let entry = format_args!(r#"{{"tx_hash":"{txid}","height":{height}}}"#);
        all = write(call, entry);
        ControlFlow::Continue(())
    })?;
    all?;
    if to.is_none() {
        write_waiting(call, hash, count)?;
    }
    close(call, naming)
}

/// Transactions of a history that are read before it is asked how long it is.
const PAGE: usize = 500;

fn check_length(script: &Script, limit: usize) -> Result<(), Fault> {
    let txs = script.summary()?.txs;
    let fits = usize::try_from(txs).is_ok_and(|txs| txs <= limit);
    if fits { Ok(()) } else { Err(Fault::history_too_long(limit)) }
}

fn mempool(call: &mut Call<'_>, params: &Params<'_>, naming: Naming) -> Result<(), Fault> {
    let hash = Named::of(call, params, naming)?.hash;
    open(call, naming, "history")?;
    write_waiting(call, hash, 0)?;
    close(call, naming)
}

/// The unconfirmed transactions, behind `count` entries.
fn write_waiting(call: &mut Call<'_>, hash: ScriptHash, count: usize) -> Result<(), Fault> {
    let mempool = call.snapshot.mempool();
    let waiting = mempool.map(|mempool| mempool.history(hash)).unwrap_or_default();
    for (place, HistoryItem { txid, height, fee }) in (count..).zip(waiting) {
        separate(call, place);
        let fee = fee.to_sat();
        write(call, format_args!(r#"{{"tx_hash":"{txid}","height":{height},"fee":{fee}}}"#))?;
    }
    Ok(())
}

fn unspent(call: &mut Call<'_>, params: &Params<'_>, naming: Naming) -> Result<(), Fault> {
    let hash = Named::of(call, params, naming)?.hash;
    let script = call.snapshot.script(hash)?;
    let (summary, limit) = (script.summary()?, call.shared.limits.history);
    if summary.funded.saturating_sub(summary.spent) > limit as u64 {
        return Err(Fault::bad(format!("too many unspent outputs: the limit is {limit}")));
    }
    let mempool = call.snapshot.mempool();
    let spent = mempool.as_ref().map(|mempool| mempool.spent_confirmed(hash)).unwrap_or_default();
    let spent: HashSet<_> = spent.into_iter().collect();
    let confirmed = script.unspent()?.into_iter();
    let confirmed = confirmed
        .filter(|output| !spent.contains(&output.outpoint))
        .map(|output| (output.outpoint, output.value, output.height.to_u32()));
    let waiting = mempool.map(|mempool| mempool.unspent(hash)).unwrap_or_default().into_iter();
    let waiting = waiting.map(|output| (output.outpoint, output.value, 0));
    open(call, naming, "utxos")?;
    for (place, (outpoint, value, height)) in confirmed.chain(waiting).enumerate() {
        separate(call, place);
        let (txid, vout, value) = (outpoint.txid, outpoint.vout, value.to_sat());
        let output = format_args!(
            r#"{{"tx_hash":"{txid}","tx_pos":{vout},"height":{height},"value":{value}}}"#
        );
        write(call, output)?;
    }
    close(call, naming)
}

/// The first transaction of a script (Fulcrum); null when there is none.
fn first_use(call: &mut Call<'_>, params: &Params<'_>, naming: Naming) -> Result<(), Fault> {
    let hash = Named::of(call, params, naming)?.hash;
    let first = call.snapshot.script(hash)?.history(Order::Ascending, None, 1)?.txs.pop();
    let first = first.map(|tx| (tx.block, tx.height.to_u32(), tx.txid)).or_else(|| {
        let waiting = call.snapshot.mempool()?.history(hash);
        waiting.first().map(|item| (BlockHash::ZERO, 0, item.txid))
    });
    call.answer(&first.map(|(block, height, txid)| {
        json!({"block_hash": block.to_string(), "height": height, "tx_hash": txid.to_string()})
    }))
}

fn status(call: &mut Call<'_>, params: &Params<'_>, naming: Naming) -> Result<(), Fault> {
    let hash = Named::of(call, params, naming)?.hash;
    let state = call.state(Subject::Script(hash))?;
    call.answer(&state)
}

fn subscribe(call: &mut Call<'_>, params: &Params<'_>, naming: Naming) -> Result<(), Fault> {
    let Named { hash, address } = Named::of(call, params, naming)?;
    call.subscribe(Topic { subject: Subject::Script(hash), naming }, address)
}

fn unsubscribe(call: &mut Call<'_>, params: &Params<'_>, naming: Naming) -> Result<(), Fault> {
    let hash = Named::of(call, params, naming)?.hash;
    call.unsubscribe(Subject::Script(hash), naming)
}

/// Begins a list: bare, or in an object where scripts are named by their bytes.
fn open(call: &mut Call<'_>, naming: Naming, field: &str) -> Result<(), Fault> {
    match naming {
        Naming::Script => write(call, format_args!(r#"{{"{field}":["#)),
        Naming::Hash | Naming::Address => write(call, format_args!("[")),
    }
}

fn close(call: &mut Call<'_>, naming: Naming) -> Result<(), Fault> {
    write(call, format_args!("{}", if naming == Naming::Script { "]}" } else { "]" }))
}

fn separate(call: &mut Call<'_>, place: usize) {
    if place > 0 {
        call.out.push(b',');
    }
}

fn write(call: &mut Call<'_>, text: std::fmt::Arguments<'_>) -> Result<(), Fault> {
    call.out.write_fmt(text).map_err(|_| Fault::bad("the answer cannot be written"))
}
