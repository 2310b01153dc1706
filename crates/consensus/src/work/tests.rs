//! Against the `bitcoin` crate, and against values of Core's own tests.

use proptest::prelude::*;

use super::*;

fn theirs(target: Target) -> bitcoin::Target {
    bitcoin::Target::from_le_bytes(target.0.to_le_bytes())
}

#[test]
fn bits_of_core_tests() {
    // From arith_uint256_tests.cpp: zero, negative, too large.
    let zero = [0, 0x0012_3456, 0x0100_3456, 0x0200_0056, 0x0300_0000, 0x0400_0000, 0x0180_3456];
    let negative = [0x01fe_dcba, 0x0492_3456];
    let too_large = [0xff12_3456, 0x2300_0001, 0x2200_0100, 0x2101_0000];
    for bits in [&zero[..], &negative, &too_large].concat() {
        assert_eq!(Target::from_bits(bits), None, "{bits:08x}");
    }
    for bits in [0x2200_00ff, 0x2100_ffff, 0x207f_ffff] {
        assert!(Target::from_bits(bits).is_some(), "{bits:08x}");
    }
    for (bits, number, back) in [
        (0x0112_3456, 0x12, 0x0112_0000),
        (0x0212_3456, 0x1234, 0x0212_3400),
        (0x0312_3456, 0x12_3456, 0x0312_3456),
        (0x0412_3456, 0x1234_5600, 0x0412_3456),
        (0x0500_9234, 0x9234_0000, 0x0500_9234),
    ] {
        let target = Target::from_bits(bits).unwrap();
        assert_eq!(target, Target(U256::from_u64(number)));
        assert_eq!(target.to_bits(), back);
    }
    assert_eq!(Target(U256::from_u64(0x80)).to_bits(), 0x0200_8000);
}

#[test]
fn work_of_the_first_blocks() {
    let one = Work::of_bits(0x1d00_ffff);
    let text = "0000000000000000000000000000000000000000000000000000000100010001";
    assert_eq!(one.to_string(), text);
    assert_eq!(Work::of(Target(U256::ZERO.not())).0, U256::ONE);
    assert_eq!(Work::of_bits(0), Work::ZERO);
    assert_eq!(Work::from_le_bytes(&one.plus(one).to_le_bytes()), one.plus(one));
}

proptest! {
    #[test]
    fn agrees_with_the_bitcoin_crate(mantissa in 1_u32..0x80_0000, exponent in 3_u32..=32) {
        let bits = (exponent << 24) | mantissa;
        let ours = Target::from_bits(bits).unwrap();
        let other = bitcoin::Target::from_compact(bitcoin::CompactTarget::from_consensus(bits));
        prop_assert_eq!(theirs(ours), other);
        prop_assert_eq!(ours.to_bits(), other.to_compact_lossy().to_consensus());
        prop_assert_eq!(Work::of(ours).to_le_bytes(), other.to_work().to_le_bytes());
    }

    #[test]
    fn any_target_agrees(bytes: [u8; 32], shift in 0_u32..256) {
        let number = U256::from_le_bytes(&bytes).shr(shift);
        // That crate computes 2^256 / 2 as 2^256 − 1.
        prop_assume!(number > U256::ONE);
        let ours = Target::new(number).unwrap();
        prop_assert_eq!(ours.to_bits(), theirs(ours).to_compact_lossy().to_consensus());
        prop_assert_eq!(Work::of(ours).to_le_bytes(), theirs(ours).to_work().to_le_bytes());
        let hash = BlockHash::from_bytes(bytes);
        prop_assert_eq!(ours.is_met_by(&hash), U256::from_le_bytes(&bytes) <= ours.0);
    }
}

#[test]
fn work_is_subtracted_down_to_nothing() {
    let (one, three) = (Work::of_bits(0x1d00_ffff), Work::of_bits(0x1d00_ffff).times(3));
    assert_eq!(three.minus(one), one.plus(one));
    assert_eq!((three.minus(three), one.minus(three)), (Work::ZERO, Work::ZERO));
}

/// 2,016 blocks of one difficulty are two weeks, whatever the difficulty.
#[test]
fn seconds_of_work() {
    for bits in [0x1d00_ffff, 0x207f_ffff, 0x1702_3774] {
        let rate = Work::of_bits(bits);
        let chain = (0..2016).fold(Work::ZERO, |work, _| work.plus(rate));
        assert_eq!(chain.seconds_above(Work::ZERO, rate, 600), 14 * 24 * 60 * 60);
        assert_eq!(chain.seconds_above(rate, rate, 600), 14 * 24 * 60 * 60 - 600);
        assert_eq!(rate.seconds_above(chain, rate, 600), 0);
        assert_eq!(chain.seconds_above(Work::ZERO, Work::ZERO, 600), u64::MAX);
    }
}
