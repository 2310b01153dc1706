//! Verdicts through the command: marks set and taken back, how far scripts were checked, and what
//! is damaged.

use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use serde_json::json;

use crate::exit_codes::{chain, genesis};
use crate::refused::write;
use crate::varve::{ask, refusal, run, simulate, varve};

/// Flips a bit of a file.
fn flip(path: &Path, at: u64) {
    let mut file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    let mut byte = [0];
    file.read_exact(&mut byte).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(&[byte[0] ^ 4]).unwrap();
}

#[test]
fn marks_are_set_and_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    let expected = simulate(&chain);
    let from = ["sync", "--from", chain.to_str().unwrap()];
    let message = refusal(&run(&data, &["invalidate", &"7".repeat(64)]));
    assert!(message.contains("there is no chain"), "{message}");
    ask(&data, &from);
    let block = ask(&data, &["block", "120"])["hash"].as_str().unwrap().to_owned();
    let below = ask(&data, &["block", "119"])["hash"].clone();
    let answer = ask(&data, &["invalidate", &block]);
    assert!(answer["height"].as_u64().unwrap() < 124, "{answer}");
    assert_ne!(answer["bestblock"], expected["tip"]);
    assert!(answer["invalid"].as_str().unwrap().contains("operator"), "{answer}");
    let status = ask(&data, &["status"]);
    assert_eq!(status["bestblock"], answer["bestblock"]);
    assert_eq!(status["invalid"][0]["hash"], block);
    assert_eq!(ask(&data, &from)["bestblock"], answer["bestblock"], "a sync does not follow it");
    assert_eq!(ask(&data, &["block", below.as_str().unwrap()])["invalid"], json!(null));
    ask(&data, &["verify"]);
    let answer = ask(&data, &["reconsider", &block]);
    assert_eq!((&answer["bestblock"], &answer["invalid"]), (&expected["tip"], &json!(null)));
    assert_eq!(ask(&data, &["status"])["invalid"], json!([]));
    ask(&data, &["verify"]);
    for command in ["invalidate", "reconsider"] {
        let message = refusal(&run(&data, &[command, &"7".repeat(64)]));
        assert!(message.contains("is not known"), "{message}");
        assert_eq!(run(&data, &[command, "xyz"]).status.code(), Some(2));
    }
    let genesis = ask(&data, &["block", "0"])["hash"].as_str().unwrap().to_owned();
    assert!(refusal(&run(&data, &["invalidate", &genesis])).contains("genesis"));
}

#[test]
fn how_far_scripts_were_checked_is_shown_and_made_up_for() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    let out = chain.to_str().unwrap();
    let sim = ["sim", "--out", out, "--blocks", "110", "--seed", "3", "--signed", "100"];
    assert!(varve(&sim).status.success());
    let text = data.to_str().unwrap();
    let plain = |args: &[&str]| {
        let place = ["--network", "regtest", "--datadir", text];
        let output = varve(&[args, &place].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr))
    };
    let (_, told) = plain(&["sync", "--from", out]);
    assert!(told.lines().next().unwrap().contains("scripts are not"), "{told}");
    let scripts = |to: u32, left: u32| {
        let assumed: Option<u32> = None;
        json!({ "checked_to": to, "assumed_to": assumed, "unchecked": left })
    };
    assert_eq!(ask(&data, &["status"])["scripts"], scripts(0, 110));
    let (shown, _) = plain(&["status"]);
    assert!(shown.contains("not of 110 blocks"), "{shown}");
    let (_, told) = plain(&["sync", "--from", out, "--verify", "scripts"]);
    assert!(told.lines().next().unwrap().contains("all scripts are checked"), "{told}");
    assert_eq!(ask(&data, &["status"])["scripts"], scripts(110, 0));
    let (shown, _) = plain(&["status"]);
    assert!(shown.contains("checked up to height 110\n"), "{shown}");
    let wrong = run(&data, &["sync", "--from", out, "--assume-valid", "off"]);
    assert_eq!(wrong.status.code(), Some(2));
    let (data, block) = (folder.path().join("assumed"), "1f".repeat(32));
    for assumed in ["0", &block] {
        let message = refusal(&run(&data, &["sync", "--from", out, "--assume-valid", assumed]));
        assert!(message.contains("pass --verify scripts"), "{message}");
        assert!(!data.exists(), "nothing was made");
    }
}

/// Scripts of BSV cannot be checked, so `status` does not say how.
#[test]
fn no_command_is_named_that_is_refused_on_bsv() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    let (out, data) = (chain.to_str().unwrap(), data.to_str().unwrap());
    assert!(varve(&["sim", "--out", out, "--blocks", "20", "--profile", "bsv"]).status.success());
    let place = ["--network", "bsv-regtest", "--datadir", data];
    assert!(varve(&[&["sync", "--from", out], &place[..]].concat()).status.success());
    let shown = varve(&[&["status"], &place[..]].concat());
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("not of 20 blocks\n"), "{shown}");
}

/// `status` says that it is damaged, not that it has not begun, and changes nothing; `verify` finds
/// it; `repair` mends it.
#[test]
fn a_damaged_index_is_told_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let (file, data) = (folder.path().join("blk00000.dat"), folder.path().join("data"));
    write(&file, &[vec![genesis()], chain(&genesis(), 0, 1, 20)].concat());
    ask(&data, &["sync", "--from", file.to_str().unwrap(), "--index", "filter,stats"]);
    ask(&data, &["verify"]);
    let last = fs::metadata(data.join("stats/stats-000000000000")).unwrap().len() - 9;
    for (file, at, index) in [
        ("stats/checkpoint", 30, Some("stats")),
        ("stats/stats-000000000000", 17, Some("stats")),
        ("stats/stats-000000000000", last, None),
        ("archive/filter_at.head", 4096 + 17, Some("filter")),
        ("archive/filter_at.head", 4096 + 4090, Some("filter")),
    ] {
        let path = data.join(file);
        flip(&path, at);
        for _ in 0..2 {
            let status = ask(&data, &["status"]);
            let damaged = status["indexes"].as_array().unwrap().iter();
            let damaged: Vec<_> = damaged.filter(|index| !index["damaged"].is_null()).collect();
            if let Some(index) = index {
                assert_eq!(damaged.len(), 1, "{file} {at}: {status}");
                assert_eq!(
                    (&damaged[0]["name"], &damaged[0]["height"]),
                    (&json!(index), &json!(null))
                );
            }
            let message = refusal_of_verify(&data);
            assert!(message.contains(file.rsplit('/').next().unwrap()), "{file} {at}: {message}");
        }
        flip(&path, at);
        ask(&data, &["verify"]);
    }
    flip(&data.join("archive/filter_at.head"), 4096 + 17);
    ask(&data, &["repair"]);
    ask(&data, &["verify"]);
}

/// A file that cannot be read may be whole: `status` says what the system said, and not that it is
/// damaged.
#[test]
fn an_index_that_cannot_be_read_is_not_called_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let (file, data) = (folder.path().join("blk00000.dat"), folder.path().join("data"));
    write(&file, &[vec![genesis()], chain(&genesis(), 0, 1, 5)].concat());
    ask(&data, &["sync", "--from", file.to_str().unwrap(), "--index", "stats"]);
    // Permissions do not bind root; that a folder is no file does.
    let checkpoint = data.join("stats/checkpoint");
    fs::remove_file(&checkpoint).unwrap();
    fs::create_dir(&checkpoint).unwrap();
    let output = run(&data, &["status"]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("checkpoint: Is a directory"), "{message}");
    assert!(!message.contains("damaged") && !message.contains("repair"), "{message}");
}

fn refusal_of_verify(data: &Path) -> String {
    let output = run(data, &["verify"]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    message
}
