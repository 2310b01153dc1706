//! Blocks from one node by its own interface: REST where it is turned on, else JSON-RPC.
//!
//! | | REST (`-rest`) | JSON-RPC |
//! |---|---|---|
//! | headers | `/rest/headers/2000/HASH.bin` | `getblockhash`, `getblockheader`, one by one |
//! | blocks | `/rest/block/HASH.bin` | `getblock HASH 0`, in hex |
//! | the tip | `/rest/chaininfo.json` | `getbestblockhash` |
//!
//! Only the active chain of the node is seen, with its reorgs but without its stale blocks; the
//! other sources see those too. Blocks are fetched by [`FETCHERS`] threads, a few ahead of the
//! receiver. When there is nothing else to do, the tip is asked for. A node that does not answer is
//! a [`Warning`], and is asked again: it may be restarting.
//!
//! This is a client of another program's JSON; see `docs/adr/0009-sources.md`.

mod client;
mod http;

use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

use varve_types::{BlockHash, Header, Network};

use self::client::Client;
use super::pool::{Done, Fetch, Pool};
use super::{Event, Giver, Source, SourceError, Warning};

pub use client::Login;

/// Threads that fetch blocks, each with its own connection.
pub const FETCHERS: usize = 4;
/// How long a tip is left alone.
const POLL: Duration = Duration::from_millis(500);

/// A source over the interface of one node.
pub struct Rpc {
    client: Client,
    rest: bool,
    pool: Pool<BlockHash>,
    owed: usize,
    events: VecDeque<Event>,
    locator: Vec<BlockHash>,
    /// Headers are to be asked for.
    seeking: bool,
    /// The tip when headers were asked for last.
    tip: BlockHash,
}

impl Rpc {
    /// Connects to the node at `host:port`.
    pub fn connect(address: &str, network: Network, login: &Login) -> Result<Self, SourceError> {
        let new_client = || Client::new(address, network, login.clone());
        let mut client = new_client();
        let rest = client.greet()?;
        let fetch = || -> Fetch<BlockHash> {
            let mut client = new_client();
            Box::new(move |hash| client.block(hash, rest))
        };
        Ok(Self {
            client,
            rest,
            pool: Pool::new((0..FETCHERS).map(|_| fetch())),
            owed: 0,
            events: VecDeque::new(),
            locator: Vec::new(),
            seeking: false,
            tip: BlockHash::ZERO,
        })
    }

    /// Whether the node answers REST.
    #[must_use]
    pub const fn uses_rest(&self) -> bool {
        self.rest
    }

    /// Asks for the headers above the locator.
    fn ask(&mut self) -> Result<(), SourceError> {
        self.tip = self.client.best_hash(self.rest)?;
        let mut headers = Vec::new();
        for hash in self.locator.clone() {
            if let Some(above) = self.headers_above(hash)? {
                headers = above;
                break;
            }
        }
        self.seeking = false;
        if !headers.is_empty() {
            self.events.push_back(Event::Headers { headers, giver: Giver::ONLY });
        }
        // Done, unless the receiver seeks again because these are new to it.
        self.events.push_back(Event::HeadersDone);
        Ok(())
    }

    /// The headers above a block, or `None` when it is not in the active chain.
    fn headers_above(
        &mut self,
        hash: BlockHash,
    ) -> Result<Option<Vec<[u8; Header::LEN]>>, SourceError> {
        if self.rest {
            let headers = self.client.headers_by_rest(hash)?;
            return Ok(headers.map(|headers| headers.get(1..).unwrap_or_default().to_vec()));
        }
        match self.client.height(&hash)? {
            Some(height) => Ok(Some(self.client.headers_by_calls(height)?)),
            None => Ok(None),
        }
    }

    fn fetched(&mut self, timeout: Duration) -> Result<Option<Event>, SourceError> {
        let Some(Done { job: hash, result }) = self.pool.next(timeout) else { return Ok(None) };
        if matches!(result, Err(SourceError::Silent { .. })) {
            self.pool.push([hash]);
            return result.map(|_| None);
        }
        self.owed -= 1;
        Ok(Some(match result? {
            Some(bytes) => Event::Block { hash, bytes, giver: Giver::ONLY },
            None => Event::Missing { hash },
        }))
    }

    fn try_next_event(&mut self, timeout: Duration) -> Result<Event, SourceError> {
        let mut left = timeout;
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            if self.seeking {
                self.ask()?;
                continue;
            }
            if self.owed > 0 {
                return Ok(self.fetched(left)?.unwrap_or(Event::Idle));
            }
            if left.is_zero() {
                return Ok(Event::Idle);
            }
            thread::sleep(left.min(POLL));
            left = left.saturating_sub(POLL);
            self.seeking =
                !self.locator.is_empty() && self.client.best_hash(self.rest)? != self.tip;
        }
    }
}

impl Source for Rpc {
    fn seek(&mut self, locator: &[BlockHash]) -> Result<(), SourceError> {
        self.locator = locator.to_vec();
        self.seeking = true;
        self.events.retain(|event| *event != Event::HeadersDone);
        Ok(())
    }

    fn want(&mut self, _: Giver, hashes: &[BlockHash]) -> Result<(), SourceError> {
        self.owed += hashes.len();
        self.pool.push(hashes.iter().copied());
        Ok(())
    }

    fn next_event(&mut self, timeout: Duration) -> Result<Event, SourceError> {
        match self.try_next_event(timeout) {
            Err(SourceError::Silent { address: peer, reason }) => {
                Ok(Event::Warning(Warning::Lost { peer, reason }))
            }
            other => other,
        }
    }

    /// There is nobody else to ask: the receiver knows what is invalid.
    fn blame(&mut self, _giver: Giver, _reason: &str) {}
}
