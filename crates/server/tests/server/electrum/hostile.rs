//! Clients that mean no good, or do not know better. Each is refused in words or disconnected, the
//! memory they can take is bounded, and an honest client beside them is served all the while.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use varve_server::electrum::Limits;

use super::chain::{NETWORK, bytes, simulated};
use super::client::Client;
use super::ledger::Ledger;
use super::server::{Server, wait_until};

fn limited(limits: Limits) -> Server {
    let server = Server::empty(NETWORK, limits);
    let blocks = bytes(&simulated(110, 9, None));
    server.node.sync(varve::Source::blocks(blocks)).run().unwrap();
    server
}

fn is_served(client: &mut Client) {
    let begun = Instant::now();
    client.ask("blockchain.block.header", json!([1]));
    assert!(begun.elapsed() < Duration::from_secs(5), "an honest client waits");
}

/// Whether the server has hung up. What is still to read is read.
fn is_closed(mut stream: &TcpStream) -> bool {
    stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut sink = vec![0; 1 << 16];
    loop {
        match stream.read(&mut sink) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => {
                use std::io::ErrorKind::{TimedOut, WouldBlock};
                return !matches!(error.kind(), TimedOut | WouldBlock);
            }
        }
    }
}

#[test]
fn malformed_json_is_answered_and_forgiven() {
    let server = limited(Limits::default());
    let mut client = server.client();
    let lines: [(&[u8], i64); 9] = [
        (b"nonsense", -32700),
        (b"{\"method\":", -32700),
        (b"\xff\xfe\x00", -32700),
        (b"{\"id\":1,\"method\":\"server.ping\",\"params\":[}", -32700),
        (b"{}", -32600),
        (b"\"text\"", -32600),
        (b"{\"id\":{},\"method\":\"server.ping\"}", -32600),
        (b"[]", -32600),
        (b"{\"id\":1,\"method\":\"server.ping\",\"params\":7}", -32602),
    ];
    for (line, code) in lines {
        client.send(line);
        assert_eq!(client.line().unwrap()["error"]["code"], code, "{}", line.escape_ascii());
    }
    is_served(&mut client);
}

#[test]
fn deep_nesting_overflows_no_stack() {
    let server = limited(Limits::default());
    let mut client = server.client();
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep =
            |middle: &str| format!("{}{middle}{}", open.repeat(200_000), close.repeat(200_000));
        for line in
            [deep("1"), format!(r#"{{"id":1,"method":"server.ping","params":{}}}"#, deep("1"))]
        {
            client.send(line.as_bytes());
            let answer = client.line().unwrap();
            let first = answer.as_array().map_or(&answer, |answers| &answers[0]);
            assert!(first["error"]["code"].is_i64());
        }
        client.send(open.repeat(1_000_000).as_bytes());
        assert_eq!(client.line().unwrap()["error"]["code"], -32700);
    }
    is_served(&mut client);
}

#[test]
fn huge_numbers_are_no_heights() {
    let server = limited(Limits::default());
    let mut client = server.client();
    let digits = "9".repeat(100_000);
    for number in ["1e999", "-1e999", "18446744073709551616", "4294967296", digits.as_str()] {
        let line = format!(r#"{{"id":1,"method":"blockchain.block.header","params":[{number}]}}"#);
        client.send(line.as_bytes());
        let answer = client.line().unwrap();
        assert!(answer["error"]["code"].is_i64(), "{number:.30}: {answer}");
    }
    let last = client.ask("blockchain.block.headers", json!([u32::MAX, u32::MAX]));
    assert_eq!(last["count"], 0);
    is_served(&mut client);
}

#[test]
fn huge_batches_are_refused_as_a_whole() {
    let server = limited(Limits { batch: 100, ..Limits::default() });
    let mut client = server.client();
    let request = r#"{"id":1,"method":"server.ping"}"#;
    let batch = |count: usize| format!("[{}]", vec![request; count].join(","));
    client.send(batch(100).as_bytes());
    assert_eq!(client.line().unwrap().as_array().unwrap().len(), 100);
    client.send(batch(101).as_bytes());
    assert_eq!(client.line().unwrap()["error"]["code"], 1);
    is_served(&mut client);
}

/// A batch whose answers are many times larger than it is.
#[test]
fn amplification_is_bounded() {
    let server = limited(Limits { response: 1 << 20, ..Limits::default() });
    let mut client = server.client();
    let request = json!({"id": 1, "method": "server.ping", "params": [300_000, ""]});
    client.send(Value::from(vec![request; 50]).to_string().as_bytes());
    let answer = client.line().unwrap();
    let answers = answer.as_array().unwrap();
    let answered = answers.iter().filter(|answer| answer.get("result").is_some()).count();
    assert!(answers.len() == 50 && (3..=5).contains(&answered), "{answered} of {}", answers.len());
    is_served(&mut client);
}

#[test]
fn a_line_beyond_the_limit_is_refused() {
    let server = limited(Limits { request: 100_000, ..Limits::default() });
    let mut client = server.client();
    let mut socket = client.socket();
    // The server may hang up before all is written.
    let _ = socket.write_all(&vec![b'x'; 1_000_000]);
    let answer = client.line();
    assert!(answer.is_none_or(|answer| answer["error"]["code"] == 1));
    wait_until(|| is_closed(client.socket()));
    is_served(&mut server.client());
}

#[test]
fn slow_loris_is_hung_up_on() {
    let limits = Limits { line: Duration::from_millis(600), ..Limits::default() };
    let server = limited(limits);
    let slow: Vec<Client> = (0..200).map(|_| server.client()).collect();
    let mut honest = server.client();
    let begun = Instant::now();
    // A byte now and then keeps nobody alive: the line as a whole has its time.
    while begun.elapsed() < Duration::from_millis(1_500) {
        for client in &slow {
            let _ = (&mut client.socket()).write(b"{");
        }
        is_served(&mut honest);
        thread::sleep(Duration::from_millis(50));
    }
    assert!(slow.iter().all(|client| is_closed(client.socket())));
    is_served(&mut honest);
}

#[test]
fn the_idle_are_hung_up_on() {
    let server = limited(Limits { idle: Duration::from_millis(300), ..Limits::default() });
    let idle = server.client();
    wait_until(|| is_closed(idle.socket()));
}

/// A client that has said all it wants to say gets its answers before the connection ends.
#[test]
fn half_closed_sockets_are_answered() {
    let server = limited(Limits::default());
    let mut client = server.client();
    for _ in 0..50 {
        client.send(br#"{"id":1,"method":"blockchain.block.headers","params":[0,100]}"#);
    }
    client.socket().shutdown(Shutdown::Write).unwrap();
    for _ in 0..50 {
        assert_eq!(client.line().unwrap()["result"]["count"], 100);
    }
    assert_eq!(client.line(), None);
}

/// Sockets that ask for much and read nothing.
#[test]
fn unread_sockets_hold_no_memory() {
    let limits = Limits {
        queued: 4 << 20,
        write: Duration::from_secs(2),
        response: 2 << 20,
        ..Limits::default()
    };
    let server = limited(limits);
    let mut deaf: Vec<Client> = (0..50).map(|_| server.client()).collect();
    for client in &mut deaf {
        let request =
            json!({"id": 1, "method": "server.ping", "params": [900_000, ""]}).to_string();
        for _ in 0..20 {
            client.send(request.as_bytes());
        }
    }
    let mut honest = server.client();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(4) {
        is_served(&mut honest);
        thread::sleep(Duration::from_millis(20));
    }
    // What the system's buffers took is there; the rest was dropped with the connection.
    let read = |client: &Client| {
        let mut socket = client.socket();
        let (mut sink, mut all) = (vec![0; 1 << 16], 0);
        while let Ok(count @ 1..) = socket.read(&mut sink) {
            all += count;
        }
        all
    };
    let all: usize = deaf.iter().map(read).sum();
    assert!(all < 50 * 20 * 900_000, "those who do not read are hung up on");
}

/// One client may hold many subscriptions, and not all of them.
#[test]
fn a_hundred_thousand_subscriptions_are_refused() {
    let server = limited(Limits::default());
    let mut client = server.client();
    let most = Limits::default().subscriptions;
    let mut taken = 0;
    for chunk in 0..100_u32 {
        let subscribe = |number: u32| {
            let hash = format!("{:064x}", chunk * 1_000 + number);
            json!({"id": number, "method": "blockchain.scripthash.subscribe", "params": [hash]})
        };
        client.send(
            Value::from((0..1_000).map(subscribe).collect::<Vec<_>>()).to_string().as_bytes(),
        );
        let answer = client.answer().unwrap();
        for answer in answer.as_array().unwrap() {
            match answer.get("error") {
                None => taken += 1,
                Some(fault) => {
                    assert_eq!(fault["code"], 1);
                    assert!(fault["message"].as_str().unwrap().contains(&most.to_string()));
                }
            }
        }
    }
    assert_eq!(taken, most);
    is_served(&mut server.client());
}

#[test]
fn too_many_connections_are_refused_in_words() {
    let server = limited(Limits { connections: 20, ..Limits::default() });
    let mut clients: Vec<Client> = (0..20).map(|_| server.client()).collect();
    clients.iter_mut().for_each(is_served);
    let mut refused = server.client();
    let answer = refused.line();
    assert!(answer.is_none_or(|answer| answer["error"]["code"] == 1));
    clients.pop();
    wait_until(|| {
        let mut client = server.client();
        client.socket().set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let _ = (&mut client.socket()).write(b"{\"id\":1,\"method\":\"server.ping\"}\n");
        client.line().is_some_and(|answer| answer.get("result").is_some())
    });
}

/// What the defaults promise: 26,000 requests a minute of one client, 60 idle connections, answers
/// of two megabytes.
#[test]
fn the_defaults_let_a_wallet_work() {
    let server = limited(Limits::default());
    let idle: Vec<Client> = (0..60).map(|_| server.client()).collect();
    let mut client = server.client();
    let begun = Instant::now();
    for _ in 0..2_600 {
        client.ask("blockchain.block.header", json!([5]));
    }
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    let pong = client.ask("server.ping", json!([2_500_000, ""]));
    assert_eq!(pong["data"].as_str().unwrap().len(), 2_500_000);
    assert!(idle.iter().all(|client| !is_closed(client.socket())));
}

/// A history beyond the limit is refused with the code of the client's version.
#[test]
fn long_histories_are_refused() {
    let server = limited(Limits { history: 3, ..Limits::default() });
    let mut client = server.client();
    // The simulator has scripts that are paid over and over.
    let ledger = Ledger::of(NETWORK, &bytes(&simulated(110, 9, None)));
    let (hash, busiest) =
        ledger.accounts.iter().max_by_key(|(_, account)| account.history.len()).unwrap();
    let first = busiest.history[0].1;
    assert!(busiest.history.len() > 3, "{}", busiest.history.len());
    let name = json!([hash.to_string()]);
    let mut newer = Client::speaking(server.tcp, "1.7");
    for method in ["get_history", "get_status", "subscribe"] {
        let method = format!("blockchain.scripthash.{method}");
        assert_eq!(client.fail(&method, name.clone()), 1);
        assert_eq!(newer.fail(&method, name.clone()), 10_001);
    }
    client.ask("blockchain.scripthash.get_balance", name);
    let part = client
        .ask("blockchain.scripthash.get_history", json!([hash.to_string(), first, first + 1]));
    assert!(!part.as_array().unwrap().is_empty(), "a part of it can be had");
}

#[test]
fn a_stopped_server_ends_its_connections() {
    let mut server = limited(Limits::default());
    let mut client = server.client();
    is_served(&mut client);
    let begun = Instant::now();
    server.stop();
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    assert_eq!(client.line(), None);
}
