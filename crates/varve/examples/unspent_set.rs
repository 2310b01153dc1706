//! The unspent set alone, as an engine under the caller's own consensus rules.

use std::ops::ControlFlow;
use std::sync::Arc;

use anyhow::{Result, bail};
use varve_consensus::{BlockAt, UnspentOutputsView as _};
use varve_io::{Disk, StoreId};
use varve_sim::{Chain, Config, Profile};
use varve_types::{Amount, Block, Height, Network};
use varve_utxo::{Database, Options, Secret, StoreKey};

fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    // Draw both at random: who knows the secret can choose keys that are slow to look up.
    let key = StoreKey { id: StoreId([1; 16]), secret: Secret::new([2; 16]) };
    let options = Options::new(Network::Regtest, key);
    let mut set = Database::open(Arc::new(Disk::open(folder.path())?), options)?;

    for made in Chain::new(&Config::new(Profile::Mainnet, 130, 7))? {
        let parsed = Block::parse(&made.bytes, Network::Regtest.format())?;
        let block = BlockAt::new(Height::new(made.height), &parsed);
        // Our only rule: nobody may spend a coin of more than 100 in one input.
        let view = set.view(&block)?;
        let is_large = |value: Amount| value > Amount::from_sat(100 * 100_000_000);
        let walk = view.for_each_spend(&block, |spend| match is_large(spend.coin.value) {
            true => ControlFlow::Break(spend.input.outpoint),
            false => ControlFlow::Continue(()),
        })?;
        if let ControlFlow::Break(outpoint) = walk {
            bail!("block {} spends {outpoint}, which is too large", block.hash());
        }
        set.append(&block)?;
    }
    set.flush()?; // durable from here on
    println!("{} coins at {:?}", set.snapshot().coin_count(), set.tip());
    Ok(())
}
