//! `varve spender`: the input that spends an output.

use anyhow::Result;
use varve::Outpoint;
use varve_server::json;

use crate::args::Global;
use crate::data_dir::DataDir;
use crate::output::print_json;

/// Runs the command.
pub(crate) fn run(outpoint: Outpoint, global: &Global) -> Result<()> {
    let snapshot = DataDir::new(global).open_node()?.snapshot();
    let spender = snapshot.spender(outpoint)?;
    if global.json {
        return print_json(&json::Spender::new(spender.as_ref(), snapshot.tip()));
    }
    match spender {
        None => println!("unspent"),
        Some(spender) => {
            println!("  spender    input {} of {}", spender.vin, spender.txid);
            println!("  block      {} at height {}", spender.block, spender.height);
        }
    }
    Ok(())
}
