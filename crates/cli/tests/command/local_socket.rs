//! Commands beside a process that holds the folder: their answers are those of a folder at rest, to
//! the byte.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::serve::Place;
use crate::served::Served;
use crate::varve::{ask, command, refusal, run, varve};

/// Questions whose answers do not depend on who gives them.
fn questions(expected: &Value) -> Vec<Vec<String>> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut questions: Vec<Vec<&str>> = vec![
        vec!["block", "0"],
        vec!["block", "101"],
        vec!["block", "90000"],
        vec!["utxo", "stats"],
        vec!["utxo", "stats", "--hash", "muhash"],
        vec!["utxo", "stats", "--hash", "none"],
        vec!["utxo", "stats", "--at", "60"],
        vec!["address", "no address"],
    ];
    let tip = text(&expected["tip"]);
    questions.push(vec!["block", &tip]);
    let stale: Vec<String> =
        expected["chaintips"].as_array().unwrap().iter().map(|tip| text(&tip["hash"])).collect();
    questions.extend(stale.iter().map(|hash| vec!["block", hash.as_str()]));
    let mut named = Vec::new();
    for output in expected["outputs"].as_array().unwrap().iter().take(12) {
        let txid = text(&output["txid"]);
        let outpoint = format!("{txid}:{}", output["vout"]);
        named.push((txid, outpoint));
    }
    for (txid, outpoint) in &named {
        questions.push(vec!["tx", txid]);
        questions.push(vec!["proof", txid]);
        questions.push(vec!["proof", txid, "--format", "tsc", "--full-tx"]);
        questions.push(vec!["spender", outpoint]);
        questions.push(vec!["utxo", "get", outpoint]);
    }
    let scripts: Vec<String> = expected["scripts"]
        .as_array()
        .unwrap()
        .iter()
        .take(6)
        .map(|script| text(&script["scripthash"]))
        .collect();
    for script in &scripts {
        questions.push(vec!["address", script]);
        questions.push(vec!["address", script, "--at", "110", "--limit", "7"]);
    }
    questions.into_iter().map(|args| args.into_iter().map(str::to_owned).collect()).collect()
}

/// The answer for people or for programs.
fn answer(data: &Path, question: &[String], as_json: bool) -> Output {
    let mut args: Vec<&str> = question.iter().map(String::as_str).collect();
    args.extend(["--network", "regtest", "--datadir", data.to_str().unwrap()]);
    if as_json {
        args.push("--json");
    }
    varve(&args)
}

/// The indexes of a folder without their sizes, which change as a running node rewrites its files.
fn indexes(data: &Path) -> Value {
    let mut listed = ask(data, &["index", "list"]);
    for index in listed["indexes"].as_array_mut().unwrap() {
        let bytes = index.as_object_mut().unwrap().remove("bytes");
        assert!(bytes.unwrap().as_u64().unwrap() > 0, "{index}");
    }
    listed
}

/// What a command leaves: standard output, exit code, and the sentence of a refusal.
fn left(output: &Output) -> (String, Option<i32>, Vec<String>) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let errors = text(&output.stderr);
    let errors = errors.lines().filter(|line| line.starts_with("error: ")).map(str::to_owned);
    (text(&output.stdout), output.status.code(), errors.collect())
}

#[test]
fn answers_beside_a_server_are_those_of_the_folder_at_rest() {
    let place = Place::new();
    let served = place.serve(&[]);
    served.until_tip(place.tip());
    served.stop();
    let questions = questions(&place.expected);
    let at_rest: Vec<_> = questions
        .iter()
        .flat_map(|question| [true, false].map(|json| left(&answer(&place.data, question, json))))
        .collect();
    let indexes_at_rest = indexes(&place.data);
    // A server that follows, and one without a source.
    for from in [Some(()), None] {
        let served = from.map_or_else(|| Served::start(&place.data, &[]), |()| place.serve(&[]));
        served.until_tip(place.tip());
        let beside: Vec<_> = questions
            .iter()
            .flat_map(|question| {
                [true, false].map(|json| left(&answer(&place.data, question, json)))
            })
            .collect();
        for (number, (beside, at_rest)) in beside.iter().zip(&at_rest).enumerate() {
            assert_eq!(beside, at_rest, "{:?}", questions[number / 2]);
        }
        assert_eq!(indexes(&place.data), indexes_at_rest);
        let status = ask(&place.data, &["status"]);
        assert_eq!(status["bestblock"], place.expected["tip"]);
        assert_eq!(status["memory"]["budget"], 2_u64 << 30, "{status}");
        served.stop();
    }
}

#[test]
fn a_server_lets_its_sync_rest_for_commands_that_write() {
    let place = Place::new();
    let served = place.serve(&[]);
    served.until_tip(place.tip());
    assert_eq!(ask(&place.data, &["verify"])["height"], place.expected["height"]);
    let tip = place.tip();
    let verdict = ask(&place.data, &["invalidate", tip]);
    assert_ne!(verdict["bestblock"].as_str(), Some(tip), "{verdict}");
    let served_tip = served.ok("/api/blocks/tip/hash");
    assert_eq!(verdict["bestblock"].as_str(), Some(served_tip.as_str()), "the servers see it");
    ask(&place.data, &["reconsider", tip]);
    served.until_tip(tip);
    ask(&place.data, &["compact"]);
    // The sync goes on: what is added to the folder comes.
    let log = served.stop();
    assert!(log.contains("sync_paused"), "{log}");
    ask(&place.data, &["verify"]);
}

#[test]
fn what_needs_the_folder_alone_is_refused_and_says_what_to_do() {
    let place = Place::new();
    let served = place.serve(&[]);
    served.until_tip(place.tip());
    let holder = format!("process {} (`varve serve`)", served.id());
    let from = place.chain.to_str().unwrap();
    let alone: [&[&str]; 4] = [
        &["repair"],
        &["index", "add", "filter"],
        &["index", "drop", "stats"],
        &["sync", "--from", from],
    ];
    for command in alone {
        let message = refusal(&run(&place.data, command));
        assert!(message.contains(&holder) && message.contains("stop it first"), "{message}");
    }
    served.stop();
}

#[test]
fn a_sync_answers_beside_itself_and_refuses_what_writes() {
    let place = Place::new();
    let from = place.chain.to_str().unwrap();
    let mut sync = command(&place.data, &["sync", "--from", from, "--follow"]);
    let mut sync = sync.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    while !place.data.join("socket").exists() {
        assert!(begin.elapsed() < Duration::from_secs(60) && sync.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(5));
    }
    while ask(&place.data, &["status"])["bestblock"] != place.expected["tip"] {
        assert!(begin.elapsed() < Duration::from_secs(60));
    }
    assert_eq!(ask(&place.data, &["block", "3"])["height"], 3);
    let message = refusal(&run(&place.data, &["invalidate", place.tip()]));
    let holder = format!("process {} (`varve sync`)", sync.id());
    assert!(message.contains(&holder), "{message}");
    sync.kill().unwrap();
    sync.wait().unwrap();
    // The socket that it left stops nobody.
    assert!(place.data.join("socket").exists());
    assert_eq!(ask(&place.data, &["block", "3"])["height"], 3);
    ask(&place.data, &["verify"]);
}

#[test]
fn another_network_is_refused_in_the_same_words() {
    let place = Place::new();
    let served = place.serve(&[]);
    let args = ["status", "--network", "signet", "--datadir", place.data.to_str().unwrap()];
    let message = refusal(&varve(&args));
    assert!(message.contains("holds the chain of regtest, not of signet"), "{message}");
    served.stop();
}

#[test]
fn the_socket_is_the_owners_and_a_file_of_its_name_is_left_alone() {
    let place = Place::new();
    let served = place.serve(&[]);
    served.until_tip(place.tip());
    let socket = place.data.join("socket");
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    served.stop();
    assert!(!socket.exists(), "an ordered end removes it");
    fs::write(&socket, "mine").unwrap();
    let served = place.serve(&[]);
    served.until("a warning", |served| served.log().contains("no_local_socket"));
    assert_eq!(served.ok("/api/blocks/tip/hash"), place.tip(), "it serves all the same");
    let message = refusal(&run(&place.data, &["status"]));
    assert!(message.contains("in use by"), "{message}");
    served.stop();
    assert_eq!(fs::read(&socket).unwrap(), b"mine");
}

#[test]
fn a_folder_with_a_long_path_is_reached_too() {
    let mut place = Place::new();
    place.data = place.folder.path().join("d".repeat(120)).join("data");
    let served = place.serve(&[]);
    served.until_tip(place.tip());
    assert_eq!(ask(&place.data, &["status"])["bestblock"], place.expected["tip"]);
    served.stop();
}

#[test]
fn an_export_beside_a_server_is_the_same_file() {
    let place = Place::new();
    let served = place.serve(&[]);
    served.until_tip(place.tip());
    let work = tempfile::tempdir().unwrap();
    // A relative path is the asking process's.
    let mut export = command(&place.data, &["utxo", "export", "set.dat"]);
    let export = export.current_dir(work.path()).output().unwrap();
    assert!(export.status.success(), "{}", String::from_utf8_lossy(&export.stderr));
    let beside = fs::read(work.path().join("set.dat")).unwrap();
    let piped = run(&place.data, &["utxo", "export", "-"]);
    assert!(piped.status.success());
    assert_eq!(piped.stdout, beside);
    served.stop();
    assert_eq!(run(&place.data, &["utxo", "export", "-"]).stdout, beside);
}

#[test]
fn many_commands_at_once_are_all_answered() {
    let place = Place::new();
    let served = place.serve(&[]);
    served.until_tip(place.tip());
    let asked: Vec<_> = (0..40)
        .map(|height: u32| {
            let height = height.to_string();
            let child = command(&place.data, &["block", &height])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn();
            (height, child.unwrap())
        })
        .collect();
    for (height, child) in asked {
        let output = child.wait_with_output().unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["height"].to_string(), height);
    }
    served.stop();
}
