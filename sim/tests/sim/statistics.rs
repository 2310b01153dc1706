//! After its warm-up a chain has the figures of its profile, within a tenth.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]

use varve_sim::stats::{Meter, Stats};
use varve_sim::{Chain, Config, Profile};
use varve_types::script::Class;

/// Transactions a block in these tests: enough for every figure, few enough to be quick.
const TRANSACTIONS: u32 = 400;

fn measure(profile: Profile, blocks: u32, from: u32) -> Stats {
    let config = Config { transactions: Some(TRANSACTIONS), ..Config::new(profile, blocks, 11) };
    let mut meter = Meter::new(config.network(), from);
    for block in Chain::new(&config).unwrap() {
        meter.add(&block.bytes).unwrap();
    }
    meter.stats().clone()
}

#[expect(clippy::cast_precision_loss, reason = "figures of a test, far below 2^52")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

#[track_caller]
fn near(what: &str, measured: f64, wanted: f64) {
    let off = (measured / wanted - 1.0).abs();
    assert!(off <= 0.10, "{what} is {measured:.4}, not {wanted}");
}

#[test]
fn mainnet_has_the_figures_of_blocks_above_900_000() {
    // Coins older than 144 blocks exist from height 245 on.
    let stats = measure(Profile::Mainnet, 500, 260);
    let (transactions, outputs) = (stats.transactions, stats.outputs);
    near("transactions a block", ratio(transactions, stats.blocks), f64::from(TRANSACTIONS));
    near("inputs a transaction", ratio(stats.inputs, transactions), 1.87);
    near("outputs a transaction", ratio(outputs, transactions), 2.60);
    near("bytes a transaction", ratio(stats.transaction_bytes, transactions), 410.0);
    near("mean output script", ratio(stats.script_bytes, outputs), 23.9);
    near("small outputs", ratio(stats.small_outputs, outputs), 0.12);

    let wanted = [
        (Class::P2wpkh, 0.509),
        (Class::OpReturn, 0.178),
        (Class::P2tr, 0.163),
        (Class::P2pkh, 0.073),
        (Class::P2sh, 0.048),
        (Class::P2wsh, 0.024),
        (Class::P2a, 0.005),
    ];
    for (class, share) in wanted {
        near(&format!("share of {class:?}"), ratio(stats.classes[&class], outputs), share);
    }
    assert!(stats.classes[&Class::P2pk] > 0 && stats.classes[&Class::Multisig] > 0);

    for (index, share) in [0.85, 0.09, 0.05, 0.01].into_iter().enumerate() {
        near("inputs histogram", ratio(stats.inputs_histogram[index], transactions), share);
    }
    for (index, share) in [0.17, 0.61, 0.21, 0.014].into_iter().enumerate() {
        near("outputs histogram", ratio(stats.outputs_histogram[index], transactions), share);
    }
    for (index, share) in [0.284, 0.50, 0.216].into_iter().enumerate() {
        near("ages of spent outputs", ratio(stats.ages[index], stats.inputs), share);
    }
}

#[test]
fn dense_moves_7_500_inputs_and_8_600_outputs_a_block() {
    let stats = measure(Profile::Dense, 300, 250);
    // The profile has 5,000 transactions a block; this chain has fewer of the same.
    let scale = f64::from(TRANSACTIONS) / 5_000.0;
    near("inputs a block", ratio(stats.inputs, stats.blocks), 7_500.0 * scale);
    near("outputs a block", ratio(stats.outputs, stats.blocks), 8_600.0 * scale);
    near("bytes a transaction", ratio(stats.transaction_bytes, stats.transactions), 285.0);
    near("old inputs", ratio(stats.ages[2], stats.inputs), 0.40);
}

#[test]
fn bsv_has_large_data_and_giant_transactions() {
    let stats = measure(Profile::Bsv, 180, 120);
    let block = ratio(stats.bytes, stats.blocks) * 1_000.0 / f64::from(TRANSACTIONS);
    assert!((3e6..9e6).contains(&block), "a full block would have {block} bytes");
    assert!(stats.most_outputs >= 20_000, "{}", stats.most_outputs);
    assert!(stats.longest_script > 100_000, "{}", stats.longest_script);
    let p2pkh = ratio(stats.classes[&Class::P2pkh], stats.outputs);
    // A quarter of a giant's outputs are notes, and giants weigh much among few transactions.
    assert!(p2pkh > 0.7, "{p2pkh}");
    assert!(!stats.classes.contains_key(&Class::P2wpkh));
}
