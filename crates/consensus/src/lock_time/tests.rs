//! Lock times on both sides of their limits.

use proptest::prelude::*;
use varve_types::{BlockHash, Format, Outpoint, Txid};

use super::*;
use crate::ancestors::Ancestor;
use crate::contract::draft::TxDraft;

fn locked(lock_time: u32, sequence: u32) -> Vec<u8> {
    let mut draft = TxDraft::spending(&[Outpoint::new(Txid::ZERO, 0)], 1);
    draft.lock_time = lock_time;
    draft.inputs[0].sequence = sequence;
    draft.bytes()
}

#[test]
fn absolute_by_height_and_by_time() {
    let is_final = |lock_time, sequence, height, time| {
        let bytes = locked(lock_time, sequence);
        let tx = Tx::parse(&bytes, Format::Segwit).unwrap();
        is_final(&tx, Height::new(height), time)
    };
    assert!(is_final(0, 0, 0, 0));
    assert!(!is_final(100, 0, 100, u32::MAX));
    assert!(is_final(100, 0, 101, 0));
    assert!(is_final(100, u32::MAX, 100, 0));
    assert!(!is_final(100, u32::MAX - 1, 100, 0));
    assert!(!is_final(THRESHOLD, 0, u32::MAX, THRESHOLD));
    assert!(is_final(THRESHOLD, 0, 0, THRESHOLD + 1));
    assert!(!is_final(THRESHOLD - 1, 0, THRESHOLD - 1, u32::MAX), "a height, not a time");
}

/// Blocks whose times are all 512 s apart: the median of eleven is five blocks back.
fn chain() -> Vec<Ancestor> {
    let time = |at: u32| 1_000_000 + 512 * at;
    (0..400).map(|at| Ancestor { hash: BlockHash::ZERO, time: time(at), bits: 0 }).collect()
}

#[test]
fn relative_by_blocks_and_by_time() {
    let passed = |sequence, funded, height| {
        is_relatively_final(sequence, Height::new(funded), Height::new(height), &chain()).unwrap()
    };
    assert!(passed(0, 100, 100), "nothing to wait for, even in the same block");
    assert!(!passed(1, 100, 100));
    assert!(passed(1, 100, 101));
    assert!(!passed(0xffff, 100, 300));
    assert!(passed(0xffff | RELATIVE_OFF, 100, 100));
    // Bits without a meaning are ignored.
    assert!(passed(1 | 0x1f << 16, 100, 101));
    let time = RELATIVE_TIME;
    assert!(passed(time, 100, 100));
    assert!(!passed(time | 1, 100, 100));
    assert!(passed(time | 1, 100, 101));
    assert!(!passed(time | 50, 100, 149));
    assert!(passed(time | 50, 100, 150));
}

#[test]
fn a_missing_header_is_an_error() {
    let result = is_relatively_final(RELATIVE_TIME, Height::new(1), Height::new(900), &chain());
    assert_eq!(result.unwrap_err().height, Height::new(899));
}

proptest! {
    /// Against the words of BIP68, which has "the last block in which it may not be".
    #[test]
    fn agrees_with_bip68(sequence: u32, funded in 11_u32..390, above in 0_u32..10) {
        let height = funded + above;
        let chain = chain();
        let median = |at: u32| i64::from(chain[at as usize - 5].time);
        let count = i64::from(sequence & 0xffff);
        let min_height = i64::from(funded) + count - 1;
        let min_time = median(funded - 1) + (count << 9) - 1;
        let expected = match (sequence >> 31, (sequence >> 22) & 1) {
            (1, _) => true,
            (_, 0) => min_height < i64::from(height),
            (_, _) => min_time < median(height - 1),
        };
        let found = is_relatively_final(sequence, Height::new(funded), Height::new(height), &chain);
        prop_assert_eq!(found.unwrap(), expected);
    }
}
