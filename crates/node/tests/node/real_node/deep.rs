//! A branch from genesis that overtakes a chain of 2,500 blocks: followed by every way, although
//! thousands of its headers have less work than what is stored.

use serde_json::json;
use varve_node::{Organizer, SyncOptions, Verify};
use varve_testdata::bitcoind::Bitcoind;
use varve_types::Network;

use super::source;
use crate::rig::{disk, options, sync, sync_options, tip};

/// The ways that only see the active chain, and the files, which have both.
const WAYS: [&str; 3] = ["rest", "calls", "files"];

#[test]
fn a_branch_of_4500_from_genesis_is_followed() {
    let Some(node) = Bitcoind::start(&["-rest"]) else { return };
    let options_of = |follow| SyncOptions { verify: Verify::Spends, follow, ..sync_options() };
    let folder = tempfile::tempdir().unwrap();
    let open = |way: &str| {
        let path = folder.path().join(way);
        std::fs::create_dir_all(&path).unwrap();
        Organizer::open(disk(&path), options(Network::Regtest)).unwrap()
    };
    node.mine(2500);
    let first = node.tip();
    for way in WAYS {
        let mut ours = open(way);
        sync(&mut ours, source(way, &node, false).as_mut(), &options_of(false)).unwrap();
        assert_eq!(tip(&ours), (2500, first.clone()), "{way}");
    }
    let lowest = node.call("getblockhash", &json!([1]));
    node.call("invalidateblock", &json!([lowest]));
    node.mine(4500);
    for way in WAYS {
        let mut ours = open(way);
        sync(&mut ours, source(way, &node, false).as_mut(), &options_of(false)).unwrap();
        assert_eq!(tip(&ours), (4500, node.tip()), "{way}");
    }
}
