//! A peer over a real socket that serves a chain, and departs from what a node does where a test
//! says so.
//!
//! ```text
//! message ─► manner ─► true: it has answered itself
//!                 └──► false: answered as a node does, from the chain
//! ```

use std::collections::HashMap;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use varve_node::source::HeaderBytes;
use varve_node::test_suite::wire::{Inventory, Message};
use varve_types::{BlockHash, Header, Network};

use crate::miner::Mined;
use crate::wire;

const NETWORK: Network = Network::Regtest;
/// Headers in one message of a node.
pub(crate) const BATCH: usize = 2000;

/// A chain that a peer has.
pub(crate) struct Served {
    network: Network,
    headers: Vec<HeaderBytes>,
    heights: HashMap<BlockHash, usize>,
    blocks: HashMap<BlockHash, Vec<u8>>,
}

impl Served {
    /// Genesis, and these blocks above it.
    pub(crate) fn new(chain: &[Mined]) -> Arc<Self> {
        let blocks = chain.iter().map(|block| block.bytes.clone());
        Self::of_blocks(NETWORK, [NETWORK.genesis_block()].into_iter().chain(blocks).collect())
    }

    /// These blocks, from genesis.
    pub(crate) fn of_blocks(network: Network, blocks: Vec<Vec<u8>>) -> Arc<Self> {
        let headers: Vec<HeaderBytes> = blocks.iter().map(|b| *b.first_chunk().unwrap()).collect();
        let hashes: Vec<_> = headers.iter().map(|header| Header::new(header).hash()).collect();
        let heights = hashes.iter().copied().zip(0..).collect();
        Arc::new(Self {
            network,
            headers,
            heights,
            blocks: hashes.into_iter().zip(blocks).collect(),
        })
    }

    /// The answer of a node to `getheaders`.
    pub(crate) fn above(&self, locator: &[BlockHash]) -> Vec<HeaderBytes> {
        let fork = locator.iter().find_map(|hash| self.heights.get(hash)).unwrap_or(&0);
        self.headers.iter().skip(fork + 1).take(BATCH).copied().collect()
    }

    /// Does what a node does with a message.
    pub(crate) fn answer(&self, message: &Message, stream: &mut TcpStream) {
        let send = |stream: &mut TcpStream, message| wire::send(stream, self.network, &message);
        match message {
            Message::GetHeaders(locator) => send(stream, Message::Headers(self.above(locator))),
            Message::GetData(list) => {
                for Inventory { hash, .. } in list {
                    // A node says nothing of a block that it does not have.
                    if let Some(block) = self.blocks.get(hash) {
                        send(stream, Message::Block(block.clone()));
                    }
                }
            }
            Message::Ping(nonce) => send(stream, Message::Pong(*nonce)),
            _ => {}
        }
    }
}

/// What a peer does with a message; `false` leaves the answer to the chain.
pub(crate) type Manner = Arc<dyn Fn(&Message, &mut TcpStream) -> bool + Send + Sync>;

/// A peer that runs until the test ends.
pub(crate) struct ScriptPeer {
    pub(crate) address: String,
    /// Greets only when this is set.
    pub(crate) open: Arc<AtomicBool>,
    /// How many connections it has had.
    pub(crate) connections: Arc<AtomicUsize>,
}

impl ScriptPeer {
    /// A peer that does what a node does.
    pub(crate) fn honest(chain: &[Mined]) -> Self {
        Self::start(Served::new(chain), Arc::new(|_, _| false))
    }

    pub(crate) fn start(served: Arc<Served>, manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (open, connections) = (Arc::new(AtomicBool::new(true)), Arc::<AtomicUsize>::default());
        let (gate, count) = (open.clone(), connections.clone());
        thread::spawn(move || {
            for stream in listener.incoming() {
                count.fetch_add(1, Ordering::Relaxed);
                let (mut stream, gate) = (stream.unwrap(), gate.clone());
                let (served, manner) = (served.clone(), manner.clone());
                thread::spawn(move || {
                    while !gate.load(Ordering::Relaxed) {
                        thread::sleep(Duration::from_millis(5));
                    }
                    talk(&mut stream, &served, &manner);
                });
            }
        });
        Self { address, open, connections }
    }
}

fn talk(stream: &mut TcpStream, served: &Served, manner: &Manner) {
    wire::greet(stream, served.network, 9);
    while let Some(message) = wire::receive(stream) {
        if !manner(&message, stream) {
            served.answer(&message, stream);
        }
    }
}

/// Sends a message on regtest.
pub(crate) fn send(stream: &mut TcpStream, message: &Message) {
    wire::send(stream, NETWORK, message);
}

/// A peer's manner: it never sends a block.
pub(crate) fn withholds() -> Manner {
    Arc::new(|message, _| matches!(message, Message::GetData(_)))
}

/// A peer's manner: it never sends a block, but signs of life all the time.
pub(crate) fn chats() -> Manner {
    Arc::new(|message, stream| {
        let Message::GetData(_) = message else { return false };
        let mut stream = stream.try_clone().unwrap();
        thread::spawn(move || {
            let ping = Message::Ping(7).encode(NETWORK);
            while stream.write_all(&ping).is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
        });
        true
    })
}

/// A peer's manner: it sends each block after a pause.
pub(crate) fn dawdles(served: &Arc<Served>, pause: Duration) -> Manner {
    let served = served.clone();
    Arc::new(move |message, stream| {
        let Message::GetData(list) = message else { return false };
        for item in list {
            thread::sleep(pause);
            served.answer(&Message::GetData(vec![*item]), stream);
        }
        true
    })
}

/// A peer's manner: it has nothing, and announces a block without end once it has said so.
pub(crate) fn floods() -> Manner {
    Arc::new(|message, stream| {
        let Message::GetHeaders(_) = message else { return false };
        send(stream, &Message::Headers(Vec::new()));
        let announcement = announcement().encode(NETWORK).repeat(50);
        while stream.write_all(&announcement).is_ok() {}
        true
    })
}

/// A peer's manner: it announces a block before each answer, and has none. Counts the questions.
pub(crate) fn teases(asked: &Arc<AtomicUsize>) -> Manner {
    let asked = asked.clone();
    Arc::new(move |message, stream| {
        let Message::GetHeaders(_) = message else { return false };
        asked.fetch_add(1, Ordering::Relaxed);
        send(stream, &announcement());
        send(stream, &Message::Headers(Vec::new()));
        true
    })
}

/// A peer's manner: before each answer it sends a header that links to nothing, so that it is asked
/// again, and the answer is a header that is known. Counts the questions.
pub(crate) fn strays(stray: HeaderBytes, known: HeaderBytes, asked: &Arc<AtomicUsize>) -> Manner {
    let asked = asked.clone();
    Arc::new(move |message, stream| {
        let Message::GetHeaders(_) = message else { return false };
        asked.fetch_add(1, Ordering::Relaxed);
        send(stream, &Message::Headers(vec![stray]));
        send(stream, &Message::Headers(vec![known]));
        true
    })
}

/// A block that nobody has, announced by its hash.
fn announcement() -> Message {
    Message::Inv(vec![Inventory::block(BlockHash::from_bytes([0x11; 32]), NETWORK)])
}

/// A peer's manner: it says of every block that it does not have it.
pub(crate) fn finds_nothing() -> Manner {
    Arc::new(|message, stream| match message {
        Message::GetData(list) => {
            send(stream, &Message::NotFound(list.clone()));
            true
        }
        _ => false,
    })
}

/// A peer's manner: it answers every `getheaders` with its first headers.
pub(crate) fn repeats(served: &Arc<Served>) -> Manner {
    let first = served.above(&[]);
    Arc::new(move |message, stream| match message {
        Message::GetHeaders(_) => {
            send(stream, &Message::Headers(first.clone()));
            true
        }
        other => matches!(other, Message::GetData(_)),
    })
}

/// A peer's manner: it answers `getheaders` with one header, after a while. Counts its answers.
pub(crate) fn drips(served: &Arc<Served>, pause: Duration, answered: &Arc<AtomicUsize>) -> Manner {
    let (served, answered) = (served.clone(), answered.clone());
    Arc::new(move |message, stream| match message {
        Message::GetHeaders(locator) => {
            thread::sleep(pause);
            answered.fetch_add(1, Ordering::Relaxed);
            let mut headers = served.above(locator);
            headers.truncate(1);
            if let Some(header) = headers.first() {
                let hash = Header::new(header).hash();
                let list = vec![Inventory::block(hash, NETWORK)];
                send(stream, &Message::Headers(headers));
                send(stream, &Message::Inv(list));
            }
            true
        }
        Message::GetData(_) => true,
        _ => false,
    })
}
