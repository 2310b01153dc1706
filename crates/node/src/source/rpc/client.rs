//! What is asked of a node: JSON-RPC calls, and the REST interface where it is turned on.
//!
//! A node that starts or restarts refuses connections or says that it warms up. Such errors are
//! tried again for a while before they count, as [`SourceError::Silent`]; a refused login, a wrong
//! network or an unknown block count at once.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use hex_conservative::FromHex as _;
use serde_json::{Value, json};
use varve_types::{BlockHash, Header, Height, Network};

use super::http::{Answer, Http};
use crate::source::{HeaderBytes, SourceError};

/// How often a node is asked again that does not answer: at first, when it may be starting, and
/// later, when the caller will ask again; and after which pause.
const FIRST_TRIES: u32 = 60;
const TRIES: u32 = 8;
const PAUSE: Duration = Duration::from_millis(500);
/// Headers asked for at once: by REST, and by calls.
const REST_HEADERS: usize = 2000;
const BATCH: u32 = 200;
/// More than the text of the largest block of Bitcoin.
const BODY_LIMIT: u64 = 16 << 20;

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

/// The way to one node.
pub(super) struct Client {
    address: String,
    network: Network,
    login: Login,
    http: Http,
    tries: u32,
}

/// Why a call failed.
enum CallError {
    /// It may go well later.
    Busy(String),
    /// The node has no such thing.
    Unknown,
    /// It will not go well.
    Refused(String),
}

impl From<io::Error> for CallError {
    fn from(error: io::Error) -> Self {
        Self::Busy(error.to_string())
    }
}

impl Client {
    /// Will talk to the node at `host:port`.
    pub(super) fn new(address: &str, network: Network, login: Login) -> Self {
        let limit = if network.is_bsv() { 2 * u64::from(u32::MAX) } else { BODY_LIMIT };
        let http = Http::new(address.to_owned(), limit);
        Self { address: address.to_owned(), network, login, http, tries: TRIES }
    }

    /// Whether the node answers REST. An error when it is of another network.
    pub(super) fn greet(&mut self) -> Result<bool, SourceError> {
        self.tries = FIRST_TRIES;
        let rest = self.rest("/rest/chaininfo.json")?.is_some();
        let genesis = match rest {
            true => Some(self.headers_by_rest(self.network.genesis_hash())?.is_some()),
            false => self.hash_at(Height::GENESIS)?.map(|hash| hash == self.network.genesis_hash()),
        };
        self.tries = TRIES;
        match genesis {
            Some(true) => Ok(rest),
            _ => Err(self.error(&format!("is not a node of {}; choose its network", self.network))),
        }
    }

    /// The hash of the node's tip.
    pub(super) fn best_hash(&mut self, rest: bool) -> Result<BlockHash, SourceError> {
        let best = if rest {
            let chain = self.rest("/rest/chaininfo.json")?.unwrap_or_default();
            let chain: Value = serde_json::from_slice(&chain).unwrap_or_default();
            chain.get("bestblockhash").and_then(hash)
        } else {
            self.call("getbestblockhash", &json!([]))?.as_ref().and_then(hash)
        };
        best.ok_or_else(|| self.error("gave no best hash"))
    }

    /// The height of a block, if it is in the node's active chain.
    pub(super) fn height(&mut self, hash: &BlockHash) -> Result<Option<Height>, SourceError> {
        let Some(header) = self.call("getblockheader", &json!([hash.to_string(), true]))? else {
            return Ok(None);
        };
        let field = |name| header.get(name).and_then(Value::as_i64);
        let active = field("confirmations").is_some_and(|count| count > 0);
        let height = field("height").and_then(|height| u32::try_from(height).ok());
        Ok(height.filter(|_| active).map(Height::new))
    }

    /// Headers of the active chain from a block on, the block among them; `None` when it is not in
    /// that chain.
    pub(super) fn headers_by_rest(
        &mut self,
        from: BlockHash,
    ) -> Result<Option<Vec<HeaderBytes>>, SourceError> {
        let path = format!("/rest/headers/{REST_HEADERS}/{from}.bin");
        let bytes = self.rest(&path)?.unwrap_or_default();
        let (headers, _) = bytes.as_chunks::<{ Header::LEN }>();
        let found = headers.first().is_some_and(|header| Header::new(header).hash() == from);
        Ok(found.then(|| headers.to_vec()))
    }

    /// The headers above a height of the active chain, a batch of them.
    pub(super) fn headers_by_calls(
        &mut self,
        above: Height,
    ) -> Result<Vec<HeaderBytes>, SourceError> {
        let mut headers = Vec::new();
        for number in 1..=BATCH {
            let Some(height) = above.checked_add(number) else { break };
            let Some(hash) = self.hash_at(height)? else { break };
            let header = self.call("getblockheader", &json!([hash.to_string(), false]))?;
            let header = header.as_ref().and_then(Value::as_str);
            let header = header.and_then(|hex| HeaderBytes::from_hex(hex).ok());
            headers.push(header.ok_or_else(|| self.error("gave a header that is none"))?);
        }
        Ok(headers)
    }

    /// A block, or `None` when the node does not have it.
    pub(super) fn block(
        &mut self,
        hash: &BlockHash,
        rest: bool,
    ) -> Result<Option<Vec<u8>>, SourceError> {
        let bytes = if rest {
            self.rest(&format!("/rest/block/{hash}.bin"))?
        } else {
            let block = self.call("getblock", &json!([hash.to_string(), 0]))?;
            block.as_ref().and_then(Value::as_str).and_then(|hex| Vec::from_hex(hex).ok())
        };
        let Some(bytes) = bytes else { return Ok(None) };
        let header = bytes.first_chunk().map(Header::new);
        match header.is_some_and(|header| header.hash() == *hash) {
            true => Ok(Some(bytes)),
            false => Err(self.error(&format!("gave another block than {hash}"))),
        }
    }

    /// The error that names this node.
    pub(super) fn error(&self, reason: &str) -> SourceError {
        SourceError::Rpc { address: self.address.clone(), reason: reason.to_owned() }
    }

    fn hash_at(&mut self, height: Height) -> Result<Option<BlockHash>, SourceError> {
        let hash_at = self.call("getblockhash", &json!([height.to_u32()]))?;
        Ok(hash_at.as_ref().and_then(hash))
    }

    /// What a path has, or `None` when there is nothing.
    fn rest(&mut self, path: &str) -> Result<Option<Vec<u8>>, SourceError> {
        self.patiently(|client| {
            let Answer { status, body } = client.http.request(path, None, None)?;
            match status {
                200 => Ok(Some(body)),
                503 => Err(CallError::Busy(String::from_utf8_lossy(&body).into_owned())),
                _ => Ok(None),
            }
        })
    }

    /// The result of a call, or `None` when the node has no such thing.
    fn call(&mut self, method: &str, params: &Value) -> Result<Option<Value>, SourceError> {
        let body = json!({ "jsonrpc": "1.0", "id": 0, "method": method, "params": params });
        let body = body.to_string();
        self.patiently(|client| match client.call_once(body.as_bytes()) {
            Ok(result) => Ok(Some(result)),
            Err(CallError::Unknown) => Ok(None),
            Err(error) => Err(error),
        })
    }

    fn call_once(&mut self, body: &[u8]) -> Result<Value, CallError> {
        // A node that was restarted has a new cookie, so the file is read every time.
        let login = match &self.login {
            Login::Nobody => None,
            Login::Password { user, password } => Some(format!("{user}:{password}")),
            Login::Cookie(path) => Some(fs::read_to_string(path).map_err(|error| {
                CallError::Busy(format!("cannot read the cookie {}: {error}", path.display()))
            })?),
        };
        let answer = self.http.request("/", login.as_deref(), Some(body))?;
        if matches!(answer.status, 401 | 403) {
            let reason = "refuses the login; check user and password, or the cookie file";
            return Err(match &self.login {
                Login::Cookie(_) => CallError::Busy(reason.to_owned()),
                _ => CallError::Refused(reason.to_owned()),
            });
        }
        let value: Value = serde_json::from_slice(&answer.body).map_err(|_| {
            let text = String::from_utf8_lossy(&answer.body).chars().take(100).collect::<String>();
            CallError::Busy(format!("answers with status {}: {text}", answer.status))
        })?;
        match (value.get("error"), value.get("result")) {
            (None | Some(Value::Null), Some(result)) => Ok(result.clone()),
            (Some(error), _) => Err(judge(error)),
            (None, None) => Err(CallError::Refused("gave neither a result nor an error".into())),
        }
    }

    /// Tries again while the node is busy.
    fn patiently<T>(
        &mut self,
        mut ask: impl FnMut(&mut Self) -> Result<T, CallError>,
    ) -> Result<T, SourceError> {
        let mut last = String::new();
        for attempt in 0..self.tries {
            if attempt > 0 {
                thread::sleep(PAUSE);
            }
            match ask(self) {
                Ok(value) => return Ok(value),
                Err(CallError::Busy(reason)) => last = reason,
                Err(CallError::Refused(reason)) => return Err(self.error(&reason)),
                Err(CallError::Unknown) => return Err(self.error("has no such thing")),
            }
        }
        Err(SourceError::Silent { address: self.address.clone(), reason: last })
    }
}

/// Sorts the error of a call. Codes −1, −5 and −8 stand for blocks that are not there: pruned,
/// unknown, above the tip.
fn judge(error: &Value) -> CallError {
    let message = error.get("message").and_then(Value::as_str).unwrap_or("an error").to_owned();
    match error.get("code").and_then(Value::as_i64) {
        Some(-1 | -5 | -8) => CallError::Unknown,
        Some(WARMING_UP) => CallError::Busy(message),
        _ => CallError::Refused(message),
    }
}

fn hash(value: &Value) -> Option<BlockHash> {
    value.as_str()?.parse().ok()
}
