//! A real node, and ours beside it: what it has made is fetched by every way, and so is what it
//! makes afterwards.
//!
//! | module | what |
//! |---|---|
//! | `deep` | a branch from genesis that overtakes |
//! | `every_way` | a chain with everything in it, compared at every height |
//! | `follow` | new blocks and branches, as they come, and a node that is restarted or killed |
//! | `mempool` | its unconfirmed transactions, by every way that has them |
//! | `peers` | two nodes that do not agree |

mod deep;
mod every_way;
mod follow;
mod follower;
mod mempool;
mod peers;

use std::sync::Arc;
use std::time::Instant;

use varve_node::Source;
use varve_node::source::directory::Directory;
use varve_node::source::p2p::{P2p, Settings};
use varve_node::source::rpc::Login;
use varve_testdata::bitcoind::Bitcoind;
use varve_types::Network;

use crate::rpc::rpc;

/// The ways to a node, by their names.
const WAYS: [&str; 3] = ["peer", "rest", "files"];

/// A source of one of the ways.
fn source(way: &str, node: &Bitcoind, follow: bool) -> Box<dyn Source> {
    match way {
        "peer" => Box::new(p2p(&[node])),
        "rest" => {
            // Without a login calls are refused, so this is REST.
            Box::new(rpc(node.rpc_address(), Login::Nobody, follow).unwrap())
        }
        "calls" => {
            let login = Login::Cookie(node.cookie_file());
            Box::new(rpc(node.rpc_address(), login, follow).unwrap())
        }
        _ => {
            assert!(node.folder().join("blocks/xor.dat").exists(), "the files are masked");
            Box::new(Directory::open(&node.folder(), Network::Regtest, follow).unwrap())
        }
    }
}

pub(crate) fn p2p(nodes: &[&Bitcoind]) -> P2p {
    let begin = Instant::now();
    P2p::new(Settings {
        network: Network::Regtest,
        peers: nodes.iter().map(|node| node.p2p_address()).collect(),
        clock: Arc::new(move || begin.elapsed()),
        epoch: 1_700_000_000,
        nonce: 78,
        relay: true,
    })
}
