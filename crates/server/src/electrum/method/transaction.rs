//! Methods about transactions.

use hex_conservative::DisplayHex as _;
use serde_json::json;
use varve::types::merkle::MerkleBranch;
use varve::types::{Format, Tx, Txid};

use super::chain::no_block;
use super::{Call, Method, Naming, Subject, Topic};
use crate::electrum::fault::Fault;
use crate::electrum::params::Params;
use crate::electrum::subject::height;
use crate::json::{ElectrumProof, VerboseTx};

pub(super) const METHODS: &[Method] = &[
    Method("blockchain.transaction.get", &["tx_hash", "verbose"], get),
    Method("blockchain.transaction.get_merkle", &["tx_hash", "height"], merkle),
    Method("blockchain.transaction.id_from_pos", &["height", "tx_pos", "merkle"], id_from_pos),
    Method("blockchain.transaction.get_height", &["tx_hash"], |call, params| {
        let height = height(call.snapshot, params.txid(0)?)?;
        call.answer(&height)
    }),
    Method(
        "blockchain.transaction.get_confirmed_blockhash",
        &["tx_hash", "include_header"],
        confirmed_block,
    ),
    Method("blockchain.transaction.subscribe", &["tx_hash"], |call, params| {
        let subject = Subject::Transaction(params.txid(0)?);
        call.subscribe(Topic { subject, naming: Naming::Hash }, None)
    }),
    Method("blockchain.transaction.unsubscribe", &["tx_hash"], |call, params| {
        call.unsubscribe(Subject::Transaction(params.txid(0)?), Naming::Hash)
    }),
];

fn unknown(txid: Txid) -> Fault {
    Fault::daemon(format!("no such mempool or blockchain transaction {txid}"))
}

fn get(call: &mut Call<'_>, params: &Params<'_>) -> Result<(), Fault> {
    let (txid, is_verbose) = (params.txid(0)?, params.flag(1)?);
    let (snapshot, limit) = (call.snapshot, call.shared.limits.response);
    let check = |bytes: &[u8]| match bytes.len() > limit / 2 {
        true => Err(Fault::response_too_large(limit)),
        false => Ok(()),
    };
    // A transaction of a stale branch alone may be unconfirmed again.
    let mempool = snapshot.mempool();
    let waiting = mempool.as_ref().and_then(|mempool| mempool.entry(&txid));
    if let Some(entry) = waiting {
        let bytes = entry.bytes();
        check(&bytes)?;
        return write(call, &bytes, is_verbose, None);
    }
    let tx = snapshot.tx(txid)?.ok_or_else(|| unknown(txid))?;
    check(tx.bytes())?;
    let block = tx.is_confirmed().then_some(&tx.block);
    write(call, tx.bytes(), is_verbose, block)
}

fn write(
    call: &mut Call<'_>,
    bytes: &[u8],
    is_verbose: bool,
    block: Option<&varve::BlockHeader>,
) -> Result<(), Fault> {
    if !is_verbose {
        call.out.push(b'"');
        call.out.reserve(2 * bytes.len() + 1);
        std::io::Write::write_fmt(call.out, format_args!("{}", bytes.as_hex()))
            .map_err(|_| Fault::bad("the transaction cannot be written"))?;
        call.out.push(b'"');
        return Ok(());
    }
    let (network, tip) = (call.snapshot.network(), call.snapshot.tip());
    let format: Format = network.format();
    let tx = Tx::parse(bytes, format).map_err(|_| Fault::bad("the transaction is damaged"))?;
    call.answer(&VerboseTx::new(&tx, network, block.map(|block| (block, tip))))
}

fn merkle(call: &mut Call<'_>, params: &Params<'_>) -> Result<(), Fault> {
    let txid = params.txid(0)?;
    let height: Option<u32> = params.optional(1)?;
    let proof = call.snapshot.proof(txid)?.filter(|proof| proof.tx.is_confirmed());
    let proof = proof.ok_or_else(|| Fault::bad(format!("transaction {txid} is in no block")))?;
    let found = proof.tx.block.height.to_u32();
    if let Some(height) = height.filter(|height| *height != found) {
        return Err(Fault::bad(format!("transaction {txid} is not in the block at {height}")));
    }
    call.answer(&ElectrumProof::from(&proof))
}

fn id_from_pos(call: &mut Call<'_>, params: &Params<'_>) -> Result<(), Fault> {
    let (height, position) = (params.height(0)?, params.number(1)?);
    let with_proof = params.flag(2)?;
    let block = call.snapshot.block(height)?.ok_or_else(|| no_block(height))?;
    let missing = || Fault::bad(format!("no transaction at {position} in the block at {height}"));
    let place = usize::try_from(position).map_err(|_| missing())?;
    let txid = *block.txids.get(place).ok_or_else(missing)?;
    if !with_proof {
        return call.answer(&txid.to_string());
    }
    let leaves = block.txids.iter().map(|txid| txid.to_bytes()).collect();
    let branch = MerkleBranch::new(leaves, place).ok_or_else(missing)?;
    let shown = |node: &[u8; 32]| Txid::from_bytes(*node).to_string();
    let branch: Vec<String> = branch.siblings.iter().map(shown).collect();
    call.answer(&json!({"tx_hash": txid.to_string(), "merkle": branch}))
}

/// The block of a confirmed transaction (Fulcrum).
fn confirmed_block(call: &mut Call<'_>, params: &Params<'_>) -> Result<(), Fault> {
    let (txid, with_header) = (params.txid(0)?, params.flag(1)?);
    let tx = call.snapshot.tx(txid)?.filter(varve::Transaction::is_confirmed);
    let block = tx.ok_or_else(|| unknown(txid))?.block;
    let mut answer = json!({
        "block_hash": block.hash.to_string(),
        "block_height": block.height.to_u32(),
    });
    if let Some(fields) = answer.as_object_mut().filter(|_| with_header) {
        let header = block.to_bytes().to_lower_hex_string();
        fields.insert("block_header".to_owned(), json!(header));
    }
    call.answer(&answer)
}
