//! The same answers over TCP, TLS and WebSocket.

use std::path::Path;
use std::sync::Arc;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_tungstenite::tungstenite::Message;
use varve::types::Block;
use varve_server::electrum::TlsIdentity;

use super::chain::{NETWORK, bytes, simulated};
use super::server::Server;

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/server/electrum/tls"))
}

fn connector() -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(folder().join("ca.pem")).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Requests, one of them a batch with an answer of some size.
fn requests() -> [String; 3] {
    let headers = json!({"id": 1, "method": "blockchain.block.headers", "params": [0, 100]});
    let subscribe = json!({"id": 2, "method": "blockchain.headers.subscribe", "params": []});
    [subscribe.to_string(), json!([headers, headers]).to_string(), "nonsense".to_owned()]
}

#[test]
fn tls_and_web_sockets_answer_as_tcp_does() {
    let blocks = bytes(&simulated(111, 6, None));
    let mut server = Server::with(NETWORK, &blocks[..111]);
    let mut plain = server.client();
    let expected: Vec<Value> = requests()
        .iter()
        .map(|request| {
            plain.send(request.as_bytes());
            plain.line().unwrap()
        })
        .collect();
    let (tls, ws) = (server.tls, server.ws);
    let (ready, wait) = std::sync::mpsc::channel();
    let others = std::thread::spawn(move || {
        runtime().block_on(async {
            let socket = TcpStream::connect(tls).await.unwrap();
            let name = ServerName::try_from("localhost").unwrap();
            let mut tls = BufReader::new(connector().connect(name, socket).await.unwrap());
            let socket = TcpStream::connect(ws).await.unwrap();
            let url = format!("ws://{ws}/");
            let (mut ws, _) = tokio_tungstenite::client_async(url, socket).await.unwrap();
            let mut answers = Vec::new();
            let next = async |tls: &mut BufReader<_>| {
                let mut line = String::new();
                tls.read_line(&mut line).await.unwrap();
                serde_json::from_str::<Value>(&line).unwrap()
            };
            for request in requests() {
                tls.get_mut().write_all(format!("{request}\n").as_bytes()).await.unwrap();
                let by_tls = next(&mut tls).await;
                ws.send(Message::text(request)).await.unwrap();
                let by_ws = ws.next().await.unwrap().unwrap().into_text().unwrap();
                assert_eq!(by_tls, serde_json::from_str::<Value>(&by_ws).unwrap());
                answers.push(by_tls);
            }
            ready.send(()).unwrap();
            let by_tls = next(&mut tls).await;
            let by_ws = ws.next().await.unwrap().unwrap().into_text().unwrap();
            assert_eq!(by_tls, serde_json::from_str::<Value>(&by_ws).unwrap());
            (answers, by_tls)
        })
    });
    wait.recv().unwrap();
    server.feed(blocks[111].clone());
    server.wait_for(Block::parse(&blocks[111], NETWORK.format()).unwrap().hash());
    let (answers, notification) = others.join().unwrap();
    assert_eq!(answers, expected);
    assert_eq!(notification["params"][0]["height"], 111);
    assert_eq!(plain.notification(), notification);
}

#[test]
fn bad_certificates_and_keys_are_named() {
    let (cert, key) = (folder().join("cert.pem"), folder().join("key.pem"));
    let other = folder().join("ca.pem");
    let scrap = tempfile::tempdir().unwrap();
    let empty = scrap.path().join("empty.pem");
    std::fs::write(&empty, "nothing\n").unwrap();
    let missing = scrap.path().join("missing.pem");
    assert!(TlsIdentity::load(&cert, &key).is_ok());
    for (cert, key, wrong) in [
        (&missing, &key, &missing),
        (&empty, &key, &empty),
        (&cert, &missing, &missing),
        (&cert, &empty, &empty),
        (&other, &key, &key),
    ] {
        let error = TlsIdentity::load(cert, key).unwrap_err();
        assert_eq!(error.path, *wrong, "{error}");
        assert!(error.to_string().contains("cannot use"));
    }
}

/// Noise where a handshake should be ends that connection alone.
#[test]
fn noise_instead_of_a_handshake() {
    use std::io::{Read as _, Write as _};
    let server = Server::with(NETWORK, &bytes(&simulated(3, 6, None)));
    for address in [server.tls, server.ws] {
        let mut socket = std::net::TcpStream::connect(address).unwrap();
        socket.write_all(&[b'\n'; 2_000]).unwrap();
        socket.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
    }
    server.client().ask("server.ping", json!([]));
}
