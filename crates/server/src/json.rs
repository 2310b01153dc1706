//! The shapes of JSON answers: one struct an answer, with the field names that programs rely on.
//!
//! Domain types are not serialisable; these are their counterparts. Hashes are hex in the byte
//! order that Bitcoin programs show, bytes are hex, heights and amounts (in satoshi) are numbers.

mod asm;
mod chain;
mod maintain;
mod mempool;
mod proof;
mod script;
mod status;
mod tools;
mod unspent;
mod verbose;

pub use chain::{Block, Repair, ScriptsChecked, Spender, Sync, Tx, Verdict, Verify};
pub use maintain::{Compact, Indexes};
pub use mempool::Mempool;
pub use proof::{ElectrumProof, TscProof};
pub use script::Address;
pub use status::Status;
pub use tools::{Demo, DemoLive, RecordsBench, Serve, Sim};
pub use unspent::{Export, Import, Stats, Utxo};
pub use verbose::VerboseTx;

use std::fmt::Display;

use hex_conservative::DisplayHex as _;
use serde::{Serialize, Serializer};

/// A value as its text: a hash, a reason.
pub(crate) fn text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// The same where it may be missing: `null`.
pub(crate) fn optional_text<S: Serializer>(
    value: &Option<impl Display>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    value.as_ref().map(Text).serialize(serializer)
}

/// A list of values as their texts.
fn texts<S: Serializer>(values: &[impl Display], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().map(Text))
}

/// Bytes in hex.
fn hex<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&bytes.as_hex())
}

struct Text<T>(T);

impl<T: Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}
