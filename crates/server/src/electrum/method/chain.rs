//! Methods about headers.

use hex_conservative::DisplayHex as _;
use serde::Serialize;
use serde_json::json;
use varve::types::Txid;
use varve::{BlockHeader, Height};

use super::{Call, Method, Naming, Subject, Topic};
use crate::electrum::fault::Fault;
use crate::electrum::params::Params;
use crate::electrum::subject::{tip_answer, tip_header};
use crate::electrum::version::Version;

pub(super) const METHODS: &[Method] = &[
    Method("blockchain.block.header", &["height", "cp_height"], header),
    Method("blockchain.block.headers", &["start_height", "count", "cp_height"], headers),
    Method("blockchain.headers.subscribe", &[], |call, _| {
        call.subscribe(Topic { subject: Subject::Tip, naming: Naming::Hash }, None)
    }),
    Method("blockchain.headers.unsubscribe", &[], |call, _| {
        call.unsubscribe(Subject::Tip, Naming::Hash)
    }),
    Method("blockchain.headers.get_tip", &[], |call, _| {
        call.answer(&tip_answer(&tip_header(call.snapshot)?))
    }),
];

/// Headers in one answer: a period of difficulty.
const MAX_HEADERS: u32 = 2016;

/// A proof of a header under the root over all headers up to a checkpoint.
#[derive(Serialize)]
struct CheckpointProof {
    branch: Vec<String>,
    root: String,
}

fn header(call: &mut Call<'_>, params: &Params<'_>) -> Result<(), Fault> {
    let (height, checkpoint) = (params.height(0)?, params.number_or(1, 0)?);
    let header = at(call, height)?.ok_or_else(|| no_block(height))?;
    let header = header.to_bytes().to_lower_hex_string();
    if checkpoint == 0 {
        return call.answer(&header);
    }
    let CheckpointProof { branch, root } = proof(call, height, checkpoint)?;
    call.answer(&json!({"header": header, "branch": branch, "root": root}))
}

fn headers(call: &mut Call<'_>, params: &Params<'_>) -> Result<(), Fault> {
    let (start, count) = (params.number(0)?, params.number(1)?.min(MAX_HEADERS));
    let checkpoint = params.number_or(2, 0)?;
    let mut list = Vec::new();
    for height in start..start.saturating_add(count) {
        let Some(header) = at(call, Height::new(height))? else { break };
        list.push(header.to_bytes().to_lower_hex_string());
    }
    let mut answer = json!({"count": list.len(), "max": MAX_HEADERS});
    let fields = answer.as_object_mut().ok_or_else(|| Fault::bad("no object"))?;
    let last = u32::try_from(list.len()).ok().and_then(|count| (start + count).checked_sub(1));
    if let Some(last) = last.filter(|_| checkpoint > 0 && !list.is_empty()) {
        let CheckpointProof { branch, root } = proof(call, Height::new(last), checkpoint)?;
        fields.insert("branch".to_owned(), json!(branch));
        fields.insert("root".to_owned(), json!(root));
    }
    if call.client.version < Version::V1_6 {
        fields.insert("hex".to_owned(), json!(list.concat()));
    } else {
        fields.insert("headers".to_owned(), json!(list));
    }
    call.answer(&answer)
}

fn at(call: &Call<'_>, height: Height) -> Result<Option<BlockHeader>, Fault> {
    if height > call.snapshot.tip().height {
        return Ok(None);
    }
    Ok(call.snapshot.header(height)?)
}

fn proof(call: &Call<'_>, height: Height, checkpoint: u32) -> Result<CheckpointProof, Fault> {
    let tip = call.snapshot.tip().height;
    let proof = call.snapshot.header_proof(height, Height::new(checkpoint))?;
    let wrong =
        || Fault::bad(format!("require height {height} <= cp_height {checkpoint} <= tip {tip}"));
    let proof = proof.ok_or_else(wrong)?;
    let shown = |node: &[u8; 32]| Txid::from_bytes(*node).to_string();
    let branch = proof.branch.siblings.iter().map(shown).collect();
    Ok(CheckpointProof { branch, root: proof.root.to_string() })
}

pub(super) fn no_block(height: Height) -> Fault {
    Fault::bad(format!("there is no block at height {height}"))
}
