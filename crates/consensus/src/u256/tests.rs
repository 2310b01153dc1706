//! Against 128-bit arithmetic of the language, and against its own inverse operations.

use proptest::prelude::*;

use super::*;

fn wide(low: u128, high: u128) -> U256 {
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(&low.to_le_bytes());
    bytes[16..].copy_from_slice(&high.to_le_bytes());
    U256::from_le_bytes(&bytes)
}

#[test]
fn division_by_zero_and_the_ends() {
    let max = U256::ZERO.not();
    assert_eq!(max.checked_div(U256::ZERO), None);
    assert_eq!(U256::ZERO.checked_div(U256::ZERO), None);
    assert_eq!(U256::ZERO.checked_div(U256::ONE), Some(U256::ZERO));
    assert_eq!(max.checked_div(U256::ONE), Some(max));
    assert_eq!(max.wrapping_add(U256::ONE), U256::ZERO);
    assert_eq!(max.bits(), 256);
    assert_eq!(U256::ZERO.bits(), 0);
}

proptest! {
    #[test]
    fn small_numbers_agree_with_u128(a: u128, b: u128, factor: u32, shift in 0_u32..128) {
        let (x, y) = (wide(a, 0), wide(b, 0));
        let (sum, carry) = a.overflowing_add(b);
        prop_assert_eq!(x.wrapping_add(y), wide(sum, u128::from(carry)));
        prop_assert_eq!(x.cmp(&y), a.cmp(&b));
        prop_assert_eq!(x.bits(), 128 - a.leading_zeros());
        prop_assert_eq!(x.shr(shift), wide(a >> shift, 0));
        prop_assert_eq!(x.shl(shift), wide(a << shift, a.checked_shr(128 - shift).unwrap_or(0)));
        prop_assert_eq!(x.checked_div(y), a.checked_div(b).map(|quotient| wide(quotient, 0)));
        if let Some(product) = a.checked_mul(u128::from(factor)) {
            prop_assert_eq!(x.wrapping_mul(factor), wide(product, 0));
        }
    }

    #[test]
    fn operations_undo_each_other(
        a: [u8; 32], b: [u8; 32], factor in 1_u32.., shift in 0_u32..256,
    ) {
        let (x, y) = (U256::from_le_bytes(&a), U256::from_le_bytes(&b));
        prop_assert_eq!(x.to_le_bytes(), a);
        prop_assert_eq!(x.wrapping_add(y).wrapping_sub(y), x);
        prop_assert_eq!(x.shr(shift).shl(shift).shr(shift), x.shr(shift));
        let small = x.shr(32);
        let product = small.wrapping_mul(factor);
        prop_assert_eq!(product.checked_div(U256::from_u64(u64::from(factor))), Some(small));
        // A quotient is the largest number whose product does not exceed the dividend.
        let divisor = U256::from_u64(u64::from(factor));
        let quotient = x.checked_div(divisor).unwrap();
        prop_assert!(quotient.wrapping_mul(factor) <= x);
        prop_assert!(x.wrapping_sub(quotient.wrapping_mul(factor)) < divisor);
    }
}
