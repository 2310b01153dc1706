//! `varve sync --follow` as a process of its own: killed again and again, beside a node that goes
//! on, is restarted, changes its mind.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use varve_testdata::bitcoind::Bitcoind;

use super::{check_tip, ways};
use crate::varve::{ask, command};

const LIMIT: Duration = Duration::from_secs(30);

/// A process, and what it has said.
struct Process {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Process {
    fn start(data: &Path, args: &[&str]) -> Self {
        let args = [&["sync", "--verify", "scripts"], args].concat();
        let mut command = command(data, &args);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (told, stderr) = (lines.clone(), child.stderr.take().unwrap());
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                told.lock().unwrap().push(line);
            }
        });
        Self { child, lines }
    }

    /// Waits until it has said that it is at this tip.
    fn tells(&mut self, tip: &str) {
        let begin = Instant::now();
        let line = format!("block {tip}");
        while !self.lines.lock().unwrap().iter().any(|told| told.ends_with(&line)) {
            let runs = self.child.try_wait().unwrap().is_none();
            let told = self.lines.lock().unwrap().join("\n");
            assert!(runs && begin.elapsed() < LIMIT, "it does not tell of {tip}:\n{told}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// SIGKILL. Whether it was still running.
    fn kill(mut self) -> bool {
        let runs = self.child.try_wait().unwrap().is_none();
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        runs
    }
}

/// The first message of headers has less work than our chain, and so has the second alone.
#[test]
fn a_branch_of_4500_from_genesis_over_2500_by_peer() {
    let Some(node) = Bitcoind::start(&[]) else { return };
    node.mine(2500);
    let folder = tempfile::tempdir().unwrap();
    let mut process = Process::start(folder.path(), &["--peer", &node.p2p_address(), "--follow"]);
    process.tells(&node.tip());
    let first = node.call("getblockhash", &json!([1]));
    node.call("invalidateblock", &json!([first]));
    node.mine(4500);
    process.tells(&node.tip());
    assert!(process.kill(), "it goes on");
    check_tip(folder.path(), &node);
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended; then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn killed_in_the_middle_of_a_sync_by_every_way() {
    let Some(node) = Bitcoind::start(&[]) else { return };
    node.mine(2000);
    let folder = tempfile::tempdir().unwrap();
    for [flag, value] in ways(&node) {
        let data = folder.path().join(&flag);
        let (mut killed, mut height) = (0, 0);
        for round in 0..6 {
            let process = Process::start(&data, &[&flag, &value]);
            thread::sleep(Duration::from_millis(15 + 25 * round));
            killed += u32::from(process.kill());
            // Whatever there is, it is a chain, and no shorter than before.
            if data.join("node").exists() {
                let now = ask(&data, &["status"])["height"].as_u64().unwrap();
                assert!(now >= height, "{now} after {height}");
                height = now;
            }
        }
        assert!(killed >= 2, "{flag}: killed {killed} times");
        ask(&data, &["sync", &flag, &value, "--verify", "scripts"]);
        check_tip(&data, &node);
    }
}

#[test]
fn killed_while_it_follows_it_has_what_it_told_of() {
    let Some(mut node) = Bitcoind::start(&[]) else { return };
    node.mine(30);
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    // One folder, and each time another way to the node.
    for ([flag, value], depth) in ways(&node).into_iter().cycle().zip(1..=6) {
        let mut process = Process::start(&data, &[&flag, &value, "--follow"]);
        process.tells(&node.tip());
        node.mine(1);
        process.tells(&node.tip());
        node.reorganize(depth);
        process.tells(&node.tip());
        assert!(process.kill(), "{flag}: it follows");
        assert_eq!(ask(&data, &["status"])["bestblock"], node.tip(), "{flag}");
        // And while blocks come.
        let process = Process::start(&data, &[&flag, &value, "--follow"]);
        node.reorganize(depth);
        for _ in 0..depth {
            node.mine(5);
        }
        assert!(process.kill());
    }
    ask(&data, &["sync", "--from", node.folder().to_str().unwrap()]);
    check_tip(&data, &node);
    // The node goes away, and comes back.
    let peer = node.p2p_address();
    let mut process = Process::start(&data, &["--peer", &peer, "--follow"]);
    node.mine(1);
    process.tells(&node.tip());
    node.stop();
    node.start_again();
    node.reorganize(3);
    process.tells(&node.tip());
    process.kill();
    check_tip(&data, &node);
}
