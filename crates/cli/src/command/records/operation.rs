//! The operations by name.
//!
//! Every operation has the name of the original in snake case, and shorter names where that is
//! long. `docs/records-jsonl.md` has an example of each.

mod alert;
pub(super) mod conflict;
mod create;
mod life;
mod prune;
mod read;
mod scan;
mod tip;

use serde_json::Value;

use super::arguments::{Arguments, required};
use super::failure::Failure;
use super::session::Session;
use super::unit::UnitKind;

/// What a line asks for.
pub(super) enum Line {
    /// Creates or spends.
    Unit(UnitKind),
    /// Any other operation.
    Other(Perform),
}

/// Executes a line, and returns the value of `ok`.
pub(super) type Perform = fn(&Session, &Arguments<'_>) -> Result<Value, Failure>;

/// The names of an operation; the documentation uses the first.
struct Named(&'static [&'static str], Perform);

const OTHERS: &[Named] = &[
    Named(&["spend_and_create_multi"], create::spend_and_create_multi),
    Named(&["create_outputs"], create::create_outputs),
    Named(&["spend_multi"], life::spend_multi),
    Named(&["unspend"], life::unspend),
    Named(&["set_mined", "set_mined_multi"], life::set_mined),
    Named(
        &["mark_on_longest_chain", "mark_transactions_on_longest_chain"],
        life::mark_on_longest_chain,
    ),
    Named(&["set_locked", "lock"], life::set_locked),
    Named(&["unlock"], life::unlock),
    Named(&["remove_block_ids"], life::remove_block_ids),
    Named(&["delete"], life::delete),
    Named(&["preserve_until", "preserve_transactions"], life::preserve_until),
    Named(&["process_expired_preservations"], life::process_expired_preservations),
    Named(&["freeze", "freeze_utxos"], alert::freeze),
    Named(&["unfreeze", "unfreeze_utxos"], alert::unfreeze),
    Named(&["freeze_window", "set_freeze_window"], alert::freeze_window),
    Named(&["reassign", "reassign_utxo"], alert::reassign),
    Named(&["get"], read::get),
    Named(&["get_meta"], read::get_meta),
    Named(&["get_spend"], read::get_spend),
    Named(&["decorate", "batch_decorate"], read::decorate),
    Named(&["previous_outputs", "previous_outputs_decorate"], read::previous_outputs),
    Named(&["health"], read::health),
    Named(&["sizes"], read::sizes),
    Named(&["unmined", "get_unmined_tx_iterator", "unmined_iterator"], scan::unmined),
    Named(&["query_old_unmined", "query_old_unmined_transactions"], scan::query_old_unmined),
    Named(&["scan"], scan::scan),
    Named(&["set_conflicting"], conflict::set_conflicting),
    Named(&["remove_from_conflicting_children"], conflict::remove_from_conflicting_children),
    Named(&["get_conflicting_children"], conflict::get_conflicting_children),
    Named(&["get_counter_conflicting"], conflict::get_counter_conflicting),
    Named(&["get_and_lock_children"], conflict::get_and_lock_children),
    Named(&["process_conflicting"], conflict::process_conflicting),
    Named(&["conflict_intents"], conflict::conflict_intents),
    Named(&["retry_conflict_intent"], conflict::retry_conflict_intent),
    Named(&["abandon_conflict_intent"], conflict::abandon_conflict_intent),
    Named(&["prune"], prune::prune),
    Named(&["restart", "load_unmined"], prune::restart),
    Named(&["set_block_height"], tip::set_block_height),
    Named(&["get_block_height"], tip::get_block_height),
    Named(&["set_median_block_time"], tip::set_median_block_time),
    Named(&["set_block_state"], tip::set_block_state),
    Named(&["block_state", "get_block_state"], tip::block_state),
];

/// What a line asks for, by its `op`.
pub(super) fn find(arguments: &Arguments<'_>) -> Result<Line, Failure> {
    let op = required("op", arguments.text(&["op"])?)?;
    match op {
        "create" => return Ok(Line::Unit(UnitKind::Create)),
        "spend" => return Ok(Line::Unit(UnitKind::Spend)),
        "spend_and_create" => return Ok(Line::Unit(UnitKind::SpendAndCreate)),
        _ => {}
    }
    let found = OTHERS.iter().find(|Named(names, _)| names.contains(&op));
    let Some(Named(_, perform)) = found else {
        let known: Vec<&str> =
            OTHERS.iter().filter_map(|Named(names, _)| names.first().copied()).collect();
        let known = known.join(", ");
        let what = format!("no {op:?}; known are create, spend, spend_and_create, {known}");
        return Err(Failure::argument("op", what));
    };
    Ok(Line::Other(*perform))
}

/// Combines several answers: all of them when none failed, else the first failure with all of them.
fn all_or_failure(list: &'static str, items: Vec<Value>) -> Result<Value, Failure> {
    if items.iter().any(|item| item.get("error").is_some()) {
        return Err(Failure::Partly { list, items });
    }
    Ok(Value::Object([(list.to_owned(), items.into())].into_iter().collect()))
}
