//! `varve records`: live transactions.
//!
//! Every command but `bench` and `copy` is the short form of a line of `apply`: it makes the line,
//! executes it, and prints the answer for people or as JSON.

mod apply;
mod arguments;
mod bench;
mod copy;
mod failure;
mod operation;
mod session;
mod shape;
mod unit;

use anyhow::{Context as _, Result, anyhow};
use serde_json::{Value, json};
use varve::records::{BlockState, EngineUrl, EngineUrlError};
use varve::{Height, Outpoint, Txid};

use self::session::Session;
use crate::args::Global;
use crate::args::records::{Command, Records};
use crate::data_dir::DataDir;

/// Runs the command.
pub(crate) fn run(records: &Records, global: &Global) -> Result<()> {
    let settings = records.place.settings(global.network);
    let is_bench = matches!(records.command, Command::Bench { .. });
    // A measurement leaves nothing behind, unless --datadir says where.
    let scratch = (is_bench && global.datadir.is_none())
        .then(|| tempfile::Builder::new().prefix("varve-bench-").tempdir_in("."))
        .transpose()
        .context("cannot make a folder for the measurement; pass --datadir DIR")?;
    let folder = match &scratch {
        Some(scratch) => scratch.path().to_owned(),
        None => DataDir::new(global).builder().records_path()?,
    };
    if let Command::Copy { from, to } = &records.command {
        let (from, to) = (engine_url("--from", from)?, engine_url("--to", to)?);
        return copy::run(&from, &to, &folder, &settings, global);
    }
    let engine = engine_url("--engine", &records.place.engine)?;
    let session = Session::open(&engine, &folder, settings, global.memory)?;
    if let Some(height) = records.place.height {
        let height = Height::new(height);
        let state = BlockState { height, ..session.store.block_state() };
        session.set_tip(state).map_err(|failure| session::sentence(&failure))?;
    }
    match &records.command {
        Command::Apply { file } => apply::run(&session, file),
        Command::Bench { transactions, batch } => {
            bench::run(&session, *transactions, *batch, global.json)
        }
        command => {
            let answer = answer(&session, command)?;
            if global.json {
                println!("{answer}")
            } else {
                print(&answer)
            }
            Ok(())
        }
    }
}

/// Reads a URL. It may have a password, so an error does not show it.
fn engine_url(flag: &str, text: &str) -> Result<EngineUrl> {
    text.parse().map_err(|error: EngineUrlError| anyhow!("{flag}: {error}"))
}

/// What a command that is one line, or a few, answers.
fn answer(session: &Session, command: &Command) -> Result<Value> {
    match command {
        Command::Get { txid, fields } => {
            let fields = if fields.is_empty() { Value::Null } else { json!(fields) };
            session.order(&json!({ "op": "get", "txid": txid.to_string(), "fields": fields }))
        }
        Command::Freeze { outputs } => {
            session.order(&json!({ "op": "freeze", "spends": spends(outputs) }))
        }
        Command::Unfreeze { outputs } => {
            session.order(&json!({ "op": "unfreeze", "spends": spends(outputs) }))
        }
        Command::Reassign { output, script, utxo_hash } => session.order(&json!({
            "op": "reassign",
            "outpoint": output.to_string(),
            "new_script": script,
            "new_utxo_hash": utxo_hash,
        })),
        Command::Lock { txids } => lock(session, txids, true),
        Command::Unlock { txids } => lock(session, txids, false),
        Command::Conflicts { txid: Some(txid) } => {
            let txid = txid.to_string();
            let children = json!({ "op": "get_conflicting_children", "txid": txid });
            let counter = json!({ "op": "get_counter_conflicting", "txid": txid });
            Ok(json!({
                "txid": txid,
                "conflicting_children": session.order(&children)?,
                "counter_conflicting": session.order(&counter)?,
            }))
        }
        Command::Conflicts { txid: None } => Ok(json!({
            "conflicting": session.order(&json!({ "op": "scan", "kind": "conflicting" }))?,
            "intents": session.order(&json!({ "op": "conflict_intents" }))?,
        })),
        Command::Intents => session.order(&json!({ "op": "conflict_intents" })),
        Command::Retry { id, ancestor_block_ids } => session.order(&json!({
            "op": "retry_conflict_intent",
            "id": id.to_string(),
            "ancestor_block_ids": ancestor_block_ids,
        })),
        Command::Abandon { id } => {
            session.order(&json!({ "op": "abandon_conflict_intent", "id": id.to_string() }))
        }
        Command::Prune { persisted_height } => {
            session.order(&json!({ "op": "prune", "persisted_height": persisted_height }))
        }
        Command::Apply { .. } | Command::Bench { .. } | Command::Copy { .. } => Ok(Value::Null),
    }
}

fn spends(outputs: &[Outpoint]) -> Value {
    outputs.iter().map(|output| json!({ "outpoint": output.to_string() })).collect()
}

fn lock(session: &Session, txids: &[Txid], locked: bool) -> Result<Value> {
    session.order(&json!({ "op": "set_locked", "txids": shape::txids(txids), "locked": locked }))
}

/// Prints an answer for people: a line a field.
fn print(answer: &Value) {
    if let Value::Array(items) = answer {
        return items.iter().for_each(print);
    }
    let Value::Object(fields) = answer else { return println!("{answer}") };
    for (name, value) in fields {
        match value {
            Value::String(text) => println!("  {name:<21} {text}"),
            Value::Array(items) if items.len() > 1 => {
                items.iter().for_each(|item| println!("  {name:<21} {item}"));
            }
            value => println!("  {name:<21} {value}"),
        }
    }
}
