//! Block files: plain, XORed, in any order, cut, growing; and the same bytes through a pipe.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use varve_node::source::directory::Directory;
use varve_node::source::pipe::{Pipe, WAITING_LIMIT};
use varve_node::source::{SourceError, Warning};
use varve_node::{Event, Giver, Source};
use varve_sim::{Config, Profile, write_chain};
use varve_testdata::chains;
use varve_types::blk::{XorKey, write_record};
use varve_types::{Header, Network};

use crate::receiver::Receiver;

/// The blocks of the chain that Core wrote, in the order of its file, and its key.
fn core_chain() -> Option<(Vec<Vec<u8>>, [u8; 8])> {
    let key = chains::bytes("regtest-core31/blocks/xor.dat")?.try_into().unwrap();
    Some((chains::core31()?, key))
}

fn framed<'a>(blocks: impl IntoIterator<Item = &'a Vec<u8>>) -> Vec<u8> {
    let mut file = Vec::new();
    for block in blocks {
        write_record(Network::Regtest.disk_magic(), block, &mut file);
    }
    file
}

fn received(source: &mut dyn Source) -> Receiver {
    let mut receiver = Receiver::new(Network::Regtest);
    receiver.sync(source);
    receiver
}

/// All blocks but genesis, which nobody needs to be given, and the answers of Core.
fn check_core_chain(receiver: &Receiver, blocks: &[Vec<u8>]) {
    let expected = chains::json("regtest-core31/expected.json").unwrap();
    let given = receiver.blocks.values().collect::<std::collections::HashSet<_>>();
    assert!(blocks.iter().skip(1).all(|block| given.contains(block)));
    assert_eq!(receiver.tip(), expected["tip"]);
    let tip = |tip: &serde_json::Value| {
        let number = |field: &str| tip[field].as_u64().unwrap();
        (number("height"), tip["hash"].as_str().unwrap().to_owned(), number("branchlen"))
    };
    let mut tips: Vec<_> = expected["chaintips"].as_array().unwrap().iter().map(tip).collect();
    let ours = receiver.tree.chain_tips(receiver.tree.best_chain()).into_iter().map(|tip| {
        (u64::from(tip.height.to_u32()), tip.hash.to_string(), u64::from(tip.branch_length))
    });
    let mut ours: Vec<_> = ours.collect();
    tips.sort();
    ours.sort();
    assert_eq!(ours, tips);
}

#[test]
fn the_files_of_core_as_they_are() {
    let Some((blocks, _)) = core_chain() else { return };
    let folder = varve_testdata::data("regtest-core31").unwrap();
    let file = folder.join("blocks/blk00000.dat");
    for path in [folder.clone(), folder.join("blocks"), file] {
        let mut source = Directory::open(&path, Network::Regtest, false).unwrap();
        let receiver = received(&mut source);
        check_core_chain(&receiver, &blocks);
        assert_eq!((receiver.warnings.len(), receiver.missing()), (0, 0));
    }
}

#[test]
fn any_order_in_any_files_and_zeros_behind() {
    let Some((mut blocks, key)) = core_chain() else { return };
    let plain = blocks.clone();
    for round in 0..4 {
        // Backwards, and three rough shuffles.
        match round {
            0 => blocks.reverse(),
            _ => blocks.sort_by_key(|block| varve_types::sha256d(&block[round..])),
        }
        let folder = tempfile::tempdir().unwrap();
        let xored = round % 2 == 0;
        let key = XorKey::new(if xored { key } else { [0; 8] });
        if xored {
            fs::write(folder.path().join("xor.dat"), core_chain().unwrap().1).unwrap();
        }
        for (number, part) in blocks.chunks(blocks.len() / 3 + 1).enumerate() {
            let mut file = framed(part);
            key.apply(0, &mut file);
            file.extend_from_slice(&[0; 1000]);
            fs::write(folder.path().join(format!("blk{number:05}.dat")), file).unwrap();
        }
        let mut source = Directory::open(folder.path(), Network::Regtest, false).unwrap();
        let receiver = received(&mut source);
        check_core_chain(&receiver, &plain);
        assert_eq!(receiver.warnings, []);
        let mut pipe = Pipe::new(framed_file(&blocks), Network::Regtest, WAITING_LIMIT);
        check_core_chain(&received(&mut pipe), &plain);
    }
}

#[test]
fn a_block_whose_header_was_known_before_is_found_in_a_later_file() {
    let Some((blocks, _)) = core_chain() else { return };
    let folder = tempfile::tempdir().unwrap();
    for (number, part) in blocks.chunks(blocks.len() / 3 + 1).enumerate() {
        fs::write(folder.path().join(format!("blk{number:05}.dat")), framed(part)).unwrap();
    }
    let last = Header::new(blocks.last().unwrap().first_chunk().unwrap()).hash();
    let mut source = Directory::open(folder.path(), Network::Regtest, false).unwrap();
    source.seek(&[last]).unwrap();
    source.want(Giver::ONLY, &[last]).unwrap();
    let given = loop {
        match source.next_event(Duration::from_secs(10)).unwrap() {
            Event::Block { hash, .. } => break Some(hash),
            Event::Missing { .. } | Event::Idle => break None,
            _ => {}
        }
    };
    assert_eq!(given, Some(last));
}

/// The records with zeros between some of them, as `cat blk*.dat` gives them.
fn framed_file(blocks: &[Vec<u8>]) -> std::io::Cursor<Vec<u8>> {
    let parts = blocks.chunks(100).map(|part| [framed(part), vec![0; 777]].concat());
    std::io::Cursor::new(parts.collect::<Vec<_>>().concat())
}

#[test]
fn a_cut_record_is_a_warning_wherever_it_is_cut() {
    let Some((blocks, _)) = core_chain() else { return };
    let blocks = &blocks[..5];
    let whole = framed(blocks);
    let last = whole.len() - blocks[4].len() - 8;
    for cut in [last + 2, last + 8, last + 50, last + 100, whole.len() - 40] {
        for padding in [0, 2000] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("blk00000.dat");
            let file = [&whole[..cut], &vec![0; padding]].concat();
            fs::write(&path, &file).unwrap();
            let mut source = Directory::open(&path, Network::Regtest, false).unwrap();
            let receiver = received(&mut source);
            assert_eq!(receiver.blocks.len(), 3, "cut at {cut}, {padding} zeros");
            let offset = last as u64;
            // Half a magic with zeros behind it is no magic.
            let is_magic = padding == 0 || cut > last + 3;
            let header = file.get(last + 8..last + 88);
            let header = header.map(|header| *header.first_chunk().unwrap());
            let warning = match is_magic {
                true => Warning::Incomplete { path, offset, header },
                false => Warning::Skipped { path, bytes: 2 },
            };
            assert_eq!(receiver.warnings, [warning]);
        }
        let pipe = std::io::Cursor::new(whole[..cut].to_vec());
        let receiver = received(&mut Pipe::new(pipe, Network::Regtest, WAITING_LIMIT));
        assert_eq!((receiver.blocks.len(), receiver.warnings.len()), (4 - 1, 1), "pipe, {cut}");
    }
}

/// What a crash leaves in a file costs no more than what it has damaged.
#[test]
fn what_lies_between_records_is_skipped() {
    let Some((blocks, key)) = core_chain() else { return };
    let (first, second) = (framed(&blocks[..300]), framed(&blocks[300..]));
    let torn = framed(&blocks[300..301]);
    let foreign = [&Network::Mainnet.disk_magic()[..], &[90, 0, 0, 0], &[7; 90]].concat();
    let too_long = [&Network::Regtest.disk_magic()[..], &[255; 300]].concat();
    let between: [(&[u8], u64, bool); 5] = [
        (&[0; 5000], 5000, true),
        (&[8; 1 << 21], 1 << 21, true),
        (&foreign, 98, true),
        (&too_long, 304, false),
        (&torn[..torn.len() - 20], torn.len() as u64 - 20, false),
    ];
    for (bytes, length, in_a_pipe) in between {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("xor.dat"), key).unwrap();
        let path = folder.path().join("blk00000.dat");
        let whole = [&first, bytes, &second].concat();
        let mut masked = whole.clone();
        XorKey::new(key).apply(0, &mut masked);
        fs::write(&path, masked).unwrap();
        let mut source = Directory::open(folder.path(), Network::Regtest, false).unwrap();
        let receiver = received(&mut source);
        check_core_chain(&receiver, &blocks);
        assert_eq!(receiver.warnings, [Warning::Skipped { path, bytes: length }]);
        if in_a_pipe {
            let pipe = std::io::Cursor::new(whole);
            let receiver = received(&mut Pipe::new(pipe, Network::Regtest, WAITING_LIMIT));
            check_core_chain(&receiver, &blocks);
            // Zeros are what files end with.
            let zeros = bytes.iter().filter(|byte| **byte == 0).count() as u64;
            let skipped = Warning::Skipped { path: "-".into(), bytes: length - zeros };
            let told = if zeros == length { vec![] } else { vec![skipped] };
            assert_eq!(receiver.warnings, told);
        }
    }
}

/// A node that was killed while it wrote a block fetches it again.
#[test]
fn of_two_copies_the_good_one_is_found() {
    let Some((blocks, _)) = core_chain() else { return };
    let mut torn = blocks[40].clone();
    torn[100..].fill(0);
    let backwards = blocks.iter().rev().cloned().collect::<Vec<_>>();
    for order in [
        [&blocks[..40], std::slice::from_ref(&torn), &blocks[40..]].concat(),
        [&blocks[..], std::slice::from_ref(&torn)].concat(),
        [std::slice::from_ref(&torn), &backwards].concat(),
        [&backwards[..], std::slice::from_ref(&torn)].concat(),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = order.split_at(order.len() / 2);
        fs::write(folder.path().join("blk00000.dat"), framed(one)).unwrap();
        fs::write(folder.path().join("blk00001.dat"), framed(other)).unwrap();
        let mut source = Directory::open(folder.path(), Network::Regtest, false).unwrap();
        check_core_chain(&received(&mut source), &blocks);
    }
    let order = [&blocks[..40], std::slice::from_ref(&torn), &blocks[40..]].concat();
    let mut pipe = Pipe::new(framed_file(&order), Network::Regtest, WAITING_LIMIT);
    check_core_chain(&received(&mut pipe), &blocks);
}

#[test]
fn a_file_of_half_a_block_is_not_of_another_network() {
    let file = framed(&[Network::Regtest.genesis_block()]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("blk00000.dat");
    fs::write(&path, &file[..100]).unwrap();
    let mut source = Directory::open(folder.path(), Network::Regtest, false).unwrap();
    let header = file[8..].first_chunk().copied();
    assert_eq!(received(&mut source).warnings, [Warning::Incomplete { path, offset: 0, header }]);
}

/// Behind the last record: bytes that are no block, and a block whose magic is damaged.
#[test]
fn what_lies_behind_the_last_record_is_reported() {
    let Some((blocks, key)) = core_chain() else { return };
    let whole = framed(&blocks);
    let last = whole.len() - blocks[blocks.len() - 1].len() - 8;
    let header = whole[last + 8..].first_chunk().copied();
    for byte in [0, 77] {
        let mut damaged = whole.clone();
        damaged[last] = byte;
        let offset = last as u64;
        for (file, padding) in [(&damaged, 0), (&damaged, 3 << 20), (&whole, 3 << 20)] {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("xor.dat"), key).unwrap();
            let path = folder.path().join("blk00000.dat");
            let mut masked = file.clone();
            XorKey::new(key).apply(0, &mut masked);
            // A node preallocates zeros, and does not mask them.
            masked.resize(masked.len() + padding, 0);
            fs::write(&path, masked).unwrap();
            let mut source = Directory::open(folder.path(), Network::Regtest, false).unwrap();
            let receiver = received(&mut source);
            let warning = Warning::Incomplete { path: path.clone(), offset, header };
            let is_whole = *file == whole;
            assert_eq!(receiver.warnings, if is_whole { vec![] } else { vec![warning] });
            // Bytes that are not even a header, two megabytes behind the last record.
            let mut masked = fs::read(&path).unwrap();
            masked.truncate(last);
            masked.resize(last + (2 << 20), 0);
            masked.extend([9; 100]);
            masked.resize(last + (4 << 20), 0);
            fs::write(&path, masked).unwrap();
            let mut source = Directory::open(folder.path(), Network::Regtest, false).unwrap();
            let bytes = (2 << 20) + 100;
            assert_eq!(received(&mut source).warnings, [Warning::Skipped { path, bytes }]);
        }
    }
}

#[test]
fn blocks_without_their_parents_are_left_out_with_a_warning() {
    let Some((blocks, _)) = core_chain() else { return };
    let folder = tempfile::tempdir().unwrap();
    let some = blocks[..4].iter().chain(&blocks[5..20]);
    fs::write(folder.path().join("blk00000.dat"), framed(some)).unwrap();
    let mut source = Directory::open(folder.path(), Network::Regtest, false).unwrap();
    let receiver = received(&mut source);
    assert_eq!(receiver.blocks.len(), 3);
    assert_eq!(receiver.warnings, [Warning::Unlinked { count: 15 }]);
}

#[test]
fn files_that_grow_are_followed() {
    let Some((blocks, key)) = core_chain() else { return };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("xor.dat"), key).unwrap();
    let mut bytes = framed(&blocks[..300]);
    XorKey::new(key).apply(0, &mut bytes);
    let path = folder.path().join("blk00000.dat");
    // A node preallocates: the file is longer than what is written.
    fs::write(&path, [bytes.clone(), vec![0; 1 << 20]].concat()).unwrap();
    let mut source = Directory::open(folder.path(), Network::Regtest, true).unwrap();
    let mut receiver = received(&mut source);
    assert_eq!(receiver.blocks.len(), 299);
    // The next block comes in two halves.
    let mut more = framed(&blocks[300..301]);
    XorKey::new(key).apply(bytes.len() as u64, &mut more);
    let half = more.len() / 2;
    write_at(&path, bytes.len(), &more[..half]);
    for _ in 0..3 {
        let event = source.next_event(Duration::from_millis(300)).unwrap();
        assert!(matches!(event, Event::Idle | Event::HeadersDone), "{event:?}");
    }
    write_at(&path, bytes.len() + half, &more[half..]);
    receiver.until(&mut source, |receiver| receiver.blocks.len() == 300);
    // The rest in a second file.
    let mut rest = framed(&blocks[301..]);
    XorKey::new(key).apply(0, &mut rest);
    fs::write(folder.path().join("blk00001.dat"), rest).unwrap();
    receiver.until(&mut source, |receiver| receiver.blocks.len() == blocks.len() - 1);
    check_core_chain(&receiver, &blocks);
    assert_eq!(receiver.warnings, []);
}

fn write_at(path: &Path, offset: usize, bytes: &[u8]) {
    use std::io::{Seek as _, SeekFrom};
    let mut file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(offset as u64)).unwrap();
    file.write_all(bytes).unwrap();
}

/// A node that was killed has forgotten its last blocks, writes over them, and gets some of them
/// again, in another order.
#[test]
fn a_file_that_is_written_over_is_walked_over_again() {
    let Some((blocks, _)) = core_chain() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("blk00000.dat");
    fs::write(&path, framed(&blocks[..20])).unwrap();
    let mut source = Directory::open(folder.path(), Network::Regtest, true).unwrap();
    let mut receiver = Receiver::new(Network::Regtest);
    receiver.sync(&mut source);
    std::thread::sleep(Duration::from_millis(50));
    let again = [&blocks[..15], &blocks[20..30], &blocks[15..20]].concat();
    write_at(&path, 0, &framed(&again));
    receiver.until(&mut source, |receiver| receiver.blocks.len() == 29);
    // A block that is now elsewhere is found there.
    let hash = Header::new(blocks[17].first_chunk().unwrap()).hash();
    source.want(Giver::ONLY, &[hash]).unwrap();
    // The file may be walked over once more meanwhile, which gives headers.
    let event = loop {
        match source.next_event(Duration::from_secs(9)).unwrap() {
            Event::Headers { .. } | Event::HeadersDone | Event::Idle => {}
            event => break event,
        }
    };
    assert!(matches!(event, Event::Block { bytes, .. } if bytes == blocks[17]));
}

#[test]
fn a_block_that_was_written_over_is_missing() {
    let Some((blocks, _)) = core_chain() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("blk00000.dat");
    fs::write(&path, framed(&blocks[..9])).unwrap();
    let mut source = Directory::open(folder.path(), Network::Regtest, false).unwrap();
    source.seek(&[Network::Regtest.genesis_hash()]).unwrap();
    while source.next_event(Duration::from_secs(9)).unwrap() != Event::HeadersDone {}
    let [lost, kept] =
        [8, 3].map(|at: usize| Header::new(blocks[at].first_chunk().unwrap()).hash());
    let place = framed(&blocks[..8]).len();
    write_at(&path, place, &framed([&blocks[9]]));
    source.want(Giver::ONLY, &[lost]).unwrap();
    let missing = Event::Missing { hash: lost, giver: Giver::ONLY };
    assert_eq!(source.next_event(Duration::from_secs(9)).unwrap(), missing);
    source.want(Giver::ONLY, &[kept]).unwrap();
    let event = source.next_event(Duration::from_secs(9)).unwrap();
    assert!(matches!(event, Event::Block { hash, .. } if hash == kept));
}

/// A mirror puts longer files in the place of those that are being read.
#[test]
fn files_that_are_replaced_by_longer_ones() {
    let Some((blocks, _)) = core_chain() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (path, next) = (folder.path().join("blk00000.dat"), folder.path().join("next"));
    let mut receiver = Receiver::new(Network::Regtest);
    fs::write(&path, framed(&blocks[..50])).unwrap();
    let mut source = Directory::open(folder.path(), Network::Regtest, true).unwrap();
    receiver.sync(&mut source);
    for end in [60, 200, blocks.len()] {
        fs::write(&next, framed(&blocks[..end])).unwrap();
        fs::rename(&next, &path).unwrap();
        receiver.until(&mut source, |receiver| receiver.blocks.len() + 1 == end);
        assert_eq!(receiver.missing(), 0);
    }
}

#[test]
fn a_simulated_chain_with_reorgs() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config {
        xor: true,
        reorg_depth: Some(6),
        transactions: Some(5),
        ..Config::new(Profile::Mainnet, 300, 5)
    };
    let summary = write_chain(&config, folder.path(), |_| ()).unwrap();
    let mut source = Directory::open(folder.path(), Network::Regtest, false).unwrap();
    let receiver = received(&mut source);
    assert_eq!(receiver.blocks.len() as u64, summary.blocks - 1);
    assert_eq!(receiver.tree.height(receiver.tree.best_chain()).to_u32(), summary.height);
}

#[test]
fn what_cannot_be_read_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Directory::open(folder.path(), Network::Regtest, false);
    let nowhere = Directory::open(&folder.path().join("nowhere"), Network::Regtest, false);
    assert!(matches!(nowhere, Err(SourceError::Io { .. })));
    assert!(matches!(open(), Err(SourceError::NoBlocks { .. })));
    fs::write(folder.path().join("blk00000.dat"), [1; 1000]).unwrap();
    let error = open().err().unwrap();
    assert!(error.to_string().contains("choose the network"), "{error}");
    fs::write(folder.path().join("xor.dat"), [1; 7]).unwrap();
    assert!(matches!(open(), Err(SourceError::BadKey { .. })));
    let mut pipe = Pipe::new(&[7_u8; 100][..], Network::Regtest, WAITING_LIMIT);
    assert!(matches!(
        pipe.next_event(Duration::from_secs(9)),
        Err(SourceError::WrongNetwork { .. })
    ));
    let Some((mut blocks, _)) = core_chain() else { return };
    blocks.reverse();
    let mut pipe = Pipe::new(framed_file(&blocks), Network::Regtest, 5000);
    let error = loop {
        if let Err(error) = pipe.next_event(Duration::from_secs(9)) {
            break error;
        }
    };
    assert!(matches!(error, SourceError::TooUnordered { limit: 5000 }));
}

#[test]
fn mainnet_from_one_file() {
    let Some(path) = varve_testdata::data("chains/mainnet-0-4312.blk.dat") else { return };
    let mut source = Directory::open(&path, Network::Mainnet, false).unwrap();
    let mut receiver = Receiver::new(Network::Mainnet);
    receiver.sync(&mut source);
    assert_eq!(receiver.blocks.len(), 4312);
    assert_eq!(receiver.tree.height(receiver.tree.best_chain()).to_u32(), 4312);
    assert_eq!(receiver.warnings, []);
    let wrong = Directory::open(&path, Network::Regtest, false);
    assert!(matches!(wrong, Err(SourceError::WrongNetwork { .. })));
}

#[test]
fn chains_of_bsv_with_competing_tips() {
    for (name, height) in [("115_3677f4", 115), ("116_7c9cd2", 116), ("118_0ebc17", 118)] {
        let folder = format!("chains/conduit-regtest/contrib/blockchains/blockchain_{name}");
        let Some(folder) = varve_testdata::data(&folder) else { return };
        let mut file = Vec::new();
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_name().len() == 64 {
                let block = fs::read(entry.path()).unwrap();
                write_record(Network::BsvRegtest.disk_magic(), &block, &mut file);
            }
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("blk00000.dat"), file).unwrap();
        let mut source = Directory::open(folder.path(), Network::BsvRegtest, false).unwrap();
        let mut receiver = Receiver::new(Network::BsvRegtest);
        receiver.sync(&mut source);
        assert_eq!(receiver.tree.height(receiver.tree.best_chain()).to_u32(), height, "{name}");
        assert_eq!(receiver.warnings, []);
    }
}
