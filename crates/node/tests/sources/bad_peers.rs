//! Peers that do what nodes do not do, beside a good one.
//!
//! A peer here is a script over a socket: it shakes hands as a node does and then answers every
//! message by a closure. The good one serves a short chain, and only after the bad one has had its
//! turn. The clock of the source runs ten times as fast as ours.

use std::collections::HashMap;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use varve_node::Source as _;
use varve_node::source::p2p::{P2p, Settings};
use varve_node::source::{HeaderBytes, SourceError, Warning};
use varve_node::test_suite::wire::{Inventory, Message};
use varve_sim::{Chain, Config, Profile};
use varve_types::{BlockHash, Header, Network};

use crate::receiver::Receiver;
use crate::wire;

const NETWORK: Network = Network::Regtest;
const SERVICES: u64 = 9;

/// What a peer answers to a message. `false` ends the connection.
type Answer = Box<dyn FnMut(&Message, &mut TcpStream) -> bool + Send>;

struct Served {
    headers: Vec<HeaderBytes>,
    blocks: HashMap<BlockHash, Vec<u8>>,
}

/// A chain of 60 blocks.
static SERVED: LazyLock<Served> = LazyLock::new(|| {
    let config = Config { transactions: Some(2), ..Config::new(Profile::Mainnet, 60, 9) };
    let blocks: Vec<_> = Chain::new(&config).unwrap().map(|block| block.bytes).collect();
    let headers: Vec<HeaderBytes> = blocks.iter().map(|b| *b.first_chunk().unwrap()).collect();
    let hashes = headers.iter().map(|header| Header::new(header).hash());
    Served { blocks: hashes.zip(blocks).collect(), headers }
});

impl Served {
    fn above(&self, locator: &[BlockHash]) -> Vec<HeaderBytes> {
        let known = |header: &HeaderBytes| locator.contains(&Header::new(header).hash());
        let at = self.headers.iter().rposition(known).unwrap();
        self.headers[at + 1..].to_vec()
    }
}

fn send(stream: &mut TcpStream, message: &Message) {
    wire::send(stream, NETWORK, message);
}

/// Listens, and follows a new script on every connection. Gives the address.
fn peer(ready: Arc<AtomicBool>, new_script: impl Fn(usize) -> Answer + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let (mut stream, script) = (stream.unwrap(), new_script(number));
            while !ready.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(5));
            }
            thread::spawn(move || talk(&mut stream, script));
        }
    });
    address
}

fn talk(stream: &mut TcpStream, mut script: Answer) {
    wire::greet(stream, NETWORK, SERVICES);
    while let Some(message) = wire::receive(stream) {
        if !script(&message, stream) {
            return;
        }
    }
}

/// What a node answers.
fn serve(message: &Message, stream: &mut TcpStream) -> bool {
    match message {
        Message::GetHeaders(locator) => send(stream, &Message::Headers(SERVED.above(locator))),
        Message::GetData(list) => {
            for Inventory { hash, .. } in list {
                send(stream, &Message::Block(SERVED.blocks[hash].clone()));
            }
        }
        Message::Ping(nonce) => send(stream, &Message::Pong(*nonce)),
        _ => {}
    }
    true
}

fn source(peers: Vec<String>) -> P2p {
    source_at(10, peers)
}

fn source_at(speed: u32, peers: Vec<String>) -> P2p {
    let begin = Instant::now();
    let clock = Arc::new(move || begin.elapsed() * speed);
    P2p::new(Settings { network: NETWORK, peers, clock, epoch: 0, nonce: 5, relay: false })
}

/// A bad peer beside a good one that waits for it: everything comes, and the bad one is banned.
fn is_banned(reason: &str, script: fn(&Message, &mut TcpStream) -> bool) {
    let yes = Arc::new(AtomicBool::new(true));
    let turn = Arc::new(AtomicBool::new(false));
    let bad = peer(yes, move |_| Box::new(script));
    let good = peer(turn.clone(), |_| Box::new(serve));
    let mut source = source(vec![bad.clone(), good]);
    let mut receiver = Receiver::new(NETWORK);
    source.seek(&receiver.tree.locator(receiver.tree.best_header())).unwrap();
    let banned = |receiver: &Receiver| {
        receiver.warnings.iter().any(|warning| match warning {
            Warning::Banned { peer, reason: given } => {
                assert!(*peer == bad && given.contains(reason), "{warning}");
                true
            }
            _ => false,
        })
    };
    receiver.until(&mut source, banned);
    turn.store(true, Ordering::Relaxed);
    receiver.until(&mut source, |receiver| receiver.blocks.len() == 60);
    let last = *SERVED.headers.last().unwrap();
    assert_eq!(receiver.tip(), Header::new(&last).hash().to_string());
}

/// A byte now and then, so that no read ever times out: the others are not kept waiting.
#[test]
fn a_handshake_that_does_not_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let slow = listener.local_addr().unwrap().to_string();
    let closed = Arc::new(AtomicBool::new(false));
    let seen = closed.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, seen) = (stream.unwrap(), seen.clone());
            thread::spawn(move || {
                let mut frame = Message::Pong(0).encode(NETWORK);
                frame.truncate(20);
                for byte in frame {
                    thread::sleep(Duration::from_millis(500));
                    let sent = stream.write_all(&[byte]).and_then(|()| stream.flush());
                    seen.fetch_or(sent.is_err(), Ordering::Relaxed);
                }
            });
        }
    });
    let yes = Arc::new(AtomicBool::new(true));
    let good = peer(yes, |_| Box::new(serve));
    let mut source = source(vec![slow, good]);
    let mut receiver = Receiver::new(NETWORK);
    receiver.sync(&mut source);
    assert_eq!(receiver.blocks.len(), 60);
    receiver.until(&mut source, |_| closed.load(Ordering::Relaxed));
}

#[test]
fn a_wrong_checksum() {
    is_banned("wrong checksum", |message, stream| {
        if let Message::GetHeaders(locator) = message {
            let mut bytes = Message::Headers(SERVED.above(locator)).encode(NETWORK);
            bytes[20] ^= 1;
            let _ = stream.write_all(&bytes);
        }
        true
    });
}

#[test]
fn another_network() {
    is_banned("is a node of mainnet, not of regtest", |_, stream| {
        let _ = stream.write_all(&Message::Ping(1).encode(Network::Mainnet));
        true
    });
}

#[test]
fn a_message_that_is_too_long() {
    is_banned("2147483647 bytes", |_, stream| {
        let mut bytes = Message::Headers(Vec::new()).encode(NETWORK);
        bytes[16..20].copy_from_slice(&0x7fff_ffff_u32.to_le_bytes());
        let _ = stream.write_all(&bytes);
        true
    });
}

#[test]
fn a_message_that_does_not_decode() {
    is_banned("bad `headers` message", |_, stream| {
        let mut bytes = Message::Block(vec![0xfe; 100]).encode(NETWORK);
        bytes[4..16].copy_from_slice(b"headers\0\0\0\0\0");
        let _ = stream.write_all(&bytes);
        true
    });
}

#[test]
fn a_block_that_nobody_asked_for() {
    is_banned("was not asked for", |_, stream| {
        let block = SERVED.blocks.values().next().unwrap();
        send(stream, &Message::Block(block.clone()));
        true
    });
}

#[test]
fn headers_that_do_not_follow_one_another() {
    is_banned("do not follow", |_, stream| {
        send(stream, &Message::Headers(vec![SERVED.headers[1], SERVED.headers[3]]));
        true
    });
}

#[test]
fn headers_without_work() {
    is_banned("has not the work", |message, stream| {
        if let Message::GetHeaders(_) = message {
            let mut header = SERVED.headers[1];
            while Header::new(&header).hash().as_bytes()[31] < 0x80 {
                header[76] = header[76].wrapping_add(1);
            }
            send(stream, &Message::Headers(vec![header]));
        }
        true
    });
}

#[test]
fn a_block_with_other_transactions_than_its_header_says() {
    is_banned("bad-txnmrklroot", |message, stream| match message {
        Message::GetData(list) => {
            for Inventory { hash, .. } in list {
                let mut block = SERVED.blocks[hash].clone();
                *block.last_mut().unwrap() ^= 1;
                send(stream, &Message::Block(block));
            }
            true
        }
        other => serve(other, stream),
    });
}

#[test]
fn a_peer_that_offers_no_blocks_is_the_last_one_there_is() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        wire::greet(&mut stream, NETWORK, 1);
        while wire::receive(&mut stream).is_some() {}
    });
    let mut source = source(vec![address.clone()]);
    let error = loop {
        match source.next_event(Duration::from_secs(5)) {
            Ok(event) => assert!(!event_is_idle(&event)),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, SourceError::NoPeers { peer, .. } if peer == address));
}

fn event_is_idle(event: &varve_node::Event) -> bool {
    matches!(event, varve_node::Event::Idle)
}

#[test]
fn a_peer_that_sends_no_blocks_is_given_up_and_the_other_asked() {
    let yes = Arc::new(AtomicBool::new(true));
    let turn = Arc::new(AtomicBool::new(false));
    let asked = turn.clone();
    let bad = peer(yes, move |_| {
        let asked = asked.clone();
        Box::new(move |message, stream| match message {
            Message::GetData(_) => {
                asked.store(true, Ordering::Relaxed);
                true
            }
            other => serve(other, stream),
        })
    });
    let good = peer(turn, |_| Box::new(serve));
    let mut source = source(vec![bad, good]);
    let mut receiver = Receiver::new(NETWORK);
    receiver.sync(&mut source);
    assert_eq!(receiver.blocks.len(), 60);
}

#[test]
fn a_peer_that_takes_its_time_to_greet_is_waited_for() {
    let yes = Arc::new(AtomicBool::new(true));
    let turn = Arc::new(AtomicBool::new(false));
    let short = peer(yes, |_| {
        Box::new(|message, stream| match message {
            Message::GetHeaders(locator) => {
                let mut headers = SERVED.above(locator);
                headers.retain(|header| SERVED.headers[..30].contains(header));
                send(stream, &Message::Headers(headers));
                true
            }
            other => serve(other, stream),
        })
    });
    let long = peer(turn.clone(), |_| Box::new(serve));
    let slow = thread::spawn(move || {
        thread::sleep(Duration::from_millis(500));
        turn.store(true, Ordering::Relaxed);
    });
    let mut receiver = Receiver::new(NETWORK);
    receiver.sync(&mut source(vec![short, long]));
    assert_eq!(receiver.blocks.len(), 60);
    slow.join().unwrap();
}

#[test]
fn a_silent_peer_is_connected_to_again() {
    let yes = Arc::new(AtomicBool::new(true));
    // The first connection ends at once, the second says nothing, the third serves.
    let address = peer(yes, |number| match number {
        0 => Box::new(|_, _| false),
        1 => Box::new(|message, stream| match message {
            Message::GetData(_) => true,
            other => serve(other, stream),
        }),
        _ => Box::new(serve),
    });
    let mut source = source(vec![address]);
    let mut receiver = Receiver::new(NETWORK);
    receiver.sync(&mut source);
    assert_eq!(receiver.blocks.len(), 60);
    let lost = receiver.warnings.iter().filter(|w| matches!(w, Warning::Lost { .. })).count();
    assert!(lost >= 2, "{:?}", receiver.warnings);
}

/// A node says nothing when it is asked for a block that it does not have.
#[test]
fn a_block_that_the_only_peer_says_nothing_of_is_missing() {
    let yes = Arc::new(AtomicBool::new(true));
    let address = peer(yes, |_| {
        Box::new(|message, stream| match message {
            Message::GetData(list) => {
                let lacking = Header::new(&SERVED.headers[60]).hash();
                let some = list.iter().filter(|item| item.hash != lacking).copied();
                serve(&Message::GetData(some.collect()), stream)
            }
            other => serve(other, stream),
        })
    });
    let mut receiver = Receiver::new(NETWORK);
    receiver.sync(&mut source(vec![address]));
    assert_eq!((receiver.blocks.len(), receiver.missing()), (59, 1));
}

#[test]
fn a_block_that_no_peer_has_is_missing() {
    let yes = Arc::new(AtomicBool::new(true));
    let address = peer(yes, |_| {
        Box::new(|message, stream| match message {
            Message::GetData(list) => {
                let lacking = Header::new(&SERVED.headers[7]).hash();
                let (none, some): (Vec<_>, Vec<_>) =
                    list.iter().partition(|item| item.hash == lacking);
                send(stream, &Message::NotFound(none));
                serve(&Message::GetData(some), stream)
            }
            other => serve(other, stream),
        })
    });
    let mut receiver = Receiver::new(NETWORK);
    receiver.sync(&mut source(vec![address]));
    assert_eq!((receiver.blocks.len(), receiver.missing()), (59, 1));
}

#[test]
fn headers_that_never_come_are_asked_of_another_whatever_else_is_said() {
    let yes = Arc::new(AtomicBool::new(true));
    let turn = Arc::new(AtomicBool::new(false));
    let asked = turn.clone();
    let bad = peer(yes, move |_| {
        let asked = asked.clone();
        Box::new(move |message, stream| {
            if let Message::GetHeaders(_) = message {
                asked.store(true, Ordering::Relaxed);
                for nonce in 0..200 {
                    send(stream, &Message::Ping(nonce));
                    thread::sleep(Duration::from_millis(20));
                }
            }
            true
        })
    });
    let good = peer(turn, |_| Box::new(serve));
    let mut source = source(vec![bad, good]);
    let mut receiver = Receiver::new(NETWORK);
    receiver.sync(&mut source);
    assert_eq!(receiver.blocks.len(), 60);
    assert!(receiver.warnings.iter().any(|w| w.to_string().contains("does not answer")));
}

#[test]
fn a_long_silence_is_no_offence_when_nothing_is_owed() {
    let yes = Arc::new(AtomicBool::new(true));
    let mut source = source_at(40, vec![peer(yes, |_| Box::new(serve))]);
    let mut receiver = Receiver::new(NETWORK);
    receiver.sync(&mut source);
    // More than two minutes by its clock: it is asked for signs of life, and gives them.
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(3500) {
        let event = source.next_event(Duration::from_millis(50)).unwrap();
        receiver.take(&mut source, event);
    }
    receiver.sync(&mut source);
    assert_eq!(receiver.warnings, []);
}

/// Announcements without end, and never an answer: the receiver gets its turn all the same.
#[test]
fn a_flood_of_announcements_does_not_keep_the_receiver_waiting() {
    let yes = Arc::new(AtomicBool::new(true));
    let address = peer(yes, |_| {
        Box::new(|_, stream| {
            let hash = Header::new(&SERVED.headers[1]).hash();
            let inv = Message::Inv(vec![Inventory::block(hash, NETWORK)]).encode(NETWORK);
            while stream.write_all(&inv.repeat(50)).is_ok() {}
            false
        })
    });
    let mut source = source_at(1, vec![address]);
    source.seek(&[NETWORK.genesis_hash()]).unwrap();
    // Until the answer is late, there is nothing else to say than that nothing happened.
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(5) {
        let called = Instant::now();
        let event = source.next_event(Duration::from_millis(100)).unwrap();
        assert!(event_is_idle(&event), "{event:?}");
        assert!(called.elapsed() < Duration::from_secs(10), "{:?}", called.elapsed());
    }
}
