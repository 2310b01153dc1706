//! `varve demo`: what it shows, and that it ends.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::varve::{json, varve};

#[test]
fn without_a_terminal_it_mines_asks_its_servers_and_ends() {
    let begin = Instant::now();
    let answer: Value = json(&varve(&["demo", "--blocks", "104", "--json"]));
    assert!(begin.elapsed() < Duration::from_secs(240));
    assert_eq!(answer["height"], 104);
    let live = &answer["live"];
    assert!(live["height"].as_u64().unwrap() > 104, "{answer}");
    assert!(live["reorgs"].as_u64().unwrap() >= 1, "{answer}");
    assert!(live["mempool_transactions"].as_u64().unwrap() >= 50, "{answer}");
    assert!(live["answers"].as_u64().unwrap() >= 10, "{answer}");
    let blocks = live["blocks"].as_u64().unwrap();
    assert!(blocks > live["height"].as_u64().unwrap() - 104, "stale blocks among them: {answer}");
}

#[test]
fn people_get_a_summary() {
    let output = varve(&["demo", "--blocks", "104", "--once", "--seed", "9"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for word in ["tip ", "unspent", "mined", "reorganisations", "served"] {
        assert!(text.contains(word), "no {word}: {text}");
    }
}

/// On a terminal it serves until Ctrl-C. `script` gives it one.
#[test]
fn on_a_terminal_it_goes_on_until_it_is_interrupted() {
    if Command::new("script").arg("--version").stdout(Stdio::null()).status().is_err() {
        varve_testdata::skip("`script`, which gives a terminal, is not installed");
        return;
    }
    let varve = env!("CARGO_BIN_EXE_varve");
    let line = format!("exec {varve} demo --blocks 104 --interval 1");
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    let mut script = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(script.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.by_ref().any(|line| line.contains("explorer") && line.contains("http://")));
    assert!(lines.by_ref().any(|line| line.contains("Ctrl-C ends it")));
    std::io::Write::write_all(script.stdin.as_mut().unwrap(), b"\x03").unwrap();
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = script.try_wait().unwrap() {
            break status;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "it does not end");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(status.code(), Some(0));
}
