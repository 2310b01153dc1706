//! Syncs a simulated chain in one thread and follows its tip in another.

use std::thread;

use anyhow::Result;
use varve::{Network, Node, Source};
use varve_sim::{Chain, Config, Profile};

fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let node = Node::builder().network(Network::Regtest).datadir(folder.path()).create()?;

    // Subscribers keep no node open and hold no memory: a slow one skips tips, never the last.
    let mut tips = node.tips();
    let subscriber = thread::spawn(move || tips.by_ref().inspect(|tip| println!("{tip}")).count());

    let chain = Chain::new(&Config::new(Profile::Mainnet, 150, 7))?;
    let sync = node.sync(Source::blocks(chain.map(|block| block.bytes))).start()?;

    // Readers never wait for the writer. Each snapshot is whole, whatever the sync is doing.
    while !sync.is_finished() {
        let snapshot = node.snapshot();
        assert_eq!(snapshot.unspent()?.tip(), Some(snapshot.tip()));
        thread::yield_now();
    }
    let done = sync.wait()?;
    println!("{} blocks, {} bytes, at {}", done.connected, done.bytes, done.tip);
    drop(node);
    println!("{} tips seen", subscriber.join().expect("the subscriber does not panic"));
    Ok(())
}
