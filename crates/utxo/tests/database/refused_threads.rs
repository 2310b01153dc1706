//! A system that refuses threads: the joiner continues with those it got, or the error says what to
//! do.
//!
//! The limit on processes does not apply to root, so threads are refused by limiting the address
//! space: in a child process every thread asks for a huge stack (`RUST_MIN_STACK`).

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread::Builder;

use varve_consensus::BlockAt;
use varve_testdata::Random;
use varve_types::Height;
use varve_utxo::{DatabaseView, Error, Joiner, JoinerOptions, Repeats};

use crate::joiner::{ahead, parse};
use crate::twin::{Twin, oracle_state, small, state};

/// Names the stack of a thread, in the child process.
const CHILD: &str = "VARVE_TEST_REFUSED_THREADS";
const WORKERS: usize = 16;

/// Runs `test` in a child with 2 GB of address space whose threads ask for stacks of this size.
fn in_child(test: &str, stack: u64) {
    let mut child = Command::new("timeout");
    child.args([
        "-k",
        "1",
        "120",
        "sh",
        "-c",
        "ulimit -c 0; ulimit -v 2000000; exec \"$0\" \"$@\"",
    ]);
    child.arg(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--test-threads=1", "--nocapture"]);
    child.env(CHILD, "1").env("RUST_MIN_STACK", stack.to_string());
    let done = child.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(String::from_utf8_lossy(&done.stdout).contains("1 passed"), "{test} did not run");
}

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// How many of [`WORKERS`] threads the system gives at a time.
fn threads_there_are() -> usize {
    let (keep, wait) = channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    std::thread::scope(|scope| {
        let spawn = |_| Builder::new().spawn_scoped(scope, || wait.lock().unwrap().recv()).is_ok();
        let count = (0..WORKERS).filter(|number| spawn(*number)).count();
        drop(keep);
        count
    })
}

/// Joins some blocks with many workers, and gives how many have retired without an error.
fn join() -> Result<usize, Error> {
    let (mut twin, mut chance) = (Twin::new(1, small()), Random::new(1));
    (0..5).for_each(|_| twin.append_draft(&mut chance).unwrap());
    let base = twin.height();
    let bytes = ahead(&mut twin, &mut chance, 8);
    let blocks = parse(&bytes);
    let at = |(height, block)| BlockAt::new(Height::new(height), block);
    let blocks: Vec<BlockAt<'_>> = (base..).zip(&blocks).map(at).collect();
    let options = JoinerOptions::new(NonZeroUsize::new(WORKERS).unwrap());
    let check = |_: &BlockAt<'_>, _: &DatabaseView| Ok::<(), String>(());
    let joined = Joiner::scope(twin.database(), &options, check, |joiner| {
        blocks.iter().for_each(|block| joiner.submit(block, Repeats::Possible).unwrap());
        let retired = std::iter::from_fn(|| joiner.retire());
        retired.filter(|retired| retired.result.is_ok()).count()
    })?;
    let coins: HashSet<_> = state(&twin.database().snapshot()).into_keys().collect();
    assert_eq!(coins, oracle_state(&twin.oracle).into_keys().collect());
    Ok(joined)
}

#[test]
fn a_joiner_goes_on_with_the_workers_that_it_got() {
    if !is_child() {
        return in_child(
            "refused_threads::a_joiner_goes_on_with_the_workers_that_it_got",
            256 << 20,
        );
    }
    let count = threads_there_are();
    assert!((1..WORKERS).contains(&count), "the limit binds: {count} threads");
    assert_eq!(join().unwrap(), 8);
}

#[test]
fn a_joiner_without_a_single_worker_says_what_to_do() {
    if !is_child() {
        return in_child(
            "refused_threads::a_joiner_without_a_single_worker_says_what_to_do",
            1 << 50,
        );
    }
    assert_eq!(threads_there_are(), 0);
    let error = join().unwrap_err();
    assert!(matches!(error, Error::Thread(_)), "{error}");
    assert!(error.to_string().contains("raise the limits"), "{error}");
}
