//! The decoders of `varve-io`: headers, frames, pages and envelopes, as read from a disk.
//!
//! Each target of something with a checksum claims three things of its bytes:
//!
//! 1. As they are, they are refused, or decode to something that encodes to the same bytes.
//! 2. Taken as the payload, they encode and decode to themselves.
//! 3. With one bit of that flipped, they are refused: a damaged bit is never a wrong answer.

use crate::Target;
use varve_io::{
    Envelope, FileId, FrameHeader, GlobalOffset, Holder, Kind, Layout, LogCheckpoint, PAGE_LEN,
    PAGE_PAYLOAD_LEN, PageNumber, SegmentHeader, StoreId, decode_frame, seal_page,
    verify_header_page, verify_page,
};

pub(crate) const TARGETS: &[Target] = &[
    Target { name: "frame", run: frame, seeds: |_| payloads().map(encode_frame).to_vec() },
    Target { name: "segment_header", run: segment_header, seeds: |_| segment_headers() },
    Target { name: "page", run: page, seeds: |_| payloads().map(encode_page).to_vec() },
    Target { name: "page_file_header", run: page_file_header, seeds: |_| vec![header_page()] },
    Target { name: "envelope", run: envelope, seeds: |_| payloads().map(encode_envelope).to_vec() },
    Target { name: "log_checkpoint", run: log_checkpoint, seeds: |_| vec![vec![7; 12]] },
    Target { name: "lock_file", run: lock_file, seeds: |_| vec![lock_text().into_bytes()] },
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

/// What is taken for the header of a page file is its page 0, and no bit of it is damaged.
fn page_file_header(bytes: &[u8]) {
    if verify_header_page(bytes, KIND, FILE).is_ok() {
        assert!(verify_page(bytes, FILE, PageNumber(0)).is_ok());
        let page = bytes.get(..PAGE_LEN).unwrap_or_default().to_vec();
        let damaged = flip_a_bit(bytes, page);
        assert!(verify_header_page(&damaged, KIND, FILE).is_err(), "a damaged bit");
    }
}

/// Magic, version 1, zero, kind and file, as `varve-io` documents it.
fn header_page() -> Vec<u8> {
    let fields: [&[u8]; 5] = [b"VARVEPAG", &[1, 0, 0, 0], &[0; 4], &KIND.0, &FILE.0];
    let mut page = [0; PAGE_LEN];
    page.iter_mut().zip(fields.concat()).for_each(|(to, from)| *to = from);
    seal_page(&mut page, FILE, PageNumber(0));
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

/// Has no checksum: all bytes decode, and encode to themselves.
fn log_checkpoint(bytes: &[u8]) {
    if let Some(bytes) = bytes.first_chunk() {
        assert_eq!(LogCheckpoint::decode(*bytes).encode(), *bytes);
    }
}

/// A text that anyone may have written; what decodes encodes to the same.
fn lock_file(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Some(holder) = Holder::decode(text) {
        assert_eq!(Holder::decode(&holder.encode()), Some(holder));
    }
}

fn lock_text() -> String {
    Holder { pid: 42, command: "varve sync".to_owned() }.encode()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// If the examples were refused, the targets would test nothing.
    #[test]
    fn the_examples_decode() {
        assert!(payloads().map(encode_frame).iter().all(|b| decode_frame(b, STORE, PLACE).is_ok()));
        assert!(segment_headers().iter().all(|bytes| SegmentHeader::decode(bytes).is_ok()));
        assert!(payloads().map(encode_page).iter().all(|b| verify_page(b, FILE, NUMBER).is_ok()));
        assert!(verify_header_page(&header_page(), KIND, FILE).is_ok());
        assert!(payloads().map(encode_envelope).iter().all(|b| Envelope::decode(b, KIND).is_ok()));
        assert!(Holder::decode(&lock_text()).is_some());
    }
}
