//! How a sync ends: 0 when the chain is where it should be, otherwise 1 and one sentence that says
//! what is missing, after the answer.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use varve_consensus::contract::draft::{BlockDraft, TxDraft};
use varve_testdata::rpc_server::{RpcServer, Served};
use varve_types::blk::write_record;
use varve_types::{Header, Height, Network, Outpoint, Txid};

use crate::refused::{above, hash, write};
use crate::varve::{ask, command, run};

/// A good chain of this length above `below`, which stands at `height`.
pub(crate) fn chain(below: &[u8], height: u32, salt: u8, count: u32) -> Vec<Vec<u8>> {
    let mut blocks = vec![below.to_vec()];
    for height in height + 1..=height + count {
        blocks.push(above(&blocks[blocks.len() - 1], height, salt, Vec::new()).bytes());
    }
    blocks.split_off(1)
}

/// A block that spends what is not there.
fn bad(below: &[u8], height: u32) -> Vec<u8> {
    let nothing = TxDraft::spending(&[Outpoint::new(Txid::from_bytes([9; 32]), 0)], 1);
    above(below, height, 7, vec![nothing]).bytes()
}

/// A block that breaks a rule of its own bytes.
fn malformed(below: &[u8], height: u32) -> Vec<u8> {
    above(below, height, 8, vec![TxDraft::coinbase(Height::new(height), 1)]).bytes()
}

fn mined(mut draft: BlockDraft) -> Vec<u8> {
    draft.mine();
    draft.bytes()
}

/// A block whose header has not even the little work that regtest asks for.
pub(crate) fn without_work(draft: BlockDraft) -> Vec<u8> {
    let mut block = draft.bytes();
    while varve_types::sha256d(&block[..80])[31] < 0x80 {
        block[76] = block[76].wrapping_add(1);
    }
    block
}

/// Blocks as a server of a node's interface has them.
pub(crate) fn served(blocks: &[Vec<u8>]) -> Vec<Served> {
    blocks.iter().map(|block| (hash(block), block.clone())).collect()
}

pub(crate) fn genesis() -> Vec<u8> {
    Network::Regtest.genesis_block()
}

struct Place {
    _folder: TempDir,
    file: PathBuf,
    data: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (file, data) = (folder.path().join("blk00000.dat"), folder.path().join("data"));
        Self { _folder: folder, file, data }
    }

    fn sync(&self, blocks: &[Vec<u8>], more: &[&str]) -> Output {
        write(&self.file, &[&[genesis()], blocks].concat());
        run(&self.data, &[&["sync", "--from", self.file.to_str().unwrap()], more].concat())
    }
}

/// The answer, which is there in any case, and the sentence of one that came short.
pub(crate) fn end(output: &Output) -> (Value, Option<String>) {
    let told = String::from_utf8(output.stderr.clone()).unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).expect("the answer is there");
    let errors: Vec<&str> = told.lines().filter(|line| line.starts_with("error: ")).collect();
    let code = output.status.code();
    assert_eq!(answer["complete"], code == Some(0), "{told}");
    match code {
        Some(0) => assert!(errors.is_empty(), "{told}"),
        code => assert_eq!((code, errors.len()), (Some(1), 1), "{told}"),
    }
    (answer, errors.first().map(|line| (*line).to_owned()))
}

/// Checks that it ends at this height, with a sentence that has these parts.
pub(crate) fn short(output: &Output, height: u32, parts: &[&str]) {
    let (answer, sentence) = end(output);
    let sentence = sentence.expect("it came short");
    assert_eq!(answer["height"], height, "{sentence}");
    for part in parts {
        assert!(sentence.contains(part), "{part}: {sentence}");
    }
}

#[test]
fn a_whole_chain_and_one_that_stops_where_it_should_are_done() {
    let (place, good) = (Place::new(), chain(&genesis(), 0, 1, 6));
    assert_eq!(end(&place.sync(&good, &["--stop-height", "4"])).1, None);
    assert_eq!(end(&place.sync(&good, &[])).1, None);
    assert_eq!(end(&place.sync(&good, &["--stop-height", "900"])).1, None);
    // What comes above the stop height does not matter.
    let place = Place::new();
    let with_bad = [&good[..], &[bad(&good[5], 7)]].concat();
    assert_eq!(end(&place.sync(&with_bad, &["--stop-height", "6"])).1, None);
}

#[test]
fn blocks_that_are_not_there_are_missed() {
    let (place, good) = (Place::new(), chain(&genesis(), 0, 1, 6));
    let gap = [&good[..3], &good[4..]].concat();
    short(&place.sync(&gap, &[]), 3, &["2 blocks follow blocks that are not there"]);
    short(&place.sync(&gap, &[]), 3, &["2 blocks follow"]);
    assert_eq!(end(&place.sync(&gap, &["--stop-height", "3"])).1, None);
    assert_eq!(end(&place.sync(&good, &[])).1, None);
}

#[test]
fn blocks_that_cannot_be_read_are_missed() {
    let good = chain(&genesis(), 0, 1, 6);
    // The body of the fourth, then its header, whose hash becomes another one.
    for (byte, part) in [(100, "headers go up to 6"), (40, "height 3")] {
        let place = Place::new();
        let mut torn = good.clone();
        torn[3][byte] ^= 1;
        short(&place.sync(&torn, &[]), 3, &[part, "sync from another source"]);
        assert_eq!(end(&place.sync(&good, &[])).1, None);
    }
}

#[test]
fn a_refused_block_matters_when_its_branch_has_more_work() {
    let (place, good) = (Place::new(), chain(&genesis(), 0, 1, 6));
    let refused = bad(&good[3], 5);
    let on_refused = chain(&refused, 5, 2, 1);
    let stale = [&good[..], std::slice::from_ref(&refused), &on_refused].concat();
    let output = place.sync(&[&good[..], &[malformed(&good[3], 5)]].concat(), &[]);
    let (answer, sentence) = end(&output);
    assert_eq!((sentence, answer["refused"].as_u64()), (None, Some(1)), "it is stale");
    // One more makes it the best chain that there is to be had.
    let longer = chain(&on_refused[0], 6, 2, 1);
    let place = Place::new();
    let best = [&stale[..], &longer].concat();
    for _ in 0..2 {
        short(&place.sync(&best, &[]), 6, &[&hash(&refused), "is refused", "varve reconsider"]);
    }
}

#[test]
fn a_pipe_that_was_cut_off_comes_short() {
    let (place, good) = (Place::new(), chain(&genesis(), 0, 1, 6));
    let mut bytes = Vec::new();
    for block in &good {
        write_record(Network::Regtest.disk_magic(), block, &mut bytes);
    }
    let through = |data: &Path, bytes: &[u8]| {
        let mut sync = command(data, &["sync", "--from", "-"]);
        let sync = sync.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut sync = sync.spawn().unwrap();
        sync.stdin.take().unwrap().write_all(bytes).unwrap();
        sync.wait_with_output().unwrap()
    };
    short(&through(&place.data, &bytes[..bytes.len() - 10]), 5, &["is cut off or damaged"]);
    assert_eq!(end(&through(&place.data, &bytes)).1, None);
}

/// Headers that break a rule do not get into the tree, and neither do those above them.
#[test]
fn a_refused_header_matters_when_its_branch_has_more_work() {
    let good = chain(&genesis(), 0, 1, 12);
    let draft = |salt| above(&good[11], 13, salt, Vec::new());
    let first = Header::new(good[0].first_chunk().unwrap()).time();
    let too_old = mined(BlockDraft { time: first, ..draft(1) });
    let too_easy = mined(BlockDraft { bits: 0x207f_fffe, ..draft(2) });
    let too_new = mined(BlockDraft { time: u32::MAX - 100_000, ..draft(3) });
    let idle = without_work(draft(4));
    for (block, reason) in [
        (too_old, "time-too-old"),
        (too_easy, "bad-diffbits"),
        (too_new, "time-too-new"),
        (idle, "high-hash"),
    ] {
        let (alone, rest) = (Place::new(), chain(&block, 13, 5, 9));
        let bad = [&good[..], std::slice::from_ref(&block)].concat();
        short(&alone.sync(&bad, &[]), 12, &[&hash(&block), "is refused", reason]);
        assert_eq!(end(&alone.sync(&bad, &["--stop-height", "12"])).1, None);
        let (place, whole) = (Place::new(), [&bad[..], &rest].concat());
        for _ in 0..2 {
            let parts = [&hash(&block), reason, "and with it 9 above it"];
            short(&place.sync(&whole, &[]), 12, &parts);
        }
        // A branch beside it that is longer makes it stale.
        let longer = [&whole[..], &chain(&good[11], 12, 6, 11)].concat();
        let (answer, sentence) = end(&place.sync(&longer, &[]));
        assert_eq!((sentence, answer["height"].as_u64()), (None, Some(23)));
        assert_eq!(answer["refused"], 1);
    }
}

/// Blocks above one that was refused earlier are not in the tree either.
#[test]
fn a_stale_branch_that_was_refused_and_grows_matters() {
    let (place, good) = (Place::new(), chain(&genesis(), 0, 1, 6));
    let refused = malformed(&good[2], 4);
    let stale = [&good[..], std::slice::from_ref(&refused)].concat();
    assert_eq!(end(&place.sync(&stale, &[])).1, None);
    let best = [&stale[..], &chain(&refused, 4, 2, 3)].concat();
    short(&place.sync(&best, &[]), 6, &[&hash(&refused), "and with it 3 above it", "reconsider"]);
}

/// The last record: cut off anywhere, with another size, with another magic.
#[test]
fn a_last_block_that_cannot_be_read_matters_when_it_belongs_above_the_tip() {
    let good = chain(&genesis(), 0, 1, 6);
    let (magic, stale) = (Network::Regtest.disk_magic(), chain(&good[1], 2, 9, 1));
    for (last, is_best) in [(&good[5], true), (&stale[0], false)] {
        let mut before = Vec::new();
        let rest = if is_best { &good[..5] } else { &good[..] };
        for block in [&genesis()].into_iter().chain(rest) {
            write_record(magic, block, &mut before);
        }
        let mut record = Vec::new();
        write_record(magic, last, &mut record);
        let (mut size, mut sign) = (record.clone(), record.clone());
        size[6] = 1;
        sign[0] = 0;
        let mut ends = vec![size, sign];
        ends.extend([89, 100, record.len() - 10].map(|cut| record[..cut].to_vec()));
        for end_of_file in ends {
            let place = Place::new();
            fs::write(&place.file, [&before[..], &end_of_file].concat()).unwrap();
            let output = run(&place.data, &["sync", "--from", place.file.to_str().unwrap()]);
            if is_best {
                short(&output, 5, &["the last block of", "is cut off or damaged"]);
                assert_eq!(end(&place.sync(&good, &[])).1, None);
                continue;
            }
            assert_eq!(end(&output).1, None, "it is stale");
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(said.contains("is cut off or damaged"), "{said}");
        }
    }
    // Of what has not even a header nobody knows where it belongs.
    let place = Place::new();
    let mut file = Vec::new();
    good.iter().for_each(|block| write_record(magic, block, &mut file));
    fs::write(&place.file, [&file[..], &magic, &[1, 0]].concat()).unwrap();
    let output = run(&place.data, &["sync", "--from", place.file.to_str().unwrap()]);
    short(&output, 6, &["is cut off or damaged"]);
}

/// A node's own interface gives a header that we refuse, and blocks above it.
#[test]
fn a_node_with_a_chain_that_is_refused() {
    let good = chain(&genesis(), 0, 1, 12);
    let first = Header::new(good[0].first_chunk().unwrap()).time();
    let old = mined(BlockDraft { time: first, ..above(&good[11], 13, 1, Vec::new()) });
    let bad = bad(&good[11], 13);
    for (block, reason) in [(old, "time-too-old"), (bad, "bad-txns-inputs-missingorspent")] {
        let rest = chain(&block, 13, 5, 4);
        let whole = [&[genesis()], &good[..], std::slice::from_ref(&block), &rest].concat();
        for rest in [true, false] {
            let server = RpcServer::start(rest, &served(&whole));
            let url = format!("http://user:password@{}", server.address());
            let place = Place::new();
            let parts = [&hash(&block), reason, "and with it 4 above it"];
            short(&run(&place.data, &["sync", "--rpc", &url]), 12, &parts);
            server.set_chain(&served(&[&[genesis()], &good[..]].concat()));
            assert_eq!(end(&run(&place.data, &["sync", "--rpc", &url])).1, None);
        }
    }
}

/// The operator has decided so.
#[test]
fn a_branch_that_the_operator_has_marked_is_not_missed() {
    let (place, good) = (Place::new(), chain(&genesis(), 0, 1, 6));
    assert_eq!(end(&place.sync(&good, &[])).1, None);
    let answer = ask(&place.data, &["invalidate", &hash(&good[4])]);
    assert_eq!(answer["height"], 4);
    let (answer, sentence) = end(&place.sync(&good, &[]));
    assert_eq!((answer["height"].as_u64(), sentence), (Some(4), None));
}
