//! What can go wrong with a transaction of the server, and what it means.

use std::error::Error as _;
use std::sync::Arc;

use tokio_postgres::Error;
use tokio_postgres::error::{DbError, SqlState};

use crate::engine::{EngineError, Question};
use crate::outcome::Outcome;

/// Why a transaction did not come to its end.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Another transaction was in the way. Nothing was done.
    Contended { by: Arc<str> },
    /// The connection is gone, or none can be had. Nothing was done.
    Lost { cause: Arc<str> },
    /// The connection broke after COMMIT was sent.
    InDoubt { question: Question, outcomes: Vec<Outcome>, cause: Arc<str> },
    /// Trying again does not help.
    Engine(EngineError),
}

/// Codes of a transaction that met another one.
const CONTENDED: [SqlState; 4] = [
    SqlState::T_R_SERIALIZATION_FAILURE,
    SqlState::T_R_DEADLOCK_DETECTED,
    SqlState::LOCK_NOT_AVAILABLE,
    SqlState::UNIQUE_VIOLATION,
];

/// Codes of a server that ends the connection, or that is not ready.
const LOST: [SqlState; 6] = [
    SqlState::ADMIN_SHUTDOWN,
    SqlState::CRASH_SHUTDOWN,
    SqlState::CANNOT_CONNECT_NOW,
    SqlState::TOO_MANY_CONNECTIONS,
    SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    SqlState::READ_ONLY_SQL_TRANSACTION,
];

impl Trouble {
    /// The connection is gone.
    pub(super) fn lost(cause: impl Into<Arc<str>>) -> Self {
        Self::Lost { cause: cause.into() }
    }

    /// What the engine has does not make sense.
    pub(super) fn damaged(what: impl Into<String>) -> Self {
        Self::Engine(EngineError::storage(std::io::Error::other(what.into())))
    }

    /// The error of a call that cannot be repeated any more.
    pub(super) fn into_error(self) -> EngineError {
        match self {
            Self::Contended { by } => EngineError::Busy { by },
            Self::Lost { cause } => EngineError::Unavailable { cause },
            Self::InDoubt { cause, .. } => EngineError::Unknown { cause },
            Self::Engine(error) => error,
        }
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        let Some(reported) = error.as_db_error() else {
            return Self::lost(sentence(&error));
        };
        let code = reported.code();
        let text: Arc<str> = report(reported).into();
        if CONTENDED.contains(code) {
            Self::Contended { by: text }
        } else if LOST.contains(code) || code.code().starts_with("08") {
            Self::Lost { cause: text }
        } else if code.code().starts_with("53") || *code == SqlState::QUERY_CANCELED {
            // No room on the disk, no memory, far too slow: the server must be helped first.
            Self::Engine(EngineError::Unavailable { cause: text })
        } else {
            Self::Engine(EngineError::storage(error))
        }
    }
}

/// What the server reports.
pub(super) fn report(error: &DbError) -> String {
    let detail = error.detail().map(|detail| format!(" ({})", detail.replace('\n', " ")));
    format!("{}{}", error.message(), detail.unwrap_or_default())
}

/// An error of the client with its causes, in one line.
pub(super) fn sentence(error: &Error) -> String {
    if let Some(reported) = error.as_db_error() {
        return report(reported);
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text += &format!(": {cause}");
        source = cause.source();
    }
    text
}
