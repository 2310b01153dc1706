//! `varve sync --peer` with peers that a script plays.

use std::net::TcpListener;
use std::thread;

use varve_node::source::p2p::wire::Message;
use varve_types::{Header, Network};

use crate::exit_codes::{chain, end, genesis, short};
use crate::varve::run;
use crate::wire::{greet, receive, send};

const NETWORK: Network = Network::Regtest;

/// What a peer does when it is asked for blocks.
#[derive(Clone, Copy)]
enum Blocks {
    Sends,
    /// Says that it does not have them.
    Lacks,
    /// Ends the connection.
    HangsUp,
}

/// A peer that has these blocks above genesis. Gives its address.
fn peer(chain: &[Vec<u8>], manner: Blocks) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let chain = chain.to_vec();
    thread::spawn(move || {
        let header = |block: &Vec<u8>| *block.first_chunk().unwrap();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            greet(&mut stream, NETWORK, 9);
            while let Some(message) = receive(&mut stream) {
                match (message, manner) {
                    (Message::GetHeaders(_), _) => {
                        let headers = chain.iter().map(header).collect();
                        send(&mut stream, NETWORK, &Message::Headers(headers));
                    }
                    (Message::GetData(_), Blocks::HangsUp) => break,
                    (Message::GetData(list), Blocks::Lacks) => {
                        send(&mut stream, NETWORK, &Message::NotFound(list));
                    }
                    (Message::GetData(list), Blocks::Sends) => {
                        let asked = |block: &&Vec<u8>| {
                            let hash = Header::new(&header(block)).hash();
                            list.iter().any(|item| item.hash == hash)
                        };
                        for block in chain.iter().filter(asked) {
                            send(&mut stream, NETWORK, &Message::Block(block.clone()));
                        }
                    }
                    _ => {}
                }
            }
        }
    });
    address
}

/// The headers are there and the blocks are not: the sync came short. A peer with them mends it.
#[test]
fn a_peer_that_keeps_its_blocks_back_leaves_the_sync_short() {
    let blocks = chain(&genesis(), 0, 1, 6);
    for manner in [Blocks::Lacks, Blocks::HangsUp] {
        let folder = tempfile::tempdir().unwrap();
        let bad = peer(&blocks, manner);
        let output = run(folder.path(), &["sync", "--peer", &bad]);
        match manner {
            // Nobody is left.
            Blocks::HangsUp => {
                let told = String::from_utf8(output.stderr).unwrap();
                assert_eq!(output.status.code(), Some(1), "{told}");
                assert!(told.contains("closed the connection"), "{told}");
            }
            _ => short(&output, 0, &["headers go up to 6", "sync from another source"]),
        }
        let good = peer(&blocks, Blocks::Sends);
        let (answer, sentence) =
            end(&run(folder.path(), &["sync", "--peer", &bad, "--peer", &good]));
        assert_eq!((sentence, &answer["height"]), (None, &6.into()));
    }
}
