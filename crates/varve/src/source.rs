//! Where a sync takes headers and blocks from.

mod peer_address;
mod rpc_url;

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;

use varve_node::Source as NodeSource;
use varve_node::source::Clock;
use varve_node::source::directory::Directory;
use varve_node::source::live::{Item, Live};
use varve_node::source::p2p::{self, P2p};
use varve_node::source::pipe::{Pipe, WAITING_LIMIT};
use varve_node::source::rpc::{self, Rpc};
use varve_types::Network;
use varve_types::blk::write_record;

use crate::error::Error;
use crate::system;

pub use peer_address::{ParsePeerAddressError, PeerAddress};
pub use rpc_url::RpcUrl;

/// Where a sync takes headers and blocks from.
///
/// Making one does nothing yet: files are opened and connections made when the sync starts, or by
/// [`connect`](Self::connect).
pub struct Source {
    kind: Kind,
    follow: bool,
}

enum Kind {
    Folder(PathBuf),
    Peers(Vec<PeerAddress>),
    Rpc(RpcUrl),
    Reader(Box<dyn Read + Send>),
    Blocks(Box<dyn Iterator<Item = Vec<u8>> + Send>),
    Live(Receiver<Item>),
    Connected { source: Box<dyn NodeSource>, network: Network, traits: Traits },
}

/// What a sync has to know of a source before it takes anything from it.
#[derive(Clone, Copy)]
pub(crate) struct Traits {
    /// Others than the user are believed: scripts are checked unless the caller says otherwise.
    pub(crate) is_of_strangers: bool,
    /// Blocks of branches with less work are there without being fetched, so they are kept too.
    pub(crate) all_branches: bool,
}

impl Source {
    /// Block files as a node writes them: a folder of `blk*.dat`, a folder with `blocks/` in it,
    /// one block file, or a named pipe. `xor.dat` beside them is applied.
    pub fn folder(path: impl Into<PathBuf>) -> Self {
        Self::new(Kind::Folder(path.into()))
    }

    /// Other nodes over the peer-to-peer protocol. They are strangers: by default their scripts are
    /// checked, above the block that is built in for the network.
    pub fn peers(addresses: impl IntoIterator<Item = PeerAddress>) -> Self {
        Self::new(Kind::Peers(addresses.into_iter().collect()))
    }

    /// The REST or JSON-RPC interface of your own node.
    #[must_use]
    pub fn rpc(url: RpcUrl) -> Self {
        Self::new(Kind::Rpc(url))
    }

    /// A pipe in the framing of block files. It is read once, in another thread.
    pub fn reader(input: impl Read + Send + 'static) -> Self {
        Self::new(Kind::Reader(Box::new(input)))
    }

    /// Serialised blocks, parents before children as a rule, from a simulator or any other maker
    /// in this process. The iterator runs in another thread.
    pub fn blocks<I>(blocks: I) -> Self
    where
        I: IntoIterator<Item = Vec<u8>>,
        I::IntoIter: Send + 'static,
    {
        Self::new(Kind::Blocks(Box::new(blocks.into_iter())))
    }

    /// Blocks and transactions of a simulator or any other maker in this process, in the order in
    /// which they happen. A channel with a bound makes the maker wait for the sync.
    #[must_use]
    pub fn live(items: Receiver<Item>) -> Self {
        Self::new(Kind::Live(items))
    }

    const fn new(kind: Kind) -> Self {
        Self { kind, follow: false }
    }

    /// The same source, which waits for new blocks when it has given all it has. Readers and
    /// iterators end all the same.
    #[must_use]
    pub fn following(mut self) -> Self {
        self.follow = true;
        self
    }

    /// Opens the files or connects now, so that a mistake is found before a folder is made.
    pub fn connect(self, network: Network) -> Result<Self, Error> {
        self.connect_by(network, &system::stopwatch())
    }

    pub(crate) fn connect_by(self, network: Network, clock: &Clock) -> Result<Self, Error> {
        let (traits, follow) = (self.traits(), self.follow);
        let source: Box<dyn NodeSource> = match self.kind {
            Kind::Folder(path) => match pipe_at(&path)? {
                Some(pipe) => Box::new(Pipe::new(pipe, network, WAITING_LIMIT)),
                None => Box::new(Directory::open(&path, network, follow)?),
            },
            Kind::Reader(input) => Box::new(Pipe::new(input, network, WAITING_LIMIT)),
            Kind::Blocks(blocks) => {
                let input = Framed { blocks, network, record: Vec::new(), read: 0 };
                Box::new(Pipe::new(input, network, WAITING_LIMIT))
            }
            Kind::Live(items) => Box::new(Live::new(items, network)),
            Kind::Rpc(RpcUrl { address, login }) => {
                let clock = Clock::clone(clock);
                let settings = rpc::Settings { address, network, login, follow, clock };
                Box::new(Rpc::connect(settings)?)
            }
            Kind::Peers(peers) => Box::new(P2p::new(p2p::Settings {
                network,
                peers: peers.into_iter().map(String::from).collect(),
                clock: Clock::clone(clock),
                epoch: system::unix_seconds(),
                nonce: u64::from_le_bytes(system::random()?),
                relay: follow,
            })),
            connected @ Kind::Connected { .. } => return Ok(Self { kind: connected, follow }),
        };
        Ok(Self { kind: Kind::Connected { source, network, traits }, follow })
    }

    /// The source of the crates below. One that was connected for another network is refused.
    pub(crate) fn into_inner(
        self,
        network: Network,
        clock: &Clock,
    ) -> Result<Box<dyn NodeSource>, Error> {
        match self.connect_by(network, clock)?.kind {
            Kind::Connected { source, network: found, .. } if found == network => Ok(source),
            _ => Err(Error::OtherSource { network }),
        }
    }

    pub(crate) const fn is_following(&self) -> bool {
        self.follow
    }

    pub(crate) const fn traits(&self) -> Traits {
        match &self.kind {
            Kind::Connected { traits, .. } => *traits,
            Kind::Peers(_) => Traits { is_of_strangers: true, all_branches: false },
            Kind::Rpc(_) => Traits { is_of_strangers: false, all_branches: false },
            Kind::Folder(_) | Kind::Reader(_) | Kind::Blocks(_) | Kind::Live(_) => {
                Traits { is_of_strangers: false, all_branches: true }
            }
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            Kind::Folder(path) => format!("folder {}", path.display()),
            Kind::Peers(peers) => format!("peers {peers:?}"),
            Kind::Rpc(url) => format!("rpc {}", url.address),
            Kind::Reader(_) => "reader".to_owned(),
            Kind::Blocks(_) => "blocks".to_owned(),
            Kind::Live(_) => "a maker in this process".to_owned(),
            Kind::Connected { network, .. } => format!("connected to {network}"),
        };
        f.debug_struct("Source").field("kind", &kind).field("follow", &self.follow).finish()
    }
}

/// A named pipe or a device, which cannot be read twice; `None` for files and folders.
fn pipe_at(path: &Path) -> Result<Option<File>, Error> {
    if path.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
        let failed = |source| Error::Read { path: path.to_owned(), source };
        return File::open(path).map(Some).map_err(failed);
    }
    Ok(None)
}

/// Blocks in the framing of block files.
struct Framed {
    blocks: Box<dyn Iterator<Item = Vec<u8>> + Send>,
    network: Network,
    record: Vec<u8>,
    /// How much of the record has been read.
    read: usize,
}

impl Read for Framed {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.read == self.record.len() {
            self.record.clear();
            self.read = 0;
            if let Some(block) = self.blocks.next() {
                if u32::try_from(block.len()).is_err() {
                    return Err(io::Error::other("a block of 4 GiB or more cannot be framed"));
                }
                write_record(self.network.disk_magic(), &block, &mut self.record);
            }
        }
        let mut rest = self.record.get(self.read..).unwrap_or_default();
        let count = rest.read(out)?;
        self.read += count;
        Ok(count)
    }
}
