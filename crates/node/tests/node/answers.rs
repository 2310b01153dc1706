//! Chains of real nodes, and what those nodes say of them.

use std::fs;

use serde_json::Value;
use varve_node::Organizer;
use varve_types::Network;
use varve_types::blk::{Records, XorKey};
use varve_utxo::SetHash;

use crate::rig::{
    Dice, chain_tips, disk, expected_tips, options, pipe, set_hash, stop_at, sync, sync_options,
    tip,
};

/// The blocks of the chain that Core wrote, in the order of its file, and its answers.
pub(crate) fn core_chain() -> Option<(Vec<Vec<u8>>, Value)> {
    let folder = varve_testdata::data("regtest-core31")?;
    let key = fs::read(folder.join("blocks/xor.dat")).unwrap().try_into().unwrap();
    let mut file = fs::read(folder.join("blocks/blk00000.dat")).unwrap();
    XorKey::new(key).apply(0, &mut file);
    let records = Records::new(&file, Network::Regtest.disk_magic());
    let expected = fs::read(folder.join("expected.json")).unwrap();
    let expected = serde_json::from_slice(&expected).unwrap();
    Some((records.map(|record| record.block.to_vec()).collect(), expected))
}

/// Compares everything at the tip with Core's answers.
fn check_core_tip(node: &Organizer, expected: &Value) {
    assert_eq!(tip(node).1, expected["tip"]);
    assert_eq!(chain_tips(node), expected_tips(&expected["chaintips"]));
    let answer = &expected["hash_serialized_3"];
    assert_eq!(set_hash(node, SetHash::HashSerialized3), answer["hash_serialized_3"]);
    let snapshot = varve_testdata::data("regtest-core31/snapshot.dat").unwrap();
    let mut ours = Vec::new();
    node.snapshot().utxo.export(Network::Regtest, &mut ours, &mut |_, _| {}).unwrap();
    assert!(ours == fs::read(snapshot).unwrap(), "the snapshot file is another one");
}

#[test]
fn the_chain_of_core_in_any_order_of_its_blocks() {
    let Some((mut blocks, expected)) = core_chain() else { return };
    for seed in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let mut node = Organizer::open(disk(folder.path()), options(Network::Regtest)).unwrap();
        let refused =
            sync(&mut node, &mut pipe(Network::Regtest, &blocks), &sync_options()).unwrap();
        assert_eq!(refused, []);
        check_core_tip(&node, &expected);
        drop(node);
        let node = Organizer::open(disk(folder.path()), options(Network::Regtest)).unwrap();
        check_core_tip(&node, &expected);
        Dice(seed).shuffle(&mut blocks);
    }
}
