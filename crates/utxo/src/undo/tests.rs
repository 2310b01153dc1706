//! The bytes of undo records: drawn, round trips, hostile.

use proptest::prelude::*;
use varve_types::{DecodeErrorKind, Outpoint};

use super::*;
use crate::entry_list::tests::{any_entry, entry};

fn any_record() -> impl Strategy<Value = UndoRecord> {
    let spent = prop::collection::vec(any_entry(), 0..6);
    let txid = prop_oneof![Just([1; 32]), Just([2; 32]), any::<[u8; 32]>()];
    let vout = prop_oneof![0_u32..5, Just(u32::MAX), any::<u32>()];
    let created = prop::collection::vec((txid, vout), 0..12);
    let block = (any::<u32>(), any::<u32>(), any::<[u8; 32]>(), any::<[u8; 32]>());
    (spent, created, block).prop_map(|(spent, created, (sequence, height, block, previous))| {
        let created = created.into_iter().map(|(t, v)| Outpoint::new(Txid::from_bytes(t), v));
        UndoRecord {
            sequence: Sequence::new(sequence),
            height: Height::new(height),
            block: BlockHash::from_bytes(block),
            previous: BlockHash::from_bytes(previous),
            spent: spent.iter().map(entry).filter(|entry| entry.coin.is_some()).collect(),
            created: created.collect(),
        }
    })
}

fn encode(record: &UndoRecord) -> Vec<u8> {
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    bytes
}

#[test]
fn bytes_of_a_record() {
    let created = |txid, vout| Outpoint::new(Txid::from_bytes([txid; 32]), vout);
    let record = UndoRecord {
        sequence: Sequence::new(3),
        height: Height::new(2),
        block: BlockHash::from_bytes([0xbb; 32]),
        previous: BlockHash::from_bytes([0xaa; 32]),
        spent: EntryList::new(),
        created: vec![created(1, 0), created(1, 1), created(1, 5), created(2, 0), created(2, 0)],
    };
    let expected = [
        &[3, 0, 0, 0, 2, 0, 0, 0][..],
        &[0xbb; 32],
        &[0xaa; 32],
        &[0, 3],
        &[1; 32],
        &[3, 0, 0, 3],
        &[2; 32],
        &[1, 0],
        &[2; 32],
        &[1, 0],
    ];
    assert_eq!(encode(&record), expected.concat());
}

#[test]
fn counts_and_indices_are_not_believed() {
    let head = [0; 72];
    let decode = |tail: &[u8]| UndoRecord::decode(&[&head[..], tail].concat()).unwrap_err();
    let mut many = Vec::new();
    varint::write(u64::MAX, &mut many);
    let EntryError::Decode(error) = decode(&many) else { panic!("a count of coins") };
    assert!(matches!(error.kind, DecodeErrorKind::CountTooLarge { .. }), "{error}");
    let EntryError::Decode(error) = decode(&[&[0], &many[..]].concat()) else {
        panic!("of groups")
    };
    assert!(matches!(error.kind, DecodeErrorKind::CountTooLarge { .. }), "{error}");
    // One group of two outputs, the first at u32::MAX: there is no second.
    let mut tail = [&[0, 1][..], &[0; 32], &[2]].concat();
    varint::write(u64::from(u32::MAX), &mut tail);
    tail.push(0);
    assert!(matches!(decode(&tail), EntryError::OutOfRange { .. }));
    // A delete where a coin should be.
    let tail = [&[1][..], &[0; 32], &[0, 0], &[0]].concat();
    assert!(matches!(decode(&tail), EntryError::OutOfRange { .. }));
    // Nothing may follow.
    let EntryError::Decode(error) = decode(&[0, 0, 0]) else { panic!("trailing") };
    assert_eq!(error.kind, DecodeErrorKind::TrailingBytes);
}

proptest! {
    #[test]
    fn round_trips(record in any_record(), cut in any::<prop::sample::Index>()) {
        let bytes = encode(&record);
        prop_assert_eq!(UndoRecord::decode(&bytes), Ok(record));
        prop_assert!(UndoRecord::decode(&bytes[..cut.index(bytes.len())]).is_err());
    }

    #[test]
    fn hostile_bytes_do_no_harm(
        record in any_record(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = encode(&record);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = UndoRecord::decode(&bytes);
        let _ = UndoRecord::decode(&bytes[72..]);
    }
}
