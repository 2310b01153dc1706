//! The figures of the set, compared with Core's for its own chain, and with a plain sum otherwise.

use std::num::NonZeroUsize;
use std::sync::Arc;

use serde_json::Value;
use varve_consensus::BlockAt;
use varve_io::Storage;
use varve_io::faulty::FaultyStorage;
use varve_testdata::Random;
use varve_testdata::chains::{self, Answered};
use varve_types::muhash::MuHash;
use varve_types::{Amount, Block, BlockHash, Height, Network, sha256d};
use varve_utxo::{Database, Options, SetHash, Statistics, Version};

use crate::twin::{KEY, State, Twin, small, state};

pub(crate) fn statistics(version: &Version, hash: SetHash) -> Statistics {
    let mut reported = Vec::new();
    let threads = NonZeroUsize::new(3).unwrap();
    let found =
        version.statistics(hash, threads, &mut |done, of| reported.push((done, of))).unwrap();
    assert_eq!(reported.last(), Some(&(found.txouts, found.txouts)), "the whole was expected");
    assert!(reported.is_sorted());
    found
}

/// The same by a plain sum.
pub(crate) fn sum(version: &Version, state: &State, hash: SetHash) -> Statistics {
    let (mut all, mut muhash) = (Vec::new(), MuHash::new());
    let mut total = 0;
    for (outpoint, coin) in state {
        let start = all.len();
        coin.as_coin().write_for_hash(outpoint, &mut all);
        muhash.insert(&all[start..]);
        total += coin.value.to_sat();
    }
    let mut txids: Vec<_> = state.keys().map(|outpoint| outpoint.txid).collect();
    txids.dedup();
    Statistics {
        tip: version.tip(),
        txouts: state.len() as u64,
        transactions: txids.len() as u64,
        bogosize: state.values().map(|coin| 50 + coin.script.len() as u64).sum(),
        total_amount: Some(Amount::from_sat(total)),
        hash: match hash {
            SetHash::None => None,
            SetHash::Muhash => Some(muhash.finalize()),
            SetHash::HashSerialized3 => Some(sha256d(&all)),
        },
    }
}

/// The set at the tip of the chain that Core wrote, and Core's answers.
pub(crate) fn core31(options: Options) -> Option<(Database, Value)> {
    let expected = chains::json("regtest-core31/expected.json")?;
    let storage: Arc<dyn Storage> = Arc::new(FaultyStorage::new(1));
    let mut database = Database::open(storage, options).unwrap();
    for (height, bytes) in (0..).zip(Answered::core31()?.blocks) {
        let block = Block::parse(&bytes, Network::Regtest.format()).unwrap();
        database.append(&BlockAt::new(Height::new(height), &block)).unwrap();
    }
    Some((database, expected))
}

/// Compares with what Core says at the tip.
pub(crate) fn compare_with_core(version: &Version, expected: &Value) {
    let shown = |found: &Statistics| BlockHash::from_bytes(found.hash.unwrap()).to_string();
    let tip = expected["height"].as_u64().unwrap().to_string();
    let serialized = statistics(version, SetHash::HashSerialized3);
    let muhash = statistics(version, SetHash::Muhash);
    let answer = &expected["hash_serialized_3"];
    assert_eq!(shown(&serialized), answer["hash_serialized_3"]);
    assert_eq!(shown(&muhash), expected["muhash"][&tip]["muhash"]);
    let plain = statistics(version, SetHash::None);
    assert_eq!(plain.hash, None);
    for found in [serialized, muhash, plain] {
        assert_eq!(found.tip.unwrap().1.to_string(), answer["bestblock"]);
        assert_eq!(Some(found.txouts), answer["txouts"].as_u64());
        assert_eq!(Some(found.transactions), answer["transactions"].as_u64());
        assert_eq!(Some(found.bogosize), answer["bogosize"].as_u64());
        assert_eq!(found.total_amount.unwrap().to_sat(), chains::satoshi(&answer["total_amount"]));
    }
}

#[test]
fn core31_with_the_default_parameters() {
    let Some((database, expected)) = core31(Options::new(Network::Regtest, KEY)) else { return };
    compare_with_core(&database.snapshot(), &expected);
}

#[test]
fn core31_in_many_small_runs() {
    let Some((database, expected)) = core31(small()) else { return };
    compare_with_core(&database.snapshot(), &expected);
}

#[test]
fn a_moment_does_not_move_while_the_database_does() {
    for seed in 0..10 {
        let mut twin = Twin::new(seed, small());
        let mut chance = Random::new(seed);
        for _ in 0..25 {
            twin.append_draft(&mut chance).unwrap();
        }
        let version = twin.database().snapshot();
        let then = state(&version);
        for _ in 0..12 {
            twin.rewind().unwrap();
        }
        for _ in 0..25 {
            twin.append_draft(&mut chance).unwrap();
        }
        for hash in [SetHash::None, SetHash::Muhash, SetHash::HashSerialized3] {
            assert_eq!(statistics(&version, hash), sum(&version, &then, hash), "{hash:?}");
            let now = twin.database().snapshot();
            assert_eq!(statistics(&now, hash), sum(&now, &state(&now), hash), "{hash:?}");
        }
    }
}
