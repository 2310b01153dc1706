//! A peer over a real socket that serves a chain, and departs from what a node does where a test
//! says so.
//!
//! ```text
//! message ─► manner ─► true: it has answered itself
//!                 └──► false: answered as a node does, from the chain
//! ```

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use varve_node::source::HeaderBytes;
use varve_node::source::p2p::wire::{FRAME_LEN, Frame, Inventory, Message, Version};
use varve_types::{BlockHash, Header, Network};

use crate::miner::Mined;

const NETWORK: Network = Network::Regtest;
/// Headers in one message of a node.
pub(crate) const BATCH: usize = 2000;

/// A chain that a peer has.
pub(crate) struct Served {
    headers: Vec<HeaderBytes>,
    heights: HashMap<BlockHash, usize>,
    blocks: HashMap<BlockHash, Vec<u8>>,
}

impl Served {
    /// Genesis, and these blocks above it.
    pub(crate) fn new(chain: &[Mined]) -> Arc<Self> {
        let genesis = Mined::genesis();
        let all = || [&genesis].into_iter().chain(chain);
        Arc::new(Self {
            headers: all().map(|block| *block.bytes.first_chunk().unwrap()).collect(),
            heights: all().map(|block| block.hash).zip(0..).collect(),
            blocks: all().map(|block| (block.hash, block.bytes.clone())).collect(),
        })
    }

    /// The answer of a node to `getheaders`.
    pub(crate) fn above(&self, locator: &[BlockHash]) -> Vec<HeaderBytes> {
        let fork = locator.iter().find_map(|hash| self.heights.get(hash)).unwrap_or(&0);
        self.headers.iter().skip(fork + 1).take(BATCH).copied().collect()
    }

    fn answer(&self, message: &Message, stream: &mut TcpStream) {
        match message {
            Message::GetHeaders(locator) => send(stream, &Message::Headers(self.above(locator))),
            Message::GetData(list) => {
                for Inventory { hash, .. } in list {
                    // A node says nothing of a block that it does not have.
                    if let Some(block) = self.blocks.get(hash) {
                        send(stream, &Message::Block(block.clone()));
                    }
                }
            }
            Message::Ping(nonce) => send(stream, &Message::Pong(*nonce)),
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
    let version = Version {
        version: 70_016,
        services: 9,
        time: 0,
        nonce: 1,
        agent: "/script/".to_owned(),
        height: i32::try_from(served.headers.len()).unwrap() - 1,
    };
    send(stream, &Message::Version(version));
    send(stream, &Message::Verack);
    while let Some(message) = receive(stream) {
        if !manner(&message, stream) {
            served.answer(&message, stream);
        }
    }
}

/// Sends a message. The other side may have gone, which is what some tests wait for.
pub(crate) fn send(stream: &mut TcpStream, message: &Message) {
    let _ = stream.write_all(&message.encode(NETWORK));
}

fn receive(stream: &mut TcpStream) -> Option<Message> {
    let mut head = [0; FRAME_LEN];
    stream.read_exact(&mut head).ok()?;
    let frame = Frame::decode(&head);
    let mut payload = vec![0; frame.length as usize];
    stream.read_exact(&mut payload).ok()?;
    assert!(frame.matches(&payload), "our own messages are right");
    Some(Message::decode(frame.command, payload).unwrap())
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

/// A peer's manner: it answers `getheaders` with one header, after a while.
pub(crate) fn drips(served: &Arc<Served>, pause: Duration) -> Manner {
    let served = served.clone();
    Arc::new(move |message, stream| match message {
        Message::GetHeaders(locator) => {
            thread::sleep(pause);
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
