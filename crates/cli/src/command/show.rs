//! `varve status` and `varve spender`: what the stores say.

use anyhow::{Result, bail};
use serde_json::{Value, json};
use varve_node::{ChainTip, Invalid, Organizer, Prune};
use varve_types::{Height, Outpoint};

use crate::args::Global;
use crate::data_dir::DataDir;

/// Runs `varve status`.
pub(crate) fn status(global: &Global) -> Result<()> {
    let node = DataDir::new(global)?.open_node()?;
    let snapshot = node.snapshot();
    let (height, hash) = snapshot.tip;
    let headers = node.header_height().to_u32();
    let tips = node.chain_tips();
    let tables = node.table_sizes()?;
    let archive: u64 = tables.iter().map(|table| table.body + table.head).sum();
    let (blocks, coins) = (snapshot.blocks.count(), snapshot.utxo.coin_count());
    let kept = Kept::of(&node)?;
    let invalid: Vec<Invalid> = node.invalid_blocks().collect();
    if global.json {
        let tip = |tip: &ChainTip| {
            json!({
                "height": tip.height.to_u32(),
                "hash": tip.hash.to_string(),
                "branchlen": tip.branch_length,
            })
        };
        let answer = json!({
            "network": global.network.name(),
            "height": height.to_u32(),
            "bestblock": hash.to_string(),
            "headers": headers,
            "chaintips": tips.iter().map(tip).collect::<Value>(),
            "invalid": invalid.iter().map(|Invalid { block, reason }| json!({
                "hash": block.to_string(),
                "reason": reason.to_string(),
            })).collect::<Value>(),
            "prune": kept.prune,
            "pruned_below": kept.pruned_below,
            "indexes": kept.indexes.iter().map(|(name, height)| json!({
                "name": name,
                "height": height,
            })).collect::<Value>(),
            "stores": {
                "blocks": { "blocks": blocks },
                "utxo": { "txouts": coins, "runs": snapshot.utxo.runs().as_slice().len() },
                "archive": {
                    "transactions": snapshot.archive.bounds().txs,
                    "headers": snapshot.archive.bounds().headers,
                    "bytes": archive,
                },
                "commit": { "sequence": snapshot.sequence.0 },
            },
        });
        println!("{answer}");
        return Ok(());
    }
    println!("  network    {}", global.network);
    println!("  tip        {hash} at height {height}, headers up to {headers}");
    println!("  stored     {blocks} blocks, {} transactions", snapshot.archive.bounds().txs);
    println!("  unspent    {coins} outputs");
    kept.print();
    for tip in tips.iter().filter(|tip| tip.branch_length > 0) {
        let (height, length) = (tip.height, tip.branch_length);
        println!("  branch     {} at height {height}, {length} blocks long", tip.hash);
    }
    for Invalid { block, reason } in invalid {
        println!("  refused    {block}: {reason}");
    }
    Ok(())
}

/// How the folder is kept, for `status`.
struct Kept {
    /// Bytes of blocks to keep.
    prune: Option<u64>,
    /// Bytes of all confirmed blocks from this height on are there.
    pruned_below: Option<u32>,
    /// The indexes, and how far each goes.
    indexes: Vec<(&'static str, Option<u32>)>,
}

impl Kept {
    fn of(node: &Organizer) -> Result<Self> {
        let settings = node.settings();
        let prune = match settings.prune {
            Prune::Off => None,
            Prune::To(bytes) => Some(bytes),
        };
        let mut indexes = Vec::new();
        for index in settings.indexes.iter() {
            indexes.push((index.name(), node.indexed(index)?.map(Height::to_u32)));
        }
        Ok(Self { prune, pruned_below: node.pruned_below()?.map(Height::to_u32), indexes })
    }

    fn print(&self) {
        if let Some(bytes) = self.prune {
            println!("  prune      to {bytes} bytes of blocks");
        }
        if let Some(height) = self.pruned_below {
            println!("  pruned     the bytes of blocks below height {height}");
        }
        for (name, height) in &self.indexes {
            match height {
                Some(height) => println!("  index      {name}, up to height {height}"),
                None => println!("  index      {name}, not begun; sync brings it on"),
            }
        }
    }
}

/// Runs `varve spender`.
pub(crate) fn spender(outpoint: Outpoint, global: &Global) -> Result<()> {
    let node = DataDir::new(global)?.open_node()?;
    let view = node.snapshot().view();
    if view.output(outpoint)?.is_none() {
        bail!("output {outpoint} is in no stored block");
    }
    let Some(spender) = view.confirmed_spender(outpoint)? else {
        println!("{}", if global.json { "null" } else { "unspent" });
        return Ok(());
    };
    let (txid, vin, height) = (spender.tx.txid, spender.vin, spender.tx.height.to_u32());
    let hash = view.header(spender.tx.block)?.hash;
    if global.json {
        let answer = json!({
            "txid": txid.to_string(),
            "vin": vin,
            "height": height,
            "blockhash": hash.to_string(),
        });
        println!("{answer}");
    } else {
        println!("  spender    input {vin} of {txid}");
        println!("  block      {hash} at height {height}");
    }
    Ok(())
}
