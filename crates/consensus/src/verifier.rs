//! Who executes scripts.
//!
//! [`ScriptVerifier`] takes some inputs of one transaction at a time, with all outputs that the
//! transaction spends, for taproot signatures sign them all. The one implementation is Bitcoin
//! Core's own code, in `CoreVerifier` behind the feature `scripts`: no rule of scripts is written
//! a second time here.

#[cfg(feature = "scripts")]
mod core;

use std::ops::Range;

use varve_types::{Tx, TxOut};

#[cfg(feature = "scripts")]
pub use core::CoreVerifier;

use crate::script::ScriptFlags;

/// A transaction and what it spends.
#[derive(Clone, Copy, Debug)]
pub struct SpendingTx<'a> {
    /// The transaction.
    pub tx: &'a Tx<'a>,
    /// The outputs that its inputs spend, in order.
    pub spent: &'a [TxOut<'a>],
}

/// Why an input was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// The scripts do not come out true.
    #[error("the script fails")]
    Script,
    /// The verifier could not be asked.
    #[error("the verifier refuses the question: {0}")]
    Refused(String),
}

/// Executes scripts.
pub trait ScriptVerifier: Sync {
    /// Checks the inputs in `inputs`, or says which is the first that fails, and why.
    fn verify(
        &self,
        tx: &SpendingTx<'_>,
        inputs: Range<usize>,
        flags: ScriptFlags,
    ) -> Result<(), (usize, VerifyError)>;
}
