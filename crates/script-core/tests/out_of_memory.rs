//! A script that cannot be checked for lack of memory has no verdict: the process ends.
//!
//! Core's interpreter catches every exception and calls the script false, so without our handler a
//! valid spend is refused here, and the block that holds it would be marked invalid.

#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::env;
use std::process::{Command, exit};

use varve_script_core::{SpentOutput, Transaction};

/// Set in the child process.
const CHILD: &str = "VARVE_SCRIPT_OUT_OF_MEMORY";

/// Exit codes of a child that got a verdict.
const VALID: i32 = 10;
const INVALID: i32 = 11;

/// A version 1 transaction with one input, which pushes 520 bytes, and one output.
fn transaction() -> Vec<u8> {
    let mut bytes = vec![1, 0, 0, 0, 1];
    bytes.extend([7; 36]);
    let push = [&[0x4d, 0x08, 0x02][..], &[1; 520]].concat();
    bytes.extend([0xfd, 0x0b, 0x02]);
    bytes.extend(push);
    bytes.extend([0xff; 4]);
    bytes.push(1);
    bytes.extend([0; 8]);
    bytes.extend([1, 0x51]);
    bytes.extend([0; 4]);
    bytes
}

/// Takes all memory that the process can get, down to the smallest piece.
fn take_all_memory() {
    let mut size = 64 << 20;
    while size >= 16 {
        let mut piece: Vec<u8> = Vec::new();
        match piece.try_reserve_exact(size) {
            Ok(()) => std::mem::forget(piece),
            Err(_) => size /= 2,
        }
    }
}

/// What the child does: a valid script that takes 100 KB of stack.
fn verify_without_memory(fill: bool) -> ! {
    // 200 times OP_DUP, under 201 operations.
    let script = [0x76; 200];
    let spent = [SpentOutput { value: 1, script: &script }];
    let tx = Transaction::new(&transaction(), &spent).unwrap();
    if fill {
        take_all_memory();
    }
    exit(if tx.verify(0, 0).is_ok() { VALID } else { INVALID })
}

#[test]
fn a_script_without_memory_gets_no_verdict() {
    if let Ok(fill) = env::var(CHILD) {
        verify_without_memory(fill == "full");
    }
    let run = |fill: &str| {
        let mut child = Command::new("sh");
        child.args(["-c", "ulimit -c 0; ulimit -v 1000000; exec \"$0\" \"$@\""]);
        child.arg(env::current_exe().unwrap());
        child.args(["--exact", "a_script_without_memory_gets_no_verdict", "--nocapture"]);
        let done = child.env(CHILD, fill).output().unwrap();
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let (code, output) = run("free");
    assert_eq!(code, Some(VALID), "{output}");
    let (code, output) = run("full");
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("error: out of memory while a script was checked;"), "{output}");
}
