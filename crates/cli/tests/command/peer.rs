//! A peer over a real socket that serves a chain, as much of a node as a sync needs.

use std::collections::HashMap;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use varve_node::source::HeaderBytes;
use varve_node::test_suite::wire::{Inventory, Message};
use varve_types::{BlockHash, Header, Network};

use crate::wire::{greet, receive, send};

/// What a peer does when it is asked for blocks.
#[derive(Clone, Copy)]
pub(crate) enum Blocks {
    Sends,
    /// Says that it does not have them.
    Lacks,
    /// Ends the connection.
    HangsUp,
}

struct Served {
    network: Network,
    /// Genesis first.
    headers: Vec<HeaderBytes>,
    heights: HashMap<BlockHash, usize>,
    blocks: HashMap<BlockHash, Vec<u8>>,
    manner: Blocks,
}

/// Starts a peer that has the genesis block of the network and these above it. Gives its
/// address.
pub(crate) fn start(network: Network, chain: &[Vec<u8>], manner: Blocks) -> String {
    let all = || [network.genesis_block()].into_iter().chain(chain.iter().cloned());
    let header = |block: &Vec<u8>| *block.first_chunk().unwrap();
    let hash = |block: &Vec<u8>| Header::new(block.first_chunk().unwrap()).hash();
    let served = Arc::new(Served {
        network,
        headers: all().map(|block| header(&block)).collect(),
        heights: all().map(|block| hash(&block)).zip(0..).collect(),
        blocks: all().map(|block| (hash(&block), block)).collect(),
        manner,
    });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let served = Arc::clone(&served);
            thread::spawn(move || served.talk(stream));
        }
    });
    address
}

impl Served {
    fn talk(&self, mut stream: TcpStream) {
        greet(&mut stream, self.network, 9);
        while let Some(message) = receive(&mut stream) {
            match (message, self.manner) {
                (Message::GetHeaders(locator), _) => {
                    let at = locator.iter().find_map(|hash| self.heights.get(hash)).unwrap_or(&0);
                    let headers = self.headers.iter().skip(at + 1).take(2000).copied().collect();
                    send(&mut stream, self.network, &Message::Headers(headers));
                }
                (Message::GetData(_), Blocks::HangsUp) => return,
                (Message::GetData(list), Blocks::Lacks) => {
                    send(&mut stream, self.network, &Message::NotFound(list));
                }
                (Message::GetData(list), Blocks::Sends) => {
                    for Inventory { hash, .. } in list {
                        let block = self.blocks[&hash].clone();
                        send(&mut stream, self.network, &Message::Block(block));
                    }
                }
                (Message::Ping(nonce), _) => {
                    send(&mut stream, self.network, &Message::Pong(nonce));
                }
                _ => {}
            }
        }
    }
}
