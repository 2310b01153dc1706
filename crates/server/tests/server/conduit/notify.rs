//! Notifications: spends on a socket, and matches of tip filters at a reference server.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bitcoin::OutPoint;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};
use varve::Network;
use varve_server::http::HttpOptions;

use super::{chain, model, outpoint_bytes, spend_record, take};
use crate::esplora::mempool::Live;
use crate::http::{Server, node};
use crate::model::hex;

struct Socket {
    runtime: Runtime,
    stream: WebSocketStream<tokio::net::TcpStream>,
}

impl Socket {
    fn open(server: &Server) -> Self {
        let runtime = Runtime::new().unwrap();
        let stream = runtime.block_on(async {
            let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
            client_async("ws://test/ws", stream).await.unwrap().0
        });
        Self { runtime, stream }
    }

    fn next(&mut self) -> Option<Message> {
        let stream = &mut self.stream;
        let next = async { tokio::time::timeout(Duration::from_secs(20), stream.next()).await };
        self.runtime.block_on(next).expect("a message in time").map(Result::unwrap)
    }

    fn say(&mut self, text: &str) {
        self.runtime.block_on(self.stream.send(Message::text(text))).unwrap();
    }
}

/// A spend that a reorganisation moves to another block is pushed again, with that block.
#[test]
fn spends_are_pushed_when_they_move() {
    let (Some(first), Some(second)) = (chain("115_3677f4"), chain("117_28c2d3")) else { return };
    let server = Server::with_blocks(Network::BsvRegtest, Vec::new());
    take(&server, &first);
    let before = model(&server, &first);
    let txid = "88c92bb09626c7d505ed861ae8fa7e7aaab5b816fc517eac7a8a6c7f28b1b210";
    let outpoint = OutPoint::new(txid.parse().unwrap(), 0);
    let by = before.spenders[&outpoint];
    let mut socket = Socket::open(&server);
    let mut client = server.client();
    let path = "/api/v1/output-spend/notifications";
    let headers = [("content-type", "application/octet-stream"), super::BINARY];
    let reply = client.send("POST", path, &headers, &outpoint_bytes(&outpoint));
    let block = super::block_of(&before, &by.0);
    assert_eq!(reply.body, spend_record(&outpoint, &by, Some(block)));

    take(&server, &second);
    let after = model(&server, &[first, second].concat());
    let moved = super::block_of(&after, &by.0);
    assert_ne!(block, moved);
    let expected = spend_record(&outpoint, &by, Some(moved));
    assert_eq!(socket.next().unwrap().into_data().as_ref(), expected);
    // Whatever a client says ends its socket.
    socket.say("hello");
    assert!(matches!(socket.next(), None | Some(Message::Close(_))));

    // Watched no longer.
    let list = json!([["0".repeat(64), 0]]);
    let all = client.post_json("/api/v1/output-spend/notifications:unregister", &list);
    assert_eq!(all.status, 200);
}

#[test]
fn unconfirmed_spends_are_pushed_each() {
    let live = Live::start(51);
    let is_confirmed = |tx: &&bitcoin::Transaction| {
        tx.input.iter().all(|input| live.model.txs.contains_key(&input.previous_output.txid))
    };
    let txs: Vec<_> = live.unconfirmed.iter().filter(is_confirmed).take(3).cloned().collect();
    let mut socket = Socket::open(&live.server);
    let mut expected: Vec<Vec<u8>> = Vec::new();
    let mut list = Vec::new();
    for tx in &txs {
        for (vin, input) in tx.input.iter().enumerate() {
            let out = input.previous_output;
            list.push(json!([out.txid.to_string(), out.vout]));
            expected.push(spend_record(&out, &(tx.compute_txid(), vin), None));
        }
    }
    let mut client = live.server.client();
    let reply = client.post_json("/api/v1/output-spend/notifications", &json!(list));
    assert_eq!(reply.json(), json!([]), "none is spent yet");
    live.send(&txs);
    let mut found: Vec<Vec<u8>> =
        expected.iter().map(|_| socket.next().unwrap().into_data().to_vec()).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

/// A server that takes matches, after it has failed this many times.
fn reference_server(mut failures: usize) -> (HttpOptions, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, matches) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let (mut line, mut length) = (String::new(), 0);
            stream.read_line(&mut line).unwrap();
            assert!(line.starts_with("POST /api/v1/tip-filter/matches HTTP/1.1"), "{line}");
            while line != "\r\n" {
                line.clear();
                stream.read_line(&mut line).unwrap();
                if let Some(value) = line.strip_prefix("content-length: ") {
                    length = value.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            let answer = if failures == 0 { "200 OK" } else { "500 Not today" };
            let answer = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n");
            stream.get_mut().write_all(answer.as_bytes()).unwrap();
            if failures == 0 && sender.send(serde_json::from_slice(&body).unwrap()).is_err() {
                return;
            }
            failures = failures.saturating_sub(1);
        }
    });
    let reference_server = Some(format!("http://{address}").parse().unwrap());
    (HttpOptions { reference_server, ..HttpOptions::default() }, matches)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Matches of a block reach the reference server, also when it failed and this process ended.
#[test]
fn matches_of_filters_are_sent_until_they_are_taken() {
    let (Some(first), Some(second)) = (chain("115_3677f4"), chain("117_28c2d3")) else { return };
    let folder = tempfile::tempdir().unwrap();
    let key = "e351e4d2499786e8a3ac5468cbf1444b3416b41e424524b50e2dafc8f6f454db";
    let (options, _taken) = reference_server(usize::MAX);
    let server = Server::start(node(Network::BsvRegtest, folder.path()), options);
    take(&server, &first);
    let mut client = server.client();
    let created = now();
    let path = format!("/api/v1/transaction/filter?account_id=7&date_created={created}");
    let reply = client.post_json(&path, &json!([[key, 3_600]]));
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert!(reply.json()["dateCreated"].as_str().unwrap().starts_with("20"));
    let again = client.post_json(&path, &json!([[key, 3_600]]));
    assert_eq!((again.status, again.text()), (400, "one or more hashes were already registered"));
    for seconds in [299, 604_801] {
        let reply = client.post_json(&path, &json!([["00".repeat(32), seconds]]));
        assert_eq!(reply.status, 400, "{seconds}");
    }
    take(&server, &second);
    thread::sleep(Duration::from_secs(1));
    drop(client);
    drop(server);

    let (options, taken) = reference_server(0);
    let server = Server::start(node(Network::BsvRegtest, folder.path()), options);
    let model = model(&server, &[first, second].concat());
    let receive = "d53a9ebfac748561132e49254c42dbe518080c2a5956822d5d3914d47324e842";
    let block = super::block_of(&model, &receive.parse().unwrap());
    let batch = taken.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(batch["blockId"], block.to_string());
    let entry = &batch["entries"][0];
    assert_eq!((&entry["accountId"], batch["entries"].as_array().unwrap().len()), (&json!(7), 1));
    let found = entry["matches"].as_array().unwrap();
    let matched = found.iter().find(|row| row["transactionId"] == receive).unwrap();
    assert_eq!((&matched["flags"], &matched["pushDataHashHex"]), (&json!(1), &json!(key)));

    let mut client = server.client();
    let path = "/api/v1/transaction/filter:delete?account_id=7";
    let bytes: Vec<u8> =
        (0..64).step_by(2).map(|at| u8::from_str_radix(&key[at..at + 2], 16).unwrap()).collect();
    assert_eq!(hex(&bytes), key);
    assert_eq!(client.post(path, "application/octet-stream", &bytes).status, 200);
    let again = client.post(path, "application/octet-stream", &bytes);
    assert_eq!((again.status, again.text()), (400, "some pushdata hashes are not registered"));
}
