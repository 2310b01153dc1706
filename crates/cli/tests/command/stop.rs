//! Ctrl-C: the sync ends in order, and goes on later.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::varve::{ask, command, simulate};

const LIMIT: Duration = Duration::from_secs(120);

fn signal(process: &Child, signal: &str) {
    let id = process.id().to_string();
    assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
}

/// Starts a sync that follows, and waits until it is at the tip. The program does not ignore
/// SIGHUP, even where these tests do, as under `nohup`: a child ignores what its parent ignores.
fn follow(data: &Path, chain: &Path, tip: &str) -> Child {
    let sync = command(data, &["sync", "--from", chain.to_str().unwrap(), "--follow"]);
    let mut follow = Command::new("env");
    follow.arg("--default-signal=HUP").arg(sync.get_program()).args(sync.get_args());
    let mut follow = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(follow.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(told.any(|line| line.ends_with(tip)));
    follow
}

/// Waits until it ends, and gives the exit code.
fn end(process: &mut Child) -> Option<i32> {
    let begin = Instant::now();
    while process.try_wait().unwrap().is_none() {
        assert!(begin.elapsed() < LIMIT, "it does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
    process.wait().unwrap().code()
}

#[test]
fn one_that_follows_gives_its_answer_whichever_way_it_is_asked_to_end() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    let expected = simulate(&chain);
    for name in ["-INT", "-TERM", "-HUP"] {
        let mut follow = follow(&data, &chain, expected["tip"].as_str().unwrap());
        signal(&follow, name);
        assert_eq!(end(&mut follow), Some(0), "{name}");
        let mut answer = String::new();
        follow.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let found = (&answer["bestblock"], &answer["height"]);
        assert_eq!(found, (&expected["tip"], &expected["height"]));
    }
}

/// What `nohup` does: the signal is ignored when the program starts, and stays so.
#[test]
fn one_that_was_started_to_outlive_its_terminal_does() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    let expected = simulate(&chain);
    let sync = command(&data, &["sync", "--from", chain.to_str().unwrap(), "--follow"]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]).arg(sync.get_program());
    shell.args(sync.get_args()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut sync = shell.spawn().unwrap();
    let mut told = BufReader::new(sync.stderr.take().unwrap()).lines().map(Result::unwrap);
    let tip = expected["tip"].as_str().unwrap();
    assert!(told.any(|line| line.ends_with(tip)));
    signal(&sync, "-HUP");
    std::thread::sleep(Duration::from_secs(1));
    assert!(sync.try_wait().unwrap().is_none(), "it goes on");
    signal(&sync, "-TERM");
    assert_eq!(end(&mut sync), Some(0));
}

#[test]
fn one_that_was_not_done_says_so_and_goes_on_later() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    let expected = simulate(&chain);
    let bytes = std::fs::read(chain.join("blocks/blk00000.dat")).unwrap();
    // A pipe that gives half of the blocks and then waits.
    let mut sync = command(&data, &["sync", "--from", "-"]);
    let sync = sync.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut sync = sync.spawn().unwrap();
    let mut pipe = sync.stdin.take().unwrap();
    std::io::Write::write_all(&mut pipe, &bytes[..bytes.len() / 2]).unwrap();
    signal(&sync, "-INT");
    assert_eq!(end(&mut sync), Some(1));
    let ended = sync.wait_with_output().unwrap();
    let told = String::from_utf8(ended.stderr).unwrap();
    assert!(told.contains("run the same command again"), "{told}");
    assert!(ended.stdout.is_empty());
    ask(&data, &["verify"]);
    let done = ask(&data, &["sync", "--from", chain.to_str().unwrap()]);
    assert_eq!(done["bestblock"], expected["tip"]);
}
