//! A record as JSON, and the names of its fields.
//!
//! The names are those of the original in snake case. A field may be asked for by any spelling of
//! its name: `block_ids`, `blockIDs` and `blockIds` are the same. Some fields bring others:
//! `block_ids` the heights and subtree indexes, `utxos` the counts. A height of 0 stands for "not
//! set". Hashes of outputs are in the order of their bytes, txids as people write them.

use hex_conservative::DisplayHex as _;
use serde_json::{Map, Value, json};
use varve::records::exchange::Meta;
use varve::records::exchange::{UtxoWrapper, WrappedOutput};
use varve::records::record::{BlockRef, Body, PartCounts, Record};
use varve::records::record::{SPENT_LEN, Slot};
use varve::records::{Fields, Transaction};
use varve::{Height, Txid};

use super::failure::{Failure, spending_data};

/// The name of a field, the fields that must be read for it, and the names that come with it.
struct Field(&'static str, Fields, &'static [&'static str]);

/// A name that is answered only on request, because it repeats other fields.
const META_BYTES: &str = "meta_bytes";
const BLOCKS: &[&str] = &["block_ids", "block_heights", "subtree_idxs"];
const COUNTS: &[&str] = &[
    "total_utxos",
    "record_utxos",
    "spent_utxos",
    "total_extra_recs",
    "spent_extra_recs",
    "records",
];

const FIELDS: &[Field] = &[
    Field("tx", Fields::TX, &["outputs"]),
    Field("inputs", Fields::TX, &["tx"]),
    Field("outputs", Fields::TX, &["tx"]),
    Field("tx_inpoints", Fields::INPOINTS, &[]),
    Field(META_BYTES, Fields::INPOINTS, &[]),
    Field("utxos", Fields::UTXOS, COUNTS),
    Field("spending_datas", Fields::UTXOS, &[]),
    Field("utxo_spendable_in", Fields::ALERTS, &[]),
    Field("freeze_windows", Fields::ALERTS, &[]),
    Field("reassignments", Fields::ALERTS, &[]),
    Field("conflicting_children", Fields::CHILDREN, &[]),
    Field("deleted_children", Fields::CHILDREN, &[]),
    Field("block_ids", Fields::HEAD, BLOCKS),
    Field("block_heights", Fields::HEAD, &[]),
    Field("subtree_idxs", Fields::HEAD, &[]),
    Field("size", Fields::HEAD, &[]),
    Field("size_in_bytes", Fields::HEAD, &[]),
    Field("total_utxos", Fields::HEAD, &[]),
    Field("record_utxos", Fields::HEAD, &[]),
    Field("spent_utxos", Fields::HEAD, &[]),
    Field("total_extra_recs", Fields::HEAD, &[]),
    Field("spent_extra_recs", Fields::HEAD, &[]),
    Field("records", Fields::HEAD, &[]),
    Field("version", Fields::HEAD, &[]),
    Field("lock_time", Fields::HEAD, &[]),
    Field("fee", Fields::HEAD, &[]),
    Field("extended_size", Fields::HEAD, &[]),
    Field("is_coinbase", Fields::HEAD, &[]),
    Field("spending_height", Fields::HEAD, &[]),
    Field("created_at", Fields::HEAD, &[]),
    Field("external", Fields::HEAD, &[]),
    Field("locked", Fields::HEAD, &[]),
    Field("frozen", Fields::HEAD, &[]),
    Field("conflicting", Fields::HEAD, &[]),
    Field("creating", Fields::HEAD, &[]),
    Field("unmined_since", Fields::HEAD, &[]),
    Field("preserve_until", Fields::HEAD, &[]),
    Field("delete_at_height", Fields::HEAD, &[]),
    Field("txid", Fields::HEAD, &[]),
];

/// Which fields of a record an answer has.
pub(super) struct Selection {
    /// The fields to read.
    pub(super) fields: Fields,
    /// The names to answer; everything that was read when `None`.
    names: Option<Vec<&'static str>>,
}

impl Selection {
    /// All names of these fields.
    pub(super) const fn all(fields: Fields) -> Self {
        Self { fields, names: None }
    }

    /// The fields with these names.
    pub(super) fn of(names: &[&str]) -> Result<Self, Failure> {
        let mut selection = Self { fields: Fields::HEAD, names: Some(vec!["txid"]) };
        for name in names {
            let found = FIELDS.iter().find(|field| plain(field.0) == plain(name));
            let Some(Field(name, fields, along)) = found else {
                let known: Vec<&str> = FIELDS.iter().map(|field| field.0).collect();
                let known = known.join(", ");
                return Err(Failure::argument("fields", format!("no {name:?}; known are {known}")));
            };
            selection.fields = selection.fields.union(*fields);
            if let Some(names) = &mut selection.names {
                names.push(name);
                names.extend_from_slice(along);
            }
        }
        Ok(selection)
    }

    /// The answer.
    pub(super) fn show(&self, record: &Record) -> Value {
        let mut answer = head(record);
        answer.extend(parts(record));
        if let Some(names) = &self.names {
            if names.contains(&META_BYTES) {
                let bytes = Meta::of(record).to_bytes().to_lower_hex_string();
                answer.insert(META_BYTES.to_owned(), bytes.into());
            }
            answer.retain(|name, _| names.contains(&name.as_str()));
        }
        answer.into()
    }
}

/// A name without case and underscores.
fn plain(name: &str) -> String {
    name.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect()
}

fn height(height: Option<Height>) -> u32 {
    height.map_or(0, Height::to_u32)
}

/// The fields that every read has.
fn head(record: &Record) -> Map<String, Value> {
    let blocks = |get: fn(&BlockRef) -> u32| -> Value { record.blocks.iter().map(get).collect() };
    let part = |part: &PartCounts| json!({ "record_utxos": part.utxos, "spent_utxos": part.spent });
    let master = record.parts.first().copied().unwrap_or_default();
    let answer = json!({
        "txid": record.txid.to_string(),
        "version": record.version,
        "lock_time": record.lock_time,
        "fee": record.fee.to_sat(),
        "size": record.size,
        "size_in_bytes": record.size,
        "extended_size": record.extended_size,
        "is_coinbase": record.is_coinbase,
        "spending_height": height(record.spending_height),
        "created_at": record.created_at,
        "external": record.external,
        "locked": record.locked,
        "frozen": record.is_frozen(),
        "conflicting": record.conflicting,
        "creating": record.creating,
        "unmined_since": height(record.unmined_since),
        "preserve_until": height(record.preserve_until),
        "delete_at_height": height(record.delete_at),
        "block_ids": blocks(|block| block.id.0),
        "block_heights": blocks(|block| block.height.to_u32()),
        "subtree_idxs": blocks(|block| block.subtree),
        "total_utxos": record.total_utxos,
        "record_utxos": master.utxos,
        "spent_utxos": master.spent,
        "total_extra_recs": record.extra_parts(),
        "spent_extra_recs": record.spent_extra_parts(),
        "records": record.parts.iter().map(part).collect::<Value>(),
    });
    object(answer)
}

/// The fields that were requested.
fn parts(record: &Record) -> Map<String, Value> {
    let mut answer = Map::new();
    let fields = record.fields;
    if fields.contains(Fields::TX) {
        answer.extend(body(record));
    }
    if fields.contains(Fields::INPOINTS) {
        answer.insert("tx_inpoints".into(), inpoints(record));
    }
    if fields.contains(Fields::UTXOS) {
        let spender = |data: &Option<_>| data.as_ref().map_or(Value::Null, spending_data);
        answer.insert("utxos".into(), record.utxos.iter().map(slot).collect());
        let spenders = record.spending_datas().iter().map(spender).collect();
        answer.insert("spending_datas".into(), spenders);
    }
    if fields.contains(Fields::ALERTS) {
        answer.extend(alerts(record));
    }
    if fields.contains(Fields::CHILDREN) {
        let children = &record.children;
        answer.insert("conflicting_children".into(), txids(&children.conflicting));
        answer.insert("deleted_children".into(), txids(&children.deleted));
    }
    answer
}

/// The transaction, or its known outputs.
fn body(record: &Record) -> Map<String, Value> {
    let answer = match &record.body {
        Some(Body::Transaction(tx)) => json!({ "tx": hex(tx) }),
        Some(Body::Outputs(bytes)) => {
            let outputs = UtxoWrapper::parse(bytes).map(|wrapper| wrapper.outputs());
            let output = |found: WrappedOutput<'_>| {
                json!({
                    "vout": found.index,
                    "satoshis": found.output.value.to_sat(),
                    "script": found.output.script.to_lower_hex_string(),
                })
            };
            let outputs = outputs.map(|outputs| outputs.map(output).collect::<Value>());
            json!({ "tx": null, "outputs": outputs.unwrap_or_default() })
        }
        Some(Body::External) | None => json!({ "tx": null }),
    };
    object(answer)
}

/// The bytes of a transaction.
pub(super) fn hex(tx: &Transaction) -> String {
    tx.bytes().to_lower_hex_string()
}

fn inpoints(record: &Record) -> Value {
    let inpoints = record.inpoints();
    let parents: Value = inpoints.parents().map(|(txid, _)| txid.to_string()).collect();
    let outputs: Value = inpoints.parents().map(|(_, vouts)| Value::from(vouts)).collect();
    let mut bytes = Vec::new();
    inpoints.encode(&mut bytes);
    let bytes = bytes.to_lower_hex_string();
    json!({ "parent_tx_hashes": parents, "idxs": outputs, "bytes": bytes })
}

fn slot(slot: &Option<Slot>) -> Value {
    slot.as_ref().map_or(Value::Null, |slot| {
        let mut bytes = Vec::with_capacity(SPENT_LEN);
        slot.encode(&mut bytes);
        bytes.to_lower_hex_string().into()
    })
}

fn alerts(record: &Record) -> Map<String, Value> {
    let alerts = &record.alerts;
    let spendable = |(vout, height): (&u32, &Height)| (vout.to_string(), height.to_u32().into());
    let windows = alerts.windows.iter().map(|(vout, window)| {
        let window = json!({
            "from": window.from.to_u32(),
            "until": window.until.to_u32(),
            "policy_expires": window.policy_expires,
        });
        (vout.to_string(), window)
    });
    let reassigned = alerts.reassignments.iter().map(|change| {
        json!({
            "vout": change.vout,
            "offset": record.batch.place(change.vout).offset,
            "utxo_hash": change.from.to_string(),
            "new_utxo_hash": change.to.to_string(),
            "block_height": change.height.to_u32(),
        })
    });
    object(json!({
        "utxo_spendable_in": alerts.spendable_in.iter().map(spendable).collect::<Map<_, _>>(),
        "freeze_windows": windows.collect::<Map<_, _>>(),
        "reassignments": reassigned.collect::<Value>(),
    }))
}

/// Txids as people write them.
pub(super) fn txids<'a>(txids: impl IntoIterator<Item = &'a Txid>) -> Value {
    txids.into_iter().map(Txid::to_string).collect()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}
