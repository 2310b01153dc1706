//! The transactions of the work: one input, some outputs that pay to the hash of a key.
//!
//! Everything in a transaction follows from its number and from what it spends, so that the parent
//! of a spend need not be kept: its script is recomputed.

use bytes::Bytes;
use varve_records::Transaction;
use varve_types::{Outpoint, Txid, compact_size};

use varve_testdata::Random;

/// The value of an output of the stock.
pub(super) const STOCK_VALUE: u64 = 5_000_000_000;
/// A signature and a public key with their lengths.
const UNLOCKING_LEN: usize = 107;
/// `OP_DUP OP_HASH160 <20 bytes> OP_EQUALVERIFY OP_CHECKSIG`.
const LOCKING_LEN: usize = 25;
/// In extended form: version, marker, one input, the number of outputs, lock time.
const FIXED_LEN: usize = 4 + 6 + 1 + 36 + 1 + UNLOCKING_LEN + 4 + 8 + 1 + LOCKING_LEN + 9 + 4;

/// The number of a transaction. The stock has the first ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TxNumber(pub(super) u64);

/// An output that can be spent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    pub(super) of: TxNumber,
    pub(super) outpoint: Outpoint,
    pub(super) value: u64,
}

/// A transaction of the stock. What it spends has no record.
pub(super) fn stock(number: TxNumber, outputs: u32) -> Vec<u8> {
    let mut before = [0; 32];
    Random::new(!number.0).fill(&mut before);
    let outpoint = Outpoint::new(Txid::from_bytes(before), 0);
    let value = STOCK_VALUE * u64::from(outputs);
    let spent = Output { of: TxNumber(u64::MAX), outpoint, value };
    extended(number, &spent, outputs, STOCK_VALUE)
}

/// A transaction of two outputs, each worth half of what it spends.
pub(super) fn child(number: TxNumber, spent: &Output) -> Vec<u8> {
    extended(number, spent, 2, spent.value / 2)
}

/// Reads one back.
pub(super) fn parse(bytes: Vec<u8>) -> anyhow::Result<Transaction> {
    Ok(Transaction::parse(Bytes::from(bytes), varve_types::Format::Legacy)?)
}

fn extended(number: TxNumber, spent: &Output, outputs: u32, value: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(FIXED_LEN + (8 + 1 + LOCKING_LEN) * outputs as usize);
    bytes.extend_from_slice(&1_u32.to_le_bytes());
    bytes.extend_from_slice(&[0, 0, 0, 0, 0, 0xef, 1]);
    bytes.extend_from_slice(&spent.outpoint.to_bytes());
    bytes.push(107);
    let mut unlocking = [0; UNLOCKING_LEN];
    Random::new(number.0).fill(&mut unlocking);
    bytes.extend_from_slice(&unlocking);
    bytes.extend_from_slice(&[0xff; 4]);
    write_output(spent.of, spent.outpoint.vout, spent.value, &mut bytes);
    compact_size::write(u64::from(outputs), &mut bytes);
    (0..outputs).for_each(|vout| write_output(number, vout, value, &mut bytes));
    bytes.extend_from_slice(&0_u32.to_le_bytes());
    bytes
}

fn write_output(number: TxNumber, vout: u32, value: u64, out: &mut Vec<u8>) {
    let mut key = [0; 20];
    Random::new(Random::new(number.0).bits() ^ u64::from(vout)).fill(&mut key);
    out.extend_from_slice(&value.to_le_bytes());
    out.extend_from_slice(&[25, 0x76, 0xa9, 20]);
    out.extend_from_slice(&key);
    out.extend_from_slice(&[0x88, 0xac]);
}
