//! The bytes of undo records: drawn, round trips, hostile.

use proptest::prelude::*;
use varve_types::{DecodeErrorKind, Outpoint};

use super::*;
use crate::entry::Entry;
use crate::entry_list::tests::{any_entry, entry};

fn any_record() -> impl Strategy<Value = UndoRecord> {
    let spent = prop::collection::vec(any_entry(), 0..6);
    let vout = prop_oneof![0_u32..5, Just(u32::MAX), any::<u32>()];
    let tx = (any::<[u8; 32]>(), any::<u32>(), prop::collection::btree_set(vout, 0..4));
    let txs = prop::collection::vec(tx, 0..5);
    let block = (any::<u32>(), any::<u32>(), any::<[u8; 32]>(), any::<[u8; 32]>());
    (spent, txs, block).prop_map(|(spent, list, (sequence, height, block, previous))| {
        let (mut txs, mut created) = (Vec::new(), Vec::new());
        for (txid, spends, vouts) in list {
            let txid = Txid::from_bytes(txid);
            txs.push(UndoTx { txid, spends, creates: u32::try_from(vouts.len()).unwrap() });
            created.extend(vouts.into_iter().map(|vout| Outpoint::new(txid, vout)));
        }
        UndoRecord {
            sequence: Sequence::new(sequence),
            height: Height::new(height),
            block: BlockHash::from_bytes(block),
            previous: BlockHash::from_bytes(previous),
            spent: spent.iter().map(entry).filter(|entry| entry.coin.is_some()).collect(),
            created,
            txs,
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
    let txid = |number| Txid::from_bytes([number; 32]);
    let created = |number, vout| Outpoint::new(txid(number), vout);
    let record = UndoRecord {
        sequence: Sequence::new(3),
        height: Height::new(2),
        block: BlockHash::from_bytes([0xbb; 32]),
        previous: BlockHash::from_bytes([0xaa; 32]),
        spent: EntryList::new(),
        created: vec![created(1, 0), created(1, 1), created(1, 5), created(2, 7)],
        txs: vec![
            UndoTx { txid: txid(1), spends: 0, creates: 3 },
            UndoTx { txid: txid(2), spends: 2, creates: 1 },
            UndoTx { txid: txid(3), spends: 1, creates: 0 },
        ],
    };
    let expected = [
        &[3, 0, 0, 0, 2, 0, 0, 0][..],
        &[0xbb; 32],
        &[0xaa; 32],
        &[0, 3],
        &[1; 32],
        &[0, 3, 0, 0, 3],
        &[2; 32],
        &[2, 1, 7],
        &[3; 32],
        &[1, 0],
    ];
    assert_eq!(encode(&record), expected.concat());
}

/// Two transactions spend three coins, and the block overwrites a fourth.
#[test]
fn a_record_knows_who_spent_a_coin() {
    let txid = |number| Txid::from_bytes([number; 32]);
    let coin = |number| Outpoint::new(txid(number), 0);
    let value = varve_types::Amount::ZERO;
    let held = varve_types::Coin { height: Height::new(1), coinbase: false, value, script: &[] };
    let entries = [10, 11, 12, 13].map(|number| Entry::add(coin(number), Sequence::ZERO, held));
    let record = UndoRecord {
        sequence: Sequence::new(3),
        height: Height::new(2),
        block: BlockHash::ZERO,
        previous: BlockHash::ZERO,
        spent: entries.into_iter().collect(),
        created: Vec::new(),
        txs: vec![
            UndoTx { txid: txid(1), spends: 1, creates: 0 },
            UndoTx { txid: txid(2), spends: 2, creates: 0 },
        ],
    };
    let spenders = [10, 11, 12, 13, 14].map(|number| record.spender(&coin(number)));
    assert_eq!(spenders, [Some(txid(1)), Some(txid(2)), Some(txid(2)), None, None]);
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
        panic!("of transactions")
    };
    assert!(matches!(error.kind, DecodeErrorKind::CountTooLarge { .. }), "{error}");
    // One group of two outputs, the first at u32::MAX: there is no second.
    let mut tail = [&[0, 1][..], &[0; 32], &[0, 2]].concat();
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
