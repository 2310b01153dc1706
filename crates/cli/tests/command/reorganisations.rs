//! A reorganisation from genesis, through the command, while it follows: 4,500 blocks over 2,500.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use varve_testdata::rpc_server::RpcServer;
use varve_types::Network;
use varve_types::blk::write_record;

use crate::exit_codes::{genesis, served};
use crate::refused::{above, hash};
use crate::varve::{ask, command};

/// Genesis and blocks above it whose coinbases take nothing, so that the halvings do not matter.
fn chain(salt: u8, count: u32) -> Vec<Vec<u8>> {
    let mut blocks = vec![genesis()];
    for height in 1..=count {
        let mut draft = above(&blocks[blocks.len() - 1], height, salt, Vec::new());
        draft.txs[0].outputs[0].value = 0;
        draft.mine();
        blocks.push(draft.bytes());
    }
    blocks
}

fn write(path: &Path, blocks: &[Vec<u8>]) {
    let mut file = Vec::new();
    let magic = Network::Regtest.disk_magic();
    blocks.iter().for_each(|block| write_record(magic, block, &mut file));
    // Under another name first: what is followed sees all of it, or nothing.
    fs::write(path.with_extension("new"), file).unwrap();
    fs::rename(path.with_extension("new"), path).unwrap();
}

/// Follows a source that turns from one chain to the other.
fn follow(data: &Path, source: &[&str], tips: [&str; 2], turn: impl FnOnce()) {
    let args = [&["sync", "--follow"], source].concat();
    let mut sync = command(data, &args);
    let mut sync = sync.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(sync.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(said.any(|line| line.ends_with(tips[0])), "it ended before");
    turn();
    assert!(said.any(|line| line.ends_with(tips[1])), "it ended before");
    let id = sync.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let output = sync.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((answer["height"].as_u64(), &answer["complete"]), (Some(4500), &Value::Bool(true)));
    assert_eq!(ask(data, &["verify"])["bestblock"], tips[1]);
}

#[test]
fn four_thousand_blocks_over_two_are_followed_in_a_folder_and_by_rpc() {
    let (first, second) = (chain(1, 2500), chain(2, 4500));
    let tips = [hash(&first[2500]), hash(&second[4500])];
    let tips = [tips[0].as_str(), tips[1].as_str()];
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir_all(path("blocks")).unwrap();
    write(&path("blocks/blk00000.dat"), &first);
    let from = path("blocks").to_str().unwrap().to_owned();
    follow(&path("by folder"), &["--from", &from], tips, || {
        write(&path("blocks/blk00001.dat"), &second[1..]);
    });
    for rest in [true, false] {
        let server = RpcServer::start(rest, &served(&first));
        let url = format!("http://user:password@{}", server.address());
        follow(&path(&format!("by rpc, rest {rest}")), &["--rpc", &url], tips, || {
            server.set_chain(&served(&second));
        });
    }
}
