//! Core's statistics of the set, computed from the oracle, against the answers of real nodes.

use serde_json::Value;
use varve_consensus::{MemorySet, Params};
use varve_types::muhash::MuHash;
use varve_types::{Network, sha256d};

use crate::load;
use crate::replay::Replay;

/// Counts and hashes of a set, as `gettxoutsetinfo` names them.
struct Stats {
    txouts: u64,
    bogosize: u64,
    total: u64,
    serialized: String,
    muhash: String,
}

impl Stats {
    fn of(set: &MemorySet) -> Self {
        let mut all = Vec::new();
        let mut muhash = MuHash::new();
        let (mut bogosize, mut total) = (0, 0);
        for (outpoint, coin) in set.iter() {
            let start = all.len();
            coin.write_for_hash(outpoint, &mut all);
            muhash.insert(&all[start..]);
            bogosize += coin.bogosize();
            total += coin.value.to_sat();
        }
        let txouts = set.len() as u64;
        let (serialized, muhash) = (shown(sha256d(&all)), shown(muhash.finalize()));
        Self { txouts, bogosize, total, serialized, muhash }
    }

    /// Compares with an answer, in all fields that it has.
    fn assert_is(&self, expected: &Value) {
        let height = &expected["height"];
        assert_eq!(Some(self.txouts), expected["txouts"].as_u64(), "coins at {height}");
        assert_eq!(Some(self.bogosize), expected["bogosize"].as_u64(), "bogosize at {height}");
        assert_eq!(self.total, load::satoshi(&expected["total_amount"]), "amount at {height}");
        if let Some(muhash) = expected["muhash"].as_str() {
            assert_eq!(self.muhash, muhash, "muhash at {height}");
        }
        if let Some(serialized) = expected["hash_serialized_3"].as_str() {
            assert_eq!(self.serialized, serialized, "hash_serialized_3 at {height}");
        }
    }
}

fn shown(hash: [u8; 32]) -> String {
    varve_types::BlockHash::from_bytes(hash).to_string()
}

/// Goes up the chain and down again, and compares at every height that has an answer.
fn up_and_down(network: Network, blocks: &[Vec<u8>], answers: &[Value]) {
    let mut replay = Replay::new(Params::new(network));
    let height_of = |answer: &Value| u32::try_from(answer["height"].as_u64().unwrap()).unwrap();
    let compare = |replay: &Replay| {
        let at = replay.next().to_u32() - 1;
        let mut found = answers.iter().filter(|answer| height_of(answer) == at).peekable();
        if found.peek().is_some() {
            let stats = Stats::of(&replay.set);
            found.for_each(|answer| stats.assert_is(answer));
        }
    };
    // Scripts have their own test.
    replay.scripts = false;
    for block in blocks {
        replay.connect(block).unwrap();
        compare(&replay);
    }
    let lowest = answers.iter().map(height_of).min().unwrap();
    while replay.next().to_u32() - 1 > lowest {
        replay.disconnect();
        compare(&replay);
    }
}

fn check_oracle(network: Network, blocks: Option<Vec<Vec<u8>>>, file: &str, count: usize) {
    let (Some(blocks), Some(answers)) = (blocks, load::json(file)) else { return };
    let mut all = answers["heights"].as_array().unwrap().clone();
    all.push(answers["tip"].clone());
    assert!(all.len() >= count, "{} answers", all.len());
    up_and_down(network, &blocks, &all);
}

#[test]
fn mainnet() {
    let file = "vectors/oracle_mainnet_0-4312.json";
    check_oracle(Network::Mainnet, load::mainnet(), file, 8);
}

#[test]
fn signet() {
    check_oracle(Network::Signet, load::signet(), "vectors/oracle_signet_0-120.json", 3);
}

#[test]
fn regtest_kernel() {
    let file = "vectors/oracle_regtest_kernel_0-206.json";
    check_oracle(Network::Regtest, load::kernel(), file, 4);
}

#[test]
fn regtest_core31() {
    let (Some(blocks), Some(expected)) =
        (load::core31(), load::json("regtest-core31/expected.json"))
    else {
        return;
    };
    let main = expected["blockhash"].as_array().unwrap().iter().map(|hash| {
        let block = blocks.iter().find(|block| load::hash(block).to_string() == *hash);
        block.unwrap().clone()
    });
    let mut answers: Vec<_> = expected["muhash"].as_object().unwrap().values().cloned().collect();
    answers.push(expected["hash_serialized_3"].clone());
    up_and_down(Network::Regtest, &main.collect::<Vec<_>>(), &answers);
}
