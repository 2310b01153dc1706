//! What is sent around about a transaction: fee, size, flags, what it spends.
//!
//! ```text
//! │ fee u64le │ size u64le │ flags 1 │ inpoints │                            short form
//! │ fee u64le │ size u64le │ flags 1 │ inpoints │ extended tx │ block ids … │ long form
//!
//! flags   1 coinbase │ 2 frozen │ 4 conflicting │ 8 locked
//! ```
//!
//! Block ids are `u32le` each, up to the end of the bytes. The transaction is always in extended
//! form, so without its witness; a coinbase then has a spent output of no value and no script.

use bytes::Bytes;
use varve_types::{Amount, DecodeError, DecodeErrorKind, Format, Reader, Tx};

use crate::extended::Transaction;
use crate::inpoints::TxInpoints;
use crate::record::{BlockId, Body, Record};

const COINBASE: u8 = 1;
const FROZEN: u8 = 2;
const CONFLICTING: u8 = 4;
const LOCKED: u8 = 8;

/// The flags of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetaFlags {
    /// It is a coinbase.
    pub coinbase: bool,
    /// Some output of it is frozen.
    pub frozen: bool,
    /// It lost a double spend.
    pub conflicting: bool,
    /// Its outputs cannot be spent yet.
    pub locked: bool,
}

/// What is sent around about a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// What its inputs are worth beyond its outputs.
    pub fee: Amount,
    /// The length of its standard form.
    pub size: u64,
    /// Its flags.
    pub flags: MetaFlags,
    /// What it spends.
    pub inpoints: TxInpoints,
    /// The transaction; `None` in the short form.
    pub tx: Option<Transaction>,
    /// The blocks that have it; none in the short form.
    pub block_ids: Vec<BlockId>,
}

impl Meta {
    /// What a record says. The long form, when the record was read with its transaction and has
    /// it.
    #[must_use]
    pub fn of(record: &Record) -> Self {
        let tx = match &record.body {
            Some(Body::Transaction(tx)) => Some(tx.clone()),
            _ => None,
        };
        let block_ids = if tx.is_some() { record.block_ids() } else { Vec::new() };
        let flags = MetaFlags {
            coinbase: record.is_coinbase,
            frozen: record.is_frozen(),
            conflicting: record.conflicting,
            locked: record.locked,
        };
        let inpoints = record.inpoints();
        Self { fee: record.fee, size: record.size, flags, inpoints, tx, block_ids }
    }

    /// The bytes of the short form.
    #[must_use]
    pub fn to_short_bytes(&self) -> Vec<u8> {
        let mut out = self.fee.to_sat().to_le_bytes().to_vec();
        out.extend_from_slice(&self.size.to_le_bytes());
        out.push(self.flags.to_byte());
        self.inpoints.encode(&mut out);
        out
    }

    /// The bytes: of the long form when the transaction is there, else of the short one.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.to_short_bytes();
        if let Some(tx) = &self.tx {
            out.extend_from_slice(&tx.extended_bytes());
            for BlockId(id) in &self.block_ids {
                out.extend_from_slice(&id.to_le_bytes());
            }
        }
        out
    }

    /// Decodes either form. The transaction shares the bytes.
    pub fn decode(bytes: &Bytes) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let fee = Amount::from_sat(reader.u64("a fee")?);
        let size = reader.u64("a size")?;
        let flags = MetaFlags::from_byte(reader.u8("flags")?);
        let inpoints = TxInpoints::read(&mut reader)?;
        let mut meta = Self { fee, size, flags, inpoints, tx: None, block_ids: Vec::new() };
        if reader.rest().is_empty() {
            return Ok(meta);
        }
        let start = reader.offset();
        let shift = |error: DecodeError| error.shifted(start as u64);
        let len = Tx::parse_first(reader.rest(), Format::Extended).map_err(shift)?.bytes().len();
        let tx = Transaction::parse(bytes.slice(start..start + len), Format::Extended);
        meta.tx = Some(tx.map_err(shift)?);
        reader.take(len as u64, "a transaction")?;
        if reader.rest().len() % 4 != 0 {
            return Err(reader.error(DecodeErrorKind::UnexpectedEnd { what: "a block id" }));
        }
        while !reader.rest().is_empty() {
            meta.block_ids.push(BlockId(reader.u32("a block id")?));
        }
        Ok(meta)
    }
}

impl MetaFlags {
    fn to_byte(self) -> u8 {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        bit(self.coinbase, COINBASE)
            | bit(self.frozen, FROZEN)
            | bit(self.conflicting, CONFLICTING)
            | bit(self.locked, LOCKED)
    }

    /// Bits without a meaning are ignored.
    const fn from_byte(byte: u8) -> Self {
        Self {
            coinbase: byte & COINBASE != 0,
            frozen: byte & FROZEN != 0,
            conflicting: byte & CONFLICTING != 0,
            locked: byte & LOCKED != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use varve_types::{Network, Outpoint, Txid};

    use super::*;

    fn meta(tx: Option<Transaction>) -> Meta {
        let outpoint = Outpoint::new(Txid::from_bytes([5; 32]), 6);
        Meta {
            fee: Amount::from_sat(0x0102),
            size: 0x0304,
            flags: MetaFlags { frozen: true, locked: true, ..MetaFlags::default() },
            inpoints: TxInpoints::from_outpoints(&[outpoint]),
            block_ids: tx.iter().flat_map(|_| [BlockId(7), BlockId(8)]).collect(),
            tx,
        }
    }

    #[test]
    fn the_short_form_ends_after_the_inpoints() {
        let meta = meta(None);
        let bytes = meta.to_bytes();
        assert_eq!(bytes[..17], [2, 1, 0, 0, 0, 0, 0, 0, 4, 3, 0, 0, 0, 0, 0, 0, 2 | 8]);
        assert_eq!(bytes.len(), 17 + 4 + 32 + 4 + 4);
        assert_eq!(Meta::decode(&bytes.into()), Ok(meta));
    }

    #[test]
    fn the_long_form_has_an_extended_transaction_and_block_ids() {
        let block = Network::Mainnet.genesis_block();
        let coinbase = Bytes::copy_from_slice(block.get(81..).unwrap());
        let tx = Transaction::parse(coinbase, Format::Segwit).unwrap();
        let meta = meta(Some(tx.clone()));
        let bytes = Bytes::from(meta.to_bytes());
        assert_eq!(bytes[bytes.len() - 8..], [7, 0, 0, 0, 8, 0, 0, 0]);
        let decoded = Meta::decode(&bytes).unwrap();
        let extended = decoded.tx.clone().unwrap();
        assert!(extended.is_extended());
        assert_eq!(extended.txid(), tx.txid());
        assert_eq!(decoded, Meta { tx: Some(extended), ..meta.clone() });
        assert_eq!(decoded.to_bytes(), bytes);
        assert!(Meta::decode(&bytes.slice(..bytes.len() - 1)).is_err(), "half a block id");
    }
}
