//! Numbers of variable length.

use bitcoin::VarInt;
use bitcoin::consensus::encode::deserialize_partial;
use varve_types::{Reader, compact_size};

/// Accepts and refuses what `bitcoin` does, and encodes to the same bytes.
pub(super) fn compact_size(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    let ours = compact_size::read(&mut reader, u64::MAX, "a number").ok();
    let theirs = deserialize_partial::<VarInt>(bytes).ok();
    assert_eq!(ours, theirs.map(|(number, _)| number.0));
    let Some(number) = ours else { return };
    let mut again = Vec::new();
    compact_size::write(number, &mut again);
    assert_eq!(again, reader.since(0));
    assert_eq!(again.len(), compact_size::len(number));
    let limit = number.saturating_sub(1);
    let limited = compact_size::read(&mut Reader::new(bytes), limit, "a number").is_ok();
    assert_eq!(limited, number <= limit);
}

pub(super) fn compact_size_seeds() -> Vec<Vec<u8>> {
    let numbers = [0, 0xfc, 0xfd, 0xffff, 0x1_0000, 0xffff_ffff, 0x1_0000_0000, u64::MAX];
    let encode = |number| {
        let mut bytes = Vec::new();
        compact_size::write(number, &mut bytes);
        bytes
    };
    numbers.into_iter().map(encode).collect()
}
