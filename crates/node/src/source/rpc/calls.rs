//! One request to a node and what its answer means: REST paths, and batches of JSON-RPC calls.
//!
//! ```text
//! [{"id": 0, "method": "getblockhash", "params": [7]}, {"id": 1, …}]
//! [{"id": 0, "result": "6c…", "error": null}, {"id": 1, "error": {"code": -8, …}}]
//! ```
//!
//! Answers are matched by their ids. An error that stands for "there is no such block" is an
//! answer; what else can go wrong is sorted by what to do about it ([`CallError`]).

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::http::{Answer, Http, HttpError};
use super::link::{Link, Stop, Trouble};

/// More than the text of the largest block of Bitcoin, which is 8 MB.
const BODY_LIMIT: u64 = 16 << 20;

const WARMING_UP: i64 = -28;

/// The credentials that go with every JSON-RPC call.
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

/// Why a question has no answer.
pub(super) enum CallError {
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

/// One thread's way to the node.
pub(super) struct Calls {
    login: Login,
    http: Http,
}

impl Calls {
    pub(super) fn new(link: Arc<Link>, login: Login) -> Self {
        let limit = if link.network.is_bsv() { 2 * u64::from(u32::MAX) } else { BODY_LIMIT };
        Self::within(link, login, limit)
    }

    /// The same, whose answers may have up to `limit` bytes.
    pub(super) const fn within(link: Arc<Link>, login: Login, limit: u64) -> Self {
        Self { login, http: Http::new(link, limit) }
    }

    /// The result of one call, or the code and message of the node's error.
    pub(super) fn call(
        &mut self,
        method: &str,
        params: &Value,
    ) -> Result<Result<Value, (i64, String)>, CallError> {
        let body = json!({ "jsonrpc": "1.0", "id": 0, "method": method, "params": params });
        let login = self.login()?;
        let body = body.to_string();
        let answer = self.http.request("/", login.as_deref(), Some(body.as_bytes()))?;
        busy(answer.status, &answer.body)?;
        self.check_login(answer.status)?;
        let mut value = parse(&answer.body);
        match value.get("error").filter(|error| !error.is_null()) {
            Some(error) => match error.get("code").and_then(Value::as_i64).unwrap_or_default() {
                WARMING_UP => Err(CallError::Trouble(Trouble::Busy(message(error)))),
                code => Ok(Err((code, message(error)))),
            },
            None => match value.get_mut("result") {
                Some(result) => Ok(Ok(result.take())),
                None => Err(CallError::Refused(not_json(&answer))),
            },
        }
    }

    /// The answer to a path, unless the node is busy.
    pub(super) fn get(&mut self, path: &str) -> Result<Answer, CallError> {
        let answer = self.http.request(path, None, None)?;
        busy(answer.status, &answer.body)?;
        Ok(answer)
    }

    /// What a path has, or `None` when there is nothing.
    pub(super) fn rest(&mut self, path: &str) -> Result<Option<Vec<u8>>, CallError> {
        let Answer { status, body } = self.get(path)?;
        match status {
            200 => Ok(Some(body)),
            // A node says what it does not have; where it says nothing there is no REST.
            404 if body.is_empty() => Err(CallError::NoRest),
            _ => Ok(None),
        }
    }

    /// The results of calls, `None` where the node has no such thing.
    pub(super) fn batch(
        &mut self,
        calls: &[(&str, Value)],
    ) -> Result<Vec<Option<Value>>, CallError> {
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
}

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
pub(super) fn parse(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_default()
}
