//! The interface to script interpreters.
//!
//! A [`ScriptVerifier`] prepares a transaction once, with all outputs that it spends: it is parsed,
//! and the hashes that its signatures share are computed. Any thread can then verify inputs of the
//! [`PreparedTx`], so that the cost of a transaction grows with its inputs and not with their
//! square.
//!
//! No script rule is reimplemented here: [`CoreVerifier`] is Bitcoin Core's code. It comes from one
//! of two crates with the same results:
//!
//! | feature | crate | needs |
//! |---|---|---|
//! | `scripts` | `varve-script-core`, the interpreter of Core 26 | a C++ compiler |
//! | `kernel` | `bitcoinkernel`, the whole engine of a newer Core | cmake and boost too |
//!
//! With both features `kernel` is taken.

#[cfg(all(feature = "scripts", not(feature = "kernel")))]
mod core;
#[cfg(feature = "kernel")]
mod kernel;

use varve_types::{Tx, TxOut};

#[cfg(all(feature = "scripts", not(feature = "kernel")))]
pub use core::{CoreTx, CoreVerifier};
#[cfg(feature = "kernel")]
pub use kernel::{CoreTx, CoreVerifier};

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
    /// The scripts do not evaluate to true.
    #[error("the script fails")]
    Script,
    /// The verifier could not check the input.
    #[error("the verifier could not check it: {0}")]
    Refused(String),
}

/// Executes scripts.
pub trait ScriptVerifier {
    /// A transaction that is ready. It borrows nothing, so that threads can share it.
    type Prepared: PreparedTx;

    /// Does once what all inputs of a transaction need.
    fn prepare(&self, tx: &SpendingTx<'_>) -> Result<Self::Prepared, VerifyError>;
}

/// A transaction whose inputs can be verified, by any thread and in any order.
pub trait PreparedTx: Send + Sync {
    /// Executes the scripts of one input.
    fn verify(&self, input: usize, flags: ScriptFlags) -> Result<(), VerifyError>;
}

/// The amount as the verifier takes it. The set holds none that is out of range.
#[cfg(any(feature = "scripts", feature = "kernel"))]
fn satoshi(output: &TxOut<'_>) -> Result<i64, VerifyError> {
    let value = output.value.to_sat();
    let refused = |_| VerifyError::Refused(format!("{value} satoshi are not a valid amount"));
    i64::try_from(value).map_err(refused)
}
