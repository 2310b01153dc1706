//! How a sync ends: 0 when the chain is where it should be, otherwise 1 and one sentence that says
//! what is missing, after the answer.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use varve_consensus::contract::draft::TxDraft;
use varve_types::blk::write_record;
use varve_types::{Height, Network, Outpoint, Txid};

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
fn a_pipe_that_was_cut_off_is_told() {
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
    short(&through(&place.data, &bytes[..bytes.len() - 10]), 5, &["ends within a block"]);
    assert_eq!(end(&through(&place.data, &bytes)).1, None);
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
