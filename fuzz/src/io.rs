//! The decoders of `varve-io`: headers, frames, pages and envelopes, as a disk gives them back.
//!
//! Each target claims three things of its bytes:
//!
//! 1. As they are, they are refused, or decode to something that encodes to the same bytes.
//! 2. Taken as the payload, they encode and decode to themselves.
//! 3. With one bit of that flipped, they are refused: a damaged bit is never a wrong answer.

use crate::Target;
use varve_io::{
    Envelope, FileId, FrameHeader, GlobalOffset, Kind, Layout, PAGE_LEN, PAGE_PAYLOAD_LEN,
    PageNumber, SegmentHeader, StoreId, decode_frame, seal_page, verify_page,
};

pub(crate) const TARGETS: &[Target] = &[
    Target { name: "frame", run: frame, seeds: |_| payloads().map(encode_frame).to_vec() },
    Target { name: "segment_header", run: segment_header, seeds: |_| segment_headers() },
    Target { name: "page", run: page, seeds: |_| payloads().map(encode_page).to_vec() },
    Target { name: "envelope", run: envelope, seeds: |_| payloads().map(encode_envelope).to_vec() },
];

const STORE: StoreId = StoreId(*b"the fuzzed store");
const PLACE: GlobalOffset = GlobalOffset::new(0x1_0000_0040);
const KIND: Kind = Kind(*b"FUZZED\0\0");
const FILE: FileId = FileId(*b"one fuzzed file.");
const NUMBER: PageNumber = PageNumber(42);

fn payloads() -> [&'static [u8]; 3] {
    [&[], b"a payload", &[0x55; 300]]
}

fn frame(bytes: &[u8]) {
    if let Ok(payload) = decode_frame(bytes, STORE, PLACE) {
        assert!(bytes.starts_with(&encode_frame(payload)));
    }
    let whole = encode_frame(bytes);
    assert_eq!(decode_frame(&whole, STORE, PLACE), Ok(bytes));
    assert!(decode_frame(&whole, STORE, PLACE.plus(1)).is_err(), "it belongs elsewhere");
    let damaged = flip_a_bit(bytes, whole);
    assert!(decode_frame(&damaged, STORE, PLACE).is_err(), "a damaged bit");
}

fn encode_frame(payload: &[u8]) -> Vec<u8> {
    [FrameHeader::of(payload).encode(STORE, PLACE).as_slice(), payload].concat()
}

fn segment_header(bytes: &[u8]) {
    let Ok(header) = SegmentHeader::decode(bytes) else { return };
    let again = header.encode();
    assert!(bytes.starts_with(&again));
    let damaged = flip_a_bit(bytes, again.to_vec());
    assert!(SegmentHeader::decode(&damaged).is_err(), "a damaged bit");
}

fn segment_headers() -> Vec<Vec<u8>> {
    let header = |layout, number| {
        let header = SegmentHeader { layout, kind: KIND, store: STORE, number, start: PLACE };
        header.encode().to_vec()
    };
    vec![header(Layout::Frames, 0), header(Layout::Plain, u64::MAX)]
}

fn page(bytes: &[u8]) {
    if let Ok(payload) = verify_page(bytes, FILE, NUMBER) {
        assert!(bytes.starts_with(&encode_page(payload)));
    }
    let payload = bytes.get(..PAGE_PAYLOAD_LEN).unwrap_or(bytes);
    let whole = encode_page(payload);
    let read = verify_page(&whole, FILE, NUMBER).expect("sealed just now");
    assert_eq!((read.len(), read.starts_with(payload)), (PAGE_PAYLOAD_LEN, true));
    let elsewhere = PageNumber(NUMBER.0 + 1);
    assert!(verify_page(&whole, FILE, elsewhere).is_err(), "it belongs elsewhere");
    let damaged = flip_a_bit(bytes, whole);
    assert!(verify_page(&damaged, FILE, NUMBER).is_err(), "a damaged bit");
}

fn encode_page(payload: &[u8]) -> Vec<u8> {
    let mut page = [0; PAGE_LEN];
    page.iter_mut().zip(payload).for_each(|(to, from)| *to = *from);
    seal_page(&mut page, FILE, NUMBER);
    page.to_vec()
}

fn envelope(bytes: &[u8]) {
    if let Ok(content) = Envelope::decode(bytes, KIND) {
        assert_eq!(content.encode(KIND), bytes);
    }
    let whole = encode_envelope(bytes);
    let read = Envelope::decode(&whole, KIND).expect("encoded just now");
    assert_eq!(read.payload, bytes);
    let damaged = flip_a_bit(bytes, whole);
    assert!(Envelope::decode(&damaged, KIND).is_err(), "a damaged bit");
}

fn encode_envelope(payload: &[u8]) -> Vec<u8> {
    Envelope { version: 7, payload }.encode(KIND)
}

/// Flips one bit of the first 8 KiB of `whole`, where all headers are; the first two
/// bytes of the input say which.
fn flip_a_bit(bytes: &[u8], mut whole: Vec<u8>) -> Vec<u8> {
    let place = bytes.first_chunk().map_or(0, |chunk| u16::from_le_bytes(*chunk));
    let length = whole.len();
    if let Some(byte) = whole.get_mut(usize::from(place / 8) % length) {
        *byte ^= 1 << (place % 8);
    }
    whole
}
