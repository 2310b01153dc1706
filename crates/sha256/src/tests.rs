//! Every backend against `bitcoin_hashes` and against published vectors.

use bitcoin_hashes::{Hash as _, sha256, sha256d};
use proptest::prelude::*;

use crate::{Backend, Digest, Message, digest, double};

fn expected(message: &[u8]) -> Digest {
    sha256d::Hash::hash(message).to_byte_array()
}

/// Bytes that differ from place to place, so that a block read twice or skipped shows.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| u8::try_from((at * 31 + at / 251) % 256).unwrap()).collect()
}

fn hex(text: &str) -> Digest {
    let bytes: Vec<u8> = (0..text.len() / 2)
        .map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
        .collect();
    bytes.try_into().unwrap()
}

#[test]
fn published_vectors() {
    // FIPS 180-2, appendix B, and the hash of nothing.
    let cases: [(&[u8], &str); 4] = [
        (b"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        (b"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
        ),
        (&[b'a'; 1_000_000], "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
    ];
    for (message, hash) in cases {
        assert_eq!(digest(message), hex(hash));
        for backend in Backend::available() {
            let mut out = Vec::new();
            backend.double_many([Message::from(message)], &mut out);
            assert_eq!(out, [digest(&hex(hash))], "{backend:?}");
        }
    }
    // The header of the genesis block.
    let double_of_hello = "9595c9df90075148eb06860365df33584b75bff782a510c6cd4883a419833d50";
    assert_eq!(double(b"hello"), hex(double_of_hello));
}

#[test]
fn every_length_around_the_block_boundaries() {
    for backend in Backend::available() {
        let messages: Vec<_> = (0..300).chain(1900..2200).chain(4000..4200).map(pattern).collect();
        let mut out = Vec::new();
        backend.double_many(messages.iter().map(|bytes| bytes.as_slice().into()), &mut out);
        assert_eq!(out.len(), messages.len());
        for (message, hash) in messages.iter().zip(&out) {
            assert_eq!(*hash, expected(message), "{backend:?}, {} bytes", message.len());
        }
    }
}

#[test]
fn appends_behind_what_is_there() {
    for backend in Backend::available() {
        let mut out = vec![[7; 32]];
        backend.double_many([Message::from(&b"x"[..])], &mut out);
        backend.double_many([], &mut out);
        assert_eq!(out, [[7; 32], expected(b"x")]);
    }
}

#[test]
fn pairs_of_every_count() {
    for backend in Backend::available() {
        for count in 0..40_u8 {
            let before: Vec<Digest> = (0..count).map(|at| [at; 32]).collect();
            let mut hashes = before.clone();
            backend.double_pairs(&mut hashes);
            for (pair, hash) in before.chunks_exact(2).zip(&hashes) {
                assert_eq!(*hash, expected(pair.as_flattened()), "{backend:?}, {count} hashes");
            }
            if count % 2 == 1 {
                assert_eq!(hashes.last(), before.last(), "the odd hash stays");
            }
        }
    }
}

#[test]
fn the_best_backend_is_available() {
    assert!(Backend::available().contains(&Backend::best()));
    assert!(Backend::available().contains(&Backend::Portable));
}

proptest! {
    #[test]
    fn any_messages_in_any_pieces(
        messages in prop::collection::vec(
            [0_usize..300, 0..300, 0..3000].prop_map(|lengths| lengths.map(pattern)), 0..20),
    ) {
        let whole: Vec<_> = messages.iter().map(|pieces| expected(&pieces.concat())).collect();
        for backend in Backend::available() {
            let mut out = Vec::new();
            let pieces = messages.iter().map(|[a, b, c]| Message::new(a, b, c));
            backend.double_many(pieces, &mut out);
            prop_assert_eq!(&out, &whole, "{:?}", backend);
        }
    }

    #[test]
    fn single_messages(message in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert_eq!(digest(&message), sha256::Hash::hash(&message).to_byte_array());
        prop_assert_eq!(double(message.as_slice()), expected(&message));
    }
}
