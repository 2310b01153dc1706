//! Bitcoin Core's verifier, by `libbitcoinkernel`: the engine of a whole node as a library, of
//! which only the script interpreter is used.
//!
//! Its interface copies what is shared by a transaction's signatures in each call, 40 bytes an
//! input and more. That is still quadratic, but only in copied bytes: see ADR 13.

use std::fmt;

use bitcoinkernel::prelude::*;
use bitcoinkernel::{
    KernelError, PrecomputedTransactionData, ScriptPubkey, ScriptVerifyError, Transaction, TxOut,
    VERIFY_ALL,
};

use super::{PreparedTx, ScriptVerifier, SpendingTx, VerifyError, satoshi};
use crate::script::ScriptFlags;

/// Checks scripts with Bitcoin Core's own code.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoreVerifier;

/// A transaction that Core's code has parsed.
pub struct CoreTx {
    tx: Transaction,
    shared: PrecomputedTransactionData,
    spent: Vec<TxOut>,
}

/// By hand, because the library's types have no `Debug`.
impl fmt::Debug for CoreTx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoreTx").field("inputs", &self.spent.len()).finish_non_exhaustive()
    }
}

impl ScriptVerifier for CoreVerifier {
    type Prepared = CoreTx;

    fn prepare(&self, tx: &SpendingTx<'_>) -> Result<CoreTx, VerifyError> {
        let refused = |error: KernelError| VerifyError::Refused(error.to_string());
        let spent = tx.spent.iter().map(|output| {
            let script = ScriptPubkey::new(output.script).map_err(refused)?;
            Ok(TxOut::new(&script, satoshi(output)?))
        });
        let spent = spent.collect::<Result<Vec<_>, VerifyError>>()?;
        let tx = Transaction::new(tx.tx.bytes()).map_err(refused)?;
        if tx.input_count() != spent.len() {
            let why = "each input needs the output that it spends";
            return Err(VerifyError::Refused(why.to_owned()));
        }
        let shared = PrecomputedTransactionData::new(&tx, &spent).map_err(refused)?;
        Ok(CoreTx { tx, shared, spent })
    }
}

impl PreparedTx for CoreTx {
    fn verify(&self, input: usize, flags: ScriptFlags) -> Result<(), VerifyError> {
        let refused = |why: String| Err(VerifyError::Refused(why));
        let Some(output) = self.spent.get(input) else {
            return refused("the transaction has no such input".to_owned());
        };
        // Unknown flags would end the process.
        let flags = flags.bits();
        if flags & !VERIFY_ALL != 0 {
            return refused("the flags are not a set of consensus rules".to_owned());
        }
        let script = output.script_pubkey();
        let amount = Some(output.value());
        match bitcoinkernel::verify(&script, amount, &self.tx, input, Some(flags), &self.shared) {
            Ok(()) => Ok(()),
            Err(KernelError::ScriptVerify(ScriptVerifyError::Invalid)) => Err(VerifyError::Script),
            Err(other) => refused(other.to_string()),
        }
    }
}
