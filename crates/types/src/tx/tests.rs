//! Formats, and Core's rules of what decodes.

use proptest::prelude::*;

use super::*;
use crate::error::DecodeErrorKind;

/// One input and one output around `middle`, the part between them and the lock time.
fn tx(marker: &[u8], spent: &[u8], witness: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0];
    bytes.extend_from_slice(marker);
    bytes.push(1);
    bytes.extend_from_slice(&[7; 36]);
    bytes.extend_from_slice(&[1, 0x51, 0xfe, 0xff, 0xff, 0xff]);
    bytes.extend_from_slice(spent);
    bytes.extend_from_slice(&[1, 8, 0, 0, 0, 0, 0, 0, 0, 2, 0x6a, 0x51]);
    bytes.extend_from_slice(witness);
    bytes.extend_from_slice(&[9, 0, 0, 0]);
    bytes
}

fn kind(bytes: &[u8], format: Format) -> DecodeErrorKind {
    Tx::parse(bytes, format).unwrap_err().kind
}

#[test]
fn the_three_formats_of_one_transaction() {
    let legacy = tx(&[], &[], &[]);
    let segwit = tx(&[0, 1], &[], &[2, 0, 3, 0xaa, 0xbb, 0xcc]);
    let extended = tx(&EXTENDED_MARKER, &[5, 0, 0, 0, 0, 0, 0, 0, 1, 0x52], &[]);
    let parsed = [
        Tx::parse(&legacy, Format::Legacy).unwrap(),
        Tx::parse(&legacy, Format::Segwit).unwrap(),
        Tx::parse(&segwit, Format::Segwit).unwrap(),
        Tx::parse(&extended, Format::Extended).unwrap(),
    ];
    for tx in parsed {
        assert_eq!(tx.version(), 2);
        assert_eq!(tx.lock_time(), 9);
        assert_eq!(tx.txid().to_bytes(), sha256d(&legacy));
        assert_eq!(tx.to_legacy(), legacy);
        let input = tx.inputs().next().unwrap();
        assert_eq!(input.outpoint.vout, 0x0707_0707);
        assert_eq!((input.script, input.sequence), (&[0x51][..], 0xffff_fffe));
        let output = tx.outputs().next().unwrap();
        assert_eq!((output.value.to_sat(), output.script), (8, &[0x6a, 0x51][..]));
        assert_eq!(tx.witnesses().len(), 1);
        assert!(!tx.is_coinbase());
    }
    let [plain, same, segwit_tx, extended_tx] = parsed;
    assert_eq!(plain, same);
    assert_eq!([plain.base_len(), segwit_tx.base_len()], [legacy.len(); 2]);
    assert_eq!(segwit_tx.wtxid().to_bytes(), sha256d(&segwit));
    let items: Vec<_> = segwit_tx.witnesses().next().unwrap().items().collect();
    assert_eq!(items, [&[][..], &[0xaa, 0xbb, 0xcc]]);
    let spent = extended_tx.inputs().next().unwrap().spent.unwrap();
    assert_eq!((spent.value.to_sat(), spent.script), (5, &[0x52][..]));
    assert_eq!(extended_tx.wtxid().to_bytes(), sha256d(&legacy));
    assert!(Tx::is_extended(&extended));
    assert!(!Tx::is_extended(&segwit));
}

#[test]
fn a_real_transaction_in_extended_format() {
    // Of BSV block 620940, spending an output of 65,093,084 satoshi.
    let bytes: Vec<u8> = hex_conservative::FromHex::from_hex(concat!(
        "010000000000000000ef0120fa0d2c5974cfe6e3aec71f7f6539cfa1c1e474082d2cdb41fb830f6267b7d7",
        "000000006b4830450221008788b545ebd6ebcb15f938045b71c1fa7efafd55d1f4e64e96602a04f3214cda",
        "0220717ddadfa7d1dc6a22ccb077350aef7a2073ee58fe780d86b77a31c24c664a21412103ef28c47337b0",
        "5ec3f14b63d904db7ae023e897389dbdbf531221e13fd5e5b105ffffffffdc3de103000000001976a91437",
        "fb14a40d021abbb1763497f963a130286d1ad188ac017239e103000000001976a914962eba38504bcfb140",
        "ff0246afa795658812b42788ac00000000",
    ))
    .unwrap();
    assert!(Tx::is_extended(&bytes));
    let tx = Tx::parse(&bytes, Format::Extended).unwrap();
    let txid = "d43ad4d4b46632b311b844117a5a9e9598afd1ee13e95d98106bf2adeae0bad7";
    assert_eq!(tx.txid().to_string(), txid);
    let spent = tx.inputs().next().unwrap().spent.unwrap();
    assert_eq!((spent.value.to_sat(), spent.script.len()), (65_093_084, 25));
    assert_eq!(tx.to_legacy().len(), 192);

    let mut again = tx.version().to_le_bytes().to_vec();
    again.extend_from_slice(&EXTENDED_MARKER);
    again.push(1);
    for input in tx.inputs() {
        input.write(&mut again);
        input.spent.unwrap().write(&mut again);
    }
    again.push(1);
    tx.outputs().for_each(|output| output.write(&mut again));
    again.extend_from_slice(&tx.lock_time().to_le_bytes());
    assert_eq!(again, bytes);
}

#[test]
fn core_rules_of_the_witness() {
    use DecodeErrorKind::{SuperfluousWitness, UnknownFlag};
    assert_eq!(kind(&tx(&[0, 1], &[], &[0]), Format::Segwit), SuperfluousWitness);
    assert_eq!(kind(&tx(&[0, 2], &[], &[1, 0]), Format::Segwit), UnknownFlag { flag: 2 });
    assert_eq!(kind(&tx(&[0, 3], &[], &[1, 0]), Format::Segwit), UnknownFlag { flag: 3 });
    // A stack with one empty item is a witness.
    assert!(Tx::parse(&tx(&[0, 1], &[], &[1, 0]), Format::Segwit).unwrap().has_witness());
    // No inputs at all, and still the flag: nothing can have a witness.
    let none = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    assert_eq!(kind(&none, Format::Segwit), SuperfluousWitness);
    assert!(bitcoin::consensus::deserialize::<bitcoin::Transaction>(&none).is_ok());
    // Without segwit the marker is a count of no inputs: one output of 7 script bytes follows,
    // and the transaction ends early.
    let error = Tx::parse(&tx(&[0, 1], &[], &[1, 0]), Format::Legacy).unwrap_err();
    assert_eq!(error.offset, 4 + 1 + 1 + 8 + 1 + 7 + 4);
}

#[test]
fn neither_inputs_nor_outputs() {
    let empty = [1, 0, 0, 0, 0, 0, 5, 0, 0, 0];
    for format in [Format::Segwit, Format::Legacy] {
        let tx = Tx::parse(&empty, format).unwrap();
        assert_eq!((tx.inputs().len(), tx.outputs().len(), tx.lock_time()), (0, 0, 5));
        assert_eq!(tx.to_legacy(), empty);
        assert_eq!(tx.txid().to_bytes(), sha256d(&empty));
    }
}

#[test]
fn a_count_is_not_believed() {
    // 2^32 inputs, 2^25 inputs, 2^62 outputs: nothing is allocated and the error names the count.
    let many = [1, 0, 0, 0, 0xff, 0, 0, 0, 0, 1, 0, 0, 0, 0];
    let count = 1 << 32;
    let limit = compact_size::MAX_SIZE;
    let too_large = DecodeErrorKind::CompactSizeTooLarge { size: count, limit };
    assert_eq!(Tx::parse(&many, Format::Segwit), Err(too_large.at(4)));
    let too_many = DecodeErrorKind::CountTooLarge { what: "inputs", count };
    assert_eq!(Tx::parse(&many, Format::Legacy), Err(too_many.at(4)));
    assert_eq!(kind(&tx(&[0; 6], &[], &[]), Format::Extended), DecodeErrorKind::NotExtended);
}

#[test]
fn trailing_bytes_are_an_error_only_of_the_whole() {
    let mut bytes = tx(&[], &[], &[]);
    let length = bytes.len();
    bytes.push(0);
    let trailing = DecodeErrorKind::TrailingBytes;
    assert_eq!(Tx::parse(&bytes, Format::Segwit), Err(trailing.at(length)));
    assert_eq!(Tx::parse_first(&bytes, Format::Segwit).unwrap().bytes().len(), length);
}

const FORMATS: [Format; 3] = [Format::Legacy, Format::Segwit, Format::Extended];

/// Bytes that are often nearly a transaction.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let witness = prop_oneof![Just(vec![]), Just(vec![1, 1, 5]), Just(vec![0])];
    let marker = prop_oneof![Just(vec![]), Just(vec![0, 1]), Just(EXTENDED_MARKER.to_vec())];
    let spent = prop_oneof![Just(vec![]), Just(vec![0; 9])];
    let noise = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3);
    (marker, spent, witness, noise).prop_map(|(marker, spent, witness, noise)| {
        let mut bytes = tx(&marker, &spent, &witness);
        for (at, byte) in noise {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes
    })
}

proptest! {
    #[test]
    fn hostile_bytes_never_panic(
        bytes in prop_oneof![prop::collection::vec(any::<u8>(), 0..200), hostile()],
    ) {
        for format in FORMATS {
            match Tx::parse_first(&bytes, format) {
                Ok(tx) => {
                    tx.inputs().for_each(drop);
                    tx.outputs().for_each(drop);
                    tx.witnesses().for_each(|witness| witness.items().for_each(drop));
                    prop_assert_eq!(tx.txid().to_bytes(), sha256d(&tx.to_legacy()));
                }
                Err(error) => prop_assert!(error.offset <= bytes.len() as u64),
            }
        }
    }

    #[test]
    fn agrees_with_the_bitcoin_crate(bytes in hostile()) {
        let theirs = bitcoin::consensus::encode::deserialize::<bitcoin::Transaction>(&bytes);
        match (Tx::parse(&bytes, Format::Segwit), theirs) {
            (Ok(ours), Ok(theirs)) => {
                prop_assert_eq!(ours.txid().to_string(), theirs.compute_txid().to_string());
                prop_assert_eq!(ours.wtxid().to_string(), theirs.compute_wtxid().to_string());
            }
            // That crate reads a flag of 0 as an unknown one, where Core reads no outputs.
            (Ok(ours), Err(_)) => prop_assert_eq!(ours.inputs().len(), 0),
            // And it accepts a flag of 1 without inputs, where Core requires a witness.
            (Err(error), Ok(theirs)) => {
                prop_assert!(theirs.input.is_empty(), "{theirs:?}");
                prop_assert_eq!(error.kind, DecodeErrorKind::SuperfluousWitness);
            }
            (Err(_), Err(_)) => {}
        }
    }

    #[test]
    fn truncation_is_an_error(bytes in hostile()) {
        for format in FORMATS {
            let whole = Tx::parse_first(&bytes, format);
            for end in 0..=bytes.len() {
                match Tx::parse_first(&bytes[..end], format) {
                    Err(error) if error.is_incomplete() => prop_assert!(error.offset <= end as u64),
                    cut => {
                        prop_assert_eq!(cut, whole);
                        break;
                    }
                }
            }
        }
    }
}
