//! `--memory` bounds the whole process: syncs in control groups, and what `status` says.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;
use std::{fs, thread};

use serde_json::Value;
use varve_testdata::cgroup::{Cgroup, inside};
use varve_testdata::skip;

use crate::varve::{ask, command, json, refusal, run, simulate, varve};

const MIB: u64 = 1 << 20;
/// What the group may have beyond `--memory`: the kernel's own memory for the process and its
/// files, and page cache that is being written and cannot be taken back at once.
const SLACK: u64 = 16 * MIB;

/// The anonymous memory of a process, in bytes: what `--memory` is about.
fn anonymous(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10)
}

/// The most anonymous memory that a child has until it ends.
fn peak(child: &mut Child) -> u64 {
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        peak = peak.max(anonymous(child.id()).unwrap_or(0));
        thread::sleep(Duration::from_millis(5));
    }
    peak
}

/// Syncs a chain in a group of little more than its memory; gives the tip and the peak.
fn sync_within(chain: &Path, data: &Path, memory: u64, group: &Cgroup) -> (Value, u64) {
    let size = format!("{}M", memory / MIB);
    let sync = command(data, &["sync", "--from", chain.to_str().unwrap(), "--memory", &size]);
    let mut child =
        inside(group, &sync).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let peak = peak(&mut child);
    let answer = json(&child.wait_with_output().unwrap());
    (answer["bestblock"].clone(), peak)
}

#[test]
fn a_sync_stays_within_its_memory() {
    let folder = tempfile::tempdir().unwrap();
    let chain = folder.path().join("chain");
    let out = chain.to_str().unwrap();
    let sim = varve(&["sim", "--out", out, "--blocks", "160", "--seed", "7", "--profile", "dense"]);
    assert!(sim.status.success(), "{}", String::from_utf8_lossy(&sim.stderr));
    let expected = fs::read(chain.join("expected.json")).unwrap();
    let expected: Value = serde_json::from_slice(&expected).unwrap();
    for memory in [64 * MIB, 256 * MIB] {
        let Some(group) = Cgroup::new(memory + SLACK) else {
            return skip("no control group with a memory limit can be made here");
        };
        let data = folder.path().join(memory.to_string());
        let (tip, peak) = sync_within(&chain, &data, memory, &group);
        println!("{} MiB of {}: group {:?}", peak / MIB, memory / MIB, group.peak());
        assert_eq!(tip, expected["tip"]);
        assert!(peak <= memory, "{} MiB of {}", peak / MIB, memory / MIB);
        assert!(peak > memory / 3, "the memory is used: {} of {}", peak / MIB, memory / MIB);
    }
}

#[test]
fn status_tells_how_the_memory_is_split() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    simulate(&chain);
    ask(&data, &["sync", "--from", chain.to_str().unwrap()]);
    let part = |of: &Value, name: &str| of[name].as_u64().unwrap_or_else(|| panic!("{name}: {of}"));
    for memory in [64 * MIB, 2048 * MIB] {
        let status = ask(&data, &["status", "--memory", &memory.to_string()]);
        let split = &status["memory"];
        let names = ["program", "headers", "archive", "blocks"];
        let set = &split["utxo"];
        let parts: u64 = names.iter().map(|name| part(split, name)).sum();
        assert_eq!(parts + part(set, "budget"), memory, "{split}");
        assert_eq!(part(split, "budget"), memory);
        assert!(names.iter().all(|name| part(split, name) > 0), "{split}");
        let names = ["index", "merge", "joiner", "undo", "page_buffers", "window"];
        let of_set: u64 = names.iter().map(|name| part(set, name)).sum();
        assert_eq!(of_set, part(set, "budget"));
        assert_eq!(split["records_index"], Value::Null);
    }
    ask(&data, &["records", "conflicts"]);
    let status = ask(&data, &["status"]);
    part(&status["memory"], "records_index");
    let plain = varve(&["status", "--network", "regtest", "--datadir", data.to_str().unwrap()]);
    let plain = String::from_utf8(plain.stdout).unwrap();
    for word in ["  memory     2.00 GiB: program 272", "archive 384", "window", "  records    "] {
        assert!(plain.contains(word), "{plain}");
    }
}

/// The check comes before anything is made, and names the option and what would do.
#[test]
fn too_little_memory_is_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    simulate(&chain);
    let from = chain.to_str().unwrap();
    let refused = |data: &Path, args: &[&str]| {
        let told = refusal(&run(data, &[args, &["--memory", "1M"]].concat()));
        assert!(told.contains("--memory 1M is too little"), "{told}");
        assert!(told.ends_with("pass --memory 52M or more"), "{told}");
        assert!(!data.exists(), "{told}");
    };
    refused(&data, &["sync", "--from", from]);
    ask(&data, &["sync", "--from", from, "--memory", "64M"]);
    let file = folder.path().join("set");
    ask(&data, &["utxo", "export", file.to_str().unwrap()]);
    let height = ask(&data, &["status"])["height"].to_string();
    let import = ["utxo", "import", file.to_str().unwrap(), "--height", &height];
    refused(&folder.path().join("other"), &import);
    let told = refusal(&run(&data, &["records", "conflicts", "--memory", "1M"]));
    assert!(told.contains("--memory") && told.contains("or more"), "{told}");
    assert!(!data.join("records").exists());
}

/// What grows with the chain is a few hundred bytes a header: with the least memory a chain of any
/// number of transactions is synced.
#[test]
fn the_least_memory_is_enough_for_a_chain() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    let expected = simulate(&chain);
    let from = chain.to_str().unwrap();
    let synced = ask(&data, &["sync", "--from", from, "--memory", "53M"]);
    assert_eq!(synced["bestblock"], expected["tip"]);
    ask(&data, &["verify", "--memory", "53M"]);
}
