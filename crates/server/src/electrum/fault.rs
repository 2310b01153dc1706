//! Why a request failed: the codes of JSON-RPC, and those that ElectrumX and Fulcrum share.
//!
//! | code | means |
//! |---|---|
//! | -32700 | the line is no JSON |
//! | -32600 | JSON, but no request |
//! | -32601 | no such method |
//! | -32602 | the method takes other parameters |
//! | -32603 | the server failed |
//! | 1 | a parameter names nothing that is there, or breaks a limit |
//! | 2 | the node behind the server refused, or is not there |
//! | 10001 | the history of the script is too long (protocol 1.7; 1 before) |

use std::borrow::Cow;

use serde::Serialize;

use super::version::Version;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The code of the table above.
    pub code: i32,
    /// What failed, on what, and what to do.
    pub message: Cow<'static, str>,
}

impl Fault {
    const PARSE: i32 = -32700;
    const INVALID_REQUEST: i32 = -32600;
    const NO_METHOD: i32 = -32601;
    const INVALID_PARAMS: i32 = -32602;
    const INTERNAL: i32 = -32603;
    const BAD_REQUEST: i32 = 1;
    const DAEMON: i32 = 2;
    const HISTORY_TOO_LONG: i32 = 10_001;

    fn new(code: i32, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into() }
    }

    pub(super) fn parse() -> Self {
        Self::new(Self::PARSE, "invalid JSON")
    }

    pub(super) fn invalid_request(what: &'static str) -> Self {
        Self::new(Self::INVALID_REQUEST, what)
    }

    pub(super) fn no_method(name: &str) -> Self {
        let shown: String = name.chars().take(80).collect();
        Self::new(Self::NO_METHOD, format!("unknown method {shown:?}"))
    }

    pub(super) fn params(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Self::INVALID_PARAMS, what)
    }

    pub(super) fn bad(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Self::BAD_REQUEST, what)
    }

    pub(super) fn daemon(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Self::DAEMON, what)
    }

    /// The history of a script is beyond the limit.
    pub(super) fn history_too_long(limit: usize) -> Self {
        let message = format!("history too large: the limit is {limit} transactions");
        Self::new(Self::HISTORY_TOO_LONG, message)
    }

    /// As a client that speaks this version knows it.
    pub(super) fn known_to(mut self, version: Version) -> Self {
        if self.code == Self::HISTORY_TOO_LONG && version < Version::V1_7 {
            self.code = Self::BAD_REQUEST;
        }
        self
    }

    pub(super) fn response_too_large(limit: usize) -> Self {
        Self::bad(format!("response too large: the limit is {limit} bytes; ask for less at once"))
    }
}

impl From<varve::Error> for Fault {
    /// What a caller can act on is passed on; the rest may name files, which are not its business.
    fn from(error: varve::Error) -> Self {
        use varve::Error as E;
        match &error {
            E::Pruned { .. }
            | E::NotStored { .. }
            | E::NoScripts
            | E::ScriptsNotBegun
            | E::AboveTip { .. }
            | E::UnknownOutput { .. } => Self::bad(error.to_string()),
            _ => Self::new(Self::INTERNAL, "the database failed to answer"),
        }
    }
}
