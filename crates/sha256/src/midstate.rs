//! SHA-256 of a message that grows: the state after its whole blocks, and the bytes since.
//!
//! Saved as
//!
//! ```text
//! │ state of the compression 32 │ length u64le │ bytes since the last whole block 64, zero-filled
//! │ 0                             32             40
//! 104
//! ```

use bitcoin_hashes::{Hash as _, HashEngine as _, sha256};

use crate::Digest;

const BLOCK: usize = 64;
const STATE: usize = 32;
const LENGTH: usize = 8;

/// A message hashed so far, to be extended or finished at any time. Plain data: no part of the
/// message is needed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Midstate {
    state: [u8; STATE],
    length: u64,
    /// The first `length % BLOCK` bytes wait for their block to fill; the others are zero.
    tail: [u8; BLOCK],
}

impl Midstate {
    /// The length of the saved form.
    pub const LEN: usize = STATE + LENGTH + BLOCK;

    /// The empty message.
    #[must_use]
    pub fn new() -> Self {
        let state = sha256::HashEngine::default().midstate().0;
        Self { state, length: 0, tail: [0; BLOCK] }
    }

    /// The length of the message.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// Appends to the message.
    pub fn extend(&mut self, bytes: &[u8]) {
        let mut engine = self.engine();
        engine.input(bytes);
        let waited = self.waiting();
        self.state = engine.midstate().0;
        self.length += bytes.len() as u64;
        let waits = self.waiting();
        match bytes.len().checked_sub(waits) {
            // The last block began within `bytes`.
            Some(start) => {
                self.tail = [0; BLOCK];
                copy(&mut self.tail, 0, bytes.get(start..));
            }
            None => copy(&mut self.tail, waited, Some(bytes)),
        }
    }

    /// The hash of the message so far.
    #[must_use]
    pub fn digest(&self) -> Digest {
        sha256::Hash::from_engine(self.engine()).to_byte_array()
    }

    /// The saved form.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        copy(&mut bytes, 0, Some(&self.state));
        copy(&mut bytes, STATE, Some(&self.length.to_le_bytes()));
        copy(&mut bytes, STATE + LENGTH, Some(&self.tail));
        bytes
    }

    /// Restores a saved form. Any bytes are valid: the caller's checksum decides whether they are
    /// the ones that were saved.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        let field = "the fields lie within the saved form";
        let (state, rest) = bytes.split_first_chunk().expect(field);
        let (length, tail) = rest.split_first_chunk().expect(field);
        let tail = *tail.first_chunk().expect(field);
        Self { state: *state, length: u64::from_le_bytes(*length), tail }
    }

    fn waiting(&self) -> usize {
        usize::try_from(self.length % BLOCK as u64).expect("less than a block")
    }

    fn engine(&self) -> sha256::HashEngine {
        let whole = usize::try_from(self.length).unwrap_or(usize::MAX);
        let whole = whole - whole % BLOCK;
        let mut engine = sha256::HashEngine::from_midstate(sha256::Midstate(self.state), whole);
        engine.input(self.tail.get(..self.waiting()).unwrap_or_default());
        engine
    }
}

impl Default for Midstate {
    fn default() -> Self {
        Self::new()
    }
}

fn copy(to: &mut [u8], at: usize, from: Option<&[u8]>) {
    let from = from.expect("a range within the bytes");
    let place = to.get_mut(at..at + from.len()).expect("a place within the array");
    place.copy_from_slice(from);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(length: usize) -> Vec<u8> {
        (0..length).map(|at| u8::try_from(at * 7 % 251).unwrap()).collect()
    }

    /// Every way to split messages around the block boundaries in two, saved and restored in
    /// between.
    #[test]
    fn two_pieces_of_every_length() {
        for length in 0..=200 {
            let message = message(length);
            for cut in 0..=length {
                let mut midstate = Midstate::new();
                midstate.extend(&message[..cut]);
                assert_eq!(midstate.digest(), crate::digest(&message[..cut]));
                let mut restored = Midstate::from_bytes(&midstate.to_bytes());
                assert_eq!(restored, midstate);
                restored.extend(&message[cut..]);
                assert_eq!(restored.digest(), crate::digest(&message), "{cut} of {length}");
                assert_eq!(restored.length(), length as u64);
            }
        }
    }

    /// The same message has the same saved form, however it was split.
    #[test]
    fn one_form_for_one_message() {
        let message = message(1000);
        let mut whole = Midstate::new();
        whole.extend(&message);
        for step in [1, 3, 63, 64, 65, 130] {
            let mut pieces = Midstate::new();
            message.chunks(step).for_each(|piece| pieces.extend(piece));
            assert_eq!(pieces.to_bytes(), whole.to_bytes(), "in steps of {step}");
        }
    }
}
