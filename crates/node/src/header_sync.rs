//! Headers of a branch that a peer says has much work, when the first of them show little.
//!
//! Headers are cheap to make at the difficulty of the first blocks, so a branch is not stored until
//! it is known to reach a threshold of work. A peer cannot be believed and the headers of a long
//! branch are not kept in the meantime, so they are fetched twice:
//!
//! ```text
//! first pass     start ─► h h h h h h h h h h h h … until the work is reached
//!                         ·     1     0     1       a secret bit of every 600th header is kept
//! second pass    start ─► h h h h h h h h h h h h … the bits must be the same
//!                         └ released ┘└─ buffer ─┘
//! ```
//!
//! 1. In the first pass each header must follow the one before, meet its target, and have a target
//!    that the rules of difficulty allow after the one before. Of every [`Limits::period`]th header
//!    one bit of a keyed hash is kept. The pass ends when the work is reached.
//! 2. In the second pass the same headers are asked for again. A bit that differs shows that the
//!    peer sends another branch than the one it proved. A header is released when
//!    [`Limits::buffer`] others follow it: two dozen bits then vouch for it. When the work is
//!    reached, all are released, and later headers of the branch are taken directly.
//!
//! The key is secret and differs for each sync, so a peer cannot prepare two branches whose bits
//! agree: a branch of the first difficulty passes with a chance of one in 2^24.
//!
//! A valid chain cannot have more than six headers a second since the median time of its start,
//! which bounds the first pass. Memory for each peer, on mainnet from genesis in 2026:
//!
//! | | | bytes |
//! |---|---|---|
//! | bits | 6 · 5.6 · 10^8 s / 600 | 0.7 MB |
//! | buffer | 48 bytes · (15,000 + a message of 2,000), and as much to grow | 1.6 MB |
//!
//! The idea is Bitcoin Core's. Nothing here knows a socket, a clock or the tree.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::hash::Hasher as _;

use siphasher::sip::SipHasher13;
use varve_consensus::{MAX_FUTURE_SECONDS, Params, Work, check_work, is_permitted_transition};
use varve_types::{BlockHash, Header, Height};

use crate::source::HeaderBytes;

/// Headers that a valid chain can have for each second that has passed.
const HEADERS_PER_SECOND: u64 = 6;
/// A header without the hash of the one below it, which is known.
const COMPACT_LEN: usize = 48;
const _: () = assert!(COMPACT_LEN + 32 == Header::LEN);

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// A bit is kept of every header whose height leaves a certain remainder by this.
    pub(crate) period: u32,
    /// How many others must follow a header before it is released.
    pub(crate) buffer: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { period: 600, buffer: 15_000 }
    }
}

/// The known header that a branch leaves from.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) hash: BlockHash,
    pub(crate) height: Height,
    pub(crate) bits: u32,
    /// The work up to here.
    pub(crate) work: Work,
    /// The median time of this header and the ten below it.
    pub(crate) median_time: u32,
    /// The locator of this header.
    pub(crate) locator: Vec<BlockHash>,
}

/// What follows from a message of headers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The headers are the next ones. Ask for those above the locator; these are released.
    Ask { released: Vec<HeaderBytes>, locator: Vec<BlockHash> },
    /// The work is reached: these are released, and the sync is over.
    Done { released: Vec<HeaderBytes> },
    /// The headers are no answer but an announcement: keep waiting.
    Ignored,
    /// The peer begins again lower: it has changed its chain. The sync is over, and the headers
    /// are to be taken as if they were the first.
    Restarted,
    /// The branch ends with too little work, or claims more headers than time has passed for. The
    /// sync is over.
    TooLittle,
    /// The peer does what no node does. The sync is over.
    Offence(String),
}

/// A sync with one peer.
pub(crate) struct HeaderSync {
    limits: Limits,
    start: Start,
    required: Work,
    key: [u8; 16],
    /// The bit is kept of heights that leave this remainder.
    offset: u32,
    /// Headers that the branch can have above its start.
    longest: u64,
    bits: Bits,
    /// Where the pass stands.
    at: Position,
    second: Option<Second>,
}

/// The last header of a pass, and the work up to it.
#[derive(Clone, Copy)]
struct Position {
    hash: BlockHash,
    height: u32,
    bits: u32,
    work: Work,
}

/// What only the second pass has.
struct Second {
    /// How many bits have been compared.
    compared: u64,
    buffer: VecDeque<[u8; COMPACT_LEN]>,
    /// The hash of the header below the first in the buffer.
    below: BlockHash,
}

impl HeaderSync {
    /// A sync above `start` until the branch has the work `required`. `key` is secret and used for
    /// this sync alone.
    pub(crate) fn new(
        start: Start,
        required: Work,
        now: u32,
        key: [u8; 16],
        limits: Limits,
    ) -> Self {
        let seconds = u64::from(now.saturating_sub(start.median_time));
        let longest = HEADERS_PER_SECOND * (seconds + u64::from(MAX_FUTURE_SECONDS));
        let [low, high, ..] = key;
        Self {
            limits,
            at: start.position(),
            start,
            required,
            key,
            offset: u32::from_le_bytes([low, high, 0, 0]) % limits.period,
            longest,
            bits: Bits::default(),
            second: None,
        }
    }

    /// Takes a message of headers, each above the one before. `is_full` when there may be more.
    pub(crate) fn take(&mut self, params: &Params, headers: &[HeaderBytes], is_full: bool) -> Step {
        let Some(first) = headers.first() else { return Step::TooLittle };
        let below = Header::new(first).previous();
        if below != self.at.hash {
            let fell_back = self.start.locator.contains(&below);
            return if fell_back { Step::Restarted } else { Step::Ignored };
        }
        for header in headers {
            if self.is_too_long() {
                return Step::TooLittle;
            }
            if let Err(offence) = self.pass(params, header) {
                return Step::Offence(offence);
            }
        }
        let reached = self.at.work >= self.required;
        match &mut self.second {
            Some(second) => {
                let keep = if reached { 0 } else { self.limits.buffer };
                let released = second.release(keep);
                match (reached, is_full) {
                    (true, _) => Step::Done { released },
                    (false, true) => Step::Ask { released, locator: self.locator() },
                    (false, false) => Step::TooLittle,
                }
            }
            None if reached => {
                self.at = self.start.position();
                let (compared, buffer, below) = (0, VecDeque::new(), self.start.hash);
                self.second = Some(Second { compared, buffer, below });
                Step::Ask { released: Vec::new(), locator: self.locator() }
            }
            None if is_full => Step::Ask { released: Vec::new(), locator: self.locator() },
            None => Step::TooLittle,
        }
    }

    /// Checks one header and moves to it.
    fn pass(&mut self, params: &Params, bytes: &HeaderBytes) -> Result<(), String> {
        let header = Header::new(bytes);
        let (hash, bits, height) = (header.hash(), header.bits(), self.at.height + 1);
        if header.previous() != self.at.hash {
            return Err("sent headers that do not follow one another".to_owned());
        }
        check_work(params, header).map_err(|error| error.to_string())?;
        if !is_permitted_transition(params, Height::new(height), self.at.bits, bits) {
            let before = self.at.bits;
            return Err(format!("the header at height {height} moves {before:08x} to {bits:08x}"));
        }
        // Once the work is proven, the peer may have gone on beyond the bits that were kept.
        if height % self.limits.period == self.offset && self.at.work < self.required {
            let bit = self.bit(&hash);
            match &mut self.second {
                None => self.bits.push(bit),
                Some(second) if self.bits.get(second.compared) == Some(bit) => {
                    second.compared += 1;
                }
                Some(_) => return Err("sent other headers the second time".to_owned()),
            }
        }
        let work = self.at.work.plus(Work::of_bits(bits));
        self.at = Position { hash, height, bits, work };
        if let Some(second) = &mut self.second {
            second.buffer.push_back(compact(bytes));
        }
        Ok(())
    }

    fn is_too_long(&self) -> bool {
        u64::from(self.at.height - self.start.height.to_u32()) >= self.longest
    }

    /// The secret bit of a header.
    fn bit(&self, hash: &BlockHash) -> bool {
        let mut hasher = SipHasher13::new_with_key(&self.key);
        hasher.write(hash.as_bytes());
        hasher.finish() & 1 == 1
    }

    /// Asks for what is above the last header; if the peer has changed its chain, above the start.
    fn locator(&self) -> Vec<BlockHash> {
        let last = Some(self.at.hash).filter(|last| *last != self.start.hash);
        last.into_iter().chain(self.start.locator.iter().copied()).collect()
    }
}

impl Start {
    fn position(&self) -> Position {
        let Self { hash, height, bits, work, .. } = *self;
        Position { hash, height: height.to_u32(), bits, work }
    }
}

impl Second {
    /// Takes out all but the last `keep` headers.
    fn release(&mut self, keep: usize) -> Vec<HeaderBytes> {
        let count = self.buffer.len().saturating_sub(keep);
        let mut released = Vec::with_capacity(count);
        for compact in self.buffer.drain(..count) {
            let header = whole(&compact, &self.below);
            self.below = Header::new(&header).hash();
            released.push(header);
        }
        released
    }
}

/// Bits in the order in which they were pushed.
#[derive(Default)]
struct Bits {
    words: Vec<u64>,
    len: u64,
}

impl Bits {
    fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(64) {
            self.words.push(0);
        }
        if let Some(word) = self.words.last_mut() {
            *word |= u64::from(bit) << (self.len % 64);
        }
        self.len += 1;
    }

    fn get(&self, index: u64) -> Option<bool> {
        let word = self.words.get(usize::try_from(index / 64).ok()?)?;
        (index < self.len).then_some(word >> (index % 64) & 1 == 1)
    }
}

/// The header without the hash of the one below it.
fn compact(header: &HeaderBytes) -> [u8; COMPACT_LEN] {
    let mut bytes = [0; COMPACT_LEN];
    let kept = header.iter().take(4).chain(header.iter().skip(36));
    bytes.iter_mut().zip(kept).for_each(|(byte, kept)| *byte = *kept);
    bytes
}

/// The header above the one with the hash `below`.
fn whole(compact: &[u8; COMPACT_LEN], below: &BlockHash) -> HeaderBytes {
    let mut header = [0; Header::LEN];
    let (version, rest) = compact.split_at(4);
    let parts = version.iter().chain(below.as_bytes()).chain(rest);
    header.iter_mut().zip(parts).for_each(|(byte, part)| *byte = *part);
    header
}
