//! A sync that is killed at the same short interval, again and again.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::varve::{ask, command, simulate};

/// Starts a sync that is not listened to.
fn start(data: &Path, args: &[&str]) -> Child {
    command(data, args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// What a process has had of the processors, in the system's ticks (hundredths of a second), and
/// whether it has ended. It must not have been waited for.
fn ticks(process: &Child) -> (u64, bool) {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.id())).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let of_user_and_system =
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    (of_user_and_system, fields[0] == "Z")
}

/// Waits until a process has had so many ticks, or has ended. Gives both.
fn wait(process: &Child, most: u64) -> (u64, bool) {
    loop {
        let (ticks, has_ended) = ticks(process);
        if has_ended || ticks >= most {
            return (ticks, has_ended);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A life is a sixth of what the whole sync takes, and long enough for one that finds nothing new.
/// The first commit of a sync used to come after a second, and what a start had replayed was lost:
/// a sync that was killed every second stayed where it was.
///
/// Lives are measured by the processor's time, so that they are as long on a busy machine.
#[test]
fn it_still_advances() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    let expected = simulate(&chain);
    let from = ["sync", "--from", chain.to_str().unwrap()];
    let whole = folder.path().join("whole");
    let [whole, opening] = [(); 2].map(|()| {
        let mut sync = start(&whole, &from);
        let (ticks, _) = wait(&sync, u64::MAX);
        assert!(sync.wait().unwrap().success());
        ticks
    });
    let life = (whole / 6).max(2 * opening).clamp(1, 90);
    for lives in 1.. {
        assert!(lives <= 150, "{lives} lives of {life} ticks were not enough for {whole}");
        let mut sync = start(&data, &from);
        let (_, has_ended) = wait(&sync, life);
        sync.kill().unwrap();
        let status = sync.wait().unwrap();
        if has_ended {
            assert!(status.success());
            break;
        }
    }
    assert_eq!(ask(&data, &["status"])["bestblock"], expected["tip"]);
    ask(&data, &["verify"]);
}
