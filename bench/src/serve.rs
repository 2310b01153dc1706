//! `serve`: Electrum requests a second, against ElectrumX with a real node behind it.
//!
//! 1. A signed chain is simulated once; ours syncs it, and where there is a real node and Python,
//!    the node imports it and ElectrumX indexes it from there ([`electrumx`]).
//! 2. The same requests go to both, by the same generator ([`load`]): for each of some thousand
//!    scripts its history, balance and unspent outputs, then its transactions, as a wallet's first
//!    sync asks for them. Every request is asked once, so caches of answers help nobody.
//! 3. A wallet of 4,000 addresses syncs over one connection in batches: it subscribes, and fetches
//!    the histories and transactions of what is used.
//! 4. Transactions are fetched by Esplora's `/tx/:txid`.
//! 5. Ten thousand clients with ten subscriptions each get a block every second ([`crowd`]).
//!
//! Every server is a separate process; the generator shares the processors with it.

mod crowd;
mod electrumx;
mod load;
mod ours;
mod wallet;

use std::path::Path;

use anyhow::{Context as _, Result};
use varve_bench::ratio::Ratio;
use varve_sim::{Config, Profile};

use crate::Effort;
use wallet::Wallet;

pub(crate) use ours::run as be_server;

/// Blocks of the chain, and transactions in each.
const BLOCKS: u32 = 260;
const TRANSACTIONS: u32 = 150;
/// Blocks at the end of the chain that come while clients listen.
const LIVE: u32 = 10;
/// Connections that ask for transactions by REST.
const CONNECTIONS: usize = 16;

pub(crate) fn run(effort: Effort) -> Result<()> {
    let scripts = match effort {
        Effort::Default => 4_000,
        Effort::Full => 20_000,
    };
    let folder = tempfile::tempdir_in(".")?;
    let chain = folder.path().join("node").join("regtest");
    let config = Config {
        transactions: Some(TRANSACTIONS),
        signed_percent: 100,
        mempool: 0,
        ..Config::new(Profile::Mainnet, BLOCKS, 15)
    };
    std::fs::create_dir_all(&chain)?;
    varve_sim::write_chain(&config, &chain, |_| ())?;
    let wallet = Wallet::of(&chain, scripts)?;
    let rate = ours(folder.path(), &chain, &wallet)?;
    match electrumx::start(folder.path(), &chain) {
        Ok(rival) => {
            let theirs = load::run(rival.address(), &wallet.requests(), &load::MIX)?;
            println!("ElectrumX: {:.0} requests/s", theirs.rate);
            Ratio::at_least("serve.electrumx", rate / theirs.rate, 5.0).print();
        }
        Err(error) => println!("going on without ElectrumX: {error:#}"),
    }
    Ok(())
}

/// Our side. Returns the requests a second of the mix.
fn ours(folder: &Path, chain: &Path, wallet: &Wallet) -> Result<f64> {
    let server = ours::start(&folder.join("varve"), chain, Some(BLOCKS - LIVE))?;
    let mix = load::run(server.address, &wallet.requests(), &load::MIX)?;
    println!("varve: {:.0} requests/s, {:.1} MB/s of answers", mix.rate, mix.megabytes);
    let batches = wallet.batches(4_000);
    let synced = load::run(server.address, &batches, &load::ONE)?;
    println!("a wallet of 4,000 addresses: {:.3} s", synced.seconds);
    Ratio::at_most("serve.wallet", synced.seconds, 1.0).print();
    let tx = load::get(server.http, &wallet.paths(), CONNECTIONS)?;
    println!("Esplora /tx/:txid: {:.0} requests/s, 99 in 100 within {:.2} ms", tx.rate, tx.p99);
    Ratio::at_least("serve.esplora_tx", tx.rate, 20_000.0).print();
    Ratio::at_most("serve.esplora_tx_p99", tx.p99, 10.0).print();
    crowd::run(server, chain, (BLOCKS - LIVE, BLOCKS)).context("ten thousand clients")?;
    Ok(mix.rate)
}
