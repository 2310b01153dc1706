//! The cost of lookups of keys that an adversary chose.
//!
//! Two sets, one coin a transaction: the txids of one are random, those of the other share their
//! first 24 bytes. Both are imported from a snapshot, and every coin is looked up, as many keys at
//! a time as a block has inputs. Imports and lookups of the two sets alternate, so that a
//! disturbance affects both.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use varve_bench::figures::Figures;
use varve_types::{Amount, Coin, Height, Outpoint, Txid, compact_size};
use varve_utxo::parts::pack;

use crate::block_maker::COINS;
use crate::command::RESIDENT;
use crate::side::Side as _;
use crate::stock::{BASE, NETWORK};
use crate::varve::Varve;
use varve_testdata::Random;

/// How often the lookups are made; the fastest counts.
const ROUNDS: usize = 3;
/// Bytes that the hostile txids share.
const SHARED: usize = 24;

/// Reports `hostile_import` and `hostile_lookup`: the time with hostile keys over that with random
/// ones.
pub(crate) fn run(folder: &Path, coins: u32) -> Result<()> {
    let mut sets = Vec::new();
    for (name, shared) in [("random", 0), ("hostile", SHARED)] {
        let txids = txids(coins, shared);
        let snapshot = snapshot(&txids);
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder)?;
        let start = Instant::now();
        let mut varve = Varve::open(&folder, RESIDENT)?;
        varve.load(&mut snapshot.as_slice())?;
        let import = start.elapsed().as_secs_f64();
        sets.push((varve, shuffled(txids), import, f64::MAX));
    }
    for _ in 0..ROUNDS {
        for (varve, keys, _, best) in &mut sets {
            let version = varve.set().snapshot();
            let start = Instant::now();
            for part in keys.chunks(COINS) {
                let found = version.get(part)?;
                ensure!(found.iter().all(|coin| coin.is_some()), "a key is not in the set");
            }
            *best = best.min(start.elapsed().as_secs_f64());
        }
    }
    let [(_, _, random_import, random), (_, _, hostile_import, hostile)] = sets.as_slice() else {
        unreachable!("there are two sets")
    };
    Figures::report("hostile_import", hostile_import / random_import);
    Figures::report("hostile_lookup", hostile / random);
    Ok(())
}

/// Ascending.
fn txids(count: u32, shared: usize) -> Vec<Txid> {
    let mut random = Random::new(11);
    let mut txids: Vec<[u8; 32]> = (0..count)
        .map(|_| {
            let mut txid = [0xab; 32];
            random.fill(txid.get_mut(shared..).unwrap_or_default());
            txid
        })
        .collect();
    txids.sort_unstable();
    txids.dedup();
    txids.into_iter().map(Txid::from_bytes).collect()
}

fn shuffled(txids: Vec<Txid>) -> Vec<Outpoint> {
    let mut random = Random::new(12);
    let mut keys: Vec<Outpoint> = txids.into_iter().map(|txid| Outpoint::new(txid, 0)).collect();
    for place in (1..keys.len()).rev() {
        keys.swap(place, random.index(place + 1));
    }
    keys
}

fn snapshot(txids: &[Txid]) -> Vec<u8> {
    let mut bytes = b"utxo\xff\x02\x00".to_vec();
    bytes.extend_from_slice(&NETWORK.wire_magic());
    bytes.extend_from_slice(BASE.as_bytes());
    bytes.extend_from_slice(&(txids.len() as u64).to_le_bytes());
    let script = [&[0, 20][..], &[7; 20]].concat();
    let (height, value) = (Height::new(1), Amount::from_sat(1_000));
    for txid in txids {
        bytes.extend_from_slice(txid.as_bytes());
        compact_size::write(1, &mut bytes);
        compact_size::write(0, &mut bytes);
        pack(&Coin { height, coinbase: false, value, script: &script }, &mut bytes);
    }
    bytes
}
