//! The bytes of entries: drawn, round trips, hostile.

use proptest::prelude::*;

use super::*;

/// An entry of any kind, scripts of the common forms among them.
pub(crate) fn any_entry() -> impl Strategy<Value = (Outpoint, Sequence, Option<OwnCoin>)> {
    let outpoint = (any::<[u8; 32]>(), prop_oneof![0_u32..4, any::<u32>()])
        .prop_map(|(txid, vout)| Outpoint::new(Txid::from_bytes(txid), vout));
    let script = prop_oneof![
        any::<[u8; 20]>().prop_map(|hash| [&[0x76, 0xa9, 20][..], &hash, &[0x88, 0xac]].concat()),
        any::<[u8; 20]>().prop_map(|hash| [&[0xa9, 20][..], &hash, &[0x87]].concat()),
        any::<[u8; 32]>().prop_map(|key| [&[0x51, 32][..], &key].concat()),
        prop::collection::vec(any::<u8>(), 0..120),
    ];
    let value = (0..=Amount::MAX_MONEY.to_sat()).prop_map(Amount::from_sat);
    let coin = (any::<u32>(), any::<bool>(), value, script);
    (outpoint, any::<u32>().prop_map(Sequence::new), prop::option::weighted(0.8, coin))
}

pub(crate) type OwnCoin = (u32, bool, Amount, Vec<u8>);

pub(crate) fn entry((outpoint, birth, coin): &(Outpoint, Sequence, Option<OwnCoin>)) -> Entry<'_> {
    let coin = coin.as_ref().map(|(height, coinbase, value, script)| Coin {
        height: Height::new(*height),
        coinbase: *coinbase,
        value: *value,
        script,
    });
    Entry { outpoint: *outpoint, birth: *birth, coin }
}

fn decode(bytes: &[u8]) -> Result<(EntryList, usize), EntryError> {
    let (mut list, mut reader) = (EntryList::new(), Reader::new(bytes));
    list.read(&mut reader)?;
    Ok((list, reader.offset()))
}

#[test]
fn bytes_of_an_entry() {
    let outpoint = Outpoint::new(Txid::from_bytes([7; 32]), 1);
    let mut bytes = Vec::new();
    write_entry(&Entry::delete(outpoint, Sequence::new(5)), &mut bytes);
    assert_eq!(bytes, [&[7; 32][..], &[2, 5]].concat());
    let script = [&[0x76, 0xa9, 20][..], &[9; 20], &[0x88, 0xac]].concat();
    let (height, value) = (Height::new(10), Amount::COIN);
    let coin = Coin { height, coinbase: true, value, script: &script };
    bytes.clear();
    write_entry(&Entry::add(outpoint, Sequence::new(12), coin), &mut bytes);
    // vout 1 and add; height 10 and coinbase; birth two above the height; one coin; P2PKH.
    assert_eq!(bytes, [&[7; 32][..], &[3, 21, 4, 9, 0], &[9; 20]].concat());
    let distances = [0, -1, 1, -2, 2, i64::from(u32::MAX), -i64::from(u32::MAX)];
    assert!(distances.iter().all(|distance| unzigzag(zigzag(*distance)) == *distance));
    assert_eq!(distances[..5].iter().map(|d| zigzag(*d)).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}

#[test]
fn numbers_out_of_range_are_named() {
    let with = |numbers: &[u64]| {
        let mut bytes = vec![0; 32];
        numbers.iter().for_each(|number| varint::write(*number, &mut bytes));
        bytes.extend([0, 6]);
        decode(&bytes).unwrap_err()
    };
    let out_of_range = |what, offset| EntryError::OutOfRange { what, offset };
    assert_eq!(with(&[1 << 33]), out_of_range("an output's index", 32));
    assert_eq!(with(&[0, 1 << 32]), out_of_range("a birth", 33));
    assert_eq!(with(&[1, 1 << 33]), out_of_range("a height", 33));
    assert_eq!(with(&[1, 0, 1]), out_of_range("a birth", 34), "before the first step");
    assert_eq!(with(&[1, 0, u64::MAX]), out_of_range("a birth", 34));
}

#[test]
fn a_count_is_not_believed() {
    let bytes = [0; 100];
    for count in [3, 1 << 20, u64::MAX] {
        let error = EntryList::new().read_many(count, &mut Reader::new(&bytes)).unwrap_err();
        let EntryError::Decode(error) = error else { panic!("{error}") };
        assert_eq!(error.kind, DecodeErrorKind::CountTooLarge { what: "entries", count });
    }
}

proptest! {
    #[test]
    fn round_trips(entries in prop::collection::vec(any_entry(), 0..8)) {
        let list: EntryList = entries.iter().map(entry).collect();
        prop_assert!(list.iter().eq(entries.iter().map(entry)));
        let mut bytes = Vec::new();
        list.iter().for_each(|entry| write_entry(&entry, &mut bytes));
        let (mut decoded, mut reader) = (EntryList::new(), Reader::new(&bytes));
        decoded.read_many(entries.len() as u64, &mut reader).unwrap();
        reader.end().unwrap();
        prop_assert_eq!(decoded, list);
    }

    #[test]
    fn a_cut_is_an_error(one in any_entry(), cut in any::<prop::sample::Index>()) {
        let mut bytes = Vec::new();
        write_entry(&entry(&one), &mut bytes);
        prop_assert!(decode(&bytes[..cut.index(bytes.len())]).is_err());
    }

    #[test]
    fn hostile_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        if let Ok((list, end)) = decode(&bytes) {
            prop_assert!(end <= bytes.len() && list.len() == 1);
        }
    }
}
