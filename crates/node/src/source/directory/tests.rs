//! What it costs to follow a folder, in reads.

use std::io::Write as _;

use varve_types::blk::write_record;

use super::*;

const NETWORK: Network = Network::Regtest;

/// Reads that this thread has made so far.
fn reads() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/io").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("syscr: "));
    line.unwrap().parse().unwrap()
}

/// A block above another one; its bytes are those of a header and one coinbase.
fn block_above(below: &[u8], number: u32) -> Vec<u8> {
    let mut block = NETWORK.genesis_block();
    let hash = Header::new(below.first_chunk().unwrap()).hash();
    block[4..36].copy_from_slice(hash.as_bytes());
    block[76..80].copy_from_slice(&number.to_le_bytes());
    block
}

fn chain(count: u32) -> Vec<Vec<u8>> {
    let mut blocks = vec![NETWORK.genesis_block()];
    for number in 1..=count {
        let next = block_above(blocks.last().unwrap(), number);
        blocks.push(next);
    }
    blocks
}

fn framed(blocks: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    blocks.iter().for_each(|block| write_record(NETWORK.disk_magic(), block, &mut file));
    file
}

/// How many headers come until there are no more for a while.
fn headers(directory: &mut Directory) -> usize {
    let mut count = 0;
    loop {
        match directory.next_event(Duration::from_millis(1)).unwrap() {
            Event::Headers { headers, .. } => count += headers.len(),
            Event::Idle => return count,
            _ => {}
        }
    }
}

/// Five thousand files: opening reads each a few times, and a poll without news a few in all.
#[test]
fn a_poll_costs_the_same_with_many_files() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = chain(5000);
    for (number, block) in blocks.iter().take(5000).enumerate() {
        let path = folder.path().join(format!("blk{number:05}.dat"));
        fs::write(path, framed(std::slice::from_ref(block))).unwrap();
    }
    let begin = reads();
    let mut directory = Directory::open(folder.path(), NETWORK, true).unwrap();
    assert_eq!(headers(&mut directory), 4999);
    let opening = reads() - begin;
    assert!(opening <= 5000 * 10, "{opening} reads to open");
    // The listing after the first is repeated once.
    for _ in 0..160 {
        directory.look_again(Duration::from_micros(1)).unwrap();
    }
    let begin = reads();
    for _ in 0..100 {
        directory.look_again(Duration::from_micros(1)).unwrap();
    }
    let polls = reads() - begin;
    assert!(polls <= 100 * 8, "{polls} reads for 100 polls");
    // And one with news costs what is new.
    let path = folder.path().join("blk05000.dat");
    fs::write(path, framed(&blocks[5000..])).unwrap();
    let begin = reads();
    assert_eq!(headers(&mut directory), 1);
    let news = reads() - begin;
    assert!(news <= 100, "{news} reads for a new file");
}

/// Blocks that are appended to a long file cost what they are, on the whole.
#[test]
fn appended_blocks_cost_what_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = chain(4000);
    let path = folder.path().join("blk00000.dat");
    // A node preallocates: sixteen megabytes of zeros.
    let begin = framed(&blocks[..3000]);
    fs::write(&path, &begin).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(begin.len() as u64 + (16 << 20)).unwrap();
    let mut directory = Directory::open(folder.path(), NETWORK, true).unwrap();
    assert_eq!(headers(&mut directory), 2999);
    let (mut at, before) = (begin.len() as u64, reads());
    use std::os::unix::fs::FileExt as _;
    for block in &blocks[3000..3200] {
        let record = framed(std::slice::from_ref(block));
        file.write_all_at(&record, at).unwrap();
        at += record.len() as u64;
        directory.look_again(Duration::from_micros(1)).unwrap();
    }
    assert_eq!(headers(&mut directory), 200);
    let each = (reads() - before) / 200;
    assert!(each <= 300, "{each} reads for each of 200 blocks");
    (&file).flush().unwrap();
}
