//! A `varve serve` to test with, and clients that ask it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::varve::command;

/// How long anything may take that is to happen.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// A server that runs until this is dropped.
pub(crate) struct Served {
    process: Child,
    /// What it printed: where it serves.
    pub(crate) places: Value,
    log: Arc<Mutex<String>>,
    reading: Option<JoinHandle<()>>,
}

impl Served {
    /// Serves a regtest folder on any ports, with more options.
    pub(crate) fn start(data: &Path, options: &[&str]) -> Self {
        let ports = ["--http", "127.0.0.1:0", "--electrum", "127.0.0.1:0"];
        let mut serve = command(data, &[&["serve"], options, &ports].concat());
        Self::spawn(&mut serve)
    }

    /// The same from a command that is complete.
    pub(crate) fn spawn(serve: &mut Command) -> Self {
        let mut process = serve.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(process.stderr.take().unwrap());
        let log = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&log);
        let reading = thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                kept.lock().unwrap().push_str(&(line + "\n"));
            }
        });
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let places = serde_json::from_str(&line);
        let mut served = Self { process, places: Value::Null, log, reading: Some(reading) };
        served.places = places.unwrap_or_else(|_| panic!("`{line}`: {}", served.end()));
        served
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// What it has logged so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until it ends, and gives all that it has logged.
    fn end(&mut self) -> String {
        let _ = self.process.wait();
        if let Some(reading) = self.reading.take() {
            reading.join().unwrap();
        }
        self.log()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Waits until it ends, which must not take longer than an operator waits.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                break status;
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "it does not end: {}", self.log());
            thread::sleep(Duration::from_millis(10));
        };
        let log = self.end();
        (status, log)
    }

    /// Ends it in order.
    pub(crate) fn stop(self) -> String {
        self.signal("-TERM");
        let (status, log) = self.wait();
        assert_eq!(status.code(), Some(0), "{log}");
        log
    }

    /// Ends it as a power cut would.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    fn address(&self, server: &str) -> String {
        self.places[server].as_str().unwrap_or_else(|| panic!("no {server}")).to_owned()
    }

    /// Status and body of an answer by HTTP.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let address = self.address("http");
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }

    /// The body of a good answer.
    pub(crate) fn ok(&self, path: &str) -> String {
        let (status, body) = self.get(path);
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// The result of one Electrum request, on a connection of its own.
    pub(crate) fn electrum(&self, method: &str, params: Value) -> Value {
        let stream = TcpStream::connect(self.address("electrum")).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let mut call = |method: &str, params: Value| {
            let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
            (&stream).write_all(format!("{request}\n").as_bytes()).unwrap();
            serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap()
        };
        call("server.version", json!(["test", "1.4"]));
        let answer = call(method, params);
        assert!(answer.get("error").is_none_or(Value::is_null), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Waits until something is so.
    pub(crate) fn until(&self, what: &str, mut is_so: impl FnMut(&Self) -> bool) {
        let begin = Instant::now();
        while !is_so(self) {
            assert!(begin.elapsed() < LIMIT, "not within {LIMIT:?}: {what}\n{}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the chain that is served has this tip.
    pub(crate) fn until_tip(&self, tip: &str) {
        self.until(tip, |served| served.ok("/api/blocks/tip/hash") == tip);
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It has ended, or a test has failed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
