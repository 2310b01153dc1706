//! One module for each command.

pub(crate) mod address;
pub(crate) mod block;
pub(crate) mod compact;
pub(crate) mod demo;
pub(crate) mod index;
pub(crate) mod maintain;
pub(crate) mod manual;
pub(crate) mod mempool;
pub(crate) mod proof;
pub(crate) mod records;
pub(crate) mod serve;
pub(crate) mod sim;
pub(crate) mod spender;
pub(crate) mod status;
pub(crate) mod sync;
pub(crate) mod tx;
pub(crate) mod utxo;
pub(crate) mod verdict;

use anyhow::Result;

use crate::args::{Args, Command};

/// Runs a command, in this process.
pub(crate) fn run(args: &Args) -> Result<()> {
    let global = &args.global;
    match &args.command {
        Command::Demo(demo) => demo::run(demo, global),
        Command::Sim(sim) => sim::run(sim, global.json),
        Command::Sync(sync) => sync::run(sync, global),
        Command::Serve(serve) => serve::run(serve, global),
        Command::Status => status::run(global),
        Command::Tx { txid } => tx::run(*txid, global),
        Command::Block { block } => block::run(*block, global),
        Command::Address(address) => address::run(address, global),
        Command::Mempool => mempool::run(global),
        Command::Spender { outpoint } => spender::run(*outpoint, global),
        Command::Proof(proof) => proof::run(proof, global),
        Command::Index(index) => index::run(index, global),
        Command::Compact => compact::run(global),
        Command::Verify => maintain::verify(global),
        Command::Repair => maintain::repair(global),
        Command::Invalidate { block } => verdict::invalidate(*block, global),
        Command::Reconsider { block } => verdict::reconsider(*block, global),
        Command::Records(records) => records::run(records, global),
        Command::Utxo(utxo) => utxo::run(utxo, global),
        Command::Completions { shell } => manual::completions(*shell),
        Command::Man { out } => manual::pages(out.as_deref()),
    }
}
