//! The plain mapping: one value a record, as a store of keys and values would have it.
//!
//! ```text
//!  0       1          5         9          13        17        25    33
//!  ┌───────┬──────────┬─────────┬──────────┬─────────┬─────────┬─────┬──────┬──────────┐
//!  │ flags │ spending │ unmined │ preserve │ delete  │ created │ fee │ size │ extended │
//!  │ u8    │ u32      │ u32     │ u32      │ u32     │ u64     │ u64 │ u64  │ u64      │
//!  └───────┴──────────┴─────────┴──────────┴─────────┴─────────┴─────┴──────┴──────────┘
//!  49        53        57        61      65      69       73       77
//!  ┌─────────┬─────────┬─────────┬───────┬───────┬────────┬────────┬───────┬────────┬────┐
//!  │ version │ lock    │ outputs │ slots │ spent │ blocks │ inputs │ slots │ inputs │ tx │
//!  │ u32     │ time u32│ u32     │ u32   │ u32   │ u32    │ u32    │ 69 × n│ 36 × n │    │
//!  └─────────┴─────────┴─────────┴───────┴───────┴────────┴────────┴───────┴────────┴────┘
//!
//!  slot   │ 0 none, 1 unspent, 2 spent or frozen │ utxo hash 32 │ spender 36 │
//! ```
//!
//! A slot is at a fixed offset, so that a spend copies the value and writes into the copy. Alerts,
//! children and blocks are left out: the race has none, and a side that keeps them is not slower.
//! The digests of all sides are computed over this form.

use anyhow::{Context as _, Result, ensure};
use varve_records::operation::{NewRecord, Spend};
use varve_records::record::{Body, Slot, SpendingData};
use varve_records::{Record, SpendRules};
use varve_types::{Height, Outpoint};

use super::work::CONTEXT;

const COINBASE: u8 = 1;
const EXTERNAL: u8 = 2;
const LOCKED: u8 = 4;
const CONFLICTING: u8 = 8;
const CREATING: u8 = 16;

const FLAGS: usize = 0;
const SPENDING: usize = 1;
const UNMINED: usize = 5;
const PRESERVE: usize = 9;
const DELETE: usize = 13;
const OUTPUTS: usize = 57;
const SLOTS: usize = 61;
const SPENT: usize = 65;
const BLOCKS: usize = 69;
const HEAD_LEN: usize = 77;
const SLOT_LEN: usize = 1 + 32 + 36;

/// The fields of a record, for sides that store them separately.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    pub(super) flags: u8,
    pub(super) spending_height: u32,
    pub(super) unmined_since: u32,
    pub(super) preserve_until: u32,
    pub(super) delete_at: u32,
    pub(super) created_at: u64,
    pub(super) fee: u64,
    pub(super) size: u64,
    pub(super) extended_size: u64,
    pub(super) version: u32,
    pub(super) lock_time: u32,
    pub(super) slots: &'a [Option<Slot>],
    pub(super) inputs: &'a [Outpoint],
    pub(super) body: &'a [u8],
}

impl Fields<'_> {
    /// The value.
    pub(super) fn encode(&self) -> Vec<u8> {
        let tail = SLOT_LEN * self.slots.len() + 36 * self.inputs.len() + self.body.len();
        let mut out = Vec::with_capacity(HEAD_LEN + tail);
        out.push(self.flags);
        let heights =
            [self.spending_height, self.unmined_since, self.preserve_until, self.delete_at];
        heights.iter().for_each(|height| out.extend_from_slice(&height.to_le_bytes()));
        let sizes = [self.created_at, self.fee, self.size, self.extended_size];
        sizes.iter().for_each(|size| out.extend_from_slice(&size.to_le_bytes()));
        let spent = self.slots.iter().flatten().filter(|slot| slot.spender().is_some());
        let counts = [self.slots.len(), self.slots.iter().flatten().count(), spent.count()];
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let [outputs, slots, spent] = counts.map(count);
        let inputs = count(self.inputs.len());
        let rest = [self.version, self.lock_time, outputs, slots, spent, 0, inputs];
        rest.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
        for slot in self.slots {
            let state = slot.map_or(0, |slot| if slot.spending.is_some() { 2 } else { 1 });
            let mut bytes = slot.map_or_else(Vec::new, |slot| {
                let mut bytes = Vec::with_capacity(SLOT_LEN);
                slot.encode(&mut bytes);
                bytes
            });
            bytes.resize(SLOT_LEN - 1, 0);
            out.push(state);
            out.extend_from_slice(&bytes);
        }
        self.inputs.iter().for_each(|input| out.extend_from_slice(&input.to_bytes()));
        out.extend_from_slice(self.body);
        out
    }
}

/// The flags of a new record.
pub(super) fn flags_of(new: &NewRecord) -> u8 {
    let flag = |is: bool, flag: u8| if is { flag } else { 0 };
    flag(new.is_coinbase, COINBASE)
        | flag(matches!(new.body, Body::External), EXTERNAL)
        | flag(new.locked, LOCKED)
        | flag(new.conflicting, CONFLICTING)
        | flag(new.creating, CREATING)
}

/// The value of a new record.
pub(super) fn encode_new(new: &NewRecord) -> Result<Vec<u8>> {
    ensure!(new.blocks.is_empty() && !new.frozen && !new.conflicting, "the race has no such units");
    let slots: Vec<_> = new.utxos.iter().map(|hash| hash.map(Slot::unspent)).collect();
    let fields = Fields {
        flags: flags_of(new),
        spending_height: new.spending_height.map_or(0, Height::to_u32),
        unmined_since: new.height.to_u32().max(1),
        preserve_until: 0,
        delete_at: 0,
        created_at: new.created_at,
        fee: new.fee.to_sat(),
        size: new.size,
        extended_size: new.extended_size,
        version: new.version,
        lock_time: new.lock_time,
        slots: &slots,
        inputs: &new.inputs,
        body: new.body_bytes().map_or(&[][..], |bytes| bytes),
    };
    Ok(fields.encode())
}

/// The value of a record of ours, read with all fields.
pub(super) fn encode_record(record: &Record) -> Result<Vec<u8>> {
    let flag = |is: bool, flag: u8| if is { flag } else { 0 };
    let flags = flag(record.is_coinbase, COINBASE)
        | flag(record.external, EXTERNAL)
        | flag(record.locked, LOCKED)
        | flag(record.conflicting, CONFLICTING)
        | flag(record.creating, CREATING);
    let height = |height: Option<Height>| height.map_or(0, Height::to_u32);
    let Some(Body::Transaction(tx)) = &record.body else {
        anyhow::bail!("{} has no transaction", record.txid);
    };
    let fields = Fields {
        flags,
        spending_height: height(record.spending_height),
        unmined_since: height(record.unmined_since),
        preserve_until: height(record.preserve_until),
        delete_at: height(record.delete_at),
        created_at: record.created_at,
        fee: record.fee.to_sat(),
        size: record.size,
        extended_size: record.extended_size,
        version: record.version,
        lock_time: record.lock_time,
        slots: &record.utxos,
        inputs: &record.inputs,
        body: tx.bytes(),
    };
    Ok(fields.encode())
}

/// Whether the record of this value accepts the spend, and whether it already has it; `None` when
/// it is refused. The order of the checks is that of the contract.
pub(super) fn judge(
    value: &[u8],
    spend: &Spend,
    by: SpendingData,
    rules: SpendRules,
) -> Result<Option<bool>> {
    let flags = *value.get(FLAGS).context("an empty value")?;
    let height = rules.height.to_u32();
    let refused = flags & CREATING != 0
        || (flags & CONFLICTING != 0 && !rules.ignore_conflicting)
        || (flags & LOCKED != 0 && !rules.ignore_locked)
        || word(value, SPENDING)? > height
        || spend.outpoint.vout >= word(value, OUTPUTS)?;
    if refused {
        return Ok(None);
    }
    let slot = value.get(slot_at(spend.outpoint.vout)..).and_then(<[u8]>::split_first_chunk);
    let (slot, _): (&[u8; SLOT_LEN], _) = slot.context("a slot is cut short")?;
    let (state, rest) = slot.split_first().context("a slot")?;
    let (hash, spender) = rest.split_at(32);
    if *state == 0 || hash != spend.hash.as_bytes() {
        return Ok(None);
    }
    Ok(if *state == 1 { Some(false) } else { (spender == by.to_bytes()).then_some(true) })
}

/// Writes a spend that passed into the value, and updates when the record may be deleted.
pub(super) fn write_spend(value: &mut [u8], vout: u32, by: SpendingData, at: Height) -> Result<()> {
    let start = slot_at(vout);
    let slot = value.get_mut(start..start + SLOT_LEN).context("a slot is cut short")?;
    let (state, rest) = slot.split_first_mut().context("a slot")?;
    *state = 2;
    rest.get_mut(32..).context("a spender")?.copy_from_slice(&by.to_bytes());
    let spent = word(value, SPENT)? + 1;
    set_word(value, SPENT, spent)?;
    let over =
        spent == word(value, SLOTS)? && word(value, BLOCKS)? > 0 && word(value, UNMINED)? == 0;
    if word(value, PRESERVE)? == 0 {
        let due = if over { at.to_u32() + CONTEXT.retention } else { 0 };
        set_word(value, DELETE, due)?;
    }
    Ok(())
}

const fn slot_at(vout: u32) -> usize {
    HEAD_LEN + SLOT_LEN * vout as usize
}

fn word(value: &[u8], at: usize) -> Result<u32> {
    let bytes = value.get(at..).and_then(<[u8]>::first_chunk).context("a value is cut short")?;
    Ok(u32::from_le_bytes(*bytes))
}

fn set_word(value: &mut [u8], at: usize, word: u32) -> Result<()> {
    let place = value.get_mut(at..at + 4).context("a value is cut short")?;
    place.copy_from_slice(&word.to_le_bytes());
    Ok(())
}
