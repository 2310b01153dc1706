//! Answers of every shape, and servers that misbehave.

use std::net::TcpListener;
use std::thread;
use std::time::Instant;

use varve_types::Network;

use super::super::link::Message;
use super::*;
use crate::source::queue::{Inbox, queue};

/// A server that closes the connection after each answer.
fn serve(answers: Vec<&'static str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1000]).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    address
}

/// A client of that address with a clock that runs `speed` times as fast as ours.
fn client(address: String, speed: u32) -> (Http, Arc<Link>, Inbox<Message>) {
    let (sender, messages) = queue(100);
    let begin = Instant::now();
    let clock = Arc::new(move || begin.elapsed() * speed);
    let link = Arc::new(Link::new(address, Network::Regtest, clock, true, sender));
    (Http::new(Arc::clone(&link), 100), link, messages)
}

#[test]
fn answers_with_and_without_a_length_in_chunks_and_closed_connections() {
    let address = serve(vec![
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\nConnection: keep-alive\r\n\r\nabc",
        "HTTP/1.0 404 No\r\n\r\nto the end",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
         3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nTrailer: 1\r\n\r\n",
    ]);
    let (mut http, _, _messages) = client(address, 1);
    for (login, status, body) in
        [(Some("a:b"), 200, "abc"), (None, 404, "to the end"), (None, 200, "abcdefg")]
    {
        let answer = http.request("/", login, Some(b"{}")).unwrap();
        assert_eq!((answer.status, &answer.body[..]), (status, body.as_bytes()));
    }
}

#[test]
fn hostile_answers_are_errors() {
    let answers = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n", "TooLong"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n", "TooLong"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n32\r\nshort", "Unreachable"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nmany\r\n", "Bad"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", "Bad"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "Bad"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort", "Unreachable"),
        ("HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", "Bad"),
        ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "Bad"),
        ("HTTP/1.1 OK\r\n\r\n", "Bad"),
        ("SSH-2.0\r\n", "Bad"),
        ("", "Unreachable"),
    ];
    let address = serve(answers.iter().map(|(answer, _)| *answer).collect());
    let (mut http, _, _messages) = client(address, 1);
    for (answer, kind) in answers {
        let error = http.request("/", None, None).err().unwrap();
        assert!(format!("{error:?}").starts_with(kind), "{answer}: {error:?}");
    }
}

/// A server that accepts and then sends a byte now and then, or none: the silence is reported
/// within seconds, and the request ends.
#[test]
fn a_server_that_stalls_is_given_up() {
    for byte_each in [None, Some(Duration::from_millis(20))] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n").unwrap();
                while let Some(pause) = byte_each {
                    thread::sleep(pause);
                    if stream.write_all(b"x").is_err() {
                        break;
                    }
                }
                // Without bytes the connection stays open and silent.
                std::mem::forget(stream);
            }
        });
        // A minute of the clock passes in less than a second.
        let (mut http, _, messages) = client(address, 100);
        let error = http.request("/", None, None).err().unwrap();
        assert!(matches!(error, HttpError::Unreachable(_)), "{error:?}");
        let told = std::iter::from_fn(|| messages.recv_timeout(Duration::ZERO).ok())
            .any(|message| matches!(message, Message::Warning(_)));
        assert_eq!(told, byte_each.is_none());
    }
}

#[test]
fn a_source_that_is_dropped_does_not_wait_for_an_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (mut http, link, _messages) = client(listener.local_addr().unwrap().to_string(), 1);
    let begin = Instant::now();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        link.close();
    });
    let error = http.request("/", None, None).err().unwrap();
    assert!(matches!(error, HttpError::Stop(Stop::Closed)), "{error:?}");
    assert!(begin.elapsed() < Duration::from_secs(20));
}
