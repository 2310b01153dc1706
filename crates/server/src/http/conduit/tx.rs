//! A transaction, and the proof that it is in a block.

use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use hex_conservative::DisplayHex as _;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use varve::types::proof::{ProofNode, Subject, Target, TscProof};
use varve::{ProofTarget, Txid};

use super::super::answer::{Answer, Cache, Refusal};
use super::super::api::{Found, Shared};
use super::super::esplora::{Refusals, shown};
use super::accepted;
use super::wire::Form;

fn txid(text: &str) -> Result<Txid, Refusal> {
    text.parse().map_err(|_| Refusal::bad("expected a txid of 64 digits"))
}

/// The bytes of a transaction, confirmed or not: a string of hex, or as they are.
#[utoipa::path(get, path = "/api/v1/transaction/{txid}", tag = "Conduit",
    params(("txid" = String, Path, pattern = "^[0-9a-fA-F]{64}$")),
    responses((status = 200, content((String = "application/json"),
        (Vec<u8> = "application/octet-stream"))), Refusals))]
pub(super) async fn transaction(
    State(api): State<Shared>,
    Path(text): Path<String>,
    headers: HeaderMap,
) -> Answer {
    let form = accepted(&headers);
    api.ask(move |moment| {
        let found = moment.tx(txid(&text)?)?;
        let bytes = match found.ok_or_else(|| Refusal::not_found("transaction not found"))? {
            Found::Unconfirmed(entry) => entry.bytes(),
            Found::Stored(stored) => stored.bytes().to_vec(),
        };
        Ok(match form {
            Form::Json => Answer::json(&bytes.to_lower_hex_string()),
            Form::Binary => Answer::binary(bytes),
        })
    })
    .await
}

/// How a proof is to be written.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProofQuery {
    /// `1` for the whole transaction in place of its txid.
    include_full_tx: Option<String>,
    /// How the block is named: `hash`, `header` or `merkleroot`.
    #[param(pattern = "^(hash|header|merkleroot)$")]
    target_type: Option<String>,
}

/// A merkle proof in the JSON of the TSC standard.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = conduit::MerkleProof)]
#[serde(rename_all = "camelCase")]
pub(super) struct Proof {
    index: u64,
    tx_or_id: String,
    target: String,
    /// The siblings from the transaction up; `*` repeats the node beside it.
    nodes: Vec<String>,
    target_type: &'static str,
}

impl Proof {
    fn new(proof: &TscProof) -> Self {
        let (target, target_type) = match &proof.target {
            Target::BlockHash(hash) => (hash.to_string(), "hash"),
            Target::Header(header) => (header.to_lower_hex_string(), "header"),
            Target::MerkleRoot(root) => (root.to_string(), "merkleroot"),
        };
        let node = |node: &ProofNode| match node {
            ProofNode::Hash(hash) => shown(*hash),
            ProofNode::Duplicate => "*".to_owned(),
        };
        let tx_or_id = match &proof.subject {
            Subject::Txid(txid) => txid.to_string(),
            Subject::Transaction(bytes) => bytes.to_lower_hex_string(),
        };
        let nodes = proof.nodes.iter().map(node).collect();
        Self { index: proof.index, tx_or_id, target, nodes, target_type }
    }
}

/// That a transaction is in a block of the confirmed chain, in the TSC standard format.
#[utoipa::path(get, path = "/api/v1/merkle-proof/{txid}", tag = "Conduit",
    params(("txid" = String, Path, pattern = "^[0-9a-fA-F]{64}$"), ProofQuery),
    responses((status = 200, content((Proof = "application/json"),
        (Vec<u8> = "application/octet-stream"))), Refusals))]
pub(super) async fn merkle_proof(
    State(api): State<Shared>,
    Path(text): Path<String>,
    Query(query): Query<ProofQuery>,
    headers: HeaderMap,
) -> Answer {
    let form = accepted(&headers);
    api.ask(move |moment| {
        let target = match query.target_type.as_deref() {
            None | Some("hash") => ProofTarget::Hash,
            Some("header") => ProofTarget::Header,
            Some("merkleroot" | "merkleRoot") => ProofTarget::MerkleRoot,
            Some(_) => {
                let text = "target type needs to be one of: 'hash', 'header' or 'merkleroot'";
                return Err(Refusal::bad(text));
            }
        };
        let proof = moment.snapshot.proof(txid(&text)?)?;
        let proof = proof.filter(|proof| proof.tx.is_confirmed());
        let proof = proof.ok_or_else(|| Refusal::not_found("transaction not found"))?;
        let mut tsc = proof.tsc(target);
        if query.include_full_tx.as_deref() == Some("1") {
            tsc = tsc.with_transaction(proof.tx.bytes().to_vec());
        }
        let answer = match form {
            Form::Json => Answer::json(&Proof::new(&tsc)),
            Form::Binary => {
                let mut bytes = Vec::new();
                tsc.encode(&mut bytes);
                Answer::binary(bytes)
            }
        };
        Ok(answer.cached(Cache::of_height(proof.tx.block.height.to_u32(), moment.tip())))
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;
    use varve::Network;
    use varve::types::Block;
    use varve::types::merkle::MerkleBranch;

    use super::*;

    /// The proofs that Conduit publishes for mainnet block 413567. It spells repeated nodes out;
    /// ours marks them.
    #[test]
    fn proofs_are_those_of_conduit() {
        let Some(raw) = varve_testdata::data("blocks/mainnet_413567_core.raw") else { return };
        let name = "vectors/conduit/block413567_tsc_merkle_proofs";
        let Some(vectors) = varve_testdata::data(name) else { return };
        let expected: BTreeMap<String, Value> =
            serde_json::from_slice(&std::fs::read(vectors).unwrap()).unwrap();
        let raw = std::fs::read(raw).unwrap();
        let block = Block::parse(&raw, Network::Mainnet.format()).unwrap();
        let txids = block.txids();
        let leaves: Vec<_> = txids.iter().map(|txid| txid.to_bytes()).collect();
        for (index, txid) in txids.iter().enumerate().step_by(13) {
            let branch = MerkleBranch::new(leaves.clone(), index).unwrap();
            let target = Target::BlockHash(block.hash());
            let mut ours = Proof::new(&TscProof::new(&branch, *txid, target));
            for (node, sibling) in ours.nodes.iter_mut().zip(&branch.siblings) {
                if node == "*" {
                    *node = shown(*sibling);
                }
            }
            assert_eq!(serde_json::to_value(&ours).unwrap(), expected[&txid.to_string()]);
        }
    }
}
