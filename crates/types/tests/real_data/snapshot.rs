//! A snapshot of the set that Core wrote (`dumptxoutset`), decoded and written again.
//!
//! ```text
//! utxo ff │ version u16le 2 │ magic 4 │ block hash 32 │ coins u64le │ for each transaction:
//!     txid 32 │ CompactSize n │ n × { CompactSize vout │ VARINT code │ compressed output }
//! ```

use std::collections::BTreeMap;
use std::fs;

use varve_types::{
    BlockHash, Coin, Height, Network, Outpoint, Reader, Txid, compact_size, compress, sha256d,
    varint,
};

use crate::load;

#[test]
fn a_snapshot_of_core_round_trips() {
    let Some(folder) = varve_testdata::data("regtest-core31") else { return };
    let file = fs::read(folder.join("snapshot.dat")).unwrap();
    let expected = load::json(&folder.join("expected.json"));
    let expected = &expected["hash_serialized_3"];

    let mut reader = Reader::new(&file);
    assert_eq!(reader.array(""), Ok(b"utxo\xff\x02\x00"));
    assert_eq!(*reader.array("").unwrap(), Network::Regtest.disk_magic());
    let base = BlockHash::from_bytes(*reader.array("").unwrap());
    assert_eq!(base.to_string(), expected["bestblock"].as_str().unwrap());
    let count = reader.u64("").unwrap();
    let mut out = reader.since(0).to_vec();

    let mut coins = BTreeMap::new();
    let size = |reader: &mut Reader<'_>| compact_size::read(reader, u64::MAX, "a size").unwrap();
    while !reader.rest().is_empty() {
        let txid = Txid::from_bytes(*reader.array("a txid").unwrap());
        out.extend_from_slice(txid.as_bytes());
        let outputs = size(&mut reader);
        compact_size::write(outputs, &mut out);
        for _ in 0..outputs {
            let vout = size(&mut reader);
            compact_size::write(vout, &mut out);
            let code = varint::read(&mut reader, "a code").unwrap();
            varint::write(code, &mut out);
            let mut script = Vec::new();
            let value = compress::read_output(&mut reader, &mut script).unwrap();
            compress::write_output(value, &script, &mut out);
            coins.insert(Outpoint::new(txid, vout as u32), (code, value, script));
        }
    }
    assert_eq!(out, file);
    assert_eq!(coins.len() as u64, count);
    assert_eq!(count, expected["txouts"].as_u64().unwrap());

    let mut bytes = Vec::new();
    for (outpoint, (code, value, script)) in &coins {
        let height = Height::new((code >> 1) as u32);
        let coin = Coin { height, coinbase: code & 1 == 1, value: *value, script };
        assert_eq!(coin.code(), *code);
        coin.write_for_hash(outpoint, &mut bytes);
    }
    let hash = BlockHash::from_bytes(sha256d(&bytes)).to_string();
    assert_eq!(hash, expected["hash_serialized_3"].as_str().unwrap());
}
