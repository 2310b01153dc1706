//! Block files.

use crate::examples::Examples;
use varve_types::blk::{End, Record, Records, XorKey, write_record};

/// Bitcoin's mainnet.
const MAGIC: [u8; 4] = [0xf9, 0xbe, 0xb4, 0xd9];

/// The records are those that were written, and end where they say; the key undoes itself.
pub(super) fn records(bytes: &[u8]) {
    let mut records = Records::new(bytes, MAGIC);
    let mut again = Vec::new();
    for Record { offset, block } in records.by_ref() {
        write_record(MAGIC, block, &mut again);
        assert_eq!(offset + block.len(), again.len());
    }
    assert!(bytes.starts_with(&again));
    let rest = bytes.get(again.len()..).unwrap_or_default();
    let begins_with_magic = rest.iter().zip(MAGIC).all(|(byte, magic)| *byte == magic);
    let offset = again.len();
    let expected = match rest {
        [] => End::Clean,
        _ if begins_with_magic => End::Incomplete { offset },
        _ => End::NoMagic { offset },
    };
    assert_eq!(records.end(), expected);
    xor(bytes);
}

/// In one piece or in two, and back.
fn xor(bytes: &[u8]) {
    let Some((key, bytes)) = bytes.split_first_chunk() else { return };
    let key = XorKey::new(*key);
    let mut whole = bytes.to_vec();
    key.apply(3, &mut whole);
    let mut pieces = bytes.to_vec();
    let (first, second) = pieces.split_at_mut(bytes.len() / 3);
    key.apply(3, first);
    key.apply(3 + first.len() as u64, second);
    assert_eq!(whole, pieces);
    key.apply(3, &mut whole);
    assert_eq!(whole, bytes);
}

/// The example blocks in one file, as a node leaves it: with zeros, or cut off.
pub(super) fn seeds(examples: &Examples) -> Vec<Vec<u8>> {
    let mut file = Vec::new();
    for block in examples.blocks.iter().take(3) {
        write_record(MAGIC, block, &mut file);
    }
    let cut = file.get(..file.len() - 1).unwrap_or_default().to_vec();
    let zeros = [file.as_slice(), &[0; 16]].concat();
    vec![file, cut, zeros]
}
