//! One connection: a thread that reads, and a link that writes.
//!
//! ```text
//! connect ─► version ⇄ version ─► wtxidrelay ⇄ verack ─► sendheaders ─► read until the end
//! ```
//!
//! The thread checks what can be checked without the rest of the node: frames, checksums, lengths,
//! that headers follow one another. It answers pings itself and passes on what concerns headers and
//! blocks, through a channel of a few messages: while that is full it does not read, and the peer
//! waits. So a connection holds one message in memory.
//!
//! Transactions must not keep blocks waiting. One that was not asked for is dropped here, and names
//! of transactions, announced or asked for, pass at most [`NAMES_A_SECOND`] a second.

use std::io::{self, Read as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use varve_sha256::Message as Hashed;
use varve_types::{BlockHash, DecodeError, Header, Network, Tx, Txid, Wtxid};

use super::link::Link;
use super::wire::{Command, FRAME_LEN, Frame, Inventory, Message, PayloadError, Version, protocol};
use crate::source::queue::{Outbox, Weigh};
use crate::source::transactions::TxName;
use crate::source::{Clock, Giver, HeaderBytes};

const CONNECT: Duration = Duration::from_secs(5);
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Messages that may come before the handshake is through.
const HANDSHAKE_MESSAGES: usize = 32;
/// How much a payload grows by before its bytes are there: a length is not believed. A step is also
/// the sign of life of a peer that is slow.
const STEP: u64 = 1 << 16;
/// The oldest protocol that announces by headers.
const OLDEST: i32 = 70_012;

/// Names of transactions that a peer may send in a second, and what it may save up. The busiest
/// days of Bitcoin had some 20 transactions a second.
const NAMES_A_SECOND: u32 = 1_000;
const NAMES_SAVED: u32 = 50_000;
/// From this version on nodes may call transactions by their hashes with witnesses.
const WTXID_RELAY: i32 = 70_016;

/// The whole chain, and witnesses. A pruned node offers other bits, and hangs up when it is asked
/// for an old block.
const NODE_NETWORK: u64 = 1;
const NODE_WITNESS: u64 = 1 << 3;
/// It answers `mempool`, which others take as an offence.
const NODE_BLOOM: u64 = 1 << 2;

/// What a peer did that nodes do not do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Offence {
    /// It is of another network.
    #[error("is a node of {found}, not of {wanted}; name a node of {wanted}, or choose {found}")]
    Network {
        /// Its network.
        found: Network,
        /// The network that was asked for.
        wanted: Network,
    },
    /// What it sends are no messages of any network.
    #[error("does not speak the protocol of {wanted}; name the address of a node")]
    Magic {
        /// The network that was asked for.
        wanted: Network,
    },
    /// A message that is too long.
    #[error("sent a `{}` message of {length} bytes; {limit} are allowed", command.name())]
    TooLong {
        /// Which.
        command: Command,
        /// How long.
        length: u32,
        /// How long it may be.
        limit: u32,
    },
    /// A message that is not the one that its frame was made for.
    #[error("sent a `{}` message with a wrong checksum", command.name())]
    Checksum {
        /// Which.
        command: Command,
    },
    /// A message that does not decode.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// Headers of which one does not follow the one before.
    #[error("sent headers that do not follow one another")]
    Unlinked,
    /// A block that it was not asked for.
    #[error("sent block {hash}, which was not asked for")]
    Unasked {
        /// The block.
        hash: BlockHash,
    },
    /// A transaction that does not decode.
    #[error("sent a transaction that is none: {0}")]
    Tx(DecodeError),
    /// It cannot give what is needed.
    #[error(
        "does not serve all blocks: services {services:#x}, protocol {version}; name a node that \
         is not pruned"
    )]
    Useless {
        /// What it offers.
        services: u64,
        /// The version of its protocol.
        version: i32,
    },
    /// The node is this one.
    #[error("is this node itself")]
    Oneself,
    /// What it gave breaks the rules of the chain.
    #[error("{0}")]
    Invalid(String),
}

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum Closed {
    #[error("{}", in_words(.0))]
    Lost(#[from] io::Error),
    #[error("{0}")]
    Offence(#[from] Offence),
    /// Nobody listens any more.
    #[error("no longer needed")]
    Unheard,
}

/// What a connection has to say.
pub(super) enum Incoming {
    Ready {
        link: Arc<Link>,
        /// Whether it calls transactions by their hashes with witnesses.
        by_wtxid: bool,
    },
    Headers(Vec<HeaderBytes>),
    /// New blocks, by their hashes.
    Announced,
    Block {
        hash: BlockHash,
        bytes: Vec<u8>,
    },
    NotFound(Vec<BlockHash>),
    Tx(TxMessage),
    Closed(Closed),
}

/// What a peer says of transactions.
pub(super) enum TxMessage {
    /// It has these.
    Offered(Vec<TxName>),
    /// One that it was asked for.
    Tx { txid: Txid, wtxid: Wtxid, bytes: Vec<u8> },
    /// It does not have these.
    NotFound(Vec<TxName>),
    /// It wants these.
    Wanted(Vec<TxName>),
}

impl Weigh for (Giver, Incoming) {
    fn weight(&self) -> u64 {
        match &self.1 {
            Incoming::Block { bytes, .. } | Incoming::Tx(TxMessage::Tx { bytes, .. }) => {
                bytes.len() as u64
            }
            _ => 0,
        }
    }
}

/// The link of a call, from when the connection is made. Whoever waits for the handshake closes it.
pub(super) type Line = Arc<OnceLock<Arc<Link>>>;

/// How a connection is opened.
pub(super) struct Call {
    pub(super) peer: Giver,
    pub(super) address: String,
    pub(super) network: Network,
    pub(super) nonce: u64,
    pub(super) time: i64,
    /// Whether transactions may be wanted.
    pub(super) relay: bool,
    pub(super) clock: Clock,
    pub(super) line: Line,
    pub(super) inbox: Outbox<(Giver, Incoming)>,
}

impl Call {
    /// Connects, and reads until the end.
    pub(super) fn run(self) {
        let Err(closed) = self.talk();
        // When the source is gone, nobody needs to know.
        let _ = self.inbox.send((self.peer, Incoming::Closed(closed)));
    }

    fn talk(&self) -> Result<std::convert::Infallible, Closed> {
        let stream = connect(&self.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(HANDSHAKE))?;
        let link = Arc::new(Link::new(&stream, self.network)?);
        // Nobody else sets it.
        let _ = self.line.set(link.clone());
        let mut reader = MessageReader { stream, link: link.clone() };
        let by_wtxid = self.handshake(&mut reader).map_err(|closed| match closed {
            Closed::Lost(error) if is_hang_up(&error) => Closed::Lost(io::Error::other(UNGREETED)),
            other => other,
        })?;
        reader.stream.set_read_timeout(None)?;
        link.answer(&Message::SendHeaders)?;
        self.pass(Incoming::Ready { link: link.clone(), by_wtxid })?;
        let mut allowance = Allowance { left: NAMES_SAVED, at: (self.clock)() };
        loop {
            let message = reader.message()?;
            if self.relay {
                self.pass_txs(&link, &mut allowance, &message)?;
            }
            let incoming = match message {
                Message::Ping(nonce) => {
                    link.answer(&Message::Pong(nonce))?;
                    continue;
                }
                Message::Headers(headers) => {
                    check_linked(&headers)?;
                    Incoming::Headers(headers)
                }
                Message::Block(bytes) => {
                    let header = bytes.first_chunk().expect("decoded blocks have a header");
                    Incoming::Block { hash: Header::new(header).hash(), bytes }
                }
                Message::NotFound(list) => {
                    let blocks = list.iter().filter(|item| item.is_block());
                    Incoming::NotFound(blocks.map(|item| item.hash).collect())
                }
                Message::Inv(list) if list.iter().any(|item| item.is_block()) => {
                    Incoming::Announced
                }
                Message::Tx(bytes) if self.relay && link.take_expected_tx() => {
                    Incoming::Tx(tx_message(bytes, self.network)?)
                }
                _ => continue,
            };
            self.pass(incoming)?;
        }
    }

    /// Passes the names of transactions on that a message has, as far as they are allowed.
    fn pass_txs(
        &self,
        link: &Link,
        allowance: &mut Allowance,
        message: &Message,
    ) -> Result<(), Closed> {
        let (Message::Inv(list) | Message::NotFound(list) | Message::GetData(list)) = message
        else {
            return Ok(());
        };
        let mut names: Vec<TxName> = list.iter().filter_map(Inventory::tx_name).collect();
        names.truncate(allowance.take(names.len(), (self.clock)()));
        if names.is_empty() {
            return Ok(());
        }
        let message = match message {
            Message::Inv(_) => TxMessage::Offered(names),
            Message::GetData(_) => TxMessage::Wanted(names),
            _ => {
                names.retain(|_| link.take_expected_tx());
                TxMessage::NotFound(names)
            }
        };
        self.pass(Incoming::Tx(message))
    }

    fn pass(&self, incoming: Incoming) -> Result<(), Closed> {
        self.inbox.send((self.peer, incoming)).map_err(|_| Closed::Unheard)
    }

    /// Whether the peer calls transactions by their hashes with witnesses.
    fn handshake(&self, reader: &mut MessageReader) -> Result<bool, Closed> {
        let ours = Version {
            version: protocol(self.network),
            services: 0,
            time: self.time,
            nonce: self.nonce,
            agent: concat!("/varve:", env!("CARGO_PKG_VERSION"), "/").to_owned(),
            height: 0,
            relay: self.relay,
        };
        reader.link.answer(&Message::Version(ours))?;
        let (mut greeted, mut agreed, mut by_wtxid) = (false, false, false);
        for _ in 0..HANDSHAKE_MESSAGES {
            match reader.message()? {
                Message::Version(theirs) => {
                    self.judge(&theirs)?;
                    if theirs.services & NODE_BLOOM != 0 {
                        reader.link.set_announces_all();
                    }
                    if self.relay && !self.network.is_bsv() && theirs.version >= WTXID_RELAY {
                        reader.link.answer(&Message::WtxidRelay)?;
                    }
                    reader.link.answer(&Message::Verack)?;
                    greeted = true;
                }
                Message::WtxidRelay => by_wtxid = self.relay && !self.network.is_bsv(),
                Message::Verack => agreed = true,
                _ => {}
            }
            if greeted && agreed {
                return Ok(by_wtxid);
            }
        }
        Err(Closed::Lost(io::Error::other("does not finish the handshake; is it a node?")))
    }

    fn judge(&self, theirs: &Version) -> Result<(), Offence> {
        let Version { version, services, nonce, .. } = *theirs;
        let witness = if self.network.is_bsv() { 0 } else { NODE_WITNESS };
        let needed = NODE_NETWORK | witness;
        if nonce == self.nonce {
            return Err(Offence::Oneself);
        }
        if version < OLDEST || services & needed != needed {
            return Err(Offence::Useless { services, version });
        }
        Ok(())
    }
}

/// How many names of transactions a peer may send.
struct Allowance {
    left: u32,
    at: Duration,
}

impl Allowance {
    /// How many of these are allowed at this time.
    fn take(&mut self, count: usize, now: Duration) -> usize {
        let passed = now.saturating_sub(self.at).as_millis();
        let earned = passed.saturating_mul(u128::from(NAMES_A_SECOND)) / 1_000;
        if earned > 0 {
            self.at = now;
            let earned = u32::try_from(earned).unwrap_or(u32::MAX);
            self.left = self.left.saturating_add(earned).min(NAMES_SAVED);
        }
        let taken = u32::try_from(count).unwrap_or(u32::MAX).min(self.left);
        self.left -= taken;
        taken as usize
    }
}

fn tx_message(bytes: Vec<u8>, network: Network) -> Result<TxMessage, Offence> {
    let tx = Tx::parse(&bytes, network.format()).map_err(Offence::Tx)?;
    let (txid, wtxid) = (tx.txid(), tx.wtxid());
    Ok(TxMessage::Tx { txid, wtxid, bytes })
}

/// Reads messages off a stream.
struct MessageReader {
    stream: TcpStream,
    link: Arc<Link>,
}

impl MessageReader {
    fn message(&mut self) -> Result<Message, Closed> {
        let mut head = [0; FRAME_LEN];
        self.stream.read_exact(&mut head)?;
        self.count(Command::Other, FRAME_LEN as u64);
        let frame = Frame::decode(&head);
        let (command, length) = (frame.command, frame.length);
        let wanted = self.link.network;
        if frame.magic != wanted.wire_magic() {
            let found = Network::ALL.into_iter().find(|other| other.wire_magic() == frame.magic);
            let offence = found.map(|found| Offence::Network { found, wanted });
            return Err(offence.unwrap_or(Offence::Magic { wanted }).into());
        }
        let limit = command.limit(self.link.network);
        if length > limit {
            return Err(Offence::TooLong { command, length, limit }.into());
        }
        let mut payload = Vec::new();
        let mut left = u64::from(length);
        while left > 0 {
            if matches!(command, Command::Other | Command::GetHeaders) {
                payload.clear();
            }
            let step = left.min(STEP);
            let stream = io::Read::by_ref(&mut self.stream);
            let read = stream.take(step).read_to_end(&mut payload)? as u64;
            if read < step {
                return Err(Closed::Lost(io::ErrorKind::UnexpectedEof.into()));
            }
            self.count(command, read);
            left -= read;
        }
        if matches!(command, Command::Other | Command::GetHeaders) {
            return Ok(Message::Other);
        }
        if !frame.matches(&payload) {
            return Err(Offence::Checksum { command }.into());
        }
        Ok(Message::decode(command, payload).map_err(Offence::from)?)
    }

    fn count(&self, command: Command, bytes: u64) {
        self.link.received.fetch_add(bytes, Ordering::Relaxed);
        if command == Command::Block {
            self.link.block_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

/// What a node of another network does when it is greeted, and a full one.
const UNGREETED: &str =
    "closes the connection without a greeting; is it a node of this network with room for peers?";

/// Why a connection ended, for a user.
fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            "does not answer; check the address, and that a node listens there".to_owned()
        }
        io::ErrorKind::ConnectionRefused => {
            "refuses the connection; check that a node listens there".to_owned()
        }
        _ if is_hang_up(error) => "closed the connection".to_owned(),
        _ => error.to_string(),
    }
}

fn is_hang_up(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe)
}

/// The first address that answers.
fn connect(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::other("the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn check_linked(headers: &[HeaderBytes]) -> Result<(), Offence> {
    let mut hashes = Vec::with_capacity(headers.len());
    varve_sha256::double_many(headers.iter().map(Hashed::from), &mut hashes);
    let mut linked = headers.iter().skip(1).zip(&hashes);
    let follows = |(header, below): (&HeaderBytes, &[u8; 32])| {
        Header::new(header).previous().as_bytes() == below
    };
    if linked.all(follows) { Ok(()) } else { Err(Offence::Unlinked) }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// A slow peer is heard while a block of it comes, not only when it is there.
    #[test]
    fn bytes_count_before_their_message_is_whole() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        let network = Network::Regtest;
        let link = Arc::new(Link::new(&stream, network).unwrap());
        let mut reader = MessageReader { stream, link: link.clone() };
        let reading = thread::spawn(move || reader.message());
        let block = Message::Block(vec![7; 300_000]);
        let bytes = block.encode(network);
        let (first, rest) = bytes.split_at(150_000);
        peer.write_all(first).unwrap();
        while link.received.load(Ordering::Relaxed) < 2 * STEP {
            thread::sleep(Duration::from_millis(1));
        }
        peer.write_all(rest).unwrap();
        assert_eq!(reading.join().unwrap().unwrap(), block);
        assert_eq!(link.received.load(Ordering::Relaxed), bytes.len() as u64);
        assert_eq!(link.block_bytes.load(Ordering::Relaxed), 300_000);
    }

    #[test]
    fn names_of_transactions_are_rationed() {
        let mut allowance = Allowance { left: NAMES_SAVED, at: Duration::ZERO };
        assert_eq!(allowance.take(60_000, Duration::ZERO), NAMES_SAVED as usize);
        assert_eq!(allowance.take(1, Duration::ZERO), 0);
        assert_eq!(allowance.take(5, Duration::from_millis(3)), 3);
        assert_eq!(allowance.take(9_000, Duration::from_secs(2)), 1_997);
        assert_eq!(allowance.take(60_000, Duration::from_secs(900)), NAMES_SAVED as usize);
    }
}
