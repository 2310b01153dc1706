//! The messages between nodes, as far as a source of blocks and transactions needs them.
//!
//! ```text
//! │ magic 4 │ command 12 │ length u32le │ checksum 4 │ payload … │
//! 0         4            16             20           24
//!
//! command    ASCII, filled up with zeros
//! checksum   the first four bytes of the double SHA-256 of the payload
//! ```
//!
//! | message | payload | limit |
//! |---|---|---|
//! | `version` | version, services, time, two addresses, nonce, agent, height, relay | 4 KiB |
//! | `verack`, `sendheaders`, `wtxidrelay`, `mempool` | – | 0 |
//! | `ping`, `pong` | nonce | 64 |
//! | `feefilter` | satoshi for 1,000 vB, u64le | 8 |
//! | `getheaders` | version, locator, stop | not read |
//! | `headers` | up to 2,000 × (header, `00`) | 162,003 |
//! | `inv`, `getdata`, `notfound` | up to 50,000 × (kind u32le, hash) | 1,800,009 |
//! | `tx` | a transaction | 4 MB, on BSV 32 MiB |
//! | `block` | a block | that of the network |
//!
//! Everything else is [`Message::Other`]: skipped, unread, up to 4 MB. A length is checked against
//! the limit of its command before a byte of the payload is read.

mod decode;

use varve_types::{BlockHash, Network, Txid, Wtxid, compact_size, sha256d};

use crate::source::HeaderBytes;
use crate::source::transactions::TxName;

pub(crate) use decode::{MAX_HEADERS, PayloadError};

/// The bytes before a payload.
pub const FRAME_LEN: usize = 24;
/// Core's limit of a message, blocks included. A block of BSV may be larger.
const MAX_MESSAGE: u32 = 4_000_000;
const MAX_INVENTORY: u64 = 50_000;
/// The longest transaction of BSV that is taken.
const MAX_BSV_TX: u32 = 32 << 20;

/// A transaction without its witness, with it (BIP144), and by the hash with it (BIP339).
const TX: u32 = 1;
const WITNESS_TX: u32 = TX | 1 << 30;
const WTX: u32 = 5;

/// A block without witnesses, and with them (BIP144).
const BLOCK: u32 = 2;
const WITNESS_BLOCK: u32 = BLOCK | 1 << 30;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    Version,
    Verack,
    SendHeaders,
    WtxidRelay,
    FeeFilter,
    Mempool,
    Ping,
    Pong,
    GetHeaders,
    Headers,
    GetData,
    Inv,
    NotFound,
    Tx,
    Block,
    /// None of these.
    Other,
}

const NAMES: [(&str, Command); 15] = [
    ("version", Command::Version),
    ("verack", Command::Verack),
    ("sendheaders", Command::SendHeaders),
    ("wtxidrelay", Command::WtxidRelay),
    ("feefilter", Command::FeeFilter),
    ("mempool", Command::Mempool),
    ("ping", Command::Ping),
    ("pong", Command::Pong),
    ("getheaders", Command::GetHeaders),
    ("headers", Command::Headers),
    ("getdata", Command::GetData),
    ("inv", Command::Inv),
    ("notfound", Command::NotFound),
    ("tx", Command::Tx),
    ("block", Command::Block),
];

impl Command {
    fn from_bytes(bytes: &[u8; 12]) -> Self {
        let named = |name: &str| {
            let (head, tail) = bytes.split_at_checked(name.len()).unwrap_or((bytes, &[]));
            head == name.as_bytes() && tail.iter().all(|byte| *byte == 0)
        };
        NAMES.iter().find(|(name, _)| named(name)).map_or(Self::Other, |(_, command)| *command)
    }

    /// The name, as on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, command)| *command == self).map_or("other", |(name, _)| *name)
    }

    /// The longest payload that is taken.
    #[must_use]
    pub const fn limit(self, network: Network) -> u32 {
        match self {
            Self::Version => 4096,
            Self::Verack | Self::SendHeaders | Self::WtxidRelay | Self::Mempool => 0,
            Self::FeeFilter => 8,
            Self::Ping | Self::Pong => 64,
            Self::Headers => 3 + 2000 * 81,
            Self::Inv | Self::GetData | Self::NotFound => 9 + 50_000 * 36,
            Self::Block if network.is_bsv() => u32::MAX,
            Self::Tx if network.is_bsv() => MAX_BSV_TX,
            Self::Block | Self::Tx | Self::GetHeaders | Self::Other => MAX_MESSAGE,
        }
    }
}

/// What stands before a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The network.
    pub magic: [u8; 4],
    /// What the message is.
    pub command: Command,
    /// The length of the payload.
    pub length: u32,
    /// The checksum of the payload.
    pub checksum: [u8; 4],
}

impl Frame {
    /// The frame in these bytes. Every 24 bytes are one.
    #[must_use]
    pub fn decode(bytes: &[u8; FRAME_LEN]) -> Self {
        let field = |at: usize| {
            let field = bytes.get(at..).and_then(<[u8]>::first_chunk::<4>);
            *field.expect("the fields lie within the 24 bytes")
        };
        let command = bytes.get(4..).and_then(<[u8]>::first_chunk);
        Self {
            magic: field(0),
            command: Command::from_bytes(command.expect("12 bytes behind the magic")),
            length: u32::from_le_bytes(field(16)),
            checksum: field(20),
        }
    }

    /// Whether this is the payload that the frame was made for.
    #[must_use]
    pub fn matches(&self, payload: &[u8]) -> bool {
        checksum(payload) == self.checksum
    }
}

/// What a node says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The version of the protocol.
    pub version: i32,
    /// What it offers, in bits.
    pub services: u64,
    /// Its time.
    pub time: i64,
    /// A number to recognise oneself by.
    pub nonce: u64,
    /// Its name.
    pub agent: String,
    /// The height of its chain.
    pub height: i32,
    /// Whether it wants transactions.
    pub relay: bool,
}

/// A thing that a node has or wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inventory {
    /// What it is.
    pub kind: u32,
    /// Its hash.
    pub hash: BlockHash,
}

impl Inventory {
    /// A block to ask for, in the form that this network has.
    #[must_use]
    pub const fn block(hash: BlockHash, network: Network) -> Self {
        Self { kind: if network.is_bsv() { BLOCK } else { WITNESS_BLOCK }, hash }
    }

    /// A transaction to ask for, with its witness where the network has them.
    #[must_use]
    pub const fn tx(name: TxName, network: Network) -> Self {
        let (kind, hash) = match name {
            TxName::Txid(txid) if network.is_bsv() => (TX, txid.to_bytes()),
            TxName::Txid(txid) => (WITNESS_TX, txid.to_bytes()),
            TxName::Wtxid(wtxid) => (WTX, wtxid.to_bytes()),
        };
        Self { kind, hash: BlockHash::from_bytes(hash) }
    }

    /// A transaction to announce.
    #[must_use]
    pub const fn announced(name: TxName) -> Self {
        let (kind, hash) = match name {
            TxName::Txid(txid) => (TX, txid.to_bytes()),
            TxName::Wtxid(wtxid) => (WTX, wtxid.to_bytes()),
        };
        Self { kind, hash: BlockHash::from_bytes(hash) }
    }

    /// The transaction that it is, if it is one.
    #[must_use]
    pub const fn tx_name(&self) -> Option<TxName> {
        match self.kind {
            TX | WITNESS_TX => Some(TxName::Txid(Txid::from_bytes(self.hash.to_bytes()))),
            WTX => Some(TxName::Wtxid(Wtxid::from_bytes(self.hash.to_bytes()))),
            _ => None,
        }
    }

    /// Whether it is a block.
    #[must_use]
    pub const fn is_block(&self) -> bool {
        matches!(self.kind, BLOCK | WITNESS_BLOCK)
    }
}

/// A message that is understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The first message of either side.
    Version(Version),
    /// The answer to it.
    Verack,
    /// Asks for new blocks to be announced by their headers.
    SendHeaders,
    /// Transactions are called by their hashes with witnesses (BIP339).
    WtxidRelay,
    /// Asks for transactions that pay at least this many satoshi for 1,000 vB (BIP133).
    FeeFilter(u64),
    /// Asks for all transactions to be announced (BIP35).
    Mempool,
    /// Asks for a sign of life.
    Ping(u64),
    /// The sign of life.
    Pong(u64),
    /// Asks for the headers above the first of these that is known.
    GetHeaders(Vec<BlockHash>),
    /// Headers.
    Headers(Vec<HeaderBytes>),
    /// Asks for things.
    GetData(Vec<Inventory>),
    /// Announces things.
    Inv(Vec<Inventory>),
    /// Things that were asked for and are not there.
    NotFound(Vec<Inventory>),
    /// A transaction.
    Tx(Vec<u8>),
    /// A block.
    Block(Vec<u8>),
    /// Something else.
    Other,
}

impl Message {
    const fn command(&self) -> Command {
        match self {
            Self::Version(_) => Command::Version,
            Self::Verack => Command::Verack,
            Self::SendHeaders => Command::SendHeaders,
            Self::WtxidRelay => Command::WtxidRelay,
            Self::FeeFilter(_) => Command::FeeFilter,
            Self::Mempool => Command::Mempool,
            Self::Ping(_) => Command::Ping,
            Self::Pong(_) => Command::Pong,
            Self::GetHeaders(_) => Command::GetHeaders,
            Self::Headers(_) => Command::Headers,
            Self::GetData(_) => Command::GetData,
            Self::Inv(_) => Command::Inv,
            Self::NotFound(_) => Command::NotFound,
            Self::Tx(_) => Command::Tx,
            Self::Block(_) => Command::Block,
            Self::Other => Command::Other,
        }
    }

    /// The message with its frame.
    #[must_use]
    pub fn encode(&self, network: Network) -> Vec<u8> {
        let payload = self.payload(network);
        let mut command = [0; 12];
        let name = self.command().name().as_bytes();
        command.iter_mut().zip(name).for_each(|(byte, name)| *byte = *name);
        let length = u32::try_from(payload.len()).expect("payloads are below 4 GiB");
        let mut bytes = Vec::with_capacity(FRAME_LEN + payload.len());
        bytes.extend_from_slice(&network.wire_magic());
        bytes.extend_from_slice(&command);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&checksum(&payload));
        bytes.extend_from_slice(&payload);
        bytes
    }

    fn payload(&self, network: Network) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Version(version) => version.encode(&mut out),
            Self::Verack | Self::SendHeaders | Self::WtxidRelay | Self::Mempool | Self::Other => {}
            Self::Ping(nonce) | Self::Pong(nonce) | Self::FeeFilter(nonce) => {
                out.extend_from_slice(&nonce.to_le_bytes())
            }
            Self::GetHeaders(locator) => {
                out.extend_from_slice(&protocol(network).to_le_bytes());
                compact_size::write(locator.len() as u64, &mut out);
                locator.iter().for_each(|hash| out.extend_from_slice(hash.as_bytes()));
                out.extend_from_slice(BlockHash::ZERO.as_bytes());
            }
            Self::Headers(headers) => {
                compact_size::write(headers.len() as u64, &mut out);
                for header in headers {
                    out.extend_from_slice(header);
                    out.push(0);
                }
            }
            Self::GetData(list) | Self::Inv(list) | Self::NotFound(list) => {
                compact_size::write(list.len() as u64, &mut out);
                for item in list {
                    out.extend_from_slice(&item.kind.to_le_bytes());
                    out.extend_from_slice(item.hash.as_bytes());
                }
            }
            Self::Block(bytes) | Self::Tx(bytes) => out.extend_from_slice(bytes),
        }
        out
    }
}

impl Version {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&self.services.to_le_bytes());
        out.extend_from_slice(&self.time.to_le_bytes());
        // Both addresses: services, an IPv6 address and a port, which nobody reads.
        out.extend_from_slice(&[0; 2 * 26]);
        out.extend_from_slice(&self.nonce.to_le_bytes());
        compact_size::write(self.agent.len() as u64, out);
        out.extend_from_slice(self.agent.as_bytes());
        out.extend_from_slice(&self.height.to_le_bytes());
        out.push(u8::from(self.relay));
    }
}

/// The version of the protocol that is spoken. Later ones of BSV have frames of another form.
pub(super) const fn protocol(network: Network) -> i32 {
    if network.is_bsv() { 70_015 } else { 70_016 }
}

fn checksum(payload: &[u8]) -> [u8; 4] {
    *sha256d(payload).first_chunk().expect("a hash has 32 bytes")
}
