//! Blocks from one node by its own interface: REST where it is turned on, else JSON-RPC.
//!
//! ```text
//!  seek ─► scout ── walks along the node's active chain ──► headers ─┐
//!  want ─► queue ─► fetcher ─┐                                       ├─► channel ─► next_event
//!               └─► fetcher ─┴── REST, or batches of calls ► blocks ─┘
//! ```
//!
//! The receiver's thread never waits for the node: it takes from a channel of a few messages. The
//! scout and [`FETCHERS`] fetchers have a connection each and ask as long as it takes; `link` says
//! how a node that does not answer is reported and when it is given up.
//!
//! A node with a login is also followed in its mempool (`mempool`), and takes transactions
//! (`gateway`).
//!
//! Only the active chain of the node is seen, with its reorgs but without its stale blocks; the
//! other sources see those too.
//!
//! This is a client of another program's JSON; see `docs/adr/0009-sources.md`.

mod calls;
mod client;
mod gateway;
mod http;
mod link;
mod mempool;
mod scout;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use varve_types::{BlockHash, Network, Txid};

use self::calls::Calls;
use self::client::Client;
use self::gateway::RpcGateway;
use self::link::{Link, Message, Stop};
use self::mempool::{Ask, Listener};
use self::scout::{Scout, Seek};
use super::pool::{AHEAD, Fetcher, Pool};
use super::queue::{Inbox, queue};
use super::transactions::Gateway;
use super::{Clock, Event, Giver, Source, SourceError};
use crate::mempool::FeeRate;

pub use calls::Login;

/// Threads that fetch blocks, each with its own connection.
pub const FETCHERS: usize = 4;
/// How long the first answer is waited for.
const GREETING: Duration = Duration::from_millis(2800);

/// How a node is reached.
pub struct Settings {
    /// `host:port`.
    pub address: String,
    /// Its network.
    pub network: Network,
    /// Who asks.
    pub login: Login,
    /// Whether to wait for new blocks, and for a node that is gone.
    pub follow: bool,
    /// The time, for everything that is waited for.
    pub clock: Clock,
}

/// A source over the interface of one node.
pub struct Rpc {
    link: Arc<Link>,
    messages: Inbox<Message>,
    seeks: Sender<Seek>,
    /// How often `seek` was called.
    sought: u64,
    /// How many messages with headers have come.
    seen: u64,
    events: VecDeque<Event>,
    scout: thread::JoinHandle<()>,
    pool: Pool<BlockHash>,
    failed: bool,
    /// The mempool of the node, where there is a login.
    mempool: Option<(Sender<Ask>, Arc<RpcGateway>)>,
}

impl Rpc {
    /// Starts to talk to a node. Without `follow` one that cannot be reached is an error; one that
    /// says that it is starting is waited for.
    pub fn connect(settings: Settings) -> Result<Self, SourceError> {
        let Settings { address, network, login, follow, clock } = settings;
        let (sender, messages) = queue(AHEAD);
        let (seeks, sought) = channel();
        let link = Arc::new(Link::new(address, network, clock, follow, sender.clone()));
        let client = || Client::new(Arc::clone(&link), login.clone());
        let scout = Scout::new(Arc::clone(&link), client(), sought);
        let fetcher = |_| BlockFetcher { link: Arc::clone(&link), client: client() };
        let pool = Pool::new((0..FETCHERS).map(fetcher), &sender);
        let scout = thread::spawn(move || scout.run());
        let has_mempool = follow && !matches!(login, Login::Nobody);
        let mempool = has_mempool.then(|| follow_mempool(&link, &login));
        let (sought, seen, events, failed) = (0, 0, VecDeque::new(), false);
        let mut rpc =
            Self { link, messages, seeks, sought, seen, events, scout, pool, failed, mempool };
        match rpc.messages.recv_timeout(GREETING) {
            Ok(message) => {
                let event = rpc.event(message)?;
                rpc.events.extend(event);
            }
            Err(_) if follow => {}
            Err(_) => {
                let reason = "nothing was heard from it for 3 s; check the address, or pass \
                              --follow to wait for it";
                return Err(rpc.link.silent(reason.to_owned()));
            }
        }
        Ok(rpc)
    }

    fn ask(&self, ask: Ask) {
        if let Some((asks, _)) = &self.mempool {
            // Where its thread has ended, it has said why.
            let _ = asks.send(ask);
        }
    }

    /// What a message is to the receiver, if anything.
    fn event(&mut self, message: Message) -> Result<Option<Event>, SourceError> {
        let giver = Giver::ONLY;
        Ok(match message {
            Message::Headers(headers) => {
                self.seen += 1;
                Some(Event::Headers { headers, giver })
            }
            // One that answers an earlier seek says nothing about the last.
            Message::Done(seek) => (seek == self.sought).then_some(Event::HeadersDone),
            Message::Block { hash, bytes: Some(bytes) } => {
                Some(Event::Block { hash, bytes, giver })
            }
            Message::Block { hash, bytes: None } => {
                Some(Event::Missing { hash, giver: Giver::ONLY })
            }
            Message::Transactions(news) => Some(Event::Transactions(news)),
            Message::Warning(warning) => Some(Event::Warning(warning)),
            Message::Greeted => None,
            Message::Failed(error) => {
                self.failed = true;
                return Err(error);
            }
        })
    }
}

impl Source for Rpc {
    fn seek(&mut self, locator: &[BlockHash]) -> Result<(), SourceError> {
        self.sought += 1;
        // When the scout has ended, `next_event` says why.
        let (number, seen, locator) = (self.sought, self.seen, locator.to_vec());
        let _ = self.seeks.send(Seek { number, seen, locator });
        Ok(())
    }

    fn want(&mut self, _: Giver, hashes: &[BlockHash]) -> Result<(), SourceError> {
        self.pool.push(hashes.iter().copied());
        Ok(())
    }

    fn next_event(&mut self, timeout: Duration) -> Result<Event, SourceError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            // A thread says why it ends, so one that has ended without a word has panicked.
            let ended = self.scout.is_finished() || self.pool.has_ended();
            let Ok(message) = self.messages.recv_timeout(timeout) else {
                assert!(!ended || self.failed, "a thread that talks to the node has panicked");
                return Ok(Event::Idle);
            };
            if let Some(event) = self.event(message)? {
                return Ok(event);
            }
        }
    }

    fn bound(&mut self, queued: u64, _: u64) {
        self.messages.bound(queued);
    }

    /// There is nobody else to ask: the receiver knows what is invalid.
    fn blame(&mut self, _giver: Giver, _reason: &str) {}

    fn relay(&mut self, rate: Option<FeeRate>) {
        self.ask(Ask::Relay(rate.is_some()));
    }

    fn fetch_txs(&mut self, txids: &[Txid]) {
        self.ask(Ask::Fetch(txids.to_vec()));
    }

    fn list_txs(&mut self) {
        self.ask(Ask::List);
    }

    fn gateway(&self) -> Option<Arc<dyn Gateway>> {
        let (_, gateway) = self.mempool.as_ref()?;
        Some(Arc::clone(gateway) as Arc<dyn Gateway>)
    }
}

/// Starts the thread that follows the mempool.
fn follow_mempool(link: &Arc<Link>, login: &Login) -> (Sender<Ask>, Arc<RpcGateway>) {
    let (asks, asked) = channel();
    let client = Client::of_mempool(Arc::clone(link), login.clone());
    let listener = Listener::new(Arc::clone(link), client, asked);
    thread::spawn(move || listener.run());
    let calls = Calls::new(Arc::clone(link), login.clone());
    (asks, Arc::new(RpcGateway::new(calls, link.network.format())))
}

impl Drop for Rpc {
    /// The threads see it at their next look, and nobody waits for them: one may be looking up the
    /// name of the host.
    fn drop(&mut self) {
        self.link.close();
    }
}

/// Fetches blocks in one thread.
struct BlockFetcher {
    link: Arc<Link>,
    client: Client,
}

impl Fetcher<BlockHash, Message> for BlockFetcher {
    fn room(&self) -> usize {
        self.client.batch_size()
    }

    fn fetch(&mut self, hashes: Vec<BlockHash>) -> Option<Vec<Message>> {
        match self.client.blocks(&hashes) {
            Ok(blocks) => {
                let message = |(hash, bytes)| Message::Block { hash, bytes };
                Some(hashes.into_iter().zip(blocks).map(message).collect())
            }
            Err(Stop::Closed) => None,
            Err(Stop::Failed(error)) => {
                // Others would fail the same way, after this has been reported.
                let _ = self.link.send(Message::Failed(error));
                None
            }
        }
    }
}
