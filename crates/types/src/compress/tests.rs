//! Core's vectors of `compress_tests.cpp`, and round trips.

use proptest::prelude::*;

use super::*;

const COIN: u64 = 100_000_000;

fn compressed(script: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_script(script, &mut out);
    out
}

fn decompressed(bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let mut script = Vec::new();
    let mut reader = Reader::new(bytes);
    read_script(&mut reader, &mut script)?;
    reader.end().map(|()| script)
}

/// A point on the curve: the public key of the genesis block, whose y is odd.
fn uncompressed_key() -> [u8; 65] {
    let block = crate::Network::Mainnet.genesis_block();
    let script = &block[block.len() - 4 - 67..block.len() - 4];
    script[1..66].try_into().unwrap()
}

#[test]
fn amounts_of_core() {
    let cases = [
        (0, 0x0),
        (1, 0x1),
        (COIN / 100, 0x7),
        (COIN, 0x9),
        (50 * COIN, 0x32),
        (21_000_000 * COIN, 0x0140_6f40),
    ];
    for (amount, number) in cases {
        assert_eq!(compress_amount(Amount::from_sat(amount)), number);
        assert_eq!(decompress_amount(number), Some(Amount::from_sat(amount)));
    }
    for number in 0..100_000 {
        let amount = decompress_amount(number).unwrap();
        assert_eq!(compress_amount(amount), number);
    }
    assert_eq!(decompress_amount(u64::MAX), None);
    // Beyond the money supply the number wraps around, and must not panic.
    let _ = compress_amount(Amount::from_sat(u64::MAX));
}

#[test]
fn special_scripts() {
    let key = uncompressed_key();
    let odd = key[64] & 1;
    let p2pkh = [&[0x76, 0xa9, 20][..], &[7; 20], &[0x88, 0xac]].concat();
    let p2sh = [&[0xa9, 20][..], &[7; 20], &[0x87]].concat();
    let short_key = [&[33, 2][..], &[0xff; 32], &[0xac]].concat();
    let long_key = [&[65][..], &key, &[0xac]].concat();
    let cases = [
        (&p2pkh, 0, &[7; 20][..]),
        (&p2sh, 1, &[7; 20]),
        // A compressed key is not checked: this x is beyond the field.
        (&short_key, 2, &[0xff; 32]),
        (&long_key, 4 | odd, &key[1..33]),
    ];
    for (script, kind, payload) in cases {
        let bytes = compressed(script);
        assert_eq!(bytes, [&[kind], payload].concat());
        assert_eq!(decompressed(&bytes).as_ref(), Ok(script));
    }
}

#[test]
fn keys_off_the_curve_stay_raw() {
    let mut key = uncompressed_key();
    key[64] ^= 2;
    let script = [&[65][..], &key, &[0xac]].concat();
    let bytes = compressed(&script);
    assert_eq!(bytes[0], 67 + 6);
    assert_eq!(decompressed(&bytes), Ok(script));
    // Hybrid keys, which begin with 06 or 07, are not compressed either.
    let mut hybrid = uncompressed_key();
    hybrid[0] = 6 | (hybrid[64] & 1);
    assert_eq!(compressed(&[&[65][..], &hybrid, &[0xac]].concat())[0], 67 + 6);
}

#[test]
fn an_x_without_a_point_is_an_error() {
    for kind in [4, 5] {
        let bytes = [&[kind][..], &[0xff; 32]].concat();
        assert_eq!(decompressed(&bytes), Err(DecodeErrorKind::NotAPublicKey.at(0)));
    }
}

#[test]
fn a_length_is_not_believed() {
    let mut bytes = Vec::new();
    varint::write(u64::MAX, &mut bytes);
    bytes.push(0x51);
    let mut script = Vec::new();
    let error = read_script(&mut Reader::new(&bytes), &mut script).unwrap_err();
    assert!(error.is_incomplete());
    assert_eq!(script.capacity(), 0);
}

proptest! {
    #[test]
    fn amounts_round_trip(sat in 0..=Amount::MAX_MONEY.to_sat(), zeros in 0_u32..12) {
        let power = 10_u64.pow(zeros);
        let amount = Amount::from_sat(sat / power * power);
        prop_assert_eq!(decompress_amount(compress_amount(amount)), Some(amount));
    }

    #[test]
    fn outputs_round_trip(
        sat in 0..=Amount::MAX_MONEY.to_sat(),
        script in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..80),
            any::<[u8; 20]>().prop_map(|h| [&[0x76, 0xa9, 20][..], &h, &[0x88, 0xac]].concat()),
            any::<[u8; 20]>().prop_map(|h| [&[0xa9, 20][..], &h, &[0x87]].concat()),
            any::<[u8; 32]>().prop_map(|x| [&[33, 3][..], &x, &[0xac]].concat()),
        ],
    ) {
        let mut bytes = Vec::new();
        write_output(Amount::from_sat(sat), &script, &mut bytes);
        let mut back = vec![0xee];
        let mut reader = Reader::new(&bytes);
        prop_assert_eq!(read_output(&mut reader, &mut back), Ok(Amount::from_sat(sat)));
        prop_assert_eq!(&back[1..], &script[..], "appended after what was there");
        prop_assert!(reader.rest().is_empty());
        for end in 0..bytes.len() {
            let error = read_output(&mut Reader::new(&bytes[..end]), &mut Vec::new()).unwrap_err();
            prop_assert!(error.is_incomplete() && error.offset <= end as u64);
        }
    }

    #[test]
    fn hostile_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let mut script = Vec::new();
        if let Err(error) = read_output(&mut Reader::new(&bytes), &mut script) {
            prop_assert!(error.offset <= bytes.len() as u64);
        }
    }
}
