//! Bitcoin Core's script interpreter, one transaction at a time.
//!
//! A [`Transaction`] is parsed once, together with all outputs that it spends, and the hashes that
//! its signatures share are computed once (Core's `PrecomputedTransactionData`). After that any
//! thread verifies any of its inputs. So the cost of a transaction is linear in its inputs, except
//! for legacy signatures, each of which hashes the whole transaction by design.
//!
//! ```text
//! Transaction::new(bytes, spent)  ──►  parse, hash prevouts, sequences, outputs, amounts, scripts
//!             .verify(input, flags)  ─►  VerifyScript        any thread, any order
//! ```
//!
//! The C++ is Core's, unchanged, under `bitcoin/`; `src/core.cpp` includes it into a namespace and
//! adds the boundary. Signatures are checked by libsecp256k1 of the crate `secp256k1-sys`, which
//! the rest of Varve uses too. The decision and its rivals: `docs/adr/0013-script-verification.md`.
//!
//! This crate holds `unsafe`: calls over the C boundary, in [`Transaction`] alone.

mod transaction;

pub use transaction::{SpentOutput, Transaction, TransactionError, VerifyError};

// Linked for its symbols: the C++ calls them.
use secp256k1_sys as _;
