//! `expected.json`: the model's answers, with Bitcoin Core's field names where they mean the same.
//! The fields are listed in the crate's documentation.

use bitcoin::hashes::{Hash as _, HashEngine as _, sha256};
use bitcoin::hex::DisplayHex as _;
use serde_json::{Map, Value, json};
use varve_types::{Outpoint, Txid};

use crate::chain::Unconfirmed;
use crate::config::Config;
use crate::model::{ChainTip, Model, OutputSample, Reorg, ScriptSample, SetStats};

/// Longer histories and lists are represented by their length and hash alone.
const MAX_LIST: usize = 5_000;

/// The answers of a model that has seen the whole chain.
pub(crate) fn expected(config: &Config, model: &mut Model, mempool: &[Unconfirmed]) -> Value {
    let stats: Vec<SetStats> = model.set_stats().to_vec();
    let hashes = model.set_hashes();
    let model = &*model;
    let tip = model.block_hash(model.height()).map(|hash| hash.to_string());
    let last = stats.last();
    let at_heights: Map<String, Value> =
        stats.iter().map(|stats| (stats.height.to_string(), set_stats(model, stats))).collect();
    json!({
        "network": config.network().name(),
        "profile": config.profile.name(),
        "seed": config.seed,
        "signed": config.signed_percent,
        "blocks": config.blocks,
        "height": model.height(),
        "tip": tip,
        "bestblock": tip,
        "transactions_confirmed": model.transactions(),
        "chaintips": chain_tips(model),
        "reorgs": reorgs(model),
        "hash_serialized_3": reversed(hashes.hash_serialized_3),
        "muhash": last.map(|stats| reversed(stats.muhash)),
        "txouts": last.map(|stats| stats.txouts),
        "bogosize": last.map(|stats| stats.bogosize),
        "total_amount": last.map(|stats| stats.total_amount),
        "transactions": hashes.transactions,
        "at_heights": at_heights,
        "outputs": model.output_samples().iter().map(|s| output(model, s)).collect::<Value>(),
        "scripts": model.script_samples().iter().map(script).collect::<Value>(),
        "mempool": mempool.iter().map(unconfirmed).collect::<Value>(),
    })
}

fn chain_tips(model: &Model) -> Value {
    let tip = |tip: &ChainTip| {
        json!({
            "height": tip.height,
            "hash": tip.hash.to_string(),
            "branchlen": tip.branch_length,
        })
    };
    model.chain_tips().iter().map(tip).collect()
}

fn reorgs(model: &Model) -> Value {
    let reorg = |reorg: &Reorg| {
        json!({
            "from": reorg.from,
            "depth": reorg.depth,
            "old_tip": reorg.old_tip.to_string(),
            "new_tip": reorg.new_tip.to_string(),
            "height": reorg.height,
        })
    };
    model.reorgs().iter().map(reorg).collect()
}

fn set_stats(model: &Model, stats: &SetStats) -> Value {
    json!({
        "height": stats.height,
        "bestblock": model.block_hash(stats.height).map(|hash| hash.to_string()),
        "txouts": stats.txouts,
        "bogosize": stats.bogosize,
        "muhash": reversed(stats.muhash),
        "total_amount": stats.total_amount,
    })
}

fn output(model: &Model, sample: &OutputSample) -> Value {
    let spender = sample.spender.map(|spend| {
        json!({
            "txid": spend.txid.to_string(),
            "vin": spend.vin,
            "height": spend.height,
            "blockhash": model.block_hash(spend.height).map(|hash| hash.to_string()),
        })
    });
    json!({
        "txid": sample.outpoint.txid.to_string(),
        "vout": sample.outpoint.vout,
        "value": sample.value,
        "script_pubkey": sample.script.to_lower_hex_string(),
        "height": sample.height,
        "coinbase": sample.coinbase,
        "spender": spender,
    })
}

fn script(sample: &ScriptSample) -> Value {
    let mut status = sha256::Hash::engine();
    for (height, txid) in &sample.history {
        status.input(format!("{txid}:{height}:").as_bytes());
    }
    let status = sha256::Hash::from_engine(status).to_byte_array();
    let mut value = json!({
        "script_pubkey": sample.script.to_lower_hex_string(),
        "scripthash": reversed(sha256::Hash::hash(&sample.script).to_byte_array()),
        "history_count": sample.history.len(),
        "status": status.to_lower_hex_string(),
        "unspent_count": sample.unspent.len(),
        "balance": sample.unspent.values().map(|(value, _)| value).sum::<u64>(),
    });
    let entry = |(height, txid): &(u32, Txid)| {
        let txid = txid.to_string();
        json!({ "height": height, "tx_hash": txid })
    };
    let coin = |(outpoint, (value, height)): (&Outpoint, &(u64, u32))| {
        json!({
            "tx_hash": outpoint.txid.to_string(),
            "tx_pos": outpoint.vout,
            "value": value,
            "height": height,
        })
    };
    let fields = value.as_object_mut().expect("it was made as an object");
    if sample.history.len() <= MAX_LIST {
        fields.insert("history".to_owned(), sample.history.iter().map(entry).collect());
    }
    if sample.unspent.len() <= MAX_LIST {
        fields.insert("unspent".to_owned(), sample.unspent.iter().map(coin).collect());
    }
    value
}

fn unconfirmed(transaction: &Unconfirmed) -> Value {
    json!({
        "txid": transaction.txid.to_string(),
        "hex": transaction.bytes.to_lower_hex_string(),
    })
}

/// Hexadecimal in the order in which hashes are shown.
fn reversed(mut hash: [u8; 32]) -> String {
    hash.reverse();
    hash.to_lower_hex_string()
}
