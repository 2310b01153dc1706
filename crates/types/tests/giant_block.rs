//! A block of more than 4 GiB, streamed in memory that stays small.
//!
//! Nothing in the data is that large, so the block is made on the way: the same transaction with a
//! large data output, told apart by its lock time.

use varve_types::stream::{BlockStream, Item};
use varve_types::{Format, Network, compact_size};

/// The bytes of data in each transaction.
const DATA: usize = 32 << 20;
/// So many of them are more than 4 GiB.
const TXS: u32 = 130;
/// How much is pushed at once.
const CHUNK: usize = 1 << 20;

fn transaction() -> Vec<u8> {
    let mut bytes = vec![1, 0, 0, 0, 1];
    bytes.extend_from_slice(&[7; 36]);
    bytes.extend_from_slice(&[0, 0xff, 0xff, 0xff, 0xff, 1]);
    bytes.extend_from_slice(&[0; 8]);
    compact_size::write(2 + DATA as u64, &mut bytes);
    bytes.extend_from_slice(&[0x00, 0x6a]);
    bytes.resize(bytes.len() + DATA, 0x61);
    bytes.extend_from_slice(&[0; 4]);
    bytes
}

/// The most memory this process has had, in MiB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("and how much");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
}

#[test]
fn a_block_beyond_four_gigabytes_is_streamed_in_little_memory() {
    let mut transaction = transaction();
    let length = transaction.len();
    let mut stream = BlockStream::new(Format::Legacy);
    let mut head = Network::Bsv.genesis_block()[..80].to_vec();
    compact_size::write(u64::from(TXS), &mut head);
    stream.push(&head, |_| ()).unwrap();

    let mut found = Vec::new();
    for number in 0..TXS {
        transaction[length - 4..].copy_from_slice(&number.to_le_bytes());
        for chunk in transaction.chunks(CHUNK) {
            let pushed = stream.push(chunk, |item| {
                if let Item::Tx { offset, tx, .. } = item {
                    found.push((offset, tx.lock_time()));
                }
            });
            pushed.unwrap();
        }
    }
    let summary = stream.finish().unwrap();
    let expected = (0..TXS).map(|n| (head.len() as u64 + u64::from(n) * length as u64, n));
    assert!(found.into_iter().eq(expected), "a transaction was lost, moved or changed");
    assert_eq!(summary.tx_count, u64::from(TXS));
    assert!(summary.length > u64::from(u32::MAX));
    assert!(peak_memory() < 256, "{} MiB were needed", peak_memory());
}
