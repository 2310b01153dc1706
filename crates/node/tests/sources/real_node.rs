//! A real node as a source: over P2P, JSON-RPC, REST, and from its own block files.

use std::fs;
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use varve_consensus::{BlockAt, MemorySet, check_block, check_block_context, check_spends};
use varve_node::Source;
use varve_node::source::SourceError;
use varve_node::source::directory::Directory;
use varve_node::source::p2p::{P2p, Settings};
use varve_node::source::rpc::{self, Login, Rpc};
use varve_testdata::bitcoind::{Bitcoind, EveryKind};
use varve_types::{Amount, Block, BlockHash, Format, Height, Network, sha256d};

use crate::receiver::Receiver;

pub(crate) fn p2p(peers: &[String]) -> P2p {
    let begin = Instant::now();
    P2p::new(Settings {
        network: Network::Regtest,
        peers: peers.to_vec(),
        clock: Arc::new(move || begin.elapsed()),
        epoch: 1_700_000_000,
        nonce: 77,
        relay: false,
    })
}

fn rpc(node: &Bitcoind, network: Network, login: Login) -> Result<Rpc, SourceError> {
    let begin = Instant::now();
    let clock = Arc::new(move || begin.elapsed());
    let address = node.rpc_address();
    Rpc::connect(rpc::Settings { address, network, login, follow: true, clock })
}

/// Every block of the active chain is there, byte for byte.
fn check_chain(receiver: &Receiver, node: &Bitcoind) {
    assert_eq!(receiver.tip(), node.tip());
    for height in 1..=node.height() {
        let hash = node.call("getblockhash", &json!([height]));
        let hash = hash.as_str().unwrap();
        assert_eq!(receiver.blocks[&hash.parse().unwrap()], node.block(hash), "{height}");
    }
}

/// Syncs, follows a new block and a reorg, and goes on when the node was restarted.
fn sync_and_follow(source: &mut dyn Source, node: &mut Bitcoind) -> Receiver {
    let mut receiver = Receiver::new(Network::Regtest);
    receiver.sync(source);
    check_chain(&receiver, node);
    let tip = node.mine(1).pop().unwrap();
    receiver.follow(source, &tip);
    let tip = node.reorganize(3).pop().unwrap();
    receiver.follow(source, &tip);
    node.stop();
    node.start_again();
    let tip = node.mine(2).pop().unwrap();
    receiver.follow(source, &tip);
    check_chain(&receiver, node);
    receiver
}

#[test]
fn every_kind_of_output_comes_by_every_way() {
    let Some(mut node) = Bitcoind::start(&["-rest"]) else { return };
    EveryKind::make(&node);
    // Without a login calls are refused, so this is REST.
    let mut rest = rpc(&node, Network::Regtest, Login::Nobody).unwrap();
    sync_and_follow(&mut rest, &mut node);
    let mut peer = p2p(&[node.p2p_address()]);
    let receiver = sync_and_follow(&mut peer, &mut node);
    check_kinds(&receiver);
    check_rules(&receiver, &node);
    let mut files = Directory::open(&node.folder(), Network::Regtest, true).unwrap();
    sync_and_follow(&mut files, &mut node);
}

#[test]
fn calls_alone_are_enough() {
    let Some(mut node) = Bitcoind::start(&[]) else { return };
    node.mine(250);
    let login = Login::Cookie(node.cookie_file());
    let mut source = rpc(&node, Network::Regtest, login.clone()).unwrap();
    sync_and_follow(&mut source, &mut node);
    let refused = Login::Password { user: "somebody".to_owned(), password: "wrong".to_owned() };
    for (network, login, reason) in [
        (Network::Regtest, refused, "refuses the login"),
        (Network::Regtest, Login::Nobody, "start the node with -rest=1"),
        (Network::Signet, login, "a node of regtest, not of signet; pass --network regtest"),
    ] {
        let error = rpc(&node, network, login).err().unwrap().to_string();
        assert!(error.contains(reason) && error.contains(&node.rpc_address()), "{error}");
    }
}

#[test]
fn two_peers_share_the_work_and_one_may_go() {
    let Some(one) = Bitcoind::start(&[]) else { return };
    let Some(mut other) = Bitcoind::start(&[]) else { return };
    one.mine(2500);
    other.call("addnode", &json!([one.p2p_address(), "onetry"]));
    other.wait_for_height(2500);
    let mut source = p2p(&[one.p2p_address(), other.p2p_address()]);
    let mut receiver = Receiver::new(Network::Regtest);
    source.seek(&receiver.tree.locator(receiver.tree.best_header())).unwrap();
    receiver.until(&mut source, |receiver| receiver.blocks.len() > 500);
    other.kill();
    receiver.follow(&mut source, &one.tip());
    check_chain(&receiver, &one);
    assert!(receiver.warnings.iter().all(|w| w.to_string().contains(&other.p2p_address())));
    // It comes back, alone on a longer chain, and is asked again.
    other.start_again();
    other.call("addnode", &json!([one.p2p_address(), "onetry"]));
    other.wait_for_height(2500);
    other.call("disconnectnode", &json!([one.p2p_address()]));
    let tip = other.mine(2).pop().unwrap();
    receiver.follow(&mut source, &tip);
}

#[test]
fn the_files_of_a_running_node_are_those_that_it_has() {
    let Some(node) = Bitcoind::start(&[]) else { return };
    node.mine(20);
    node.reorganize(4);
    let mut source = Directory::open(&node.folder(), Network::Regtest, false).unwrap();
    let mut receiver = Receiver::new(Network::Regtest);
    receiver.sync(&mut source);
    check_chain(&receiver, &node);
    assert_eq!(receiver.blocks.len(), 25, "the stale ones too");
    assert!(fs::exists(node.folder().join("blocks/blk00000.dat")).unwrap());
}

/// What `EveryKind` says that it makes is there.
fn check_kinds(receiver: &Receiver) {
    let mut lengths = std::collections::BTreeSet::new();
    let (mut outputs, mut zeros, mut locked, mut relative) = (0, 0, [false; 2], [false; 2]);
    // Scripts that ask for a lock time, and for a sequence.
    let mut asking = [0; 2];
    for bytes in receiver.blocks.values() {
        let block = Block::parse(bytes, Format::Segwit).unwrap();
        for tx in &block.txs()[1..] {
            outputs = outputs.max(tx.outputs().count());
            for output in tx.outputs() {
                lengths.insert(output.script.len());
                zeros += usize::from(output.value == Amount::ZERO);
                for (asking, opcode) in asking.iter_mut().zip([0xb1, 0xb2]) {
                    *asking += usize::from(output.script.ends_with(&[opcode, 0x75, 0x51]));
                }
            }
            if tx.lock_time() > 0 {
                locked[usize::from(tx.lock_time() >= 500_000_000)] = true;
            }
            for input in tx.inputs().filter(|input| input.sequence >> 31 == 0) {
                relative[usize::from(input.sequence >> 22 & 1 == 1)] = true;
            }
        }
    }
    // P2A, P2WPKH, P2SH, P2PKH, P2TR and P2WSH, both P2PK, multisig, OP_RETURN, the long ones.
    for length in [4, 22, 23, 25, 34, 35, 67, 71, 42, 10_000, 10_001] {
        assert!(lengths.contains(&length), "{length} of {lengths:?}");
    }
    assert!(outputs > 20_000 && zeros >= 3);
    assert_eq!((locked, relative, asking), ([true; 2], [true; 2], [2; 2]));
}

/// The rules accept what the node made, with the tree for the headers below, and end at its set.
fn check_rules(receiver: &Receiver, node: &Bitcoind) {
    let (tree, params) = (&receiver.tree, receiver.tree.params());
    let mut set = MemorySet::new(Network::Regtest);
    for id in tree.window(tree.best_chain(), Height::new(1), u32::MAX) {
        let block = Block::parse(&receiver.blocks[&tree.hash(id)], Format::Segwit).unwrap();
        let block = BlockAt::new(tree.height(id), &block);
        let below = tree.branch(tree.parent(id).unwrap());
        check_block(params, &block).unwrap();
        check_block_context(params, &block, &below).unwrap();
        check_spends(params, &block, &below, &set).unwrap();
        set.connect(&block).unwrap();
    }
    let mut coins = Vec::new();
    set.iter().for_each(|(outpoint, coin)| coin.write_for_hash(outpoint, &mut coins));
    let answer = node.call("gettxoutsetinfo", &json!(["hash_serialized_3"]));
    assert_eq!(answer["txouts"], set.len());
    assert_eq!(answer["hash_serialized_3"], BlockHash::from_bytes(sha256d(&coins)).to_string());
}
