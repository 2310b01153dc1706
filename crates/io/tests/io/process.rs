//! What needs a second process: a lock held by another, a map whose file is cut, a sandbox.
//!
//! Each test runs this test program again, with `VARVE_IO_TEST_CHILD` naming the part to play and
//! `VARVE_IO_TEST_DIR` the directory.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]
#![expect(unsafe_code, reason = "a foreign map and a sandbox take unsafe calls")]

use std::env;
use std::fs::OpenOptions;
use std::hint::black_box;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use varve_io::{
    Access, AlignedBuffer, BatchReader, Caching, Disk, Error, FAULT_EXIT_CODE, FileOffset, Method,
    ReadRequest, Storage,
};

const ROLE: &str = "VARVE_IO_TEST_CHILD";
const DIRECTORY: &str = "VARVE_IO_TEST_DIR";

fn child(role: &str, directory: &Path) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["process::play_the_child", "--exact", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).env(DIRECTORY, directory);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The body of the child processes; a no-op when run as an ordinary test.
#[test]
fn play_the_child() {
    let (Ok(role), Some(directory)) = (env::var(ROLE), env::var_os(DIRECTORY)) else { return };
    let disk = Disk::open(Path::new(&directory)).unwrap();
    match role.as_str() {
        "hold the lock" => {
            let _lock = disk.lock().unwrap();
            println!("\nlocked");
            // Until the parent kills this process or closes its end.
            let _ = std::io::stdin().lines().next();
        }
        "open many files" => {
            let open = |n: u32| disk.open(&format!("{n}"), Access::Create, Caching::Buffered);
            let files: Vec<_> = (0..200).map(|n| open(n).unwrap()).collect();
            assert_eq!(files.len(), 200);
        }
        "read a cut map" => {
            let file = disk.open("cut", Access::Read, Caching::Buffered).unwrap();
            let map = file.map(FileOffset::new(4096), 8 * 4096).unwrap();
            let other = OpenOptions::new().write(true).open(file.path()).unwrap();
            other.set_len(3 * 4096).unwrap();
            assert_eq!(map[0], 7, "what is left can be read");
            black_box(map[5 * 4096 + 10]);
        }
        "fault elsewhere" => {
            // A map of ours installs the handler; the fault is on a map it does not know.
            let file = disk.open("cut", Access::Read, Caching::Buffered).unwrap();
            let map = file.map(FileOffset::ZERO, 4096).unwrap();
            black_box(map[0]);
            let other = OpenOptions::new().read(true).write(true).open(file.path()).unwrap();
            // SAFETY: not kept: the file is cut under the map, and the read faults by design.
            let foreign = unsafe { memmap2::Mmap::map(&other) }.unwrap();
            other.set_len(4096).unwrap();
            black_box(foreign[2 * 4096]);
        }
        "read without a ring" => {
            let file = disk.open("cut", Access::Read, Caching::Direct).unwrap();
            assert_eq!(BatchReader::new(8).method(), Method::Ring, "allowed so far");
            forbid_rings();
            let mut reader = BatchReader::new(8);
            assert_eq!(reader.method(), Method::Pread);
            let requests = (0..16).map(|page| ReadRequest {
                tag: page,
                file: file.clone(),
                offset: FileOffset::new(page * 4096),
                buffer: AlignedBuffer::zeroed(4096),
            });
            let results = reader.read_all(requests.collect());
            assert!(results.into_iter().all(|page| page.unwrap()[..] == [7; 4096]));
        }
        other => panic!("no such role: {other}"),
    }
}

/// What a container's sandbox does: `io_uring_setup` answers "not permitted" from here on.
fn forbid_rings() {
    let statement = |code: u32, k: u32, jt: u8| libc::sock_filter {
        code: u16::try_from(code).unwrap(),
        jt,
        jf: 0,
        k,
    };
    let setup = u32::try_from(libc::SYS_io_uring_setup).unwrap();
    let refuse = libc::SECCOMP_RET_ERRNO | u32::try_from(libc::EPERM).unwrap();
    let mut filter = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        libc::sock_filter {
            jf: 1,
            ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, setup, 0)
        },
        statement(libc::BPF_RET | libc::BPF_K, refuse, 0),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0),
    ];
    let program = libc::sock_fprog { len: 4, filter: filter.as_mut_ptr() };
    // SAFETY: the first call passes integers only; the second a program of four statements that
    // lives until the call has copied it.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_MODE_FILTER;
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program), 0);
    }
}

fn wait_for_lock(child: &mut Child) {
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.ends_with("locked")));
}

#[test]
fn a_directory_locked_by_another_process_says_by_whom_and_is_free_when_it_dies() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Disk::open(dir.path()).unwrap();
    let mut holder = child("hold the lock", dir.path()).spawn().unwrap();
    wait_for_lock(&mut holder);
    let Err(Error::Locked { path, holder: who }) = disk.lock() else { panic!("not locked") };
    assert_eq!(path, dir.path().join("lock"));
    assert!(who.contains(&format!("process {}", holder.id())), "{who}");
    assert!(who.contains("io-") && who.contains("play_the_child"), "names the program: {who}");
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(dir.path().join("lock").exists(), "the dead holder's file is still there");
    let _lock = disk.lock().unwrap();
    let refused = child("hold the lock", dir.path()).output().unwrap();
    assert!(!refused.status.success(), "and the child is refused in turn");
    let text = String::from_utf8_lossy(&refused.stderr).into_owned()
        + &String::from_utf8_lossy(&refused.stdout);
    assert!(text.contains(&std::process::id().to_string()), "{text}");
}

fn run_with_file(role: &str) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let disk = Disk::open(dir.path()).unwrap();
    let file = disk.open("cut", Access::Create, Caching::Buffered).unwrap();
    file.write_at(FileOffset::ZERO, &[7; 16 * 4096]).unwrap();
    child(role, dir.path()).output().unwrap()
}

#[test]
fn a_map_whose_file_was_cut_ends_the_process_with_a_clear_message() {
    let output = run_with_file("read a cut map");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(FAULT_EXIT_CODE), "{text}");
    let line = text.lines().find(|line| line.starts_with("varve: ")).unwrap();
    assert!(line.contains("/cut through its map near byte"), "{line}");
    let at = (1 + 5) * 4096 + 10;
    assert!(line.contains(&format!("byte {at}:")), "names the place in the file, {at}: {line}");
}

#[test]
fn where_a_sandbox_forbids_rings_reads_go_by_pread() {
    if BatchReader::new(8).method() == Method::Pread {
        return; // nothing to forbid: every other test has read without a ring
    }
    let output = run_with_file("read without a ring");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_bus_error_that_is_not_ours_kills_as_it_would_have() {
    use std::os::unix::process::ExitStatusExt as _;
    let output = run_with_file("fault elsewhere");
    assert_eq!(output.status.signal(), Some(7), "{output:?}");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("varve: "));
}

/// A process with a low soft limit on descriptors raises it.
#[test]
fn a_store_of_many_files_asks_for_descriptors() {
    let dir = tempfile::tempdir().unwrap();
    let plain = child("open many files", dir.path());
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -Sn 64 && exec \"$0\" \"$@\""]);
    limited.arg(plain.get_program()).args(plain.get_args());
    limited.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = limited.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
