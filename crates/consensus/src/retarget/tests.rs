//! Adjustments that happened, and the special rules on chains made for them.

use varve_types::{BlockHash, Network};

use super::*;

const EASY: u32 = 0x1d00_ffff;

fn ancestor(time: u32, bits: u32) -> Ancestor {
    Ancestor { hash: BlockHash::ZERO, time, bits }
}

/// Some headers of a chain; the others are missing.
struct Sparse(Vec<(u32, Ancestor)>);

impl Ancestors for Sparse {
    fn ancestor(&self, height: Height) -> Option<Ancestor> {
        let found = self.0.iter().find(|(at, _)| *at == height.to_u32());
        found.map(|(_, ancestor)| *ancestor)
    }
}

fn bits_at(network: Network, height: u32, time: u32, chain: &impl Ancestors) -> u32 {
    next_bits(&Params::new(network), Height::new(height), time, chain).unwrap()
}

#[test]
fn adjustments_of_mainnet() {
    // From Core's pow_tests.cpp: height of the last block, first and last time, bits, new bits.
    let cases = [
        (32_255, 1_261_130_161, 1_262_152_739, EASY, 0x1d00_d86a),
        (2_015, 1_231_006_505, 1_233_061_996, EASY, EASY),
        (68_543, 1_279_008_237, 1_279_297_671, 0x1c05_a3f4, 0x1c01_68fd),
        (46_367, 1_263_163_443, 1_269_211_443, 0x1c38_7f6f, 0x1d00_e1fd),
    ];
    for (last, first_time, last_time, bits, expected) in cases {
        let chain = Sparse(vec![
            (last - 2015, ancestor(first_time, bits)),
            (last, ancestor(last_time, bits)),
        ]);
        assert_eq!(bits_at(Network::Mainnet, last + 1, 0, &chain), expected, "after {last}");
        assert_eq!(
            bits_at(Network::Mainnet, last, 0, &Sparse(vec![(last - 1, ancestor(0, 7))])),
            7
        );
    }
}

#[test]
fn a_missing_ancestor_is_named() {
    let chain = Sparse(vec![(2015, ancestor(1, EASY))]);
    let params = Params::new(Network::Mainnet);
    let error = next_bits(&params, Height::new(2016), 0, &chain).unwrap_err();
    assert_eq!(error.height, Height::GENESIS);
}

#[test]
fn easy_blocks_of_testnet3_are_walked_over() {
    let real = 0x1c00_ffff;
    let mut chain: Vec<_> = (0..2020).map(|at| ancestor(at * 600, real)).collect();
    for block in &mut chain[2017..] {
        block.bits = EASY;
    }
    let last = 2019 * 600;
    assert_eq!(bits_at(Network::Testnet3, 2020, last + 1201, &chain), EASY);
    assert_eq!(bits_at(Network::Testnet3, 2020, last + 1200, &chain), real);
    // The walk ends at the first block of the period, even when that is easy.
    chain[2016].bits = EASY;
    assert_eq!(bits_at(Network::Testnet3, 2020, last + 1200, &chain), EASY);
    // Mainnet has no easy blocks.
    assert_eq!(bits_at(Network::Mainnet, 2018, last + 9999, &chain), EASY);
}

#[test]
fn testnet4_adjusts_from_the_first_block() {
    let real = 0x1c00_ffff;
    let mut chain: Vec<_> = (0..2016).map(|at| ancestor(at * 600, real)).collect();
    chain[2015].bits = EASY;
    let exact = 2015 * 600;
    let params = Params::new(Network::Testnet4);
    assert_eq!(bits_at(Network::Testnet4, 2016, 0, &chain), scaled(&params.pow, real, exact));
    // On testnet3 an easy last block takes the whole difficulty with it.
    assert_eq!(bits_at(Network::Testnet3, 2016, 0, &chain), scaled(&params.pow, EASY, exact));
}

#[test]
fn regtest_never_moves() {
    let bits = 0x207f_ffff;
    let chain: Vec<_> = (0..300).map(|at| ancestor(at, bits)).collect();
    for height in [1, 143, 144, 288, 300] {
        assert_eq!(bits_at(Network::Regtest, height, 0, &chain), bits);
        assert_eq!(bits_at(Network::Regtest, height, 99_999, &chain), bits);
        assert_eq!(bits_at(Network::BsvRegtest, height, 99_999, &chain), bits);
    }
}

#[test]
fn emergency_adjustment_of_bsv() {
    let bits = 0x1802_0000;
    let mut chain: Vec<_> = (0..2100).map(|at| ancestor(at * 600, bits)).collect();
    assert_eq!(bits_at(Network::Bsv, 2100, 0, &chain), bits);
    // Twelve hours over six blocks, by median time: a quarter more.
    for (at, block) in chain.iter_mut().enumerate() {
        block.time = u32::try_from(at).unwrap() * 7200;
    }
    assert_eq!(bits_at(Network::Bsv, 2100, 0, &chain), 0x1802_8000);
    assert_eq!(bits_at(Network::Mainnet, 2100, 0, &chain), bits);
    for (at, block) in chain.iter_mut().enumerate() {
        block.time = u32::try_from(at).unwrap() * 7199;
    }
    assert_eq!(bits_at(Network::Bsv, 2100, 0, &chain), bits);
}

/// A chain that begins near the height of the moving average.
struct Late(u32, Vec<Ancestor>);

impl Ancestors for Late {
    fn ancestor(&self, height: Height) -> Option<Ancestor> {
        self.1.get(height.to_u32().checked_sub(self.0)? as usize).copied()
    }
}

#[test]
fn moving_average_of_bsv() {
    let bits = 0x1c0f_ffff;
    let start = 510_000;
    let chain = |spacing: u32| {
        Late(start, (0..200).map(|at| ancestor(1_500_000_000 + at * spacing, bits)).collect())
    };
    let next = |spacing| bits_at(Network::Bsv, start + 200, 0, &chain(spacing));
    let target = |bits| Target::from_bits(bits).unwrap().number();
    let near = |found: u32, expected: U256| {
        let found = target(found);
        let gap = found.max(expected).wrapping_sub(found.min(expected));
        assert!(gap < expected.shr(14), "{found:?} is not near {expected:?}");
    };
    near(next(600), target(bits));
    near(next(1200), target(bits).shl(1));
    near(next(9999), target(bits).shl(1));
    near(next(300), target(bits).shr(1));
    near(next(1), target(bits).shr(1));
    // One skewed time is not the median.
    let mut skewed = chain(600);
    skewed.1[199].time += 100_000;
    near(bits_at(Network::Bsv, start + 200, 0, &skewed), target(bits));
}

#[test]
fn moving_average_begins_above_504031() {
    // A slow day would double the target on average, and raise it by a quarter in an emergency.
    let bits = 0x1802_0000;
    let slow = |tip: u32| {
        let start = tip - 199;
        let chain = (0..200).map(|at| ancestor(1_500_000_000 + at * 7200, bits)).collect();
        bits_at(Network::Bsv, tip + 1, 0, &Late(start, chain))
    };
    assert_eq!(slow(504_030), 0x1802_8000);
    assert_eq!(slow(504_031) >> 8, 0x0018_0400, "twice as easy");
}

#[test]
fn moving_average_never_exceeds_the_limit() {
    let start = 510_000;
    let slow: Vec<_> = (0..200).map(|at| ancestor(at * 9000, EASY)).collect();
    assert_eq!(bits_at(Network::Bsv, start + 200, 0, &Late(start, slow)), EASY);
}

#[test]
fn only_steps_that_some_times_allow_are_permitted() {
    let params = Params::new(Network::Mainnet);
    let permitted =
        |height, below, bits| is_permitted_transition(&params, Height::new(height), below, bits);
    let bits = 0x1c05_a3f4;
    assert!(permitted(1, bits, bits) && !permitted(1, bits, bits + 1));
    // Within a period nothing moves; at its end the target moves by at most four either way.
    assert!(permitted(2016, bits, bits + 1));
    assert!(permitted(2016, bits, 0x1c01_68fd) && !permitted(2016, bits, 0x1c01_68fc));
    assert!(permitted(2016, bits, 0x1c16_8fd0) && !permitted(2016, bits, 0x1c16_8fd1));
    assert!(!permitted(2016, bits, 0x1b05_a3f4));
    assert!(permitted(2016, EASY, EASY) && !permitted(2016, EASY, 0x1d01_0000));
    assert!(!permitted(2016, bits, 0), "no target at all");
    let test = Params::new(Network::Testnet3);
    assert!(is_permitted_transition(&test, Height::new(1), bits, EASY));
}
