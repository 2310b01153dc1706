//! Compressed blocks answer as plain ones do: live, after opening, and beside new blocks.

use std::path::Path;

use varve_node::{Compacted, Options, Organizer};
use varve_testdata::chains;
use varve_types::{Height, Network};

use crate::rig::{disk, options, pipe, sync, sync_options};

/// The bytes of every confirmed block.
fn blocks_of(node: &Organizer) -> Vec<Vec<u8>> {
    let snapshot = node.snapshot();
    let view = snapshot.view();
    let heights = (0..=snapshot.tip.0.to_u32()).map(Height::new);
    heights
        .map(|height| {
            let link = view.to_confirmed(height).unwrap();
            view.raw_block(link).unwrap().unwrap().as_ref().to_vec()
        })
        .collect()
}

/// How many files of compressed blocks there are.
fn packed_files(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder.join("blocks")).unwrap().map(Result::unwrap);
    let names = files.map(|file| file.file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("packed-")).count() as u64
}

#[test]
fn compressed_blocks_answer_as_before_and_the_chain_grows_on() {
    let Some(blocks) = chains::core31() else { return };
    let folder = tempfile::tempdir().unwrap();
    let options = || Options { block_segment: 20_000, ..options(Network::Regtest) };
    let mut node = Organizer::open(disk(folder.path()), options()).unwrap();
    let half = &blocks[..blocks.len() / 2];
    sync(&mut node, &mut pipe(Network::Regtest, half), &sync_options()).unwrap();
    let (before, view) = (blocks_of(&node), node.snapshot().view());
    let mut seen = Vec::new();
    let compacted = node.compact(&mut |done, all| seen.push((done, all))).unwrap();
    assert!(compacted.files > 1 && compacted.bytes_after < compacted.bytes_before);
    assert_eq!(seen.last(), Some(&(compacted.bytes_before, compacted.bytes_before)));
    assert_eq!(packed_files(folder.path()), compacted.files);
    assert!(blocks_of(&node) == before);
    let first = view.to_confirmed(Height::new(1)).unwrap();
    assert!(view.raw_block(first).unwrap().unwrap().as_ref() == before[1], "an older snapshot");
    assert_eq!(node.compact(&mut |_, _| {}).unwrap(), Compacted::default(), "nothing is left");
    node.verify(&mut |_, _| {}).unwrap();
    drop((node, view));

    let mut node = Organizer::open(disk(folder.path()), options()).unwrap();
    assert!(blocks_of(&node) == before);
    sync(&mut node, &mut pipe(Network::Regtest, &blocks), &sync_options()).unwrap();
    assert!(blocks_of(&node).starts_with(&before[..100]));
    node.compact(&mut |_, _| {}).unwrap();
    node.verify(&mut |_, _| {}).unwrap();
    drop(node);
    let node = Organizer::repair(disk(folder.path()), options(), &mut |_, _| {}).unwrap();
    node.verify(&mut |_, _| {}).unwrap();
}
