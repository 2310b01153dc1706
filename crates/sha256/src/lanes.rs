//! The schedule: which message is in which lane.
//!
//! 1. Each lane takes a message.
//! 2. All lanes advance together by as many blocks as every lane has ready.
//! 3. A lane whose message is finished writes its digest, or begins the second pass over that
//!    digest, and then takes the next message.
//! 4. When no message is left for a lane, the lanes that still have one finish alone.
//!
//! The kernel is a type, so that the schedule is compiled once per number of lanes and the tests
//! can run every number.
#![expect(clippy::indexing_slicing, reason = "lane numbers below N")]

use crate::feed::{Block, Feed, PADDING_OF_64, pad_digest};
use crate::{Digest, Message};

/// The eight words of a hash in progress.
pub(crate) type State = [u32; 8];

/// The initial state: the first 32 bits of the fractional parts of the square roots of the first
/// eight primes (FIPS 180-4, 5.3.3).
const INITIAL: State = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a, //
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// A compression function that advances several independent states at once.
pub(crate) trait Kernel: Copy {
    /// Advances each state over its blocks. All slices are equally long.
    fn compress<const N: usize>(self, states: &mut [State; N], blocks: [&[Block]; N]);
}

struct Lane<'a> {
    feed: Feed<'a>,
    /// Where the digest goes. `None` when the lane is idle.
    slot: Option<usize>,
    /// The second pass of the double hash has begun.
    second: bool,
}

impl<'a> Lane<'a> {
    fn idle() -> Self {
        Self { feed: Feed::new(), slot: None, second: false }
    }

    /// Takes the next message, if there is one.
    fn take(
        &mut self,
        state: &mut State,
        messages: &mut impl Iterator<Item = Message<'a>>,
        out: &mut Vec<Digest>,
    ) {
        self.slot = messages.next().map(|message| {
            self.feed.start(&message);
            self.second = false;
            *state = INITIAL;
            out.push([0; 32]);
            out.len() - 1
        });
    }

    /// Continues after `count` blocks have been hashed.
    fn advance(&mut self, count: usize, state: &mut State, out: &mut [Digest]) {
        self.feed.advance(count);
        if !self.feed.ready().is_empty() {
            return;
        }
        let digest = to_digest(state);
        if !self.second {
            self.second = true;
            self.feed.start_digest(&digest);
            *state = INITIAL;
        } else if let Some(slot) = self.slot.take() {
            out[slot] = digest;
        }
    }
}

/// Appends the double hash of every message to `out`, in order.
pub(crate) fn double_many<'a, K: Kernel, const N: usize>(
    kernel: K,
    messages: impl Iterator<Item = Message<'a>>,
    out: &mut Vec<Digest>,
) {
    let mut messages = messages.fuse();
    let mut states = [INITIAL; N];
    let mut lanes: [Lane<'a>; N] = std::array::from_fn(|_| Lane::idle());
    loop {
        for (lane, state) in lanes.iter_mut().zip(&mut states) {
            if lane.slot.is_none() {
                lane.take(state, &mut messages, out);
            }
        }
        if lanes.iter().any(|lane| lane.slot.is_none()) {
            break;
        }
        let step = lanes.iter().map(|lane| lane.feed.ready().len()).min().unwrap_or(0);
        let blocks = lanes.each_ref().map(|lane| &lane.feed.ready()[..step]);
        kernel.compress(&mut states, blocks);
        for (lane, state) in lanes.iter_mut().zip(&mut states) {
            lane.advance(step, state, out);
        }
    }
    for (lane, state) in lanes.iter_mut().zip(&mut states) {
        while lane.slot.is_some() {
            let blocks = lane.feed.ready();
            let step = blocks.len();
            let mut alone = [*state];
            kernel.compress(&mut alone, [blocks]);
            [*state] = alone;
            lane.advance(step, state, out);
        }
    }
}

/// One merkle level in place: `hashes[i]` becomes the hash of the pair `2i`, `2i + 1`.
pub(crate) fn double_pairs<K: Kernel, const N: usize>(kernel: K, hashes: &mut [Digest]) {
    let pairs = hashes.len() / 2;
    let whole = pairs - pairs % N;
    for first in (0..whole).step_by(N) {
        hash_pairs::<K, N>(kernel, hashes, first);
    }
    for first in whole..pairs {
        hash_pairs::<K, 1>(kernel, hashes, first);
    }
}

/// Hashes the pairs `first..first + N`. Pair `i` is read before place `i` is written, and no
/// later pair lies at or before it.
fn hash_pairs<K: Kernel, const N: usize>(kernel: K, hashes: &mut [Digest], first: usize) {
    let mut states = [INITIAL; N];
    let pairs: [[Block; 2]; N] = std::array::from_fn(|lane| {
        let mut block = [0; 64];
        let pair = 2 * (first + lane);
        block.copy_from_slice(hashes[pair..pair + 2].as_flattened());
        [block, PADDING_OF_64]
    });
    kernel.compress(&mut states, pairs.each_ref().map(<[Block; 2]>::as_slice));
    let second = states.map(|state| [pad_digest(&to_digest(&state))]);
    states = [INITIAL; N];
    kernel.compress(&mut states, second.each_ref().map(<[Block; 1]>::as_slice));
    for (lane, state) in states.iter().enumerate() {
        hashes[first + lane] = to_digest(state);
    }
}

fn to_digest(state: &State) -> Digest {
    let mut digest = [0; 32];
    for (bytes, word) in digest.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *bytes = word.to_be_bytes();
    }
    digest
}
