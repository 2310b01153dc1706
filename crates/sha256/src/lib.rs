//! SHA-256 of many messages at once.
//!
//! The SHA instructions of a CPU are bound by latency: one message is a chain of dependent rounds,
//! and while one round finishes the unit could already have started another. A block of a chain is
//! thousands of independent messages (its transactions), so this crate hashes two of them side by
//! side, in *lanes*, and gets about twice the rate of one message after the other.
//!
//! ```text
//!  messages ─► Feed ─► lane 0 ─┐
//!              Feed ─► lane 1 ─┴─► kernel: the same rounds for each lane, interleaved
//!               ▲                    │
//!               └── a lane that finishes takes the next message
//! ```
//!
//! * [`digest`] and [`double`] hash one message.
//! * [`double_many`] hashes messages of unequal length, each given in up to three pieces.
//! * [`double_pairs`] hashes one level of a merkle tree in place.
//! * [`Midstate`] hashes a message that grows, and can be saved between its pieces.
//!
//! Which kernel runs is decided at run time by [`Backend::best`]. Every backend gives the same
//! results; the tests call each of them.
//!
//! ```
//! use varve_sha256::{Message, double, double_many};
//!
//! let mut hashes = Vec::new();
//! double_many([Message::from(b"one"), Message::new(b"t", b"w", b"o")], &mut hashes);
//! assert_eq!(hashes, [double(b"one"), double(b"two")]);
//! ```
//!
//! This crate and `varve-io` are the only ones with `unsafe`: see `docs/adr/0003-sha256-lanes.md`.

mod backend;
#[cfg(target_arch = "x86_64")]
mod feed;
#[cfg(target_arch = "x86_64")]
mod lanes;
mod message;
mod midstate;
#[cfg(target_arch = "x86_64")]
mod sha_ni;
#[cfg(test)]
mod tests;

pub use backend::Backend;
pub use message::Message;
pub use midstate::Midstate;

/// The 32 bytes of a SHA-256 hash, in the order the algorithm gives them.
pub type Digest = [u8; 32];

/// SHA-256 of one message.
#[must_use]
pub fn digest(message: &[u8]) -> Digest {
    backend::portable_digest(message)
}

/// SHA-256 of the SHA-256 of one message.
#[must_use]
pub fn double<'a>(message: impl Into<Message<'a>>) -> Digest {
    backend::portable_double(&message.into())
}

/// Appends to `out` the double SHA-256 of every message, in the order of the messages.
pub fn double_many<'a>(messages: impl IntoIterator<Item = Message<'a>>, out: &mut Vec<Digest>) {
    Backend::best().double_many(messages, out);
}

/// Replaces the first half of `hashes` by the double SHA-256 of its pairs.
///
/// `hashes[i]` becomes the hash of what was `hashes[2 * i] ‖ hashes[2 * i + 1]`. A last hash
/// without a partner is not touched. What the second half holds afterwards is unspecified.
pub fn double_pairs(hashes: &mut [Digest]) {
    Backend::best().double_pairs(hashes);
}
