//! A real node agrees: its snapshot of a chain of awkward outputs is ours, byte for byte.
//!
//! Core orders the coins of a transaction by the bytes of its database keys, which is not the order
//! of their numbers from 16,512 on; and it packs keys of P2PK outputs by special rules, depending
//! on whether they are points of the curve. So the chain has a transaction of 20,000 outputs, of
//! which some are spent, and P2PK outputs of all kinds.

use std::sync::Arc;

use hex_conservative::{DisplayHex as _, FromHex as _};
use serde_json::{Value, json};
use varve_consensus::BlockAt;
use varve_consensus::contract::draft::{OutputDraft, TxDraft};
use varve_io::{Disk, Storage};
use varve_testdata::bitcoind::Bitcoind;
use varve_testdata::chains::satoshi;
use varve_types::{Block, BlockHash, Height, Network, Outpoint};
use varve_utxo::{Database, Options, SetHash};

use crate::statistics::statistics;
use crate::twin::{KEY, small};

const GENERATOR: &str = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798\
                         483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8";

/// Scripts of P2PK: keys that are on the curve, and keys that are not, in every form.
fn keys() -> Vec<Vec<u8>> {
    let point = Vec::from_hex(GENERATOR).unwrap();
    let mut keys: Vec<Vec<u8>> = Vec::new();
    for mark in [2, 3, 4, 5, 6, 7] {
        let [whole, half] = [&point[..], &point[..32]].map(|part| [&[mark], part].concat());
        keys.extend([whole, half]);
        // Half of all numbers below the field's size are the x of a point.
        keys.extend((0..10_u8).map(|number| [&[mark][..], &[number; 32]].concat()));
        // A point with another y, and one beyond the field.
        let mut off = [&[mark], &point[..]].concat();
        off[64] ^= 1;
        keys.push(off);
        keys.push([&[mark][..], &[0xff; 64]].concat());
        keys.push([&[mark][..], &[0xff; 32]].concat());
    }
    let length = |key: &[u8]| u8::try_from(key.len()).unwrap();
    keys.iter().map(|key| [&[length(key)], &key[..], &[0xac]].concat()).collect()
}

/// A transaction of 20,000 outputs that anyone can spend, except those with keys.
fn wide(funding: Outpoint) -> TxDraft {
    let keys = keys();
    let mut tx = TxDraft::spending(&[funding], 0);
    tx.outputs = (0..20_000_u32)
        .map(|vout| {
            let key = (vout % 97 == 3).then(|| keys[vout as usize / 97 % keys.len()].clone());
            let script = key.unwrap_or_else(|| vec![0x51]);
            OutputDraft { value: u64::from(vout) * 7 + 1, script }
        })
        .collect();
    tx
}

/// Spends every 31st output of the wide transaction that anyone can spend.
fn holes(wide: &TxDraft) -> TxDraft {
    let vouts =
        (0..).zip(&wide.outputs).filter(|(vout, out)| vout % 31 == 5 && out.script == [0x51]);
    let outpoints: Vec<_> = vouts.map(|(vout, _)| Outpoint::new(wide.txid(), vout)).collect();
    let mut tx = TxDraft::spending(&outpoints, 1);
    tx.outputs[0].value = 1;
    tx
}

fn build(node: &Bitcoind) {
    // Anyone can spend these coinbases; the first is mature.
    let made = node.call("generatetodescriptor", &json!([101, "raw(51)"]));
    let first = node.call("getblock", &json!([made[0], 1]));
    let txid = first["tx"][0].as_str().unwrap().parse().unwrap();
    let wide = wide(Outpoint::new(txid, 0));
    for tx in [&wide, &holes(&wide)] {
        let hex = tx.bytes().to_lower_hex_string();
        let made = node.call("generateblock", &json!(["raw(51)", [hex]]));
        assert!(made["hash"].is_string(), "{made}");
    }
    for script in keys() {
        let descriptor = format!("raw({})", script.to_lower_hex_string());
        assert!(node.call("generatetodescriptor", &json!([1, descriptor])).is_array());
    }
}

/// Our set of the node's chain.
fn follow(node: &Bitcoind, storage: Arc<dyn Storage>, options: Options) -> Database {
    let mut database = Database::open(storage, options).unwrap();
    let height = node.call("getblockcount", &json!([])).as_u64().unwrap();
    for height in 0..=u32::try_from(height).unwrap() {
        let hash = node.call("getblockhash", &json!([height]));
        let hex = node.call("getblock", &json!([hash, 0]));
        let bytes = Vec::from_hex(hex.as_str().unwrap()).unwrap();
        let block = Block::parse(&bytes, Network::Regtest.format()).unwrap();
        database.append(&BlockAt::new(Height::new(height), &block)).unwrap();
    }
    database
}

fn compare(node: &Bitcoind, database: &Database, file: &[u8]) {
    let version = database.snapshot();
    let mut ours = Vec::new();
    version.export(Network::Regtest, &mut ours, &mut |_, _| {}).unwrap();
    assert_eq!(ours.len(), file.len());
    let differs = ours.iter().zip(file).position(|(ours, theirs)| ours != theirs);
    assert_eq!(differs, None, "byte for byte");
    for (name, hash) in
        [("hash_serialized_3", SetHash::HashSerialized3), ("muhash", SetHash::Muhash)]
    {
        let theirs: Value = node.call("gettxoutsetinfo", &json!([name]));
        let found = statistics(&version, hash);
        assert_eq!(theirs[name], BlockHash::from_bytes(found.hash.unwrap()).to_string(), "{name}");
        assert_eq!(theirs["txouts"], found.txouts);
        assert_eq!(theirs["bogosize"], found.bogosize);
        let amount = found.total_amount.unwrap().to_sat();
        assert_eq!(satoshi(&theirs["total_amount"]), amount);
    }
}

#[test]
fn the_snapshot_of_awkward_outputs_is_that_of_a_node() {
    let folder = tempfile::tempdir().unwrap();
    let Some(node) = Bitcoind::start_in(folder.path(), &[]) else { return };
    build(&node);
    let path = folder.path().join("utxo.dat");
    let dumped = node.call("dumptxoutset", &json!([path, "latest"]));
    let file = std::fs::read(&path).unwrap();
    assert!(dumped["coins_written"].as_u64().unwrap() > 19_000, "{dumped}");

    let sets = tempfile::tempdir().unwrap();
    let disk = |name: &str| -> Arc<dyn Storage> {
        std::fs::create_dir(sets.path().join(name)).unwrap();
        Arc::new(Disk::open(&sets.path().join(name)).unwrap())
    };
    let database = follow(&node, disk("runs"), small());
    assert!(!database.snapshot().runs().as_slice().is_empty(), "the wide transaction is in a run");
    compare(&node, &database, &file);
    let in_window = follow(&node, disk("window"), Options::new(Network::Regtest, KEY));
    compare(&node, &in_window, &file);
    let mut imported = Database::open(disk("imported"), small()).unwrap();
    let (height, _) = database.tip().unwrap();
    imported.import(&file[..], height, &mut |_, _| {}).unwrap();
    compare(&node, &imported, &file);
}
