//! Two nodes that do not agree, both asked by ours.

use varve_testdata::bitcoind::Bitcoind;

use super::follower::Follower;
use super::p2p;
use crate::rig::chain_tips;

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
