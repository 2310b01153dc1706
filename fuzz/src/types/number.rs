//! Numbers of variable length: the two encodings that chains use.

use bitcoin::VarInt;
use bitcoin::consensus::encode::deserialize_partial;
use varve_types::{Reader, compact_size, varint};

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

/// Encodes to the same bytes; what begins with eight bytes also comes back as that number.
pub(super) fn varint(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    let mut again = Vec::new();
    if let Ok(number) = varint::read(&mut reader, "a number") {
        varint::write(number, &mut again);
        assert_eq!(again, reader.since(0));
    }
    let Some(number) = bytes.first_chunk().map(|chunk| u64::from_le_bytes(*chunk)) else { return };
    again.clear();
    varint::write(number, &mut again);
    assert!(again.len() <= varint::MAX_LEN);
    assert_eq!(varint::read(&mut Reader::new(&again), "a number"), Ok(number));
}

/// Numbers on both sides of every change of length, in both encodings.
pub(super) fn seeds() -> Vec<Vec<u8>> {
    let numbers = [0, 0x7f, 0x80, 0xfc, 0xfd, 0xffff, 0x1_0000, 0xffff_ffff, 1 << 32, u64::MAX];
    let mut seeds = Vec::new();
    for write in [compact_size::write, varint::write] {
        for number in numbers {
            let mut bytes = Vec::new();
            write(number, &mut bytes);
            seeds.push(bytes);
        }
    }
    seeds
}
