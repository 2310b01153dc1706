//! Turns a message in pieces into whole, padded blocks.
//!
//! SHA-256 works on blocks of 64 bytes. The message is followed by the byte `80`, by zeros up to
//! eight bytes before the end of a block, and by the length of the message in bits, big-endian:
//!
//! ```text
//! │ message … │ 80 │ 00 … 00 │ length in bits, u64be │
//! └────────────── a multiple of 64 bytes ────────────┘
//! ```
//!
//! The pieces are copied into a buffer of [`BLOCKS`] blocks, as many at a time as fit, so a
//! message of gigabytes needs no more memory than a small one. A fill takes at most
//! `BLOCKS − 1` blocks of the message: when the message ends within a fill, its padding (at most
//! 9 + 63 bytes, hence at most one block more) fits too.
#![expect(clippy::indexing_slicing, reason = "offsets into one fixed buffer, bounded by BLOCKS")]

use crate::{Digest, Message};

/// One block of SHA-256.
pub(crate) type Block = [u8; 64];

/// Blocks in the buffer. 2 KiB a lane stays in the first-level cache beside everything else.
const BLOCKS: usize = 32;
const BODY: usize = (BLOCKS - 1) * 64;

/// The source of a lane's blocks.
pub(crate) struct Feed<'a> {
    pieces: [&'a [u8]; 3],
    /// Which piece is being copied.
    piece: usize,
    /// Bytes of the message copied so far.
    copied: u64,
    buffer: Box<[Block; BLOCKS]>,
    /// The blocks `next..filled` of the buffer wait to be hashed.
    next: usize,
    filled: usize,
    /// The padding has been written: no fill follows.
    padded: bool,
}

impl<'a> Feed<'a> {
    pub(crate) fn new() -> Self {
        Self {
            pieces: [&[]; 3],
            piece: 0,
            copied: 0,
            buffer: Box::new([[0; 64]; BLOCKS]),
            next: 0,
            filled: 0,
            padded: true,
        }
    }

    /// Begins a message.
    pub(crate) fn start(&mut self, message: &Message<'a>) {
        self.pieces = message.pieces();
        self.piece = 0;
        self.copied = 0;
        self.padded = false;
        self.fill();
    }

    /// Begins the second pass of a double hash: one block with the digest of the first.
    pub(crate) fn start_digest(&mut self, digest: &Digest) {
        self.buffer[0] = pad_digest(digest);
        self.next = 0;
        self.filled = 1;
        self.padded = true;
    }

    /// The blocks that are ready. Empty only when the message is finished.
    pub(crate) fn ready(&self) -> &[Block] {
        &self.buffer[self.next..self.filled]
    }

    /// Drops `count` ready blocks that have been hashed, and fills up when none are left.
    pub(crate) fn advance(&mut self, count: usize) {
        self.next += count;
        debug_assert!(self.next <= self.filled);
        if self.next == self.filled && !self.padded {
            self.fill();
        }
    }

    fn fill(&mut self) {
        let bytes = self.buffer.as_flattened_mut();
        let mut at = 0;
        while self.piece < self.pieces.len() && at < BODY {
            let (now, later) = {
                let piece = self.pieces[self.piece];
                piece.split_at(piece.len().min(BODY - at))
            };
            bytes[at..at + now.len()].copy_from_slice(now);
            at += now.len();
            self.pieces[self.piece] = later;
            self.piece += usize::from(later.is_empty());
        }
        self.copied += at as u64;
        if self.piece == self.pieces.len() {
            let end = (at + 9).next_multiple_of(64);
            bytes[at] = 0x80;
            bytes[at + 1..end - 8].fill(0);
            bytes[end - 8..end].copy_from_slice(&(self.copied * 8).to_be_bytes());
            at = end;
            self.padded = true;
        }
        self.next = 0;
        self.filled = at / 64;
    }
}

/// The single padded block of a 32-byte message.
pub(crate) fn pad_digest(digest: &Digest) -> Block {
    let mut block = [0; 64];
    block[..32].copy_from_slice(digest);
    block[32] = 0x80;
    block[56..].copy_from_slice(&256_u64.to_be_bytes());
    block
}

/// The second block of a 64-byte message: nothing but padding.
pub(crate) const PADDING_OF_64: Block = {
    let mut block = [0; 64];
    block[0] = 0x80;
    // 512 bits, big-endian.
    block[62] = 2;
    block
};
