//! The arguments of one line, by name.
//!
//! An argument may have several names; the first that is present counts, and `null` counts as
//! absent. Unknown arguments are ignored. Errors name the argument.

use bytes::Bytes;
use hex_conservative::FromHex as _;
use serde_json::{Map, Value};
use varve::records::Transaction;
use varve::records::operation::MinedBlockInfo;
use varve::records::record::SpendingData;
use varve::records::record::UtxoHash;
use varve::records::record::{BlockId, BlockRef};
use varve::types::Format;
use varve::{Height, Outpoint, Txid};

use super::failure::Failure;

type Result<T> = std::result::Result<T, Failure>;

/// The names of a height.
pub(super) const HEIGHT: &[&str] = &["block_height", "height"];

/// The arguments of a line, or of a part of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arguments<'a>(&'a Map<String, Value>);

impl<'a> Arguments<'a> {
    /// The fields of this object.
    pub(super) const fn new(object: &'a Map<String, Value>) -> Self {
        Self(object)
    }

    fn find(&self, names: &[&str]) -> Option<(&'a str, &'a Value)> {
        let given = names.iter().filter_map(|name| self.0.get_key_value(*name));
        let mut given = given.filter(|(_, value)| !value.is_null());
        given.next().map(|(name, value)| (name.as_str(), value))
    }

    fn get<T>(
        &self,
        names: &[&str],
        what: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some((name, value)) = self.find(names) else { return Ok(None) };
        match read(value) {
            Some(found) => Ok(Some(found)),
            None => Err(Failure::argument(name, format!("expected {what}"))),
        }
    }

    /// Whether one of these names is there.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.find(names).is_some()
    }

    /// A text.
    pub(super) fn text(&self, names: &[&str]) -> Result<Option<&'a str>> {
        self.get(names, "a text", Value::as_str)
    }

    /// True or false.
    pub(super) fn flag(&self, names: &[&str]) -> Result<Option<bool>> {
        self.get(names, "true or false", Value::as_bool)
    }

    /// A number.
    pub(super) fn u64(&self, names: &[&str]) -> Result<Option<u64>> {
        self.get(names, "a number from 0 on", Value::as_u64)
    }

    /// A number of 32 bits.
    pub(super) fn u32(&self, names: &[&str]) -> Result<Option<u32>> {
        let read = |value: &Value| u32::try_from(value.as_u64()?).ok();
        self.get(names, "a number from 0 to 4294967295", read)
    }

    /// A height.
    pub(super) fn height(&self, names: &[&str]) -> Result<Option<Height>> {
        Ok(self.u32(names)?.map(Height::new))
    }

    /// Bytes in hex.
    pub(super) fn bytes(&self, names: &[&str]) -> Result<Option<Vec<u8>>> {
        self.get(names, "an even number of hex digits", |value| Vec::from_hex(value.as_str()?).ok())
    }

    /// A txid as people write it.
    pub(super) fn txid(&self, names: &[&str]) -> Result<Option<Txid>> {
        self.get(names, "a txid of 64 hex digits", txid)
    }

    /// Several txids, or one.
    pub(super) fn txids(&self) -> Result<Vec<Txid>> {
        let read = |value: &Value| match value {
            Value::Array(list) => list.iter().map(txid).collect::<Option<Vec<_>>>(),
            single => Some(vec![txid(single)?]),
        };
        let names = ["txids", "hashes", "txid", "hash"];
        required("txids", self.get(&names, "txids of 64 hex digits each", read)?)
    }

    /// The hash of an output, in hex in the order of its bytes.
    pub(super) fn utxo_hash(&self, names: &[&str]) -> Result<Option<UtxoHash>> {
        let read =
            |value: &Value| Some(UtxoHash::from_bytes(<[u8; 32]>::from_hex(value.as_str()?).ok()?));
        self.get(names, "64 hex digits", read)
    }

    /// An output: `txid` and `vout`, or `outpoint`.
    pub(super) fn outpoint(&self) -> Result<Outpoint> {
        let read = |value: &Value| value.as_str()?.parse().ok();
        if let Some(outpoint) = self.get(&["outpoint"], "TXID:VOUT", read)? {
            return Ok(outpoint);
        }
        let txid = required("txid", self.txid(&["txid", "hash"])?)?;
        Ok(Outpoint::new(txid, required("vout", self.u32(&["vout"])?)?))
    }

    /// A spender: 72 hex digits, or an object with `txid` and `vin`.
    pub(super) fn spending_data(&self) -> Result<Option<SpendingData>> {
        let what = "72 hex digits, or an object with txid and vin";
        let read = |value: &Value| match value {
            Value::Object(object) => {
                let vin = object.get("vin").map_or(Some(0), Value::as_u64)?;
                Some(SpendingData::new(txid(object.get("txid")?)?, u32::try_from(vin).ok()?))
            }
            other => other.as_str()?.parse().ok(),
        };
        self.get(&["spending_data"], what, read)
    }

    /// The parts of a list of objects; `None` when it is not there.
    pub(super) fn objects(&self, names: &[&str]) -> Result<Option<Vec<Self>>> {
        let object = |value: &'a Value| value.as_object().map(Arguments);
        let read = |value: &'a Value| value.as_array()?.iter().map(object).collect();
        self.get(names, "a list of objects", read)
    }

    /// An object.
    pub(super) fn object(&self, names: &[&str]) -> Result<Option<Self>> {
        self.get(names, "an object", |value| value.as_object().map(Arguments))
    }

    /// Texts, as a list or with commas between them.
    pub(super) fn names(&self, names: &[&str]) -> Result<Option<Vec<&'a str>>> {
        let read = |value: &'a Value| match value {
            Value::Array(list) => list.iter().map(Value::as_str).collect(),
            other => Some(other.as_str()?.split(',').map(str::trim).collect()),
        };
        self.get(names, "a list of names", read)
    }

    /// Numbers.
    pub(super) fn numbers(&self, names: &[&str]) -> Result<Option<Vec<u32>>> {
        let number = |value: &Value| u32::try_from(value.as_u64()?).ok();
        let read = |value: &Value| match value {
            Value::Array(list) => list.iter().map(number).collect(),
            single => Some(vec![number(single)?]),
        };
        self.get(names, "a list of numbers", read)
    }

    /// A transaction: `tx` in hex, extended or as in the blocks of the chain. A `txid` beside it
    /// replaces the one that the bytes hash to.
    pub(super) fn tx(&self, format: Format) -> Result<Transaction> {
        let bytes: Bytes = required("tx", self.bytes(&["tx"])?)?.into();
        transaction(&bytes, format, self.txid(&["txid"])?)
    }

    /// Blocks: `mined_block_infos`, `mined_block_info`, or the fields of one.
    pub(super) fn mined_block_infos(&self) -> Result<Vec<MinedBlockInfo>> {
        if let Some(list) = self.objects(&["mined_block_infos"])? {
            return list.iter().map(Self::mined_block_info).collect();
        }
        if let Some(one) = self.object(&["mined_block_info"])? {
            return Ok(vec![one.mined_block_info()?]);
        }
        if self.has(&["block_id"]) { Ok(vec![self.mined_block_info()?]) } else { Ok(Vec::new()) }
    }

    fn mined_block_info(&self) -> Result<MinedBlockInfo> {
        let block = BlockRef {
            id: BlockId(required("block_id", self.u32(&["block_id"])?)?),
            height: self.height(HEIGHT)?.unwrap_or(Height::GENESIS),
            subtree: self.u32(&["subtree_idx"])?.unwrap_or(0),
        };
        let unset = self.flag(&["unset_mined"])?.unwrap_or(false);
        let on_longest_chain = self.flag(&["on_longest_chain"])?.unwrap_or(true);
        Ok(MinedBlockInfo { block, on_longest_chain, unset })
    }
}

/// An argument that must be present.
pub(super) fn required<T>(name: &str, value: Option<T>) -> Result<T> {
    value.ok_or_else(|| Failure::argument(name, "is missing"))
}

/// A transaction from its bytes. The outputs of one that has no inputs look like the marker of a
/// witness; such bytes are read as if the chain had none.
pub(super) fn transaction(
    bytes: &Bytes,
    format: Format,
    txid: Option<Txid>,
) -> Result<Transaction> {
    let parse = |format| match txid {
        Some(txid) => Transaction::parse_with_txid(bytes.clone(), format, txid),
        None => Transaction::parse(bytes.clone(), format),
    };
    let parsed = parse(format).or_else(|error| parse(Format::Legacy).map_err(|_| error));
    parsed.map_err(|error| Failure::argument("tx", error))
}

fn txid(value: &Value) -> Option<Txid> {
    value.as_str()?.parse().ok()
}
