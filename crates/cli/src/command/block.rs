//! `varve block`: a block, where it stands, and what it holds.

use anyhow::{Context as _, Result, bail};
use hex_conservative::DisplayHex as _;
use serde_json::json;
use varve_archive::{HeaderLink, HeaderRow};
use varve_node::{ArchiveView, Invalid};
use varve_types::{Amount, Block, Txid};

use crate::args::{BlockName, Global};
use crate::data_dir::DataDir;
use crate::date::utc;

/// Runs the command.
pub(crate) fn run(name: BlockName, global: &Global) -> Result<()> {
    let node = DataDir::new(global)?.read_node()?;
    let view = node.view();
    let link = find_block(&view, name)?;
    let row = view.header(link)?;
    let confirmed = view.to_confirmed(row.height) == Some(link);
    let invalid = node.invalid(&row.hash)?;
    let Some((txids, bytes)) = view.txids(link)?.zip(view.raw_block(link)?) else {
        match invalid {
            Some(Invalid { reason, .. }) => bail!("block {} was refused: {reason}", row.hash),
            None => bail!("block {} has not come; sync from a source that has it", row.hash),
        }
    };
    let previous = row.parent.map(|parent| view.header(parent)).transpose()?;
    let previous = previous.map(|row| row.hash.to_string());
    if global.json {
        let answer = json!({
            "hash": row.hash.to_string(),
            "height": row.height.to_u32(),
            "confirmed": confirmed,
            "invalid": invalid.map(|invalid| invalid.reason.to_string()),
            "previousblockhash": previous,
            "merkleroot": row.merkle_root.to_string(),
            "time": row.time,
            "bits": format!("{:08x}", row.bits),
            "nonce": row.nonce,
            "size": bytes.len(),
            "tx": txids.iter().map(Txid::to_string).collect::<Vec<_>>(),
            "hex": bytes.to_lower_hex_string(),
        });
        println!("{answer}");
        return Ok(());
    }
    println!("  block      {} at height {}", row.hash, row.height);
    if let Some(Invalid { block, reason }) = invalid {
        println!("  refused    {block}: {reason}");
    }
    let depth = node.tip().0.to_u32().saturating_sub(row.height.to_u32());
    match confirmed {
        true => println!("  confirmed  {} times", depth + 1),
        false => println!("  confirmed  no: it is on a branch that lost, or is not valid"),
    }
    println!("  previous   {}", previous.as_deref().unwrap_or("none"));
    let next = view.to_confirmed(row.height.checked_add(1).unwrap_or(row.height));
    if let Some(next) = next.filter(|_| confirmed && depth > 0) {
        println!("  next       {}", view.header(next)?.hash);
    }
    let block = Block::parse(&bytes, global.network.format()).context("run `varve verify`")?;
    print_content(&row, &block, &txids);
    Ok(())
}

/// The header's fields, the sizes and the transactions.
fn print_content(row: &HeaderRow, block: &Block<'_>, txids: &[Txid]) {
    println!("  time       {}", utc(row.time));
    println!("  merkle     {}", row.merkle_root);
    println!(
        "  header     version {:08x}, bits {:08x}, nonce {}",
        block.header().version(),
        row.bits,
        row.nonce
    );
    println!("  size       {} bytes, {} transactions", block.bytes().len(), txids.len());
    let outputs = block.txs().first().into_iter().flat_map(|coinbase| coinbase.outputs());
    let mined = outputs.map(|output| output.value.to_sat()).fold(0, u64::saturating_add);
    println!("  mined      {}", Amount::from_sat(mined));
    for (index, txid) in txids.iter().enumerate() {
        println!("  {:<10} {txid}", format!("tx {index}"));
    }
}

/// A block by its hash, or by its height in the confirmed chain.
fn find_block(view: &ArchiveView, name: BlockName) -> Result<HeaderLink> {
    match name {
        BlockName::Height(height) => {
            let link = view.to_confirmed(height);
            link.with_context(|| format!("the chain does not reach height {height}"))
        }
        BlockName::Hash(hash) => {
            view.to_header(hash)?.with_context(|| format!("block {hash} is not known"))
        }
    }
}
