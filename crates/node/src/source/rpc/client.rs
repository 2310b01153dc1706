//! What is asked of a node: JSON-RPC calls in batches, and the REST interface where it is on.
//!
//! | question | REST | JSON-RPC |
//! |---|---|---|
//! | the tip | `/rest/chaininfo.json` | `getblockchaininfo` |
//! | is this block in the active chain? | `/rest/headers/1/HASH.bin` | `getblockheader`, a batch |
//! | headers above it | `/rest/headers/2000/HASH.bin` | `getblockhash`, then `getblockheader`, a batch each |
//! | blocks | `/rest/block/HASH.bin` | `getblock HASH 0`, in hex, a batch |
//!
//! A batch of blocks asks for so many that the answer is about [`BATCH_BYTES`] long, by the sizes
//! of the last ones; an answer that is longer than the limit is asked for again block by block.
//!
//! Every question is repeated until it is answered, refused, or the source ends: what happens in
//! between is told to [`Link`]. REST that was turned off by a restart is not asked again.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hex_conservative::FromHex as _;
use serde_json::{Value, json};
use varve_types::{BlockHash, Header, Height};

use super::http::{Answer, Http, HttpError};
use super::link::{Link, Stop, Trouble};
use crate::source::HeaderBytes;

/// How long a node that does not answer is left alone.
const PAUSE: Duration = Duration::from_millis(500);
/// Headers asked for at once: by REST as many as a node gives, by calls fewer, 250 bytes each.
const REST_HEADERS: u32 = 2000;
const CALL_HEADERS: u32 = 500;
/// The text of the blocks that are asked for at once, and how many they may be.
const BATCH_BYTES: u64 = 4 << 20;
const BATCH_BLOCKS: u64 = 32;
/// More than the text of the largest block of Bitcoin, which is 8 MB.
const BODY_LIMIT: u64 = 16 << 20;
/// What a block is long before one has come.
const FIRST_SIZE: u64 = 1 << 20;

const WARMING_UP: i64 = -28;

/// How a node is told who asks.
#[derive(Clone, Debug)]
pub enum Login {
    /// Nothing: REST needs no login.
    Nobody,
    /// `rpcuser` and `rpcpassword`.
    Password {
        /// The user.
        user: String,
        /// The password.
        password: String,
    },
    /// The file `.cookie` that a node writes at its start.
    Cookie(PathBuf),
}

/// A block of the node's active chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub(super) hash: BlockHash,
    /// Its height, where it is known: REST does not say it.
    pub(super) height: Option<Height>,
}

/// One thread's way to the node.
pub(super) struct Client {
    link: Arc<Link>,
    login: Login,
    http: Http,
    /// The length of the largest of the last blocks.
    block_size: u64,
}

/// Why a question has no answer.
enum CallError {
    Stop(Stop),
    /// It may go well later.
    Trouble(Trouble),
    /// It will not go well.
    Refused(String),
    /// The answer is longer than what is taken.
    TooLong,
    /// REST is off.
    NoRest,
}

impl From<HttpError> for CallError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::Stop(stop) => Self::Stop(stop),
            HttpError::Unreachable(reason) => Self::Trouble(Trouble::Unreachable(reason)),
            HttpError::Bad(what) => {
                Self::Refused(format!("{what}; write the address of a node's RPC port"))
            }
            HttpError::TooLong => Self::TooLong,
        }
    }
}

impl Client {
    pub(super) fn new(link: Arc<Link>, login: Login) -> Self {
        let limit = if link.network.is_bsv() { 2 * u64::from(u32::MAX) } else { BODY_LIMIT };
        let http = Http::new(Arc::clone(&link), limit);
        Self { link, login, http, block_size: FIRST_SIZE }
    }

    /// Finds out whether the node answers REST, and that it is of the right network.
    pub(super) fn greet(&mut self) -> Result<(), Stop> {
        let rest = self.patiently(|client| {
            let Answer { status, body } = client.http.request(CHAIN_INFO, None, None)?;
            busy(status, &body)?;
            Ok(status == 200 && best_block(&parse(&body)).is_some())
        })?;
        self.link.set_rest(rest);
        let genesis = self.link.network.genesis_hash();
        if self.find(&[genesis])?.is_some() {
            return Ok(());
        }
        let info = self.chain_info()?;
        let chain = info.get("chain").and_then(Value::as_str).unwrap_or("another chain");
        let (name, network) = (network_name(chain), self.link.network);
        Err(self.link.refused(&format!(
            "this is a node of {name}, not of {network}; pass --network {name}, or the address of \
             another node"
        )))
    }

    /// The node's tip.
    pub(super) fn tip(&mut self) -> Result<At, Stop> {
        let info = self.chain_info()?;
        let height = info.get("blocks").and_then(Value::as_u64);
        let height = height.and_then(|height| u32::try_from(height).ok()).map(Height::new);
        match best_block(&info) {
            Some(hash) => Ok(At { hash, height }),
            None => Err(self.link.refused("names no best block; is this a node?")),
        }
    }

    /// The first of these blocks that is in the node's active chain.
    pub(super) fn find(&mut self, hashes: &[BlockHash]) -> Result<Option<At>, Stop> {
        self.patiently(|client| {
            if !client.link.uses_rest() {
                return client.find_by_calls(hashes);
            }
            for hash in hashes {
                if client.headers_by_rest(*hash, 1)?.is_some() {
                    return Ok(Some(At { hash: *hash, height: None }));
                }
            }
            Ok(None)
        })
    }

    /// Headers of the active chain above one of its blocks, a batch of them; `None` when that block
    /// has left it.
    pub(super) fn headers_above(
        &mut self,
        at: &At,
        tip: &At,
    ) -> Result<Option<Vec<HeaderBytes>>, Stop> {
        self.patiently(|client| {
            if client.link.uses_rest() {
                let headers = client.headers_by_rest(at.hash, REST_HEADERS)?;
                return Ok(headers.map(|headers| headers.get(1..).unwrap_or_default().to_vec()));
            }
            let known = match at.height {
                Some(height) => Some(height),
                // The node was restarted without REST.
                None => client.find_by_calls(&[at.hash])?.and_then(|at| at.height),
            };
            match (known, tip.height) {
                (Some(height), Some(tip)) if height <= tip => {
                    client.headers_by_calls((at.hash, height), tip)
                }
                _ => Ok(None),
            }
        })
    }

    /// How many blocks are asked for at once.
    pub(super) fn batch_size(&self) -> usize {
        let count = match self.link.uses_rest() {
            true => 1,
            false => (BATCH_BYTES / (2 * self.block_size.max(1))).clamp(1, BATCH_BLOCKS),
        };
        usize::try_from(count).unwrap_or(1)
    }

    /// Blocks, or `None` for each that the node does not have.
    pub(super) fn blocks(
        &mut self,
        hashes: &[BlockHash],
    ) -> Result<Vec<Option<Vec<u8>>>, Stop> {
        let answers = self.patiently(|client| {
            if client.link.uses_rest() {
                return hashes.iter().map(|hash| client.block_by_rest(hash)).collect();
            }
            match client.blocks_by_calls(hashes) {
                Err(CallError::TooLong) if hashes.len() > 1 => {
                    let one = |hash| client.blocks_by_calls(std::slice::from_ref(hash));
                    let blocks: Result<Vec<_>, _> = hashes.iter().map(one).collect();
                    Ok(blocks?.into_iter().flatten().collect())
                }
                answer => answer,
            }
        })?;
        let largest = answers.iter().flatten().map(Vec::len).max();
        if let Some(largest) = largest {
            self.block_size = (largest as u64).max(self.block_size / 2);
        }
        for (hash, bytes) in hashes.iter().zip(&answers) {
            let header = bytes.as_ref().map(|bytes| bytes.first_chunk().map(Header::new));
            if header.is_some_and(|header| header.is_none_or(|header| header.hash() != *hash)) {
                return Err(self.link.refused(&format!("gave another block than {hash}")));
            }
        }
        Ok(answers)
    }

    fn chain_info(&mut self) -> Result<Value, Stop> {
        self.patiently(|client| {
            if client.link.uses_rest() {
                return Ok(parse(&client.rest(CHAIN_INFO)?.unwrap_or_default()));
            }
            let info = client.batch(&[("getblockchaininfo", json!([]))])?;
            Ok(info.into_iter().flatten().next().unwrap_or_default())
        })
    }

    fn find_by_calls(&mut self, hashes: &[BlockHash]) -> Result<Option<At>, CallError> {
        let call = |hash: &BlockHash| ("getblockheader", json!([hash.to_string(), true]));
        let calls: Vec<_> = hashes.iter().map(call).collect();
        let answers = self.batch(&calls)?;
        Ok(hashes.iter().zip(&answers).find_map(|(hash, answer)| {
            let field = |name| answer.as_ref()?.get(name).and_then(Value::as_i64);
            // A block beside the active chain has −1.
            field("confirmations").filter(|count| *count > 0)?;
            let height = field("height").and_then(|height| u32::try_from(height).ok())?;
            Some(At { hash: *hash, height: Some(Height::new(height)) })
        }))
    }

    /// The headers above a block. They are asked for in two batches, so the chain may have changed
    /// in between; the links between the headers show it.
    fn headers_by_calls(
        &mut self,
        (hash, height): (BlockHash, Height),
        tip: Height,
    ) -> Result<Option<Vec<HeaderBytes>>, CallError> {
        let first = height.to_u32();
        let last = first.saturating_add(CALL_HEADERS).min(tip.to_u32());
        let calls: Vec<_> = (first..=last).map(|at| ("getblockhash", json!([at]))).collect();
        let hashes = self.batch(&calls)?.into_iter().map_while(|answer| answer);
        let hashes: Vec<Value> = hashes.collect();
        if hashes.first().and_then(to_hash) != Some(hash) {
            return Ok(None);
        }
        let call = |hash: &Value| ("getblockheader", json!([hash, false]));
        let calls: Vec<_> = hashes.iter().skip(1).map(call).collect();
        if calls.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let (mut headers, mut below) = (Vec::with_capacity(calls.len()), hash);
        for answer in self.batch(&calls)? {
            let Some(answer) = answer else { return Ok(None) };
            let header = answer.as_str().and_then(|hex| HeaderBytes::from_hex(hex).ok());
            let header =
                header.ok_or_else(|| CallError::Refused("gave a header that is none".into()))?;
            if Header::new(&header).previous() != below {
                return Ok(None);
            }
            below = Header::new(&header).hash();
            headers.push(header);
        }
        Ok(Some(headers))
    }

    /// Headers of the active chain from a block on, that of the block first; `None` when it is not
    /// in that chain.
    fn headers_by_rest(
        &mut self,
        from: BlockHash,
        count: u32,
    ) -> Result<Option<Vec<HeaderBytes>>, CallError> {
        let bytes = self.rest(&format!("/rest/headers/{count}/{from}.bin"))?.unwrap_or_default();
        let (headers, _) = bytes.as_chunks::<{ Header::LEN }>();
        if headers.first().is_none_or(|header| Header::new(header).hash() != from) {
            return Ok(None);
        }
        let links = headers.array_windows().all(|[below, above]| {
            Header::new(above).previous() == Header::new(below).hash()
        });
        match links {
            true => Ok(Some(headers.to_vec())),
            false => Err(CallError::Refused("gave headers that do not follow one another".into())),
        }
    }

    fn block_by_rest(&mut self, hash: &BlockHash) -> Result<Option<Vec<u8>>, CallError> {
        self.rest(&format!("/rest/block/{hash}.bin"))
    }

    fn blocks_by_calls(
        &mut self,
        hashes: &[BlockHash],
    ) -> Result<Vec<Option<Vec<u8>>>, CallError> {
        let call = |hash: &BlockHash| ("getblock", json!([hash.to_string(), 0]));
        let calls: Vec<_> = hashes.iter().map(call).collect();
        let bytes = |answer: Option<Value>| {
            let Some(answer) = answer else { return Ok(None) };
            let bytes = answer.as_str().and_then(|hex| Vec::from_hex(hex).ok());
            bytes.map(Some).ok_or_else(|| CallError::Refused("gave a block that is not hex".into()))
        };
        self.batch(&calls)?.into_iter().map(bytes).collect()
    }

    /// What a path has, or `None` when there is nothing.
    fn rest(&mut self, path: &str) -> Result<Option<Vec<u8>>, CallError> {
        let Answer { status, body } = self.http.request(path, None, None)?;
        busy(status, &body)?;
        match status {
            200 => Ok(Some(body)),
            // A node says what it does not have; where it says nothing there is no REST.
            404 if body.is_empty() => Err(CallError::NoRest),
            _ => Ok(None),
        }
    }

    /// The results of calls, `None` where the node has no such thing.
    fn batch(&mut self, calls: &[(&str, Value)]) -> Result<Vec<Option<Value>>, CallError> {
        let calls: Vec<Value> = calls
            .iter()
            .enumerate()
            .map(|(id, (method, params))| {
                json!({ "jsonrpc": "1.0", "id": id, "method": method, "params": params })
            })
            .collect();
        let count = calls.len();
        let login = self.login()?;
        let body = Value::Array(calls).to_string();
        let answer = self.http.request("/", login.as_deref(), Some(body.as_bytes()))?;
        busy(answer.status, &answer.body)?;
        self.check_login(answer.status)?;
        let value = parse(&answer.body);
        let Value::Array(answers) = value else {
            return Err(value.get("error").filter(|error| !error.is_null()).map_or_else(
                || CallError::Refused(not_json(&answer)),
                |error| judge(error).unwrap_or_else(|| CallError::Refused(message(error))),
            ));
        };
        let mut results = vec![None; count];
        let mut missing = count;
        for mut answer in answers {
            let id = answer.get("id").and_then(Value::as_u64);
            let place = id.and_then(|id| results.get_mut(usize::try_from(id).ok()?));
            let Some(place) = place else { continue };
            missing = missing.saturating_sub(1);
            match answer.get("error").filter(|error| !error.is_null()) {
                None => *place = answer.get_mut("result").map(Value::take),
                Some(error) => {
                    if let Some(error) = judge(error) {
                        return Err(error);
                    }
                }
            }
        }
        match missing {
            0 => Ok(results),
            _ => Err(CallError::Refused("did not answer every call of a batch".to_owned())),
        }
    }

    /// A node that was restarted has a new cookie, so the file is read every time.
    fn login(&self) -> Result<Option<String>, CallError> {
        match &self.login {
            Login::Nobody => Ok(None),
            Login::Password { user, password } => Ok(Some(format!("{user}:{password}"))),
            Login::Cookie(path) => fs::read_to_string(path).map(Some).map_err(|error| {
                let reason = format!("cannot read the cookie {}: {error}", path.display());
                CallError::Trouble(Trouble::Unreachable(reason))
            }),
        }
    }

    fn check_login(&self, status: u16) -> Result<(), CallError> {
        let reason = match (status, &self.login) {
            (401, Login::Nobody) => {
                "REST is off and there is no login; start the node with -rest=1, or pass \
                 http://user:password@host:port"
            }
            // A node that is being restarted has not written its new cookie yet.
            (401, Login::Cookie(path)) => {
                let reason = format!("refuses the login in {}", path.display());
                return Err(CallError::Trouble(Trouble::Unreachable(reason)));
            }
            (401, Login::Password { .. }) => "refuses the login; check user and password",
            (403, _) => "refuses our address; allow it with -rpcallowip on the node",
            _ => return Ok(()),
        };
        Err(CallError::Refused(reason.to_owned()))
    }

    /// Asks until there is an answer.
    fn patiently<T>(
        &mut self,
        mut ask: impl FnMut(&mut Self) -> Result<T, CallError>,
    ) -> Result<T, Stop> {
        loop {
            match ask(self) {
                Ok(value) => {
                    self.link.well();
                    return Ok(value);
                }
                Err(CallError::Trouble(trouble)) => {
                    self.link.trouble(&trouble)?;
                    self.link.pause(PAUSE)?;
                }
                Err(CallError::NoRest) => self.link.set_rest(false),
                Err(CallError::Stop(stop)) => return Err(stop),
                Err(CallError::Refused(reason)) => return Err(self.link.refused(&reason)),
                Err(CallError::TooLong) => {
                    let reason = "sends an answer that is longer than any block; is this a node?";
                    return Err(self.link.refused(reason));
                }
            }
        }
    }
}

const CHAIN_INFO: &str = "/rest/chaininfo.json";

/// The statuses of a node, or of a proxy before it, that has no time.
fn busy(status: u16, body: &[u8]) -> Result<(), CallError> {
    match status {
        429 | 502..=504 => Err(CallError::Trouble(Trouble::Busy(format!(
            "it is busy (status {status}): {}",
            beginning(body)
        )))),
        _ => Ok(()),
    }
}

/// Sorts the error of a call. `None`: the node has no such thing, which is what codes −1, −5 and
/// −8 stand for: a block that is pruned, unknown or above the tip.
fn judge(error: &Value) -> Option<CallError> {
    match error.get("code").and_then(Value::as_i64) {
        Some(-1 | -5 | -8) => None,
        Some(WARMING_UP) => {
            Some(CallError::Trouble(Trouble::Busy(format!("it warms up: {}", message(error)))))
        }
        _ => Some(CallError::Refused(message(error))),
    }
}

fn message(error: &Value) -> String {
    error.get("message").and_then(Value::as_str).unwrap_or("an error without a message").to_owned()
}

fn not_json(answer: &Answer) -> String {
    format!(
        "answers with status {} and no JSON-RPC ({}); write the address of a node's RPC port",
        answer.status,
        beginning(&answer.body)
    )
}

/// The first line of a text, as far as it can be shown.
fn beginning(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text.get(..200).unwrap_or(text)).into_owned();
    let line = text.lines().next().unwrap_or_default();
    line.chars().filter(|letter| !letter.is_control()).take(80).collect()
}

/// What does not parse is null, which has no fields.
fn parse(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_default()
}

fn best_block(info: &Value) -> Option<BlockHash> {
    to_hash(info.get("bestblockhash")?)
}

fn to_hash(value: &Value) -> Option<BlockHash> {
    value.as_str()?.parse().ok()
}

/// Our name of a chain that a node names.
fn network_name(chain: &str) -> &str {
    match chain {
        "main" => "mainnet",
        "test" => "testnet3",
        other => other,
    }
}
