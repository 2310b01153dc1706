//! The ways to hash, and the choice among them.

use bitcoin_hashes::{Hash as _, HashEngine as _, sha256};

use crate::{Digest, Message};
#[cfg(target_arch = "x86_64")]
use crate::{lanes, sha_ni::ShaNi};

/// An implementation of SHA-256. All give the same results; they differ in speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// One message after the other, by the `bitcoin_hashes` crate. Runs everywhere.
    Portable,
    /// The SHA instructions of x86-64, one message after the other.
    #[cfg(target_arch = "x86_64")]
    ShaNi,
    /// The SHA instructions of x86-64, two messages interleaved.
    #[cfg(target_arch = "x86_64")]
    ShaNi2,
}

impl Backend {
    /// The fastest backend of this CPU. Detection is cached by the standard library.
    #[must_use]
    pub fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if ShaNi::detect().is_some() {
            return Self::ShaNi2;
        }
        Self::Portable
    }

    /// Every backend that this CPU can run.
    #[must_use]
    pub fn available() -> Vec<Self> {
        #[cfg(target_arch = "x86_64")]
        if ShaNi::detect().is_some() {
            return vec![Self::Portable, Self::ShaNi, Self::ShaNi2];
        }
        vec![Self::Portable]
    }

    /// [`double_many`](crate::double_many) by this backend. A backend that the CPU does not have
    /// falls back to the portable one.
    pub fn double_many<'a>(
        self,
        messages: impl IntoIterator<Item = Message<'a>>,
        out: &mut Vec<Digest>,
    ) {
        let messages = messages.into_iter();
        #[cfg(target_arch = "x86_64")]
        match (self, ShaNi::detect()) {
            (Self::ShaNi, Some(kernel)) => {
                return lanes::double_many::<_, 1>(kernel, messages, out);
            }
            (Self::ShaNi2, Some(kernel)) => {
                return lanes::double_many::<_, 2>(kernel, messages, out);
            }
            _ => {}
        }
        out.extend(messages.map(|message| portable_double(&message)));
    }

    /// [`double_pairs`](crate::double_pairs) by this backend, with the same fallback.
    pub fn double_pairs(self, hashes: &mut [Digest]) {
        #[cfg(target_arch = "x86_64")]
        match (self, ShaNi::detect()) {
            (Self::ShaNi, Some(kernel)) => return lanes::double_pairs::<_, 1>(kernel, hashes),
            (Self::ShaNi2, Some(kernel)) => return lanes::double_pairs::<_, 2>(kernel, hashes),
            _ => {}
        }
        for pair in 0..hashes.len() / 2 {
            let hash = match hashes.get(2 * pair..2 * pair + 2) {
                Some([left, right]) => portable_double(&Message::new(left, right, &[])),
                _ => return,
            };
            if let Some(place) = hashes.get_mut(pair) {
                *place = hash;
            }
        }
    }
}

/// SHA-256 of one message by `bitcoin_hashes`.
pub(crate) fn portable_digest(message: &[u8]) -> Digest {
    sha256::Hash::hash(message).to_byte_array()
}

/// SHA-256 of the SHA-256 of one message by `bitcoin_hashes`.
pub(crate) fn portable_double(message: &Message<'_>) -> Digest {
    let mut engine = sha256::Hash::engine();
    for piece in message.pieces() {
        engine.input(piece);
    }
    sha256::Hash::from_engine(engine).hash_again().to_byte_array()
}
