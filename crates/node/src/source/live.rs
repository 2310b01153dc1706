//! Blocks and transactions of a maker in this process: a simulator, a miner, a test.
//!
//! The maker sends serialised blocks and transactions through a channel, in the order in which they
//! happen; a channel with a bound makes it wait for the receiver. As with a pipe, every block is
//! given unasked. While nothing is in the channel, the receiver has caught up.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use varve_types::{BlockHash, Header, Network, Tx};

use super::pipe::WAITING_LIMIT;
use super::pushed::PushedBlocks;
use super::transactions::TxNews;
use super::{Event, Giver, Source, SourceError, Warning};

/// Something that a maker sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A serialised block.
    Block(Vec<u8>),
    /// A serialised transaction.
    Tx(Vec<u8>),
}

/// A source over a channel.
pub struct Live {
    items: Receiver<Item>,
    network: Network,
    blocks: PushedBlocks,
    /// Whether [`Event::HeadersDone`] was given since the last header or seek.
    is_quiet: bool,
    has_ended: bool,
}

impl Live {
    /// Takes what comes through this channel.
    #[must_use]
    pub fn new(items: Receiver<Item>, network: Network) -> Self {
        let blocks = PushedBlocks::new(network, WAITING_LIMIT);
        Self { items, network, blocks, is_quiet: false, has_ended: false }
    }

    fn take(&mut self, item: Item) -> Result<(), SourceError> {
        match item {
            Item::Block(bytes) if bytes.len() < Header::LEN => self.skip(bytes.len()),
            Item::Block(bytes) => {
                self.is_quiet = false;
                self.blocks.push(bytes)?;
            }
            Item::Tx(bytes) => match Tx::parse(&bytes, self.network.format()) {
                Err(_) => self.skip(bytes.len()),
                Ok(tx) => {
                    let (wtxid, giver) = (tx.wtxid(), Giver::ONLY);
                    let news = TxNews::Given { wtxid, tx: Bytes::from(bytes), giver };
                    self.blocks.events.push_back(Event::Transactions(news));
                }
            },
        }
        Ok(())
    }

    fn skip(&mut self, bytes: usize) {
        let (path, bytes) = ("-".into(), bytes as u64);
        self.blocks.events.push_back(Event::Warning(Warning::Skipped { path, bytes }));
    }

    /// Nothing is in the channel, or nothing more will be.
    fn fall_quiet(&mut self, has_ended: bool) {
        if has_ended && !self.has_ended {
            self.blocks.end();
        } else if !self.is_quiet {
            self.blocks.pause();
        }
        (self.is_quiet, self.has_ended) = (true, has_ended);
    }
}

impl Source for Live {
    fn seek(&mut self, locator: &[BlockHash]) -> Result<(), SourceError> {
        self.is_quiet = false;
        self.blocks.seek(locator);
        Ok(())
    }

    fn root(&mut self, hash: BlockHash) {
        self.blocks.root(hash);
    }

    fn want(&mut self, giver: Giver, hashes: &[BlockHash]) -> Result<(), SourceError> {
        self.is_quiet = false;
        self.blocks.want(giver, hashes);
        Ok(())
    }

    fn next_event(&mut self, timeout: Duration) -> Result<Event, SourceError> {
        loop {
            if let Some(event) = self.blocks.pop() {
                return Ok(event);
            }
            // What is there is taken before anybody hears that nothing is.
            let wait = if self.is_quiet { timeout } else { Duration::ZERO };
            match self.items.recv_timeout(wait) {
                Ok(item) => self.take(item)?,
                Err(end) => {
                    let has_ended = end == RecvTimeoutError::Disconnected;
                    if self.is_quiet && self.has_ended == has_ended {
                        if has_ended {
                            thread::sleep(timeout);
                        }
                        return Ok(Event::Idle);
                    }
                    self.fall_quiet(has_ended);
                }
            }
        }
    }

    fn bound(&mut self, _: u64, unordered: u64) {
        self.blocks.bound(unordered);
    }

    fn memory(&self) -> u64 {
        self.blocks.memory()
    }

    /// There is nobody else to ask: the receiver knows what is invalid.
    fn blame(&mut self, _giver: Giver, _reason: &str) {}
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::fixture::{chain_above, genesis, hash_of};

    const NOW: Duration = Duration::ZERO;

    #[test]
    fn the_receiver_hears_when_the_channel_is_empty_and_when_it_is_closed() {
        let (maker, items) = channel();
        let mut live = Live::new(items, Network::Regtest);
        let headers = chain_above(&genesis(), 2, 1);
        live.seek(&[hash_of(&genesis())]).unwrap();
        assert_eq!(live.next_event(NOW).unwrap(), Event::HeadersDone);
        assert_eq!(live.next_event(NOW).unwrap(), Event::Idle);
        // The second comes first, and a piece of neither.
        for header in headers.iter().rev() {
            maker.send(Item::Block(header.to_vec())).unwrap();
        }
        maker.send(Item::Block(vec![0; 5])).unwrap();
        drop(maker);
        let mut hashes = Vec::new();
        let mut warnings = Vec::new();
        let mut rest = Vec::new();
        for _ in 0..8 {
            match live.next_event(NOW).unwrap() {
                Event::Block { hash, .. } => hashes.push(hash),
                Event::Warning(warning) => warnings.push(warning),
                Event::Headers { .. } => {}
                other => rest.push(other),
            }
        }
        assert_eq!(hashes, headers.iter().map(hash_of).collect::<Vec<_>>());
        assert_eq!(warnings.len(), 1);
        assert_eq!(rest[0], Event::Parent { hash: hashes[0] });
        assert_eq!(rest[1..], [Event::HeadersDone, Event::Idle]);
    }

    #[test]
    fn a_block_that_is_asked_for_and_not_sent_is_missing() {
        let (maker, items) = channel();
        let mut live = Live::new(items, Network::Regtest);
        let hash = hash_of(&genesis());
        live.want(Giver::ONLY, &[hash]).unwrap();
        assert_eq!(live.next_event(NOW).unwrap(), Event::Missing { hash, giver: Giver::ONLY });
        assert_eq!(live.next_event(NOW).unwrap(), Event::HeadersDone);
        drop(maker);
    }
}
