//! Bitcoin Core's verifier: the interpreter of Core 26, compiled into `varve-script-core`.
//!
//! Verifying a large transaction with legacy signatures stays quadratic, as in Core: each signature
//! hashes the whole transaction, and the limit on signature operations bounds the cost.

#[cfg(test)]
mod tests;

use varve_script_core::{SpentOutput, Transaction, VerifyError as CoreError};

use super::{PreparedTx, ScriptVerifier, SpendingTx, VerifyError, satoshi};
use crate::script::ScriptFlags;

/// Checks scripts with Bitcoin Core's own code.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoreVerifier;

/// A transaction that Core's code has parsed.
#[derive(Debug)]
pub struct CoreTx(Transaction);

impl ScriptVerifier for CoreVerifier {
    type Prepared = CoreTx;

    fn prepare(&self, tx: &SpendingTx<'_>) -> Result<CoreTx, VerifyError> {
        let spent = tx.spent.iter().map(|output| {
            satoshi(output).map(|value| SpentOutput { value, script: output.script })
        });
        let spent = spent.collect::<Result<Vec<_>, _>>()?;
        let prepared = Transaction::new(tx.tx.bytes(), &spent);
        prepared.map(CoreTx).map_err(|error| VerifyError::Refused(error.to_string()))
    }
}

impl PreparedTx for CoreTx {
    fn verify(&self, input: usize, flags: ScriptFlags) -> Result<(), VerifyError> {
        self.0.verify(input, flags.bits()).map_err(|error| match error {
            CoreError::Script => VerifyError::Script,
            other => VerifyError::Refused(other.to_string()),
        })
    }
}
