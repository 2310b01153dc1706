//! Core's tx_valid.json and tx_invalid.json.
//!
//! A vector is `[[[prevout txid, vout, script, amount?] …], transaction, flags]`. In tx_valid the
//! flags are those that must be off; in tx_invalid those that make it fail, or `BADTX` when
//! CheckTransaction refuses it. The verifier does not know policy flags: a valid transaction stays
//! valid without them, and an invalid one that needs them is left out, and counted.

use std::collections::HashMap;

use serde_json::Value;
use varve_consensus::{
    CoreVerifier, Params, PreparedTx as _, ScriptFlags, ScriptVerifier as _, SpendingTx,
    check_transaction,
};
use varve_types::{Amount, Format, Height, Network, Outpoint, Tx, TxOut};

use crate::load;
use crate::scripts::{all_without, assemble, filled, parse_flags};

struct Vector {
    spent: HashMap<Outpoint, (Vec<u8>, u64)>,
    tx: Vec<u8>,
    flags: String,
}

fn vectors(file: &str) -> Option<Vec<Vector>> {
    let json = load::json(file)?;
    let tests = json.as_array().unwrap().iter().filter(|test| test[0].is_array());
    Some(tests.map(vector).collect())
}

fn vector(test: &Value) -> Vector {
    let spent = test[0].as_array().unwrap().iter().map(|prevout| {
        let vout = u32::try_from(prevout[1].as_i64().unwrap() & 0xffff_ffff).unwrap();
        let outpoint = Outpoint::new(prevout[0].as_str().unwrap().parse().unwrap(), vout);
        (outpoint, (assemble(prevout[2].as_str().unwrap()), prevout[3].as_u64().unwrap_or(0)))
    });
    Vector {
        spent: spent.collect(),
        tx: load::hex(test[1].as_str().unwrap()),
        flags: test[2].as_str().unwrap().to_owned(),
    }
}

impl Vector {
    fn is_well_formed(&self) -> bool {
        let params = Params::new(Network::Mainnet);
        Tx::parse(&self.tx, Format::Segwit)
            .is_ok_and(|tx| check_transaction(&params, Height::new(1), &tx).is_ok())
    }

    fn scripts_pass(&self, flags: ScriptFlags) -> bool {
        let tx = Tx::parse(&self.tx, Format::Segwit).unwrap();
        let spent: Vec<_> = tx
            .inputs()
            .map(|input| {
                let (script, value) = &self.spent[&input.outpoint];
                TxOut { value: Amount::from_sat(*value), script }
            })
            .collect();
        let prepared = CoreVerifier.prepare(&SpendingTx { tx: &tx, spent: &spent }).unwrap();
        (0..spent.len()).all(|input| prepared.verify(input, flags).is_ok())
    }
}

#[test]
fn valid_ones_pass() {
    let Some(vectors) = vectors("vectors/core/tx_valid.json") else { return };
    assert_eq!(vectors.len(), 121);
    for (index, vector) in vectors.iter().enumerate() {
        assert!(vector.is_well_formed(), "{index}");
        let (off, _) = parse_flags(&vector.flags);
        // WITNESS has no meaning without P2SH.
        let mut on = all_without(off);
        if !on.contains(ScriptFlags::P2SH) {
            on = all_without(off | ScriptFlags::WITNESS);
        }
        assert!(vector.scripts_pass(on), "{index}: {}", vector.flags);
    }
}

#[test]
fn invalid_ones_fail() {
    let Some(vectors) = vectors("vectors/core/tx_invalid.json") else { return };
    let (mut malformed, mut failed, mut left_out) = (0, 0, 0);
    for (index, vector) in vectors.iter().enumerate() {
        if vector.flags == "BADTX" {
            assert!(!vector.is_well_formed(), "{index}");
            malformed += 1;
            continue;
        }
        assert!(vector.is_well_formed(), "{index}");
        match parse_flags(&vector.flags) {
            (flags, 0) => {
                let flags = filled(flags);
                assert!(!vector.scripts_pass(flags), "{index}: {}", vector.flags);
                failed += 1;
            }
            _ => left_out += 1,
        }
    }
    assert_eq!((malformed, failed, left_out), (9, 70, 14));
}
