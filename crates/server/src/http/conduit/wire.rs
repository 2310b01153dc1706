//! The bytes of Conduit's requests and answers.
//!
//! ```text
//! outpoint   │ txid 32 │ index u32be │
//! filter     │ pushdata hash 32 │ seconds u32be │
//! spend      │ spent txid 32 │ index u32be │ spending txid 32 │ input u32be │ block hash 32 │
//! match      │ flags u8 │ pushdata hash 32 │ locking txid 32 │ index u32be
//!            │ unlocking txid 32 │ input u32be │
//! ```
//!
//! Hashes are in internal order here, and in JSON as they are shown; pushdata hashes are reversed
//! in neither. A block hash of zeros says that the spend is unconfirmed; an unlocking txid of zeros
//! and the input `ffffffff`, that the output is unspent.

use varve::types::PushdataHash;
use varve::types::pushdata::PushdataFlags;
use varve::{BlockHash, Outpoint, Txid};

use super::super::api::Spend;

/// The length of a spend.
pub(super) const SPEND_LEN: usize = 104;
/// The length of a match.
pub(super) const MATCH_LEN: usize = 105;
/// The input of an output that is unspent.
pub(super) const NO_INPUT: u32 = u32::MAX;

/// In which of two forms a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `application/json`.
    Json,
    /// `application/octet-stream`.
    Binary,
}

/// A body that is not what it should be: what is wrong, for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(pub(super) &'static str);

/// What a client of Conduit's API has sent.
#[derive(Clone, Copy, Debug)]
pub struct RequestBody<'a> {
    /// Its form.
    pub form: Form,
    /// Its bytes.
    pub bytes: &'a [u8],
}

const INCORRECT: Malformed = Malformed("one or more payload entries are incorrect");
const CUT: Malformed = Malformed("binary request body malformed");
const EMPTY: Malformed = Malformed("no body");

/// Rows of `N` bytes.
fn rows<const N: usize>(body: &[u8]) -> Result<&[[u8; N]], Malformed> {
    let (rows, rest) = body.as_chunks();
    if rest.is_empty() { Ok(rows) } else { Err(CUT) }
}

/// 32 bytes and a number behind them.
fn numbered(row: &[u8; 36]) -> ([u8; 32], u32) {
    let (hash, number) = row.split_first_chunk().expect("36 bytes are more than 32");
    let number = number.first_chunk().expect("36 − 32 = 4 bytes are left");
    (*hash, u32::from_be_bytes(*number))
}

impl RequestBody<'_> {
    /// A list of outputs.
    pub fn outpoints(self) -> Result<Vec<Outpoint>, Malformed> {
        let pairs = self.pairs()?.into_iter();
        let outpoint = |(txid, vout): ([u8; 32], u32)| Outpoint::new(Txid::from_bytes(txid), vout);
        Ok(pairs.map(outpoint).collect())
    }

    /// A list of what filters watch for, and for how many seconds.
    pub fn filters(self) -> Result<Vec<(PushdataHash, u32)>, Malformed> {
        let pairs = self.pairs()?.into_iter();
        let is_json = self.form == Form::Json;
        let filter = |(mut hash, seconds): ([u8; 32], u32)| {
            // These hashes are shown as they are, and were read as txids are.
            if is_json {
                hash.reverse();
            }
            (PushdataHash::from_bytes(hash), seconds)
        };
        Ok(pairs.map(filter).collect())
    }

    /// A list of hashes.
    pub fn hashes(self) -> Result<Vec<PushdataHash>, Malformed> {
        if self.bytes.is_empty() {
            return Err(EMPTY);
        }
        if self.form == Form::Binary {
            return Ok(rows(self.bytes)?.iter().copied().map(PushdataHash::from_bytes).collect());
        }
        let texts: Vec<String> = serde_json::from_slice(self.bytes).map_err(|_| INCORRECT)?;
        texts.iter().map(|text| text.parse().map_err(|_| INCORRECT)).collect()
    }

    /// Hashes with numbers; those of JSON are read in the order in which txids are shown.
    fn pairs(self) -> Result<Vec<([u8; 32], u32)>, Malformed> {
        if self.bytes.is_empty() {
            return Err(EMPTY);
        }
        if self.form == Form::Binary {
            return Ok(rows(self.bytes)?.iter().map(numbered).collect());
        }
        let pairs: Vec<(String, u32)> =
            serde_json::from_slice(self.bytes).map_err(|_| INCORRECT)?;
        let pair = |(hash, number): (String, u32)| {
            let hash: Txid = hash.parse().map_err(|_| INCORRECT)?;
            Ok((hash.to_bytes(), number))
        };
        pairs.into_iter().map(pair).collect()
    }
}

/// An output and the input that spends it, in bytes.
pub(super) fn spend(outpoint: Outpoint, spend: &Spend) -> [u8; SPEND_LEN] {
    let block = spend.block.unwrap_or(BlockHash::ZERO);
    let mut bytes = Vec::with_capacity(SPEND_LEN);
    bytes.extend(outpoint.txid.as_bytes());
    bytes.extend(outpoint.vout.to_be_bytes());
    bytes.extend(spend.txid.as_bytes());
    bytes.extend(spend.vin.to_be_bytes());
    bytes.extend(block.as_bytes());
    bytes.try_into().expect("the fields of a spend are 104 bytes")
}

/// An output that pushes an item, or that an input which pushes it spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) flags: PushdataFlags,
    pub(super) hash: PushdataHash,
    pub(super) locking: Outpoint,
    /// The input that spends it.
    pub(super) unlocking: Option<(Txid, u32)>,
}

impl Match {
    pub(super) fn to_bytes(self) -> [u8; MATCH_LEN] {
        let (txid, vin) = self.unlocking.unwrap_or((Txid::ZERO, NO_INPUT));
        let mut bytes = Vec::with_capacity(MATCH_LEN);
        bytes.push(self.flags.bits());
        bytes.extend(self.hash.as_bytes());
        bytes.extend(self.locking.txid.as_bytes());
        bytes.extend(self.locking.vout.to_be_bytes());
        bytes.extend(txid.as_bytes());
        bytes.extend(vin.to_be_bytes());
        bytes.try_into().expect("the fields of a match are 105 bytes")
    }
}

#[cfg(test)]
mod tests {
    use varve_testdata::Random;

    use super::*;

    fn body(form: Form, bytes: &[u8]) -> RequestBody<'_> {
        RequestBody { form, bytes }
    }

    fn outpoint(byte: u8, vout: u32) -> Outpoint {
        Outpoint::new(Txid::from_bytes([byte; 32]), vout)
    }

    #[test]
    fn both_forms_of_a_request_say_the_same() {
        let binary = [&[7; 32][..], &[0, 0, 1, 2], &[9; 32], &[0xff; 4]].concat();
        let [one, two] = ["07".repeat(32), "09".repeat(32)];
        let json = format!(r#"[["{one}",258],["{two}",4294967295]]"#);
        let found = body(Form::Binary, &binary).outpoints().unwrap();
        assert_eq!(found, [outpoint(7, 258), outpoint(9, u32::MAX)]);
        assert_eq!(body(Form::Json, json.as_bytes()).outpoints().unwrap(), found);
        let watched = body(Form::Binary, &binary).filters().unwrap();
        assert_eq!(body(Form::Json, json.as_bytes()).filters().unwrap(), watched);
        assert_eq!(watched[0], (PushdataHash::from_bytes([7; 32]), 258));
        // Conduit cut the second hash one byte behind the first.
        let two_hashes = [[7; 32], [9; 32]].concat();
        let json = format!(r#"["{one}","{two}"]"#);
        let found = body(Form::Binary, &two_hashes).hashes().unwrap();
        assert_eq!(found, [PushdataHash::from_bytes([7; 32]), PushdataHash::from_bytes([9; 32])]);
        assert_eq!(body(Form::Json, json.as_bytes()).hashes().unwrap(), found);
    }

    #[test]
    fn bodies_that_are_refused() {
        for text in ["", "{}", "[1]", r#"[["00",1]]"#, r#"[["00"]]"#, "[[", "null", "[[[[[[["] {
            assert!(body(Form::Json, text.as_bytes()).outpoints().is_err(), "{text}");
            assert!(body(Form::Json, text.as_bytes()).filters().is_err(), "{text}");
            assert!(body(Form::Json, text.as_bytes()).hashes().is_err(), "{text}");
        }
        let minus = format!(r#"[["{}",-1]]"#, "00".repeat(32));
        assert!(body(Form::Json, minus.as_bytes()).outpoints().is_err());
        assert!(body(Form::Binary, &[0; 37]).outpoints().is_err());
        assert!(body(Form::Binary, &[0; 33]).hashes().is_err());
        assert!(body(Form::Binary, &[]).hashes().is_err());
    }

    #[test]
    fn records_are_laid_out_as_conduit_packs_them() {
        let block = Some(BlockHash::from_bytes([3; 32]));
        let by = Spend { txid: Txid::from_bytes([2; 32]), vin: 5, block };
        let bytes = spend(outpoint(1, 4), &by);
        let expected = [&[1; 32][..], &[0, 0, 0, 4], &[2; 32], &[0, 0, 0, 5], &[3; 32]].concat();
        assert_eq!(bytes.as_slice(), expected);
        let unspent = Match {
            flags: PushdataFlags::OUTPUT,
            hash: PushdataHash::from_bytes([8; 32]),
            locking: outpoint(1, 4),
            unlocking: None,
        };
        let expected = [&[1][..], &[8; 32], &[1; 32], &[0, 0, 0, 4], &[0; 32], &[0xff; 4]].concat();
        assert_eq!(unspent.to_bytes().as_slice(), expected);
    }

    /// Bytes by chance never panic, and what is read has the length that was sent.
    #[test]
    fn bytes_by_chance() {
        let mut random = Random::new(4);
        for _ in 0..20_000 {
            let length = random.index(400);
            let bytes = random.bytes(length);
            for form in [Form::Json, Form::Binary] {
                let read = body(form, &bytes).outpoints().map(|read| read.len() * 36);
                let same = body(form, &bytes).filters().map(|read| read.len() * 36);
                assert_eq!(read, same);
                assert!(form == Form::Json || read.is_err() || read == Ok(length));
                let read = body(form, &bytes).hashes().map(|read| read.len() * 32);
                assert!(form == Form::Json || read.is_err() || read == Ok(length));
            }
        }
    }
}
