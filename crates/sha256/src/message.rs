//! A message given in pieces.

/// The bytes to hash: the concatenation of up to three pieces.
///
/// Three, because the txid of a segwit transaction is the hash of its version, of its inputs and
/// outputs, and of its lock time, which do not lie side by side in the serialised transaction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Message<'a> {
    pieces: [&'a [u8]; 3],
}

impl<'a> Message<'a> {
    /// The message `first ‖ second ‖ third`.
    #[must_use]
    pub fn new(first: &'a [u8], second: &'a [u8], third: &'a [u8]) -> Self {
        Self { pieces: [first, second, third] }
    }

    /// The pieces in order. Some may be empty.
    #[must_use]
    pub fn pieces(&self) -> [&'a [u8]; 3] {
        self.pieces
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Message<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Self::from(bytes.as_slice())
    }
}

impl<'a> From<&'a [u8]> for Message<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::new(bytes, &[], &[])
    }
}
