//! Hostile and careless clients: each is refused clearly, and others are served meanwhile.

mod document;

use std::io::{BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;
use varve::Network;
use varve_server::http::{HttpLimits, HttpOptions};

use crate::esplora::simulated;
use crate::http::{Server, read};

fn limited(limits: HttpLimits) -> Server {
    let options = HttpOptions { limits, ..HttpOptions::default() };
    Server::with_options(Network::Regtest, simulated(105, 61), options)
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Sends bytes and returns all that comes until the server closes.
fn exchange(server: &Server, bytes: &[u8]) -> String {
    let mut stream = connect(server);
    // The server may close before it has read everything.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn slow_loris_is_cut_off_and_others_are_served() {
    let header_time = Duration::from_secs(1);
    let server = limited(HttpLimits { header_time, ..HttpLimits::default() });
    let mut slow: Vec<TcpStream> = (0..50).map(|_| connect(&server)).collect();
    let begin = Instant::now();
    for stream in &mut slow {
        stream.write_all(b"GET /api/blocks/tip/height HTTP/1.1\r\nx: ").unwrap();
    }
    assert_eq!(server.client().text("/api/blocks/tip/height"), "105");
    for stream in &mut slow {
        let _ = stream.write_all(b"y");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP/1.1 200"));
    }
    assert!(begin.elapsed() < Duration::from_secs(10), "they were cut off");
}

#[test]
fn header_floods_are_refused() {
    let server = limited(HttpLimits::default());
    let line = "GET /api/blocks/tip/height HTTP/1.1\r\nhost: x\r\n";
    let many: String = (0..2_000).map(|number| format!("h{number}: x\r\n")).collect();
    let long = format!("h: {}\r\n", "x".repeat(1 << 20));
    let long_line = format!("GET /api/{} HTTP/1.1\r\nhost: x\r\n\r\n", "x".repeat(1 << 20));
    for flood in [format!("{line}{many}\r\n"), format!("{line}{long}\r\n"), long_line] {
        let answer = exchange(&server, flood.as_bytes());
        let status = answer.split(' ').nth(1).unwrap_or("closed");
        assert!(matches!(status, "431" | "414" | "closed"), "{answer}");
    }
    assert_eq!(server.client().text("/api/blocks/tip/height"), "105");
}

#[test]
fn body_floods_are_refused_before_they_are_read() {
    let server = limited(HttpLimits::default());
    for path in ["/api/tx", "/api/addresses/txs", "/api/v1/output-spend"] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
             content-length: 1000000000\r\n\r\n["
        );
        let mut stream = BufReader::new(connect(&server));
        stream.get_mut().write_all(head.as_bytes()).unwrap();
        let reply = read(&mut stream, false);
        assert_eq!(reply.status, 413, "{path}: {}", reply.text());
    }
    // Without a length: chunk after chunk, until the limit.
    let mut stream = connect(&server);
    let head = "POST /api/v1/output-spend HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
                transfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    let sent = (0..1_000).take_while(|_| stream.write_all(chunk.as_bytes()).is_ok()).count();
    assert!(sent < 1_000, "the server took 64 MB");
    assert_eq!(server.client().text("/api/blocks/tip/height"), "105");
}

#[test]
fn path_tricks_are_refused_cleanly() {
    let server = limited(HttpLimits::default());
    for path in [
        "/api/../../etc/passwd",
        "/api/%2e%2e/%2e%2e/etc/passwd",
        "/api//blocks",
        "//api/blocks",
        "/api/tx/%00",
        "/api/tx/%",
        "/api/tx/%ff",
        "/api/tx/..%2f..%2f",
        "/api/address/%2e",
        "/api/block/%c0%ae%c0%ae/raw",
        "/api/blocks\\tip",
        "/api/docs/../openapi.json",
        "/API/blocks",
        "/api/blocks/",
        "/api/tx/",
        "/api/blocks;x=1",
        "http://other/api/%2e%2e/blocks",
        "*",
        "api/blocks",
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let answer = exchange(&server, request.as_bytes());
        let status = answer.split(' ').nth(1).unwrap_or("closed").to_owned();
        assert!(matches!(status.as_str(), "400" | "404" | "closed"), "{path}: {answer}");
        assert!(!answer.contains("root:"), "{path}");
    }
    for raw in
        [&b"GET \x00\xff /\r\n\r\n"[..], b"\r\n\r\n\r\n", b"GARBAGE", b"GET / HTTP/9.9\r\n\r\n"]
    {
        let answer = exchange(&server, raw);
        assert!(
            !answer.starts_with("HTTP/1.1 200") && !answer.starts_with("HTTP/1.1 5"),
            "{answer}"
        );
    }
    assert_eq!(server.client().text("/api/blocks/tip/height"), "105");
}

/// Clients that ask for much and read nothing lose their connection; their places become free.
#[test]
fn unread_sockets_are_dropped() {
    let server = limited(HttpLimits {
        connections: 4,
        stall_time: Duration::from_secs(1),
        ..HttpLimits::default()
    });
    let hash = server.client().text("/api/block-height/105");
    let request = format!("GET /api/internal/block/{hash}/txs HTTP/1.1\r\nhost: x\r\n\r\n");
    let pipelined = request.repeat(3_000);
    let mut unread: Vec<TcpStream> = (0..4).map(|_| connect(&server)).collect();
    for stream in &mut unread {
        stream.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
        let _ = stream.write_all(pipelined.as_bytes());
    }
    crate::http::wait_for("a place", || {
        let mut stream = connect(&server);
        let _ = stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer.starts_with("HTTP/1.1 200")
    });
}

#[test]
fn connections_beyond_the_limit_are_told_so() {
    let server = limited(HttpLimits { connections: 5, ..HttpLimits::default() });
    let mut held = Vec::new();
    for _ in 0..5 {
        let mut client = server.client();
        assert_eq!(client.get("/").status, 200);
        held.push(client);
    }
    let mut stream = BufReader::new(connect(&server));
    let reply = read(&mut stream, false);
    assert_eq!((reply.status, reply.text()), (503, "too many connections"));
    held.pop();
    crate::http::wait_for("a place", || {
        let mut stream = BufReader::new(connect(&server));
        let _ = stream.get_mut().write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
        read(&mut stream, false).status == 200
    });
}

/// What one client on this machine may do with the default limits.
#[test]
fn a_busy_wallet_on_this_machine_is_served() {
    let server = limited(HttpLimits::default());
    let idle: Vec<TcpStream> = (0..60).map(|_| connect(&server)).collect();
    let mut client = server.client();
    for _ in 0..26_000 {
        assert_eq!(client.get("/api/blocks/tip/height").status, 200);
    }
    drop(idle);
}

#[test]
fn huge_batches_and_deep_nesting_are_refused() {
    let server = limited(HttpLimits::default());
    let mut client = server.client();
    let many = json!(vec!["0".repeat(64); 301]);
    for path in ["/api/internal/txs", "/api/scripthashes/txs", "/api/internal/mempool/txs"] {
        let reply = client.post_json(path, &many);
        assert_eq!(reply.status, 413, "{path}: {}", reply.text());
        let deep = "[".repeat(500_000);
        let reply = client.post(path, "application/json", deep.as_bytes());
        assert_eq!(reply.status, 400, "{path}: {}", reply.text());
    }
    let txids = vec!["0".repeat(64); 51].join(",");
    assert_eq!(client.get(&format!("/api/txs/outspends?txids={txids}")).status, 400);
    let keys = json!({"filterKeys": vec!["00".repeat(32); 10_001]});
    assert_eq!(client.post_json("/api/v1/restoration/search", &keys).status, 400);
}

/// Pages from elsewhere may read, and not send; methods that a path does not have are refused.
#[test]
fn methods_and_origins() {
    let server = limited(HttpLimits::default());
    let mut client = server.client();
    let reply = client.get("/api/blocks/tip/height");
    assert_eq!(reply.header("access-control-allow-origin"), "*");
    assert_eq!(reply.header("x-content-type-options"), "nosniff");
    let head = client.send("HEAD", "/api/blocks/tip/height", &[], b"");
    assert_eq!((head.status, head.body.len()), (200, 0));
    let preflight = client.send("OPTIONS", "/api/tx", &[], b"");
    assert_eq!(preflight.header("access-control-allow-methods"), "GET, HEAD, OPTIONS");
    for (method, path) in [("DELETE", "/api/blocks"), ("PUT", "/api/tx"), ("GET", "/api/tx")] {
        assert_eq!(client.send(method, path, &[], b"").status, 405, "{method} {path}");
    }
    let posted = client.post_json("/api/internal/txs", &json!([]));
    assert_eq!(posted.header("access-control-allow-origin"), "");
}

#[test]
fn a_server_that_stops_finishes_what_it_has_begun() {
    let server = limited(HttpLimits::default());
    let mut client = server.client();
    assert_eq!(client.get("/").status, 200);
    let idle = connect(&server);
    let begin = Instant::now();
    server.stop();
    crate::http::wait_for("the end", || TcpStream::connect(server.address).is_err());
    assert!(begin.elapsed() < Duration::from_secs(5));
    drop(idle);
}
