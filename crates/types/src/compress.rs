//! Core's compression of outputs, as in its coin database, undo files and snapshots.
//!
//! ```text
//! output   │ VARINT(compressed amount) │ compressed script │
//!
//! script   │ 00 │ hash 20 │   P2PKH
//!          │ 01 │ hash 20 │   P2SH
//!          │ 02 │ x 32 │      P2PK, compressed key with an even y (the key is not checked)
//!          │ 03 │ x 32 │      P2PK, compressed key with an odd y
//!          │ 04 │ x 32 │      P2PK, uncompressed key with an even y, which is on the curve
//!          │ 05 │ x 32 │      P2PK, uncompressed key with an odd y, which is on the curve
//!          │ VARINT(length + 6) │ script │   anything else
//! ```
//!
//! Amounts are mostly round numbers, so the zeros at the end are split off: an amount
//! d · 10^e with last digit d becomes a small number that holds e, d and the rest.
//!
//! Decoding types 4 and 5 needs the curve, to find y from x.

use crate::amount::Amount;
use crate::error::{DecodeError, DecodeErrorKind};
use crate::reader::Reader;
use crate::script::opcode::{OP_CHECKSIG, OP_DUP, OP_EQUAL, OP_EQUALVERIFY, OP_HASH160};
use crate::varint;

/// The types of compressed scripts: lengths are counted from here on.
const SPECIAL_SCRIPTS: u64 = 6;

/// Appends a compressed output.
pub fn write_output(value: Amount, script: &[u8], out: &mut Vec<u8>) {
    varint::write(compress_amount(value), out);
    write_script(script, out);
}

/// Decodes a compressed output. Its script is appended to `script`.
pub fn read_output(reader: &mut Reader<'_>, script: &mut Vec<u8>) -> Result<Amount, DecodeError> {
    let start = reader.offset();
    let compressed = varint::read(reader, "a compressed amount")?;
    let value = decompress_amount(compressed);
    let value = value.ok_or(DecodeErrorKind::AmountTooLarge { compressed }.at(start))?;
    read_script(reader, script)?;
    Ok(value)
}

/// The number that stands for an amount.
///
/// The amount is n · 10^e with e ≤ 9 as large as possible. With e < 9 the last digit of n is not
/// zero: n = 10·m + d, and the number is 1 + 10·(9·m + d − 1) + e. With e = 9 it is
/// 1 + 10·(n − 1) + 9. Zero is zero.
///
/// As in Core, an amount beyond the money supply wraps around and does not round-trip.
#[must_use]
pub fn compress_amount(amount: Amount) -> u64 {
    let mut n = amount.to_sat();
    if n == 0 {
        return 0;
    }
    let mut e = 0;
    while n.is_multiple_of(10) && e < 9 {
        n /= 10;
        e += 1;
    }
    let rest = if e < 9 { (n / 10).wrapping_mul(9).wrapping_add(n % 10) } else { n };
    1_u64.wrapping_add((rest - 1).wrapping_mul(10)).wrapping_add(e)
}

/// The amount that a number stands for, or `None` when it is more than 64 bits.
#[must_use]
pub fn decompress_amount(compressed: u64) -> Option<Amount> {
    let Some(x) = compressed.checked_sub(1) else { return Some(Amount::ZERO) };
    let (x, e) = (x / 10, (x % 10) as u32);
    let n = if e < 9 { (x / 9).checked_mul(10)?.checked_add(x % 9 + 1)? } else { x + 1 };
    n.checked_mul(10_u64.pow(e)).map(Amount::from_sat)
}

/// Appends a compressed script.
pub fn write_script(script: &[u8], out: &mut Vec<u8>) {
    if let Some((kind, payload)) = special(script) {
        out.push(kind);
        out.extend_from_slice(payload);
    } else {
        varint::write(script.len() as u64 + SPECIAL_SCRIPTS, out);
        out.extend_from_slice(script);
    }
}

/// Decodes a compressed script and appends it to `script`.
///
/// Core replaces scripts above 10,000 bytes by an unspendable one here. Such scripts are never
/// in Bitcoin's set, but they are in BSV's, so they are kept.
pub fn read_script(reader: &mut Reader<'_>, script: &mut Vec<u8>) -> Result<(), DecodeError> {
    let start = reader.offset();
    let kind = varint::read(reader, "a compressed script")?;
    match kind {
        0 => {
            script.extend_from_slice(&[OP_DUP, OP_HASH160, 20]);
            script.extend_from_slice(reader.array::<20>("a key hash")?);
            script.extend_from_slice(&[OP_EQUALVERIFY, OP_CHECKSIG]);
        }
        1 => {
            script.extend_from_slice(&[OP_HASH160, 20]);
            script.extend_from_slice(reader.array::<20>("a script hash")?);
            script.push(OP_EQUAL);
        }
        2 | 3 => {
            script.extend_from_slice(&[33, if kind == 2 { 2 } else { 3 }]);
            script.extend_from_slice(reader.array::<32>("a public key")?);
            script.push(OP_CHECKSIG);
        }
        4 | 5 => {
            let x = reader.array::<32>("a public key")?;
            let key = full_key(if kind == 4 { 2 } else { 3 }, x);
            let key = key.ok_or(DecodeErrorKind::NotAPublicKey.at(start))?;
            script.push(65);
            script.extend_from_slice(&key);
            script.push(OP_CHECKSIG);
        }
        length => {
            let bytes = reader.take(length - SPECIAL_SCRIPTS, "a script")?;
            script.extend_from_slice(bytes);
        }
    }
    Ok(())
}

/// The type and payload of a script that has a type.
fn special(script: &[u8]) -> Option<(u8, &[u8])> {
    match script {
        [OP_DUP, OP_HASH160, 20, hash @ .., OP_EQUALVERIFY, OP_CHECKSIG] if hash.len() == 20 => {
            Some((0, hash))
        }
        [OP_HASH160, 20, hash @ .., OP_EQUAL] if hash.len() == 20 => Some((1, hash)),
        [33, kind @ (2 | 3), x @ .., OP_CHECKSIG] if x.len() == 32 => Some((*kind, x)),
        [65, key @ .., OP_CHECKSIG] if key.len() == 65 => {
            let (4, y_last) = (*key.first()?, *key.last()?) else { return None };
            // A key that is not on the curve cannot be recovered from its x.
            secp256k1::PublicKey::from_slice(key).ok()?;
            Some((4 | (y_last & 1), key.get(1..33)?))
        }
        _ => None,
    }
}

/// The 65 bytes of the key with this x, or `None` when there is no such point.
fn full_key(parity: u8, x: &[u8; 32]) -> Option<[u8; 65]> {
    let mut compressed = [parity; 33];
    compressed.last_chunk_mut::<32>()?.copy_from_slice(x);
    secp256k1::PublicKey::from_slice(&compressed).ok().map(|key| key.serialize_uncompressed())
}

#[cfg(test)]
mod tests;
