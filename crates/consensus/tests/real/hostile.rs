//! Blocks with random bytes changed: every rule answers, none panics.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use varve_consensus::{
    BlockAt, CoreVerifier, Params, check_block, check_block_context, check_header, check_scripts,
    check_signet_solution, check_spends,
};
use varve_types::{Block, Network};

use crate::load;
use crate::replay::{NOW, Replay};

/// All rules, each by itself, so that an early refusal does not hide the later ones.
fn every_rule(replay: &Replay, params: &Params, bytes: &[u8]) -> usize {
    let Ok(block) = Block::parse(bytes, params.network.format()) else { return 0 };
    let header = block.header();
    let block = BlockAt::new(replay.next(), &block);
    let (headers, set) = (&replay.headers, &replay.set);
    let threads = NonZeroUsize::new(1).unwrap();
    let passed = [
        check_header(params, header, replay.next(), headers, NOW).is_ok(),
        check_block(params, &block).is_ok(),
        check_block_context(params, &block, headers).is_ok(),
        check_signet_solution(params, &block, &CoreVerifier).is_ok(),
        check_spends(params, &block, headers, set).is_ok(),
        check_scripts(params, &block, set, &CoreVerifier, threads).is_ok(),
    ];
    passed.iter().filter(|passed| **passed).count()
}

#[test]
fn changed_blocks_never_panic() {
    let Some(blocks) = load::kernel() else { return };
    let at = (0..blocks.len()).max_by_key(|at| blocks[*at].len()).unwrap();
    let mut replay = Replay::new(Params::new(Network::Regtest));
    replay.connect_all(&blocks[..at]);
    let block = &blocks[at];
    // The same bytes under the rules of other chains too.
    let params = [Network::Regtest, Network::Signet, Network::BsvRegtest].map(Params::new);
    assert_eq!(every_rule(&replay, &params[0], block), 6);
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4);
    let parsed = AtomicUsize::new(0);
    let mut runner = TestRunner::new(ProptestConfig::with_cases(2000));
    runner
        .run(&changes, |changes| {
            let mut bytes = block.clone();
            for (index, byte) in changes {
                let index = index.index(bytes.len());
                bytes[index] = byte;
            }
            for params in &params {
                let passed = every_rule(&replay, params, &bytes);
                parsed.fetch_add(usize::from(passed > 0), Ordering::Relaxed);
            }
            Ok(())
        })
        .unwrap();
    assert!(parsed.into_inner() > 1000, "most changes leave a block that parses");
}
