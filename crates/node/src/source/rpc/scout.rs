//! The thread that walks along the node's active chain and gives its headers.
//!
//! 1. **Search.** The first `seek` brings the receiver's locator: hashes that it has, from its best
//!    header down to genesis. The first of them in the node's active chain is where both agree.
//! 2. **Walk.** From there the scout follows the node's chain to its tip, batch by batch, whatever
//!    the work of these headers: the receiver's best may be another branch until the last of them.
//!
//!    ```text
//!    receiver   0 ─ 1 ─ 2 ─ … ─ 2500             locator 2500 2499 … 1 0
//!                 └ 1' ─ 2' ─ … ─ 4500'  node    search: 0; walk: 1' … 4500'
//!    ```
//! 3. **Reorganisation.** When the block that the scout stands at has left the active chain, it
//!    searches again: among the last headers that it gave, which the receiver has, and then in the
//!    locator.
//! 4. **Another seek** while the scout walks changes nothing, and neither does one after the walk:
//!    the receiver seeks whenever headers are new to it. Only when it has taken all headers and its
//!    locator still does not have the last of them, some may have been lost on the way (refused as
//!    too far in the future, say). Then the walk is repeated from a new search, once for a tip.
//! 5. **Follow.** When there is nothing to do the tip is asked for, every [`POLL`].
//!
//! The scout keeps [`TRAIL`] hashes and a locator, whatever the length of the chain.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use varve_types::{BlockHash, Header};

use super::client::{At, Client};
use super::link::{Link, Message, Stop, TICK, Trouble};
use crate::source::HeaderBytes;

/// How long a tip is left alone.
const POLL: Duration = Duration::from_millis(500);
/// How many of the last headers are remembered.
const TRAIL: usize = 1024;
/// How often the chain may change in the middle of one walk before the node is left alone for a
/// pause.
const CHANGES: usize = 16;

/// A call of `seek`.
pub(super) struct Seek {
    /// Its number.
    pub(super) number: u64,
    /// How many messages with headers the receiver had taken before.
    pub(super) seen: u64,
    pub(super) locator: Vec<BlockHash>,
}

/// The thread.
pub(super) struct Scout {
    link: Arc<Link>,
    client: Client,
    seeks: Receiver<Seek>,
    /// The last seek, and whether it has been answered.
    last: Option<Seek>,
    answered: bool,
    /// Where the walk is.
    at: Option<At>,
    /// The last headers given, the latest last.
    trail: VecDeque<BlockHash>,
    /// The tip to which the last walk went that began with the locator.
    searched: Option<BlockHash>,
    /// How many messages with headers were sent.
    sent: u64,
}

impl Scout {
    pub(super) const fn new(link: Arc<Link>, client: Client, seeks: Receiver<Seek>) -> Self {
        Self {
            link,
            client,
            seeks,
            last: None,
            answered: true,
            at: None,
            trail: VecDeque::new(),
            searched: None,
            sent: 0,
        }
    }

    /// Runs until the source is dropped or fails.
    pub(super) fn run(mut self) {
        if let Err(Stop::Failed(error)) = self.serve() {
            // When nobody listens any more, nobody wants to know.
            let _ = self.link.send(Message::Failed(error));
        }
    }

    fn serve(&mut self) -> Result<(), Stop> {
        self.client.greet()?;
        self.link.send(Message::Greeted)?;
        loop {
            self.wait()?;
            if self.last.is_some() && (!self.answered || self.link.follows()) {
                self.look()?;
            }
        }
    }

    /// Waits for a seek, or until it is time to look at the tip.
    fn wait(&mut self) -> Result<(), Stop> {
        let mut left = POLL;
        while !left.is_zero() {
            if self.link.is_closed() {
                return Err(Stop::Closed);
            }
            match self.seeks.recv_timeout(TICK) {
                Ok(seek) => {
                    self.take(seek);
                    return Ok(());
                }
                Err(RecvTimeoutError::Timeout) => left = left.saturating_sub(TICK),
                Err(RecvTimeoutError::Disconnected) => return Err(Stop::Closed),
            }
        }
        Ok(())
    }

    fn take(&mut self, seek: Seek) {
        self.last = Some(seek);
        self.answered = false;
    }

    /// Takes the seeks that came meanwhile.
    fn take_all(&mut self) {
        while let Ok(seek) = self.seeks.try_recv() {
            self.take(seek);
        }
    }

    /// Walks to the tip, until that is where the walk ended, and answers.
    fn look(&mut self) -> Result<(), Stop> {
        let mut end = None;
        loop {
            self.take_all();
            let tip = self.client.tip()?;
            if self.has_lost_some(&tip) {
                (self.at, self.searched) = (None, Some(tip.hash));
                self.trail.clear();
            }
            if self.at.is_some_and(|at| at.hash == tip.hash) {
                break;
            }
            self.walk(tip)?;
            // A node whose headers do not lead to its tip is asked again at the next poll.
            if std::mem::replace(&mut end, self.at) == self.at {
                break;
            }
        }
        if end.is_some() || !self.answered {
            self.answered = true;
            let number = self.last.as_ref().map_or(0, |seek| seek.number);
            self.link.send(Message::Done(number))?;
        }
        Ok(())
    }

    /// Whether the receiver may lack headers that it was given.
    fn has_lost_some(&self, tip: &At) -> bool {
        let (Some(at), Some(last)) = (self.at, self.last.as_ref()) else { return false };
        let is_current = !self.answered && last.seen == self.sent;
        is_current && self.searched != Some(tip.hash) && !last.locator.contains(&at.hash)
    }

    fn walk(&mut self, mut tip: At) -> Result<(), Stop> {
        let mut changes = 0;
        loop {
            self.take_all();
            let at = match self.at {
                Some(at) => at,
                None => self.search(&tip)?,
            };
            match self.client.headers_above(&at, &tip)? {
                Some(headers) if headers.is_empty() => return Ok(()),
                Some(headers) => self.give(at, headers)?,
                None => {
                    changes += 1;
                    if changes > CHANGES {
                        let reason = "its chain changes all the time".to_owned();
                        self.link.trouble(&Trouble::Busy(reason))?;
                        self.link.pause(POLL)?;
                    }
                    self.at = None;
                    tip = self.client.tip()?;
                }
            }
        }
    }

    /// Finds where the receiver and the node agree, and goes there.
    fn search(&mut self, tip: &At) -> Result<At, Stop> {
        let locator = self.last.as_ref().map(|seek| seek.locator.as_slice()).unwrap_or_default();
        let candidates: Vec<BlockHash> =
            trail_locator(&self.trail).chain(locator.iter().copied()).collect();
        let Some(at) = self.client.find(&candidates)? else {
            let network = self.link.network;
            let reason = format!("has no block of the chain of {network}; is it another node now?");
            return Err(self.link.refused(&reason));
        };
        match self.trail.iter().position(|hash| *hash == at.hash) {
            Some(index) => self.trail.truncate(index + 1),
            None => {
                self.trail.clear();
                self.searched = Some(tip.hash);
            }
        }
        self.at = Some(at);
        Ok(at)
    }

    fn give(&mut self, at: At, headers: Vec<HeaderBytes>) -> Result<(), Stop> {
        let above = u32::try_from(headers.len()).unwrap_or(u32::MAX);
        let height = at.height.and_then(|height| height.checked_add(above));
        for header in &headers {
            if self.trail.len() == TRAIL {
                self.trail.pop_front();
            }
            self.trail.push_back(Header::new(header).hash());
        }
        self.at = self.trail.back().map(|hash| At { hash: *hash, height });
        self.sent += 1;
        self.link.send(Message::Headers(headers))
    }
}

/// The hashes of the trail by which a search goes: the last ones, then with steps that double.
fn trail_locator(trail: &VecDeque<BlockHash>) -> impl Iterator<Item = BlockHash> {
    let steps = std::iter::successors(Some(1_usize), |step| step.checked_mul(2));
    let last = trail.len().checked_sub(1);
    let first = last.and_then(|last| trail.get(last).copied());
    let below = steps.map_while(move |step| trail.get(last?.checked_sub(step)?).copied());
    first.into_iter().chain(below)
}
