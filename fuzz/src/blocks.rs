//! The decoders of `varve-blocks`: what the checksums protect in index, tables, packed segments and
//! manifest.

use std::ops::Range;

use varve_blocks::{
    BlockRow, Manifest, PackedHeader, TxOffsets, TxPosition, encode_tx_offsets, tx_offsets_len,
    unpack_chunk,
};
use varve_io::{GlobalOffset, LogCheckpoint, StoreId};
use varve_types::BlockHash;

use crate::Target;

pub(crate) const TARGETS: &[Target] = &[
    Target { name: "block_row", run: block_row, seeds: |_| vec![row().encode().to_vec()] },
    Target { name: "tx_offsets", run: tx_offsets, seeds: |_| tables() },
    Target { name: "packed_header", run: packed_header, seeds: |_| vec![header()] },
    Target { name: "packed_chunk", run: packed_chunk, seeds: |_| chunks() },
    Target { name: "block_manifest", run: manifest, seeds: |_| vec![manifests().encode()] },
];

const STORE: StoreId = StoreId(*b"the fuzzed store");

fn range() -> Range<GlobalOffset> {
    GlobalOffset::new(5_000)..GlobalOffset::new(1 << 33)
}

fn block_row(bytes: &[u8]) {
    let Some(bytes) = bytes.first_chunk() else { return };
    let Ok(row) = BlockRow::decode(bytes) else { return };
    assert_eq!(row.encode(), *bytes);
}

fn row() -> BlockRow {
    BlockRow {
        hash: BlockHash::from_bytes([7; 32]),
        header: [8; 80],
        position: range().start,
        length: 1_000_000,
        offsets_at: range().end,
        txs: 3_000,
    }
}

/// The first eight bytes say of which block the rest is the table. Every answer lies inside that
/// block; and the starts that a table gives, when all are there and in order, make the same
/// table, bits of padding aside.
fn tx_offsets(bytes: &[u8]) {
    let Some((head, table)) = bytes.split_first_chunk::<8>() else { return };
    let [a, _, c, d, ..] = head.map(u64::from);
    let (txs, length) = (u32::from(head[0]) << 4 | u32::from(head[1]), a << 20 | c << 8 | d);
    let Some(offsets) = TxOffsets::new(table, txs, length) else { return };
    let ranges = (0..txs).map(|position| offsets.range(TxPosition::new(position)));
    let ranges: Vec<_> = ranges.collect();
    assert!(ranges.iter().flatten().all(|range| range.start < range.end && range.end <= length));
    let starts: Option<Vec<u64>> =
        ranges.into_iter().map(|range| range.map(|range| range.start)).collect();
    if let Some(again) = starts.and_then(|starts| encode_tx_offsets(&starts, length)) {
        assert_eq!(Some(again.len()), tx_offsets_len(txs, length));
        let again = TxOffsets::new(&again, txs, length).expect("encoded just now");
        for position in (0..txs).map(TxPosition::new) {
            assert_eq!(again.range(position), offsets.range(position));
        }
    }
}

/// The table of a block of 300 transactions, after its head.
fn tables() -> Vec<Vec<u8>> {
    let (head, length) = ([18, 12, 1, 2, 3, 4, 0, 0], 18 << 20 | 1 << 8 | 2);
    let starts: Vec<u64> = (0..300).map(|tx| 83 + tx * 211 + tx % 7).collect();
    let table = encode_tx_offsets(&starts, length).expect("the starts of a block");
    vec![[&head[..], &table].concat(), vec![0; 8]]
}

fn packed_header(bytes: &[u8]) {
    let Ok(header) = PackedHeader::decode(bytes) else { return };
    assert!(bytes.starts_with(&header.encode()));
}

fn header() -> Vec<u8> {
    PackedHeader { store: STORE, range: range() }.encode().to_vec()
}

/// The first two bytes say how long the chunk was.
fn packed_chunk(bytes: &[u8]) {
    let Some((length, stored)) = bytes.split_first_chunk() else { return };
    let length = usize::from(u16::from_le_bytes(*length));
    let mut chunk = Vec::new();
    if unpack_chunk(stored, length, &mut chunk).is_ok() {
        assert_eq!(chunk.len(), length);
    }
}

/// A plain chunk, and one byte three hundred times: LZ4 takes the byte and repeats it.
fn chunks() -> Vec<Vec<u8>> {
    let repeated = [0x1f, 7, 1, 0, 255, 20, 0x50, 7, 7, 7, 7, 7];
    vec![[&[3, 0][..], b"abc"].concat(), [&[0x2c, 1][..], &repeated].concat()]
}

fn manifest(bytes: &[u8]) {
    let Ok(manifest) = Manifest::decode(bytes) else { return };
    assert_eq!(manifest.encode(), bytes);
}

fn manifests() -> Manifest {
    let log = LogCheckpoint { end: range().start, tail_crc: 9 };
    let packed = vec![range(), range().end..range().end.plus(70)];
    Manifest { store: STORE, position: range().end, index: log, offsets: log, packed }
}
