//! What it costs to open a folder for a question: the same, however long the chain is.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::varve::{ask, command, simulate_blocks};

/// What a command has taken up to its answer.
#[derive(Clone, Copy, Debug)]
struct Cost {
    /// Kilobytes of memory at the most, mapped files among them.
    memory: u64,
    /// Time on a processor, in the system's ticks: hundredths of a second.
    ticks: u64,
}

/// Kilobytes that a question may take more where blocks are full: for its block and its tables.
const BLOCK: u64 = 8 << 10;

/// The bytes that a pipe holds when nobody reads it.
const PIPE: usize = 1 << 16;

/// Runs a command that answers with little, and looks at it when it is about to. It writes to a
/// pipe that is full, so it stops there until it was looked at.
fn cost(data: &Path, args: &[&str]) -> Cost {
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&[b' '; PIPE]).unwrap();
    let mut child = command(data, args).stdout(writer).stderr(Stdio::null()).spawn().unwrap();
    wait_until_it_answers(&mut child);
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let memory = peak.trim().trim_end_matches(" kB").parse().unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = |field: usize| fields[field].parse::<u64>().unwrap();
    let ticks = ticks(11) + ticks(12);
    let mut answer = Vec::new();
    reader.read_to_end(&mut answer).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(answer.len() > PIPE, "there was an answer");
    Cost { memory, ticks }
}

/// Waits until the command sleeps: it waits for nothing but its output.
fn wait_until_it_answers(child: &mut Child) {
    let mut asleep = 0;
    while asleep < 3 {
        assert!(child.try_wait().unwrap().is_none(), "it ended without an answer");
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let is_asleep = status.lines().any(|line| line.starts_with("State:\tS"));
        asleep = if is_asleep { asleep + 1 } else { 0 };
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The least of some runs: another process may have taken a part of each.
fn least(data: &Path, args: &[&str]) -> Cost {
    let costs = [(); 5].map(|()| cost(data, args));
    let memory = costs.iter().map(|cost| cost.memory).min().unwrap();
    Cost { memory, ticks: costs.iter().map(|cost| cost.ticks).min().unwrap() }
}

/// A hundred times as many transactions, and the same cost. `varve tx` used to take two seconds and
/// 515 MB with 7.9 million transactions, because opening linked their rows again, made a tree of
/// all headers and loaded the unspent set.
#[test]
fn it_does_not_grow_with_the_chain() {
    let folder = tempfile::tempdir().unwrap();
    let open = |blocks: &str| {
        let (chain, data) = (folder.path().join(blocks), folder.path().join(format!("{blocks}d")));
        let height = simulate_blocks(&chain, blocks)["height"].to_string();
        ask(&data, &["sync", "--from", chain.to_str().unwrap()]);
        let txid = ask(&data, &["block", &height])["tx"][0].as_str().unwrap().to_owned();
        let status = ask(&data, &["status"]);
        let transactions = status["stores"]["archive"]["transactions"].as_u64().unwrap();
        let costs = [&["tx", &txid][..], &["status"]].map(|args| least(&data, args));
        (transactions, costs)
    };
    let (few, short) = open("104");
    let (many, long) = open("150");
    assert!(many > 100 * few, "{few} and {many} transactions");
    for (short, long) in short.into_iter().zip(long) {
        let told = format!("{short:?} for {few} transactions, {long:?} for {many}");
        assert!(long.memory < short.memory + BLOCK, "{told}");
        assert!(long.memory < 50_000, "{told}");
        assert!(long.ticks <= short.ticks + 3, "{told}");
    }
}

/// Questions are answered while a sync has the folder, and after it was killed.
#[test]
fn a_folder_in_use_is_read_and_so_is_one_that_was_left() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    let expected = simulate_blocks(&chain, "104");
    let from = ["sync", "--follow", "--from", chain.to_str().unwrap()];
    let mut sync =
        command(&data, &from).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !data.join("commit/commits-000000000000").exists() {
        assert!(sync.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(5));
    }
    for question in [&["status"][..], &["block", "0"], &["utxo", "stats"]] {
        ask(&data, question);
    }
    sync.kill().unwrap();
    sync.wait().unwrap();
    let begun = ask(&data, &["status"])["height"].as_u64().unwrap();
    assert_eq!(ask(&data, &["status"])["height"], begun);
    ask(&data, &["sync", "--from", chain.to_str().unwrap()]);
    assert_eq!(ask(&data, &["status"])["bestblock"], expected["tip"]);
}
