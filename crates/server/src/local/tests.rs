//! Requests and answers over sockets in temporary folders.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn request(arguments: &[&str]) -> Request {
    Request {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
        directory: "/".into(),
        json: true,
    }
}

/// Answers with the arguments and the length of the first, and with the exit code 7.
fn echo() -> Arc<Execute> {
    Arc::new(|request, reply| {
        reply.report(b"beside\n").unwrap();
        reply.output(request.arguments.join(" ").as_bytes()).unwrap();
        7
    })
}

fn asked(folder: &Path, request: &Request) -> Result<Option<(String, String, u8)>, LocalError> {
    let (mut output, mut report) = (Vec::new(), Vec::new());
    let code = ask(folder, request, &mut output, &mut report)?;
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ok(code.map(|code| (text(output), text(report), code)))
}

#[test]
fn a_command_is_run_by_the_holder_and_by_nobody_after_it() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(asked(folder.path(), &request(&["tx"])).unwrap(), None);
    let server = LocalServer::start(folder.path(), echo()).unwrap();
    let answer = asked(folder.path(), &request(&["tx", "1f"])).unwrap().unwrap();
    assert_eq!(answer, ("tx 1f".to_owned(), "beside\n".to_owned(), 7));
    // More than a frame holds.
    let long = "x".repeat(3 << 18);
    let (output, ..) = asked(folder.path(), &request(&[&long, "y"])).unwrap().unwrap();
    assert_eq!(output.len(), long.len() + 2);
    server.stop(Duration::from_secs(5));
    assert_eq!(asked(folder.path(), &request(&["tx"])).unwrap(), None);
    assert!(!folder.path().join(SOCKET).exists());
}

#[test]
fn the_socket_is_the_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let _server = LocalServer::start(folder.path(), echo()).unwrap();
    let mode = fs::metadata(folder.path().join(SOCKET)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!folder.path().join(SOCKET_TEMPORARY).exists());
}

#[test]
fn a_socket_that_a_killed_process_left_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    for name in [SOCKET, SOCKET_TEMPORARY] {
        drop(UnixListener::bind(folder.path().join(name)).unwrap());
    }
    assert_eq!(asked(folder.path(), &request(&["tx"])).unwrap(), None, "nobody listens");
    let _server = LocalServer::start(folder.path(), echo()).unwrap();
    assert!(asked(folder.path(), &request(&["tx"])).unwrap().is_some());
}

#[test]
fn a_file_of_the_sockets_name_is_left_alone() {
    for name in [SOCKET, SOCKET_TEMPORARY] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(name), "mine").unwrap();
        let refused = LocalServer::start(folder.path(), echo()).unwrap_err();
        assert!(refused.to_string().contains("is no socket"), "{refused}");
        assert_eq!(fs::read(folder.path().join(name)).unwrap(), b"mine");
    }
}

#[test]
fn a_long_path_is_reached_through_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("d".repeat(100)).join("e".repeat(100));
    fs::create_dir_all(&deep).unwrap();
    let _server = LocalServer::start(&deep, echo()).unwrap();
    assert_eq!(asked(&deep, &request(&["status"])).unwrap().unwrap().0, "status");
    assert!(deep.join(SOCKET).exists());
}

#[test]
fn another_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let _server = LocalServer::start(folder.path(), echo()).unwrap();
    let other = Request { version: "9.9.9".to_owned(), ..request(&["tx"]) };
    let (output, report, code) = asked(folder.path(), &other).unwrap().unwrap();
    assert_eq!((output.as_str(), code), ("", 1));
    assert!(report.contains("restart that process"), "{report}");
}

#[test]
fn what_is_no_request_is_closed_and_others_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let _server = LocalServer::start(folder.path(), echo()).unwrap();
    for wrong in [&b"{}\n"[..], b"\xff\xff\n", b"\n", b"[1,2"] {
        let mut stream = UnixStream::connect(folder.path().join(SOCKET)).unwrap();
        stream.write_all(wrong).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert!(answer.is_empty(), "{wrong:?}");
    }
    assert!(asked(folder.path(), &request(&["tx"])).unwrap().is_some());
}

#[test]
fn a_holder_that_ends_within_an_answer_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(folder.path().join(SOCKET)).unwrap();
    let holder = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut reply = Reply(stream);
        let mut line = String::new();
        BufReader::new(reply.0.try_clone().unwrap()).read_line(&mut line).unwrap();
        reply.output(b"half").unwrap();
    });
    let cut_off = asked(folder.path(), &request(&["tx"])).unwrap_err();
    assert!(matches!(cut_off, LocalError::CutOff), "{cut_off}");
    holder.join().unwrap();
}
