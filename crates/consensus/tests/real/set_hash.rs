//! Core's statistics of the set, computed from the oracle, against the answers of real nodes.

use serde_json::Value;
use varve_consensus::{MemorySet, Params};
use varve_testdata::chains::{Answered, height};
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
fn up_and_down(network: Network, chain: &Answered) {
    let Answered { blocks, answers } = chain;
    let mut replay = Replay::new(Params::new(network));
    let compare = |replay: &Replay| {
        let at = replay.next().to_u32() - 1;
        let mut found = answers.iter().filter(|answer| height(answer) == at).peekable();
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
    let lowest = answers.iter().map(height).min().unwrap();
    while replay.next().to_u32() - 1 > lowest {
        replay.disconnect();
        compare(&replay);
    }
}

#[test]
fn mainnet() {
    let Some(chain) = Answered::mainnet() else { return };
    up_and_down(Network::Mainnet, &chain);
}

#[test]
fn signet() {
    let Some(chain) = Answered::signet() else { return };
    up_and_down(Network::Signet, &chain);
}

#[test]
fn regtest_kernel() {
    let Some(chain) = Answered::kernel(Network::Regtest.genesis_block()) else { return };
    up_and_down(Network::Regtest, &chain);
}

#[test]
fn regtest_core31() {
    let Some(chain) = Answered::core31() else { return };
    up_and_down(Network::Regtest, &chain);
}
