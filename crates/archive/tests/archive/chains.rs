//! Real chains, with their stale branches.

use varve_archive::contract::Disk;
use varve_archive::{Chain, FilterHashes, HeaderProof, TxLink};
use varve_types::merkle::merkle_root;
use varve_types::pushdata::PushdataFlags;
use varve_types::{BlockHash, Height, Network, PushdataHash};

use crate::back_ends::on_every_back_end;
use crate::load;
use crate::rig::Rig;

fn shown(hash: [u8; 32]) -> String {
    BlockHash::from_bytes(hash).to_string()
}

/// Mainnet 0–4312: two whole intervals of 2,048 headers and a partial one.
fn mainnet<D: Disk>(disk: D) {
    let Some(blocks) = load::mainnet() else { return };
    let mut rig = Rig::new(Network::Mainnet, disk);
    rig.add_all(&blocks);
    rig.check();
    rig.archive().checkpoint(4313).unwrap();
    rig.reopen();
    assert_eq!(rig.archive().sequence(), 4313);
    rig.check();
    check_header_proofs(&rig);
    check_ranges(&rig);
}

/// Blocks whose hashes the archive proves as one subtree.
const INTERVAL: u32 = 2048;

fn check_header_proofs<D: Disk>(rig: &Rig<D>) {
    let view = rig.view();
    let hashes: Vec<_> = rig.model.active.iter().map(|hash| hash.to_bytes()).collect();
    for checkpoint in [0, 1, 2, 100, INTERVAL - 1, INTERVAL, INTERVAL + 4, 4095, 4096, 4312] {
        let leaves = hashes[..=checkpoint as usize].to_vec();
        let expected = merkle_root(leaves).root;
        let checkpoint = Height::new(checkpoint);
        for target in [0, 1, 2047, 2048, 3000, checkpoint.to_u32()] {
            let proof = view.header_proof(Height::new(target), checkpoint).unwrap();
            if target > checkpoint.to_u32() {
                assert_eq!(proof, None);
                continue;
            }
            let HeaderProof { branch, root } = proof.unwrap();
            assert_eq!(root, expected, "up to {checkpoint}");
            assert_eq!(branch.root(hashes[target as usize]), Some(expected));
        }
    }
    assert_eq!(view.header_proof(Height::GENESIS, Height::new(4313)).unwrap(), None);
}

/// Ranges of hashes and headers, which end with the chain.
fn check_ranges<D: Disk>(rig: &Rig<D>) {
    let view = rig.view();
    let hashes = view.hashes_from(Chain::Confirmed, Height::new(1001), 5).unwrap();
    assert_eq!(hashes, rig.model.active[1001..=1005]);
    let headers = view.headers_from(Chain::Confirmed, Height::new(1001), 2000).unwrap();
    assert_eq!(headers.len(), 2000);
    assert_eq!(headers[0][..], rig.model.get(&rig.model.active[1001]).bytes[..80]);
    let last = view.headers_from(Chain::Confirmed, Height::new(4312), 2000).unwrap();
    assert_eq!(last.len(), 1);
    assert!(view.headers_from(Chain::Candidate, Height::new(4313), 1).unwrap().is_empty());
}

/// Core 31's chain: all script types, stale branches, reorganisations 1 to 6 deep, and its filters.
fn core31<D: Disk>(disk: D) {
    let Some(expected) = load::json("regtest-core31/expected.json") else { return };
    let Some(blocks) = load::core31() else { return };
    let mut rig = Rig::new(Network::Regtest, disk);
    rig.add_all(&blocks);
    rig.check();
    let active: Vec<_> = rig.model.active.iter().map(ToString::to_string).collect();
    let hashes: Vec<_> = expected["blockhash"].as_array().unwrap().iter().collect();
    assert_eq!(active, hashes.iter().map(|hash| hash.as_str().unwrap()).collect::<Vec<_>>());
    rig.make_filters();
    rig.archive().checkpoint(1).unwrap();
    rig.reopen();
    check_filters(&rig, &expected["filters"]);
}

fn check_filters<D: Disk>(rig: &Rig<D>, expected: &serde_json::Value) {
    let view = rig.view();
    let mut seen = 0;
    for (height, answer) in expected.as_object().unwrap() {
        let height = Height::new(height.parse().unwrap());
        let row = view.filter(view.to_confirmed(height).unwrap()).unwrap().unwrap();
        let body: String = row.body.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(body, answer["filter"].as_str().unwrap(), "at {height}");
        assert_eq!(shown(row.header), answer["header"].as_str().unwrap(), "at {height}");
        seen += 1;
    }
    assert!(seen > 80);
    let FilterHashes { previous, hashes } =
        view.filter_hashes(Height::new(10), 5).unwrap().unwrap();
    let header = |height| {
        let row = view.filter(view.to_confirmed(Height::new(height)).unwrap()).unwrap();
        row.unwrap().header
    };
    assert_eq!(previous, header(9));
    let last = hashes
        .iter()
        .fold(previous, |previous, hash| varve_types::sha256d([*hash, previous].as_flattened()));
    assert_eq!(last, header(14));
    let checkpoints = view.filter_checkpoints(Height::new(600), 100).unwrap().unwrap();
    assert_eq!(checkpoints.len(), 6);
    assert_eq!(checkpoints[1], header(200));
}

/// btcd's chain: 3A, 4A and 5A overtake 3 and 4.
fn btcd<D: Disk>(disk: D) {
    let Some(blocks) = load::btcd_reorg() else { return };
    let mut rig = Rig::new(Network::Mainnet, disk);
    for block in &blocks {
        rig.add(block);
        rig.check();
    }
    assert_eq!(rig.model.active.len(), 6);
    let stale = rig.view().to_header(rig.model.blocks[4].hash).unwrap().unwrap();
    let (fork, above) = rig.view().fork_from(Chain::Confirmed, stale).unwrap();
    assert_eq!((fork, above.len()), (Some(Height::new(2)), 2));
}

/// All items of mainnet's block 413567, among them those that Conduit publishes, which are the keys
/// that inputs push. The block is set upon genesis: the archive checks no work.
fn conduit_block<D: Disk>(disk: D) {
    let list = "vectors/conduit/block413567_pushdata_hashes";
    let Some(list) = varve_testdata::data(list) else { return };
    let Some(raw) = varve_testdata::data("blocks/mainnet_413567_core.raw") else { return };
    let (list, mut bytes) = (std::fs::read_to_string(list).unwrap(), std::fs::read(raw).unwrap());
    bytes[4..36].copy_from_slice(Network::Mainnet.genesis_hash().as_bytes());
    let mut rig = Rig::new(Network::Mainnet, disk);
    rig.add(&Network::Mainnet.genesis_block());
    rig.add(&bytes);
    rig.check();
    let view = rig.view();
    let mut published = 0;
    for line in list.lines() {
        // They are shown reversed.
        let item = PushdataHash::from_bytes(line.parse::<BlockHash>().unwrap().to_bytes());
        let page = view.pushed(item, TxLink::new(0), usize::MAX).unwrap();
        assert!(page.rows.iter().any(|row| row.flags == PushdataFlags::INPUT), "{line}");
        published += 1;
    }
    assert_eq!(published, 3957);
}

on_every_back_end!(conduit_block, mainnet, core31, btcd);
