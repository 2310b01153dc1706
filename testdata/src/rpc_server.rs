//! A server that answers like a node, for a chain that the test supplies: REST, or JSON-RPC with
//! batches.
//!
//! Every request is recorded, and a test may answer some itself ([`RpcServer::answer_with`]): with
//! an error, with nonsense, or not at all. The login is `user:password`.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where it fails")]

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

/// The most headers in one REST answer.
const REST_HEADERS: usize = 2000;

/// A block and its hash.
pub type Served = (String, Vec<u8>);

/// A client's request.
#[derive(Clone, Debug)]
pub struct Request {
    /// `GET /rest/…`, or `POST /`.
    pub line: String,
    /// The methods that are called.
    pub methods: Vec<String>,
}

/// What the server does with a request.
pub enum Reaction {
    /// Answers as a node.
    Serve,
    /// Sends these bytes and closes the connection.
    Raw(Vec<u8>),
    /// Sends nothing, and keeps the connection open.
    Hang,
    /// Makes another chain the active one, and then answers.
    Switch(Vec<Served>),
}

type Answer = Box<dyn FnMut(&Request) -> Reaction + Send>;

/// A server of a chain.
pub struct RpcServer {
    address: String,
    state: Arc<Mutex<State>>,
}

struct State {
    rest: bool,
    network: String,
    /// The active chain, genesis first.
    chain: Vec<String>,
    /// Every block that was ever in it: its height and bytes.
    blocks: HashMap<String, (usize, Vec<u8>)>,
    requests: Vec<Request>,
    answer: Answer,
}

impl RpcServer {
    /// Serves a chain, genesis first.
    #[must_use]
    pub fn start(rest: bool, chain: &[Served]) -> Self {
        Self::start_at(&TcpListener::bind("127.0.0.1:0").unwrap(), rest, chain)
    }

    /// The same where a listener is already.
    #[must_use]
    pub fn start_at(listener: &TcpListener, rest: bool, chain: &[Served]) -> Self {
        let (listener, address) =
            (listener.try_clone().unwrap(), listener.local_addr().unwrap().to_string());
        let state = Arc::new(Mutex::new(State {
            rest,
            network: "regtest".to_owned(),
            chain: Vec::new(),
            blocks: HashMap::new(),
            requests: Vec::new(),
            answer: Box::new(|_| Reaction::Serve),
        }));
        let server = Self { address, state: Arc::clone(&state) };
        server.set_chain(chain);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&state);
                thread::spawn(move || talk(stream, &state));
            }
        });
        server
    }

    /// `host:port`.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.clone()
    }

    /// Makes another chain the active one. The blocks of the previous one are still known.
    pub fn set_chain(&self, chain: &[Served]) {
        self.lock().set_chain(chain);
    }

    /// Turns REST on or off.
    pub fn set_rest(&self, rest: bool) {
        self.lock().rest = rest;
    }

    /// What the server says its chain is: `main`, `signet` …
    pub fn set_network(&self, network: &str) {
        network.clone_into(&mut self.lock().network);
    }

    /// Calls `answer` to decide about every request.
    pub fn answer_with(&self, answer: impl FnMut(&Request) -> Reaction + Send + 'static) {
        self.lock().answer = Box::new(answer);
    }

    /// The requests since the last call.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.lock().requests)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

/// The bytes of an answer with a body.
#[must_use]
pub fn reply(status: u16, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status} -\r\nContent-Length: {}\r\n", body.len());
    [head.as_bytes(), b"Connection: keep-alive\r\n\r\n", body].concat()
}

fn talk(stream: TcpStream, state: &Mutex<State>) {
    let mut stream = BufReader::new(stream);
    while let Some((line, login, body)) = read_request(&mut stream) {
        let calls: Value = serde_json::from_slice(&body).unwrap_or_default();
        let methods = calls.as_array().into_iter().flatten();
        let methods = methods.map(|call| call["method"].as_str().unwrap().to_owned()).collect();
        let request = Request { line: line.clone(), methods };
        let reaction = {
            let mut state = state.lock().unwrap();
            state.requests.push(request.clone());
            (state.answer)(&request)
        };
        let answer = match reaction {
            Reaction::Serve => state.lock().unwrap().serve(&line, &login, &calls),
            Reaction::Switch(chain) => {
                let mut state = state.lock().unwrap();
                state.set_chain(&chain);
                state.serve(&line, &login, &calls)
            }
            Reaction::Raw(bytes) => {
                // The client may have disconnected.
                let _ = stream.get_mut().write_all(&bytes);
                return;
            }
            Reaction::Hang => loop {
                thread::sleep(Duration::from_secs(1));
            },
        };
        if stream.get_mut().write_all(&answer).is_err() {
            return;
        }
    }
}

/// The path, the login and the body.
fn read_request(stream: &mut BufReader<TcpStream>) -> Option<(String, String, Vec<u8>)> {
    let (mut line, mut login, mut length) = (String::new(), String::new(), 0);
    stream.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split(' ');
    let path = format!("{} {}", words.next()?, words.next()?);
    loop {
        line.clear();
        stream.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let Some((name, value)) = line.split_once(": ") else { break };
        match name {
            "Content-Length" => length = value.trim().parse().unwrap(),
            "Authorization" => {
                let login64 = value.trim().strip_prefix("Basic ").unwrap();
                login = String::from_utf8(BASE64_STANDARD.decode(login64).unwrap()).unwrap();
            }
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some((path, login, body))
}

impl State {
    fn set_chain(&mut self, chain: &[Served]) {
        self.chain = chain.iter().map(|(hash, _)| hash.clone()).collect();
        for (height, (hash, bytes)) in chain.iter().enumerate() {
            self.blocks.insert(hash.clone(), (height, bytes.clone()));
        }
    }

    fn serve(&self, line: &str, login: &str, calls: &Value) -> Vec<u8> {
        if let Some(path) = line.strip_prefix("GET ") {
            return if self.rest { self.rest(path) } else { reply(404, b"") };
        }
        if login != "user:password" {
            return reply(401, b"");
        }
        let answer = |call: &Value| {
            let params = &call["params"];
            match self.call(call["method"].as_str().unwrap(), params) {
                Ok(result) => json!({ "result": result, "error": null, "id": call["id"] }),
                Err((code, message)) => {
                    let error = json!({ "code": code, "message": message });
                    json!({ "result": null, "error": error, "id": call["id"] })
                }
            }
        };
        let answers = match calls.as_array() {
            Some(batch) => batch.iter().map(answer).collect(),
            None => answer(calls),
        };
        reply(200, answers.to_string().as_bytes())
    }

    fn info(&self) -> Value {
        let (height, best) = (self.chain.len() - 1, self.chain.last().unwrap());
        json!({ "chain": self.network, "blocks": height, "bestblockhash": best })
    }

    fn is_active(&self, hash: &str) -> bool {
        let height = self.blocks.get(hash).map(|(height, _)| *height);
        height.is_some_and(|height| self.chain.get(height).is_some_and(|active| active == hash))
    }

    fn rest(&self, path: &str) -> Vec<u8> {
        let path = path.strip_prefix("/rest/").unwrap();
        if path == "chaininfo.json" {
            return reply(200, self.info().to_string().as_bytes());
        }
        let path = path.strip_suffix(".bin").unwrap();
        if let Some(hash) = path.strip_prefix("block/") {
            return match self.blocks.get(hash) {
                Some((_, bytes)) => reply(200, bytes),
                None => reply(404, format!("{hash} not found\r\n").as_bytes()),
            };
        }
        let (count, hash) = path.strip_prefix("headers/").unwrap().split_once('/').unwrap();
        let count = count.parse::<usize>().unwrap();
        assert!((1..=REST_HEADERS).contains(&count));
        let mut headers = Vec::new();
        if self.is_active(hash) {
            for hash in self.chain[self.blocks[hash].0..].iter().take(count) {
                headers.extend_from_slice(&self.blocks[hash].1[..80]);
            }
        }
        reply(200, &headers)
    }

    fn call(&self, method: &str, params: &Value) -> Result<Value, (i64, &str)> {
        let block = || self.blocks.get(params[0].as_str().unwrap()).ok_or((-5, "Block not found"));
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        match method {
            "getblockchaininfo" => Ok(self.info()),
            "getblockhash" => {
                let height = usize::try_from(params[0].as_u64().unwrap()).unwrap();
                let hash = self.chain.get(height).ok_or((-8, "Block height out of range"))?;
                Ok(json!(hash))
            }
            "getblockheader" if params[1] == true => {
                let (height, _) = block()?;
                let active = self.is_active(params[0].as_str().unwrap());
                let confirmations =
                    if active { i64::try_from(self.chain.len() - height).unwrap() } else { -1 };
                Ok(json!({ "height": height, "confirmations": confirmations }))
            }
            "getblockheader" => Ok(json!(hex(&block()?.1[..80]))),
            "getblock" => Ok(json!(hex(&block()?.1))),
            _ => Err((-32601, "Method not found")),
        }
    }
}
