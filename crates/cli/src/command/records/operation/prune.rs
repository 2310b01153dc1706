//! Removing records that are no longer needed, and resuming with unmined ones after a restart.

use serde_json::{Value, json};
use varve::Txid;
use varve::records::ErrorCode;
use varve::records::operation::Pruned;
use varve::records::record::BlockId;
use varve::records::store::{LeftOut, RecoveryError, recover};
use varve::records::store::{PruneAt, prune as run};

use super::conflict;
use crate::command::records::arguments::{Arguments, HEIGHT};
use crate::command::records::failure::Failure;
use crate::command::records::session::Session;
use crate::command::records::shape::txids;

pub(super) fn prune(session: &Session, arguments: &Arguments<'_>) -> Result<Value, Failure> {
    let height = arguments.height(HEIGHT)?.unwrap_or(session.store.block_state().height);
    let at = PruneAt {
        height,
        persisted: arguments.height(&["persisted_height"])?,
        assembly_running: arguments.flag(&["assembly_running"])?.unwrap_or(true),
    };
    let report = run(&session.store, at)?;
    let kept = |(txid, why): &(Txid, Pruned)| {
        let by = match why {
            Pruned::NeededBy(child) => Value::String(child.to_string()),
            _ => Value::Null,
        };
        json!({ "txid": txid.to_string(), "why": kept_why(*why), "needed_by": by })
    };
    Ok(json!({
        "elsewhere": report.elsewhere,
        "old_unmined": report.old_unmined,
        "preserved": report.preserved,
        "expired": report.expired,
        "removed": report.removed,
        "blobs_removed": report.blobs.removed,
        "blobs_failed": report.blobs.failed,
        "blobs_error": report.blobs.error,
        "kept": report.kept.iter().map(kept).collect::<Value>(),
    }))
}

const fn kept_why(why: Pruned) -> &'static str {
    match why {
        Pruned::Removed => "REMOVED",
        Pruned::Missing => "MISSING",
        Pruned::NotDue => "NOT_DUE",
        Pruned::Unspent => "UNSPENT",
        Pruned::Unmined => "UNMINED",
        Pruned::NeededBy(_) => "NEEDED",
        Pruned::Pending => "PENDING",
    }
}

pub(super) fn restart(session: &Session, arguments: &Arguments<'_>) -> Result<Value, Failure> {
    let best = arguments.numbers(&["best_block_ids", "block_ids"])?.unwrap_or_default();
    let on_best_chain = |block: BlockId| best.contains(&block.0);
    let found = recover(&session.store, &on_best_chain, &mut |_| Ok(())).map_err(failure)?;
    let left_out = |(txid, why): &(Txid, LeftOut)| {
        let (why, parent) = match why {
            LeftOut::Coinbase => ("COINBASE", None),
            LeftOut::BeforeParent(parent) => ("BEFORE_PARENT", Some(parent.to_string())),
            LeftOut::InvalidParent(parent) => ("INVALID_PARENT", Some(parent.to_string())),
        };
        json!({ "txid": txid.to_string(), "why": why, "parent": parent })
    };
    Ok(json!({
        "replayed": found.replayed,
        "stuck": found.stuck.iter().map(conflict::stuck).collect::<Value>(),
        "added": txids(&found.added),
        "mined": txids(&found.mined),
        "unlocked": txids(&found.unlocked),
        "left_out": found.left_out.iter().map(left_out).collect::<Value>(),
    }))
}

fn failure(error: RecoveryError) -> Failure {
    match error {
        RecoveryError::Conflict(error) => conflict::failure(error),
        RecoveryError::Store(error) => error.into(),
        RecoveryError::Assembly(error) => {
            Failure::Refused { code: ErrorCode::Processing, message: error.to_string() }
        }
    }
}
