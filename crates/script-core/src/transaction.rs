//! A prepared transaction: a handle of the C++ side.
//!
//! The handle owns a copy of everything, is never changed after it was made, and is freed when it
//! is dropped. The status numbers are those of `enum Status` in `core.cpp`.

#![expect(unsafe_code, reason = "calls over the C boundary, each with its reason")]

use std::ffi::c_int;
use std::ptr::{self, NonNull};

/// An output that a transaction spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpentOutput<'a> {
    /// In satoshi.
    pub value: i64,
    /// The script to be satisfied.
    pub script: &'a [u8],
}

/// Why a transaction cannot be prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransactionError {
    /// The bytes are not exactly one transaction.
    #[error("the bytes are not one transaction as Bitcoin Core serialises it")]
    Malformed,
    /// There is not one spent output for each input.
    #[error("each input needs the output that it spends")]
    Spent,
    /// The C++ side failed for another reason than lack of memory, which ends the process.
    #[error("the script interpreter failed without a verdict; start again and report it")]
    Failed,
}

/// Why an input was not accepted. Only [`VerifyError::Script`] is a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// The scripts fail.
    #[error("the script fails")]
    Script,
    /// There is no such input.
    #[error("the transaction has no such input")]
    Input,
    /// The flags are unknown, or ask for WITNESS without P2SH.
    #[error("the flags are not a set of consensus rules")]
    Flags,
    /// The C++ side failed for another reason than lack of memory, which ends the process.
    #[error("the script interpreter failed without a verdict; start again and report it")]
    Failed,
}

/// A transaction whose inputs can be verified.
#[derive(Debug)]
pub struct Transaction {
    handle: NonNull<ffi::Transaction>,
}

// SAFETY: the handle owns its memory and has no ties to the thread that made it.
unsafe impl Send for Transaction {}
// SAFETY: the C++ object is immutable once made: all members are filled by `varve_transaction_new`,
// and `varve_transaction_verify` takes it as const. Core itself shares one
// `PrecomputedTransactionData` among its script threads.
unsafe impl Sync for Transaction {}

impl Transaction {
    /// Parses a transaction and hashes what all its signatures share. `spent` are the outputs that
    /// its inputs spend, in their order.
    pub fn new(bytes: &[u8], spent: &[SpentOutput<'_>]) -> Result<Self, TransactionError> {
        let outputs: Vec<ffi::SpentOutput> = spent
            .iter()
            .map(|output| ffi::SpentOutput {
                script: output.script.as_ptr(),
                script_length: output.script.len(),
                value: output.value,
            })
            .collect();
        let mut made = ptr::null_mut();
        // SAFETY: the pointers and lengths are those of live slices, and everything is copied
        // before the call returns. `made` is written only when the call succeeds. No exception
        // leaves.
        let status = unsafe {
            ffi::varve_transaction_new(
                bytes.as_ptr(),
                bytes.len(),
                outputs.as_ptr(),
                outputs.len(),
                &raw mut made,
            )
        };
        match (status, NonNull::new(made)) {
            (0, Some(handle)) => Ok(Self { handle }),
            (2, _) => Err(TransactionError::Malformed),
            (3, _) => Err(TransactionError::Spent),
            _ => Err(TransactionError::Failed),
        }
    }

    /// Executes the scripts of one input. The bits of `flags` are Core's.
    pub fn verify(&self, input: usize, flags: u32) -> Result<(), VerifyError> {
        // SAFETY: the handle is alive until `self` is dropped, and is only read. The C++ side
        // checks the number of the input and the flags. No exception leaves.
        match unsafe { ffi::varve_transaction_verify(self.handle.as_ptr(), input, flags) } {
            0 => Ok(()),
            1 => Err(VerifyError::Script),
            4 => Err(VerifyError::Input),
            5 => Err(VerifyError::Flags),
            _ => Err(VerifyError::Failed),
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        // SAFETY: the handle was made by `varve_transaction_new` and is freed here alone.
        unsafe { ffi::varve_transaction_free(self.handle.as_ptr()) }
    }
}

/// The functions of `core.cpp`.
mod ffi {
    use super::c_int;

    /// A transaction of the C++ side, seen only through a pointer.
    #[repr(C)]
    pub(super) struct Transaction {
        opaque: [u8; 0],
    }

    #[repr(C)]
    pub(super) struct SpentOutput {
        pub(super) script: *const u8,
        pub(super) script_length: usize,
        pub(super) value: i64,
    }

    unsafe extern "C" {
        pub(super) fn varve_transaction_new(
            bytes: *const u8,
            length: usize,
            spent: *const SpentOutput,
            spent_count: usize,
            made: *mut *mut Transaction,
        ) -> c_int;
        pub(super) fn varve_transaction_verify(
            transaction: *const Transaction,
            input: usize,
            flags: u32,
        ) -> c_int;
        pub(super) fn varve_transaction_free(transaction: *mut Transaction);
    }
}
