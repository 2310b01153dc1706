//! Nodes that do not agree with ours, or with one another.

use serde_json::json;
use varve_node::{Organizer, SyncOptions};
use varve_testdata::bitcoind::Bitcoind;
use varve_types::Network;

use super::follower::Follower;
use super::p2p;
use crate::rig::{chain_tips, disk, options, sync, sync_options, tip};

#[test]
fn the_best_chain_wins_whichever_node_has_it() {
    let Some((one, mut other)) = Bitcoind::start_two(300) else { return };
    one.mine(40);
    other.mine(30);
    let folder = tempfile::tempdir().unwrap();
    let ours = Follower::start("two", folder.path(), Box::new(p2p(&[&other, &one])));
    ours.reaches(&one.tip());
    for lead in [1, 2, 10] {
        for (behind, ahead) in [(&other, &one), (&one, &other)] {
            behind.mine(ahead.height() - behind.height() + lead);
            ours.reaches(&behind.tip());
        }
    }
    let tips = [&one, &other].map(|node| (u64::from(node.height()), node.tip()));
    // One of them may go.
    other.stop();
    one.mine(1);
    let at = ours.reaches(&one.tip());
    assert_eq!(at.tip.0.to_u32(), one.height());
    let stale: Vec<_> = chain_tips(&ours.stop()).into_iter().filter(|tip| tip.2 > 0).collect();
    assert_eq!(stale, [(tips[1].0, tips[1].1.clone(), tips[1].0 - 300)]);
}

/// Deeper than the headers of another branch may be below the tip to be stored one by one.
#[test]
fn a_reorganisation_of_200_is_followed_while_it_is_announced() {
    let Some(node) = Bitcoind::start(&[]) else { return };
    node.mine(300);
    let folder = tempfile::tempdir().unwrap();
    let ours = Follower::start("deep", folder.path(), Box::new(p2p(&[&node])));
    ours.reaches(&node.tip());
    for _ in 0..2 {
        // One call for each block, so that each is announced by itself.
        let first = node.call("getblockhash", &json!([node.height() - 199]));
        node.call("invalidateblock", &json!([first]));
        (0..201).for_each(|_| drop(node.mine(1)));
        ours.reaches(&node.tip());
    }
    let told = ours.told();
    assert!(!told.iter().any(|told| told.contains("Warning")), "{told:#?}");
    ours.stop();
}

/// The first message of headers has less work than our chain, and so has the second alone.
#[test]
fn a_reorganisation_from_genesis_longer_than_messages_of_headers() {
    let Some(node) = Bitcoind::start(&[]) else { return };
    node.mine(2500);
    let folder = tempfile::tempdir().unwrap();
    let mut ours = Organizer::open(disk(folder.path()), options(Network::Regtest)).unwrap();
    let options = SyncOptions { all_branches: false, ..sync_options() };
    assert_eq!(sync(&mut ours, &mut p2p(&[&node]), &options).unwrap(), []);
    assert_eq!(tip(&ours), (2500, node.tip()));
    let first = node.call("getblockhash", &json!([1]));
    node.call("invalidateblock", &json!([first]));
    node.mine(4500);
    assert_eq!(sync(&mut ours, &mut p2p(&[&node]), &options).unwrap(), []);
    assert_eq!(tip(&ours), (4500, node.tip()));
    ours.verify(&mut |_, _| {}).unwrap();
}
