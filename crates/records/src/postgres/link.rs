//! One connection, and the runtime that whoever uses it drives.

use std::fmt;
use std::io;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls};

use super::address::Address;
use super::sql::Statements;
use super::trouble::Trouble;
use crate::engine::Question;

/// How long a transaction may take. The server is given less.
const PATIENCE: Duration = Duration::from_secs(120);

/// One connection.
pub(super) struct Link {
    pub(super) client: Client,
    pub(super) statements: Statements,
    /// Its row among the marks.
    pub(super) name: String,
    /// The number of its last batch.
    pub(super) batch: i64,
    /// Its session on the server.
    pid: i32,
    started: String,
    // Behind the client, which is to be closed first.
    runtime: Runtime,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A connection without its statements, which need the schema.
pub(super) struct Bare {
    pub(super) client: Client,
    pub(super) runtime: Runtime,
}

impl Bare {
    /// Connects.
    pub(super) fn connect(address: &Address) -> Result<Self, ConnectError> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (client, connection) = runtime.block_on(address.config.connect(NoTls))?;
        runtime.spawn(async move { drop(connection.await) });
        Ok(Self { client, runtime })
    }

    /// Runs a future to its end.
    pub(super) fn run<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Makes a session of the engine of it.
    pub(super) fn into_link(self, schema: &str) -> Result<Link, tokio_postgres::Error> {
        let Self { client, runtime } = self;
        let (statements, name, pid, started) = runtime.block_on(async {
            // A schema may be called like a word of SQL; its letters are checked in `address`.
            let settings = format!(
                "SET search_path TO \"{schema}\"; SET synchronous_commit TO on; \
                 SET statement_timeout TO '60s'; SET lock_timeout TO '10s'; \
                 SET idle_in_transaction_session_timeout TO '60s'"
            );
            client.batch_execute(&settings).await?;
            let statements = Statements::prepare(&client).await?;
            let about = "SELECT gen_random_uuid()::text, pid, backend_start::text \
                         FROM pg_stat_activity WHERE pid = pg_backend_pid()";
            let row = client.query_one(about, &[]).await?;
            Ok((statements, row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))
        })?;
        Ok(Link { client, statements, name, batch: 0, pid, started, runtime })
    }
}

/// Why no connection was made.
#[derive(Debug)]
pub(super) enum ConnectError {
    Runtime(io::Error),
    Server(tokio_postgres::Error),
}

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> Self {
        Self::Runtime(error)
    }
}

impl From<tokio_postgres::Error> for ConnectError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Server(error)
    }
}

impl From<ConnectError> for Trouble {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Runtime(error) => Self::lost(error.to_string()),
            ConnectError::Server(error) => Self::from(error),
        }
    }
}

impl Link {
    /// Runs a future to its end, or until the server has taken too long.
    pub(super) fn run<T, E>(&self, future: impl Future<Output = Result<T, E>>) -> Result<T, Trouble>
    where
        Trouble: From<E>,
    {
        let timed = async { tokio::time::timeout(PATIENCE, future).await };
        match self.runtime.block_on(timed) {
            Ok(done) => Ok(done?),
            Err(_) => Err(Trouble::lost("the server did not answer in two minutes")),
        }
    }

    /// Ends a transaction that failed. Says whether the connection can be used again.
    pub(super) fn roll_back(&self) -> bool {
        !self.client.is_closed() && self.run(self.client.batch_execute("ROLLBACK")).is_ok()
    }

    /// What to ask when the answer to this batch is lost.
    pub(super) fn question(&self) -> Question {
        let Self { name, batch, pid, started, .. } = self;
        Question(format!("{name} {batch} {pid} {started}").into_bytes())
    }
}

/// A question, taken apart.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    pub(super) link: &'a str,
    pub(super) batch: i64,
    pub(super) pid: i32,
    pub(super) started: &'a str,
}

impl<'a> Asked<'a> {
    pub(super) fn read(question: &'a Question) -> Option<Self> {
        let mut parts = std::str::from_utf8(&question.0).ok()?.splitn(4, ' ');
        let (link, batch) = (parts.next()?, parts.next()?.parse().ok()?);
        Some(Self { link, batch, pid: parts.next()?.parse().ok()?, started: parts.next()? })
    }
}
