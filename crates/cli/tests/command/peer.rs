//! A peer over a real socket that serves a chain, as much of a node as a sync needs.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use varve_node::source::HeaderBytes;
use varve_node::source::p2p::wire::{FRAME_LEN, Frame, Inventory, Message, Version};
use varve_types::{BlockHash, Header, Network};

struct Served {
    network: Network,
    /// Genesis first.
    headers: Vec<HeaderBytes>,
    heights: HashMap<BlockHash, usize>,
    blocks: HashMap<BlockHash, Vec<u8>>,
    has_blocks: bool,
}

/// Starts a peer that has the genesis block of the network and these above it. One that does not
/// have the blocks has their headers alone. Gives its address.
pub(crate) fn start(network: Network, blocks: &[Vec<u8>], has_blocks: bool) -> String {
    let all = || [network.genesis_block()].into_iter().chain(blocks.iter().cloned());
    let header = |block: &Vec<u8>| *block.first_chunk().unwrap();
    let hash = |block: &Vec<u8>| Header::new(block.first_chunk().unwrap()).hash();
    let served = Arc::new(Served {
        network,
        headers: all().map(|block| header(&block)).collect(),
        heights: all().map(|block| hash(&block)).zip(0..).collect(),
        blocks: all().map(|block| (hash(&block), block)).collect(),
        has_blocks,
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
    fn talk(&self, mut stream: TcpStream) -> Option<()> {
        let height = i32::try_from(self.headers.len()).unwrap() - 1;
        let agent = "/test/".to_owned();
        let version = Version { version: 70_016, services: 9, time: 0, nonce: 1, agent, height };
        self.send(&mut stream, &Message::Version(version))?;
        self.send(&mut stream, &Message::Verack)?;
        loop {
            let mut head = [0; FRAME_LEN];
            stream.read_exact(&mut head).ok()?;
            let frame = Frame::decode(&head);
            let mut payload = vec![0; frame.length as usize];
            stream.read_exact(&mut payload).ok()?;
            match Message::decode(frame.command, payload).unwrap() {
                Message::GetHeaders(locator) => {
                    let at = locator.iter().find_map(|hash| self.heights.get(hash)).unwrap_or(&0);
                    let headers = self.headers.iter().skip(at + 1).take(2000).copied().collect();
                    self.send(&mut stream, &Message::Headers(headers))?;
                }
                Message::GetData(list) if !self.has_blocks => {
                    self.send(&mut stream, &Message::NotFound(list))?;
                }
                Message::GetData(list) => {
                    for Inventory { hash, .. } in list {
                        let block = self.blocks.get(&hash)?.clone();
                        self.send(&mut stream, &Message::Block(block))?;
                    }
                }
                Message::Ping(nonce) => self.send(&mut stream, &Message::Pong(nonce))?,
                _ => {}
            }
        }
    }

    /// Sends a message; `None` when nobody listens any more.
    fn send(&self, stream: &mut TcpStream, message: &Message) -> Option<()> {
        stream.write_all(&message.encode(self.network)).ok()
    }
}
