//! `varve block`: a block, where it stands, and what it holds.

use anyhow::{Context as _, Result};
use varve::{Amount, Block, BlockId, Invalid};
use varve_server::json;

use crate::args::Global;
use crate::data_dir::DataDir;
use crate::date::utc;
use crate::output::print_json;

/// Runs the command.
pub(crate) fn run(id: BlockId, global: &Global) -> Result<()> {
    let snapshot = DataDir::new(global).open_node()?.snapshot();
    let block = snapshot.block(id)?.with_context(|| match id {
        BlockId::Height(height) => format!("the chain does not reach height {height}"),
        BlockId::Hash(hash) => format!("block {hash} is not known"),
    })?;
    let header = &block.header;
    let invalid = snapshot.invalid(header.hash)?;
    if global.json {
        return print_json(&json::Block::new(&block, invalid.as_ref(), snapshot.tip()));
    }
    println!("  block      {} at height {}", header.hash, header.height);
    if let Some(Invalid { block, reason }) = invalid {
        println!("  refused    {block}: {reason}");
    }
    let depth = snapshot.tip().height.to_u32().saturating_sub(header.height.to_u32());
    match header.confirmed {
        true => println!("  confirmed  {} times", depth + 1),
        false => println!("  confirmed  no: it is on a stale branch, or is not valid"),
    }
    match header.previous {
        Some(previous) => println!("  previous   {previous}"),
        None => println!("  previous   none"),
    }
    let above = header.height.checked_add(1).filter(|_| header.confirmed);
    if let Some(next) = above.map(|above| snapshot.header(above)).transpose()?.flatten() {
        println!("  next       {}", next.hash);
    }
    print_content(&block)
}

/// The header's fields, the sizes and the transactions.
fn print_content(block: &Block) -> Result<()> {
    let parsed = block.parse().context("run `varve verify`")?;
    let header = &block.header;
    println!("  time       {}", utc(header.time));
    println!("  merkle     {}", header.merkle_root);
    println!(
        "  header     version {:08x}, bits {:08x}, nonce {}",
        header.version, header.bits, header.nonce
    );
    println!("  size       {} bytes, {} transactions", block.bytes().len(), block.txids.len());
    let outputs = parsed.txs().first().into_iter().flat_map(|coinbase| coinbase.outputs());
    let mined = outputs.map(|output| output.value.to_sat()).fold(0, u64::saturating_add);
    println!("  mined      {}", Amount::from_sat(mined));
    for (index, txid) in block.txids.iter().enumerate() {
        println!("  {:<10} {txid}", format!("tx {index}"));
    }
    Ok(())
}
