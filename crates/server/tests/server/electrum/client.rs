//! A plain client: lines of JSON over a socket.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

pub(crate) struct Client {
    reader: BufReader<TcpStream>,
    next: u64,
    /// Notifications that came while an answer was waited for.
    pub(crate) notified: VecDeque<Value>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { reader: BufReader::new(stream), next: 0, notified: VecDeque::new() }
    }

    /// The same after `server.version` with this version.
    pub(crate) fn speaking(address: SocketAddr, version: &str) -> Self {
        let mut client = Self::connect(address);
        let answer = client.ask("server.version", json!(["test", version]));
        assert_eq!(answer[1], version);
        client
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    pub(crate) fn send(&mut self, line: &[u8]) {
        let mut socket = self.reader.get_ref();
        socket.write_all(line).unwrap();
        socket.write_all(b"\n").unwrap();
    }

    /// The next line; `None` at the end of the connection.
    pub(crate) fn line(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(serde_json::from_str(&line).unwrap()),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("no answer came: {error}"),
        }
    }

    /// The next line that is an answer.
    pub(crate) fn answer(&mut self) -> Option<Value> {
        loop {
            let line = self.line()?;
            if line.get("method").is_none() {
                return Some(line);
            }
            self.notified.push_back(line);
        }
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let request = json!({"id": self.next, "method": method, "params": params});
        self.send(request.to_string().as_bytes());
        let answer = self.answer().unwrap();
        assert_eq!(answer["id"], self.next, "{answer}");
        answer
    }

    /// The result of a request that must succeed.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.call(method, &params);
        assert!(answer.get("error").is_none(), "{method} {params}: {answer}");
        answer["result"].take()
    }

    /// The code of a request that must fail.
    pub(crate) fn fail(&mut self, method: &str, params: Value) -> i64 {
        let answer = self.call(method, &params);
        answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{method} {params}: {answer}"))
    }

    /// The results of a batch of requests that must succeed.
    pub(crate) fn batch(&mut self, requests: &[(&str, Value)]) -> Vec<Value> {
        let requests: Vec<Value> = (0..)
            .zip(requests)
            .map(|(id, (method, params)): (u64, _)| {
                json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
            })
            .collect();
        self.send(Value::from(requests).to_string().as_bytes());
        let Some(Value::Array(mut answers)) = self.answer() else { panic!("no batch") };
        answers.sort_by_key(|answer| answer["id"].as_u64());
        let result = |mut answer: Value| {
            assert!(answer.get("error").is_none(), "{answer}");
            answer["result"].take()
        };
        answers.into_iter().map(result).collect()
    }

    /// The next notification.
    pub(crate) fn notification(&mut self) -> Value {
        if let Some(notification) = self.notified.pop_front() {
            return notification;
        }
        let line = self.line().unwrap();
        assert!(line.get("method").is_some(), "{line}");
        line
    }

    /// Notifications up to now: what comes before the answer to a ping.
    pub(crate) fn notifications(&mut self) -> Vec<Value> {
        self.ask("server.ping", json!([]));
        self.notified.drain(..).collect()
    }
}
