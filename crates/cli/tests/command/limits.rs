//! Limits of the machine: too little memory and too few threads are sentences.

use std::path::Path;
use std::process::{Command, Output};

use crate::varve::{ask, command, json, run, simulate};

/// Runs the command in an address space of this many kilobytes.
fn limited(data: &Path, args: &[&str], kilobytes: u64) -> Output {
    let varve = command(data, args);
    let script = format!("ulimit -c 0; ulimit -v {kilobytes}; exec timeout 120 \"$@\"");
    Command::new("sh")
        .args(["-c", &script, "sh"])
        .arg(varve.get_program())
        .args(varve.get_args())
        .env_remove("RUST_BACKTRACE")
        .output()
        .unwrap()
}

#[test]
fn a_small_address_space_is_told_in_a_sentence_and_harms_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    let expected = simulate(&chain);
    let sync = ["sync", "--from", chain.to_str().unwrap()];
    let (mut refused, mut done) = (0, 0);
    // With less than the first of these the system cannot load the program.
    for kilobytes in [100_000, 150_000, 200_000, 400_000, 600_000, 800_000, 900_000, 4_000_000] {
        let output = limited(&data, &sync, kilobytes);
        if output.status.success() {
            done += 1;
            continue;
        }
        refused += 1;
        let told = String::from_utf8(output.stderr).unwrap();
        let what = format!("{kilobytes} kB, {}: {told}", output.status);
        assert_eq!(output.status.code(), Some(1), "{what}");
        assert!(output.stdout.is_empty(), "{what}");
        let errors = told.lines().filter(|line| line.starts_with("error: ")).count();
        assert_eq!(errors, 1, "{what}");
        for word in ["panicked", "RUST_BACKTRACE", "abort", "bug"] {
            assert!(!told.contains(word), "{what}");
        }
        assert!(told.contains("ulimit") || told.contains("memory"), "{what}");
    }
    assert!(refused > 0 && done > 0, "{refused} refused, {done} done");
    assert_eq!(json(&run(&data, &sync))["bestblock"], expected["tip"]);
    ask(&data, &["verify"]);
}

#[test]
fn no_memory_at_all_is_a_mistake_in_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    for size in ["0", "0K", "0G"] {
        let output = run(&data, &["sync", "--from", "nowhere", "--memory", size]);
        assert_eq!(output.status.code(), Some(2), "{size}");
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains("write a size above 0"), "{told}");
    }
    assert!(!data.exists());
}
