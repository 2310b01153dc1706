//! A sync that is killed at the same short interval, again and again.

use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::varve::{ask, command, simulate};

/// A life is a sixth of what the whole sync takes, and long enough for one that finds nothing new.
/// The first commit of a sync used to come after a second, and what a start had replayed was lost:
/// a sync that was killed every second stayed where it was.
#[test]
fn it_still_advances() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    let expected = simulate(&chain);
    let from = ["sync", "--from", chain.to_str().unwrap()];
    let whole = folder.path().join("whole");
    let time = |args: &[&str]| {
        let begin = Instant::now();
        ask(&whole, args);
        begin.elapsed()
    };
    let (whole, opening) = (time(&from), time(&from));
    let life = (whole / 6).max(2 * opening).min(Duration::from_millis(900));
    let (mut lives, mut ended) = (0, None::<ExitStatus>);
    while ended.is_none() {
        assert!(lives < 150, "{lives} lives of {life:?} were not enough for {whole:?}");
        let mut sync = command(&data, &from);
        let mut sync = sync.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begin = Instant::now();
        while begin.elapsed() < life && ended.is_none() {
            std::thread::sleep(Duration::from_millis(5));
            ended = sync.try_wait().unwrap();
        }
        sync.kill().unwrap();
        sync.wait().unwrap();
        lives += 1;
    }
    assert!(ended.is_some_and(|status| status.success()));
    assert_eq!(ask(&data, &["status"])["bestblock"], expected["tip"], "after {lives} lives");
    ask(&data, &["verify"]);
}
