//! What can be wrong with bytes.

/// Bytes that do not decode, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}: {kind}")]
pub struct DecodeError {
    /// The offset of the field that is wrong, from the start of what was to be decoded.
    pub offset: u64,
    /// What is wrong with it.
    pub kind: DecodeErrorKind,
}

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The bytes end within the field.
    #[error("expected {what}, but the bytes end")]
    UnexpectedEnd {
        /// The field.
        what: &'static str,
    },
    /// A count that the remaining bytes cannot hold.
    #[error("expected {what}, but {count} of them do not fit in the bytes that remain")]
    CountTooLarge {
        /// The things counted.
        what: &'static str,
        /// The number claimed.
        count: u64,
    },
    /// A `CompactSize` that is not in its shortest form.
    #[error("expected the shortest form of a compact size")]
    NonCanonicalCompactSize,
    /// A `CompactSize` above the limit of the format.
    #[error("expected a compact size of at most {limit}, found {size}")]
    CompactSizeTooLarge {
        /// The number found.
        size: u64,
        /// The largest allowed.
        limit: u64,
    },
    /// A transaction with the segwit marker, but another flag than 1.
    #[error("expected segwit flag 1, found {flag}")]
    UnknownFlag {
        /// The flag found.
        flag: u8,
    },
    /// A segwit transaction in which no input has a witness.
    #[error("expected a witness for some input: superfluous witness record")]
    SuperfluousWitness,
    /// A transaction that should be in extended format and is not.
    #[error("expected the extended format marker 0000000000EF")]
    NotExtended,
    /// Bytes after the end.
    #[error("expected the end, but more bytes follow")]
    TrailingBytes,
    /// A variable-length integer of more than 64 bits.
    #[error("expected a variable-length integer of at most 64 bits")]
    VarintTooLarge,
    /// A compressed script that no script compresses to.
    #[error("expected the x coordinate of a public key")]
    NotAPublicKey,
    /// A compressed amount of more than 64 bits.
    #[error("expected a compressed amount of at most 64 bits, found {compressed}")]
    AmountTooLarge {
        /// The number found.
        compressed: u64,
    },
    /// A merkle proof whose flags are not those of a single branch.
    #[error("expected the proof of one transaction by one branch, found flags {flags:#04x}")]
    UnsupportedProof {
        /// The flags found.
        flags: u8,
    },
    /// A node of a merkle proof that is neither a hash nor a repetition.
    #[error("expected a node of kind 0 or 1, found kind {kind}")]
    UnknownProofNode {
        /// The kind found.
        kind: u8,
    },
}

impl DecodeErrorKind {
    /// This error at that offset.
    pub(crate) const fn at(self, offset: usize) -> DecodeError {
        DecodeError { offset: offset as u64, kind: self }
    }
}

impl DecodeError {
    /// The same error in bytes of which the decoded ones begin at `start`.
    #[must_use]
    pub const fn shifted(self, start: u64) -> Self {
        Self { offset: self.offset.saturating_add(start), ..self }
    }

    /// Whether more bytes might have decoded.
    #[cfg(test)]
    pub(crate) const fn is_incomplete(&self) -> bool {
        matches!(
            self.kind,
            DecodeErrorKind::UnexpectedEnd { .. } | DecodeErrorKind::CountTooLarge { .. }
        )
    }
}
