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
//! Which pushed items have rows is the rule of the confirmed index (`varve_types::PushdataRule`).

use varve_records::Transaction;
use varve_types::pushdata::{PushdataFlags, PushdataRule, PushedItem};
use varve_types::script::MAX_SCRIPT_SIZE;
use varve_types::script::opcode::OP_RETURN;
use varve_types::{PushdataHash, ScriptHash};

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
    rule: Option<PushdataRule>,
    mut each: impl FnMut(RowKey<PushdataHash>, PushdataFlags),
) {
    let Some(rule) = rule else { return };
    let mut put = |item: PushedItem<'_>, side| {
        let (hash, side) = (item.hash(), PackedSide::new(side));
        each(RowKey { hash, entry, side }, item.flags);
    };
    let view = tx.view();
    for (vout, output) in (0_u32..).zip(view.outputs()) {
        rule.of_output(output.script).for_each(|item| put(item, Side::Output(vout)));
    }
    for (vin, input) in (0_u32..).zip(view.inputs()) {
        rule.of_input(input.script).for_each(|item| put(item, Side::Input(vin)));
    }
}
