//! The rows by which an unconfirmed transaction is found: scripts and pushed data.
//!
//! ```text
//! script row   │ SHA-256 of the script │ entry │ side and index │ ─► satoshi
//! push row     │ SHA-256 of the item   │ entry │ side and index │ ─► flags
//! side and index: the output, or 2^31 + the input
//! ```
//!
//! An input has the row of the script that it spends. Scripts that begin with `OP_RETURN` or are
//! longer than 10,000 bytes have no rows, as in the confirmed index. A key orders rows by entry, so
//! the rows of one transaction for one script are neighbours.
//!
//! Pushed data, by one of two rules:
//!
//! - [`PushRule::KeysAndHashes`]: items of outputs of 20, 32, 33 or 65 bytes that are pushed by the
//!   opcode of that number, none behind `OP_RETURN`.
//! - [`PushRule::Documented`]: every item of an output of 20 bytes or more, flagged as data behind
//!   `OP_RETURN`; items of inputs of 20, 33 or 65 bytes.
//!
//! The first is what Conduit's code does (with 32 bytes added, for P2WSH and P2TR), the second what
//! its documents say.

use varve_archive::ScriptHash;
use varve_records::Transaction;
use varve_types::pushdata::{Push, Pushes};
use varve_types::script::MAX_SCRIPT_SIZE;
use varve_types::script::opcode::OP_RETURN;

use super::entry::EntryId;

/// An output or an input of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The output with this number.
    Output(u32),
    /// The input with this number.
    Input(u32),
}

/// Side and index in one number, outputs first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PackedSide(u32);

const INPUT: u32 = 1 << 31;

impl PackedSide {
    /// A transaction has fewer than 2^31 inputs or outputs: each takes nine bytes at least.
    fn new(side: Side) -> Self {
        match side {
            Side::Output(index) => Self(index & !INPUT),
            Side::Input(index) => Self(index | INPUT),
        }
    }

    pub(super) const fn side(self) -> Side {
        if self.0 & INPUT == 0 { Side::Output(self.0) } else { Side::Input(self.0 & !INPUT) }
    }
}

/// The SHA-256 of a pushed item, in the order of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PushHash(pub [u8; 32]);

/// Where a script or an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowKey<H> {
    pub(super) hash: H,
    pub(super) entry: EntryId,
    pub(super) side: PackedSide,
}

impl<H> RowKey<H> {
    /// Before all rows of a hash.
    pub(super) const fn first(hash: H) -> Self {
        Self { hash, entry: EntryId(0), side: PackedSide(0) }
    }
}

/// Which pushed items are indexed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PushRule {
    /// None.
    #[default]
    Off,
    /// What Conduit's code indexes, and 32 bytes.
    KeysAndHashes,
    /// What Conduit's documents say.
    Documented,
}

/// What kind of push a row is of: Conduit's flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PushFlags(pub u8);

impl PushFlags {
    /// An output pushes it.
    pub const OUTPUT: Self = Self(1);
    /// An input pushes it.
    pub const INPUT: Self = Self(2);
    /// An output pushes it behind `OP_RETURN`.
    pub const DATA: Self = Self(1 | 4);
}

/// The shortest item that the documents speak of.
const SHORTEST: usize = 20;

/// Whether a script has rows.
pub(super) fn is_indexed(script: &[u8]) -> bool {
    script.first() != Some(&OP_RETURN) && script.len() <= MAX_SCRIPT_SIZE
}

/// Calls `each` with the script rows of a transaction in extended form.
pub(super) fn scripts(tx: &Transaction, entry: EntryId, mut each: impl FnMut(ScriptRow)) {
    let mut put = |script: &[u8], value, side| {
        if is_indexed(script) {
            let (hash, side) = (ScriptHash::of(script), PackedSide::new(side));
            each((RowKey { hash, entry, side }, value));
        }
    };
    for (vout, output) in (0_u32..).zip(tx.view().outputs()) {
        put(output.script, output.value.to_sat(), Side::Output(vout));
    }
    for (vin, input) in (0_u32..).zip(tx.inputs()) {
        if let Some(spent) = input.spent {
            put(spent.script, spent.value.to_sat(), Side::Input(vin));
        }
    }
}

/// A row of a script, with what the output is worth.
pub(super) type ScriptRow = (RowKey<ScriptHash>, u64);

/// Calls `each` with the rows of pushed items. An item that a script pushes twice gives the same
/// row twice.
pub(super) fn pushes(
    tx: &Transaction,
    entry: EntryId,
    rule: PushRule,
    mut each: impl FnMut(RowKey<PushHash>, PushFlags),
) {
    let mut put = |push: &Push<'_>, side, flags| {
        let (hash, side) = (PushHash(push.hash()), PackedSide::new(side));
        each(RowKey { hash, entry, side }, flags);
    };
    if rule == PushRule::Off {
        return;
    }
    let view = tx.view();
    for (vout, output) in (0_u32..).zip(view.outputs()) {
        for push in Pushes::new(output.script) {
            match rule {
                PushRule::KeysAndHashes if push.is_key_or_hash() && !push.after_return => {
                    put(&push, Side::Output(vout), PushFlags::OUTPUT);
                }
                PushRule::Documented if push.data.len() >= SHORTEST => {
                    let data = push.after_return;
                    let flags = if data { PushFlags::DATA } else { PushFlags::OUTPUT };
                    put(&push, Side::Output(vout), flags);
                }
                _ => {}
            }
        }
    }
    if rule == PushRule::Documented {
        for (vin, input) in (0_u32..).zip(view.inputs()) {
            let pushed = Pushes::new(input.script);
            for push in pushed.filter(|push| matches!(push.data.len(), 20 | 33 | 65)) {
                put(&push, Side::Input(vin), PushFlags::INPUT);
            }
        }
    }
}
