//! `varve status` and `varve spender`: what the stores say.

use std::error::Error;
use std::io;

use anyhow::{Result, bail};
use indicatif::BinaryBytes;
use serde_json::{Value, json};
use varve_node::{Budget, ChainTip, Invalid, Prune, Reading, ScriptsChecked};
use varve_types::{Height, Network, Outpoint};
use varve_utxo::MemorySplit;

use crate::args::Global;
use crate::command::records;
use crate::data_dir::DataDir;

/// Runs `varve status`.
pub(crate) fn status(global: &Global) -> Result<()> {
    let data = DataDir::new(global)?;
    let node = data.read_node()?;
    let (height, hash) = node.tip();
    let headers = node.header_height().to_u32();
    let tips = node.chain_tips();
    let (archive, rows) = (node.archive_bytes()?, node.view().bounds());
    let (blocks, (coins, runs)) = (node.blocks().count(), node.coins());
    let kept = Kept::of(&node)?;
    let invalid: Vec<Invalid> = node.invalid_blocks().collect();
    let memory = Memory::of(&node, &data, global);
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
            "scripts": scripts_json(node.scripts()),
            "prune": kept.prune,
            "pruned_below": kept.pruned_below,
            "indexes": kept.indexes.iter().map(|index| json!({
                "name": index.name,
                "height": index.height,
                "damaged": index.damaged,
            })).collect::<Value>(),
            "stores": {
                "blocks": { "blocks": blocks },
                "utxo": { "txouts": coins, "runs": runs },
                "archive": {
                    "transactions": rows.txs,
                    "headers": rows.headers,
                    "bytes": archive,
                },
                "commit": { "sequence": node.sequence().0 },
            },
            "memory": memory.json(),
        });
        println!("{answer}");
        return Ok(());
    }
    println!("  network    {}", global.network);
    println!("  tip        {hash} at height {height}, headers up to {headers}");
    println!("  stored     {blocks} blocks, {} transactions", rows.txs);
    println!("  unspent    {coins} outputs");
    println!("  scripts    {}", scripts_line(node.scripts(), can_check(global.network, &kept)));
    kept.print();
    memory.print();
    for tip in tips.iter().filter(|tip| tip.branch_length > 0) {
        let (height, length) = (tip.height, tip.branch_length);
        println!("  branch     {} at height {height}, {length} blocks long", tip.hash);
    }
    for Invalid { block, reason } in invalid {
        println!("  refused    {block}: {reason}");
    }
    Ok(())
}

/// How far scripts were checked, in JSON.
pub(crate) fn scripts_json(scripts: ScriptsChecked) -> Value {
    let ScriptsChecked { checked_to, assumed_to, unchecked } = scripts;
    json!({
        "checked_to": checked_to.to_u32(),
        "assumed_to": assumed_to.map(Height::to_u32),
        "unchecked": unchecked,
    })
}

/// Whether a sync could check the scripts of blocks that were taken without.
const fn can_check(network: Network, kept: &Kept) -> bool {
    !network.is_bsv() && kept.pruned_below.is_none()
}

/// How far scripts were checked, in words. The rest `can_be` checked, or not.
fn scripts_line(scripts: ScriptsChecked, can_be: bool) -> String {
    let ScriptsChecked { checked_to, assumed_to, unchecked } = scripts;
    let assumed = match assumed_to {
        Some(height) => format!(", assumed to be valid up to {height}"),
        None => String::new(),
    };
    match unchecked {
        0 => format!("checked up to height {checked_to}{assumed}"),
        _ if !can_be => {
            format!("checked up to height {checked_to}{assumed}; not of {unchecked} blocks")
        }
        _ => format!(
            "checked up to height {checked_to}{assumed}; not of {unchecked} blocks, which `varve \
             sync --verify scripts` checks"
        ),
    }
}

/// One of the indexes, for `status`.
struct KeptIndex {
    name: &'static str,
    /// How far it goes; `None` when it has not begun, or is damaged.
    height: Option<u32>,
    /// What is wrong with it.
    damaged: Option<String>,
}

/// Whether the system refused to read: then nothing is known about what is stored.
fn is_of_the_system(error: &(dyn Error + 'static)) -> bool {
    error.is::<io::Error>() || error.source().is_some_and(is_of_the_system)
}

/// How the folder is kept, for `status`.
struct Kept {
    /// Bytes of blocks to keep.
    prune: Option<u64>,
    /// Bytes of all confirmed blocks from this height on are there.
    pruned_below: Option<u32>,
    /// The indexes, and how far each goes.
    indexes: Vec<KeptIndex>,
}

impl Kept {
    fn of(node: &Reading) -> Result<Self> {
        let settings = node.settings();
        let prune = match settings.prune {
            Prune::Off => None,
            Prune::To(bytes) => Some(bytes),
        };
        let mut indexes = Vec::new();
        for index in settings.indexes.iter() {
            let (height, damaged) = match node.indexed(index) {
                Ok(height) => (height.map(Height::to_u32), None),
                Err(error) if is_of_the_system(&error) => return Err(error.into()),
                Err(error) => (None, Some(error.to_string())),
            };
            indexes.push(KeptIndex { name: index.name(), height, damaged });
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
        for KeptIndex { name, height, damaged } in &self.indexes {
            match (height, damaged) {
                (_, Some(what)) => {
                    println!("  index      {name}, damaged: {what}; `varve repair` rebuilds it");
                }
                (Some(height), None) => println!("  index      {name}, up to height {height}"),
                (None, None) => println!("  index      {name}, not begun; sync brings it on"),
            }
        }
    }
}

/// How `--memory` is split for this folder, for `status`.
struct Memory {
    budget: Budget,
    set: MemorySplit,
    /// The index of the records, a store of its own.
    records: Option<u64>,
}

impl Memory {
    fn of(node: &Reading, data: &DataDir, global: &Global) -> Self {
        let (budget, set) = node.memory();
        let folder = data.records().ok();
        let records = folder.and_then(|folder| records::open::index_memory(&folder, global.memory));
        Self { budget, set, records }
    }

    fn json(&self) -> Value {
        let Budget { memory, program, headers, archive, blocks, set, .. } = self.budget;
        let MemorySplit { index, merge, joining, undo, buffers, window } = self.set;
        json!({
            "budget": memory,
            "program": program,
            "headers": headers,
            "archive": archive,
            "blocks": blocks,
            "utxo": {
                "budget": set,
                "index": index,
                "merge": merge,
                "joiner": joining,
                "undo": undo,
                "page_buffers": buffers,
                "window": window,
            },
            "records_index": self.records,
        })
    }

    fn print(&self) {
        let Budget { memory, program, headers, archive, blocks, set, .. } = self.budget;
        let MemorySplit { index, merge, joining, undo, buffers, window } = self.set;
        let size = |bytes: usize| BinaryBytes(bytes as u64);
        println!(
            "  memory     {}: program {}, headers {}, archive {}, blocks on their way {}, unspent \
             set {}",
            size(memory),
            size(program),
            size(headers),
            size(archive),
            size(blocks),
            size(set)
        );
        println!(
            "  set        {}: window {}, index {}, blocks being joined {}, undo records {}, page \
             buffers {}",
            size(set),
            size(window),
            size(index + merge),
            size(joining),
            size(undo),
            size(buffers)
        );
        if let Some(records) = self.records {
            println!("  records    index of {} in memory, beside the above", BinaryBytes(records));
        }
    }
}

/// Runs `varve spender`.
pub(crate) fn spender(outpoint: Outpoint, global: &Global) -> Result<()> {
    let node = DataDir::new(global)?.read_node()?;
    let view = node.view();
    if view.output(outpoint)?.is_none() {
        bail!("output {outpoint} is in no stored block");
    }
    let Some(spender) = view.confirmed_spender(outpoint)? else {
        println!("{}", if global.json { "null" } else { "unspent" });
        return Ok(());
    };
    let txid = view.txid(&spender.tx)?;
    let (vin, height) = (spender.vin, spender.tx.height.to_u32());
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
