//! Finding records by their state.

use hex_conservative::DisplayHex as _;
use serde_json::{Value, json};
use varve::records::EngineError;
use varve::records::engine::Cursor;
use varve::records::engine::Scan;
use varve::records::store::UnminedTx;
use varve::{Height, Outpoint, Txid};

use crate::command::records::arguments::{Arguments, HEIGHT, required};
use crate::command::records::failure::Failure;
use crate::command::records::session::Session;
use crate::command::records::shape::txids;

/// Records in a page by default.
const PAGE: usize = 1_000;
/// The longest page that a line can ask for.
const LONGEST_PAGE: usize = 100_000;

pub(super) fn unmined(session: &Session, _: &Arguments<'_>) -> Result<Value, Failure> {
    let found: Vec<UnminedTx> = session.store.unmined().collect::<Result<_, _>>()?;
    Ok(UnminedTx::by_creation(found).iter().map(unmined_tx).collect())
}

fn unmined_tx(tx: &UnminedTx) -> Value {
    let input = |input: &Outpoint| json!({ "txid": input.txid.to_string(), "vout": input.vout });
    json!({
        "txid": tx.txid.to_string(),
        "fee": tx.fee.to_sat(),
        "size": tx.size,
        "size_in_bytes": tx.size,
        "inputs": tx.inputs.iter().map(input).collect::<Value>(),
        "created_at": tx.created_at,
        "unmined_since": tx.unmined_since.to_u32(),
        "block_ids": tx.blocks.iter().map(|block| block.id.0).collect::<Value>(),
        "locked": tx.locked,
        "is_coinbase": tx.is_coinbase,
        "skip": tx.is_coinbase,
    })
}

pub(super) fn query_old_unmined(
    session: &Session,
    arguments: &Arguments<'_>,
) -> Result<Value, Failure> {
    let cutoff = arguments.height(&["cutoff_block_height", "cutoff", "block_height", "height"])?;
    let cutoff = required("cutoff_block_height", cutoff)?;
    let mut found = session.store.query_old_unmined(cutoff)?;
    found.sort_unstable();
    Ok(txids(&found))
}

pub(super) fn scan(session: &Session, arguments: &Arguments<'_>) -> Result<Value, Failure> {
    let height = || -> Result<Height, Failure> {
        Ok(arguments.height(HEIGHT)?.unwrap_or(session.store.block_state().height))
    };
    let scan = match arguments.text(&["kind", "scan"])?.unwrap_or("all") {
        "all" => Scan::All,
        "unmined" => Scan::Unmined,
        "old_unmined" => Scan::UnminedSince(height()?),
        "due" | "delete_at_height" => Scan::DueAt(height()?),
        "preserved" | "preserve_until" => Scan::PreservedUntil(height()?),
        "conflicting" => Scan::Conflicting,
        _ => {
            let what = "expected all, unmined, old_unmined, due, preserved or conflicting";
            return Err(Failure::argument("kind", what));
        }
    };
    let Some(limit) = arguments.u32(&["limit"])? else { return Ok(txids(&all(session, scan)?)) };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX).clamp(1, LONGEST_PAGE);
    let page = session.store.engine().scan(scan, cursor(arguments)?, limit);
    let page = page.map_err(|error| match error {
        EngineError::Cursor => Failure::argument("after", "expected the `next` of the page before"),
        error => error.into(),
    })?;
    let next = page.next.map(|cursor| cursor.0.to_lower_hex_string());
    Ok(json!({ "txids": txids(&page.txids), "next": next }))
}

/// Every record that matches, sorted.
fn all(session: &Session, scan: Scan) -> Result<Vec<Txid>, Failure> {
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let page = session.store.engine().scan(scan, cursor, PAGE)?;
        found.extend(page.txids);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Where a page begins: the `next` of the page before.
fn cursor(arguments: &Arguments<'_>) -> Result<Option<Cursor>, Failure> {
    Ok(arguments.bytes(&["after", "next", "cursor"])?.map(Cursor))
}
