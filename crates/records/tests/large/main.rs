//! Large transactions through the whole store, and the memory that they take.
//!
//! Two shapes: *wide*, a transaction of very many outputs, and *long*, one of very many bytes in
//! few of them. Each lives a whole life in a child process: created, read, spent in its last part,
//! mined; then the child is killed and another one continues: what was acknowledged is there, a
//! double spend lets it lose, and it is pruned with its blob.
//!
//! The child reports after every step how much memory it had at most during it. The test holds that
//! to [`Shape::bound`]:
//!
//! ```text
//! the bytes of the transaction, once
//! + bytes for each output, by what is done: 50 to create, 80 to read all slots, 40 to remove
//! + what the store keeps in memory anyway: of its log, and of outputs that spenders asked for
//! + 12 MiB
//! ```
//!
//! CI runs 600,000 outputs and 64 MiB. With `VARVE_SEQUENCES` set, as `cargo xtask soak` does, it
//! is five million outputs and 1 GiB.

// With weak hashes every lookup reads all entries that share a hash.
#![cfg(not(feature = "weak-hash"))]
#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]
#![expect(clippy::indexing_slicing, reason = "in a test a panic is the report")]

mod life;
mod peak;
mod shape;

use std::env;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use shape::Shape;

/// Says to a child which part of which life to play, and where.
const PLAY: &str = "VARVE_RECORDS_LARGE_PLAY";
const DIRECTORY: &str = "VARVE_RECORDS_LARGE_DIR";

/// Not a test of its own: what a child does. Does nothing when it is not one.
#[test]
fn play_the_child() {
    let Ok(play) = env::var(PLAY) else { return };
    let directory = env::var_os(DIRECTORY).unwrap();
    let (part, name) = play.split_once(' ').unwrap();
    let shape = Shape::named(name);
    match part {
        "begin" => life::begin(Path::new(&directory), &shape),
        "go-on" => life::go_on(Path::new(&directory), &shape),
        other => panic!("no part {other}"),
    }
}

#[test]
fn a_transaction_of_very_many_outputs_takes_bounded_memory() {
    live("wide");
}

#[test]
fn a_transaction_of_very_many_bytes_takes_bounded_memory() {
    live("long");
}

fn live(name: &str) {
    let directory = tempfile::tempdir().unwrap();
    let shape = Shape::named(name);
    let mut first = spawn("begin", name, directory.path());
    let mut steps = hear(&mut first, &shape);
    first.kill().unwrap();
    first.wait().unwrap();
    let mut second = spawn("go-on", name, directory.path());
    steps += hear(&mut second, &shape);
    // The rest is what the test program says of itself.
    std::io::copy(&mut second.stdout.take().unwrap(), &mut std::io::sink()).unwrap();
    assert!(second.wait().unwrap().success(), "the second child failed");
    assert_eq!(steps, life::STEPS);
}

fn spawn(part: &str, name: &str, directory: &Path) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["play_the_child", "--exact", "--nocapture", "--test-threads=1"])
        .env(PLAY, format!("{part} {name}"))
        .env(DIRECTORY, directory)
        // Large pieces of memory go back to the system when they are freed, and do not count then.
        .env("MALLOC_MMAP_THRESHOLD_", "1048576")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Listens until the child has done its part, and looks at every step. Returns how many there were.
fn hear(child: &mut Child, shape: &Shape) -> usize {
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines().map(Result::unwrap);
    let mut steps = 0;
    for line in lines.by_ref() {
        if line == life::OVER {
            return steps;
        }
        let Some(step) = line.strip_prefix(peak::STEP) else { continue };
        let mut words = step.split_whitespace();
        let (name, bytes) = (words.next().unwrap(), words.next().unwrap().parse::<u64>().unwrap());
        let bound = shape.bound(name);
        println!("{}: {step}, bound {} MiB", shape.name, bound >> 20);
        assert!(bytes <= bound, "{name} took {bytes} bytes, the bound is {bound}");
        steps += 1;
    }
    panic!("the child ended before it was done, after {steps} steps");
}
