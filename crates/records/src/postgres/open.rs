//! Opening: the checks of the server, and the schema.

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error};

use super::address::Address;
use super::link::{Bare, ConnectError};
use super::pool::Pool;
use super::sql::MIGRATIONS;
use super::trouble::sentence;

/// The oldest server that has what the engine asks for.
const OLDEST: i32 = 130_000;
/// Serializes those who open a new schema at the same time.
const OPENING: i64 = 0x7661_7276_6572_6563;
/// What the row in `about` says.
const KIND: &str = "varve records";

/// Why records in PostgreSQL cannot be opened. No text shows a password.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// The URL cannot be understood.
    #[error(
        "the URL of PostgreSQL cannot be used: {why}; write \
         postgres://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME"
    )]
    Url {
        /// What is wrong with it.
        why: String,
    },
    /// No server answers.
    #[error("no PostgreSQL server answers at {server}: {why}")]
    Down {
        /// Host, port and database.
        server: String,
        /// What the system reports.
        why: String,
    },
    /// The server does not let the user in.
    #[error("PostgreSQL at {server} refuses the user {user}: {why}")]
    Refused {
        /// Host, port and database.
        server: String,
        /// The user.
        user: String,
        /// What the server reports.
        why: String,
    },
    /// The server is too old.
    #[error("PostgreSQL at {server} is version {version}; version 13 or newer is needed")]
    Old {
        /// Host, port and database.
        server: String,
        /// Its version.
        version: String,
    },
    /// The server may lose what it has acknowledged.
    #[error(
        "PostgreSQL at {server} runs with {setting} = off and may lose records in a crash; \
         turn it on"
    )]
    NotDurable {
        /// Host, port and database.
        server: String,
        /// The setting.
        setting: &'static str,
    },
    /// The schema belongs to something else.
    #[error(
        "schema {schema} of {server} holds tables that are no records of Varve; name another \
         one with ?schema=NAME"
    )]
    Foreign {
        /// Host, port and database.
        server: String,
        /// The schema.
        schema: String,
    },
    /// The schema was made by a newer program.
    #[error(
        "schema {schema} of {server} has version {found} of the records, and this program knows \
         versions up to {known}; use a newer one"
    )]
    Newer {
        /// Host, port and database.
        server: String,
        /// The schema.
        schema: String,
        /// Its version.
        found: i32,
        /// The newest version that is known here.
        known: usize,
    },
    /// The server refused a statement.
    #[error("PostgreSQL at {server} refuses to open the records: {why}")]
    Server {
        /// Host, port and database.
        server: String,
        /// What the server reports.
        why: String,
    },
}

/// What opening gives.
pub(super) struct Opened {
    pub(super) pool: Pool,
    /// A name for this process on the server.
    pub(super) holder: String,
    /// The name of the records.
    pub(super) id: String,
}

/// Connects, checks the server, and brings the schema up to date.
pub(super) fn open(url: &str) -> Result<Opened, PostgresError> {
    let address = Address::parse(url)?;
    let server = address.shown();
    let bare = Bare::connect(&address).map_err(|error| refused(&address, &error))?;
    let report =
        |error: &Error| PostgresError::Server { server: server.clone(), why: sentence(error) };
    let about = Opening { client: &bare.client, server: &server, schema: &address.schema };
    bare.run(about.check_server())?;
    bare.run(about.bring_up_to_date())?;
    let id = bare.run(about.id())?;
    let link = bare.into_link(&address.schema).map_err(|error| report(&error))?;
    let holder = link.name.clone();
    Ok(Opened { pool: Pool::new(address, link), holder, id })
}

fn refused(address: &Address, error: &ConnectError) -> PostgresError {
    let (server, user) = (address.shown(), address.user().to_owned());
    let error = match error {
        ConnectError::Runtime(error) => {
            return PostgresError::Down { server, why: error.to_string() };
        }
        ConnectError::Server(error) => error,
    };
    let why = sentence(error);
    let code = error.code();
    let credentials = [
        &SqlState::INVALID_PASSWORD,
        &SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
        &SqlState::INVALID_CATALOG_NAME,
        &SqlState::INSUFFICIENT_PRIVILEGE,
    ];
    // A server that asks for a password which the URL has not is no answer of the server.
    let asks = why.contains("password missing");
    if asks || code.is_some_and(|code| credentials.contains(&code)) {
        return PostgresError::Refused { server, user, why };
    }
    PostgresError::Down { server, why }
}

/// A connection that is being looked at.
struct Opening<'a> {
    client: &'a Client,
    server: &'a str,
    schema: &'a str,
}

impl Opening<'_> {
    fn report(&self, error: &Error) -> PostgresError {
        PostgresError::Server { server: self.server.to_owned(), why: sentence(error) }
    }

    async fn shown(&self, setting: &str) -> Result<String, PostgresError> {
        let row = self.client.query_one("SELECT current_setting($1)", &[&setting]).await;
        row.and_then(|row| row.try_get(0)).map_err(|error| self.report(&error))
    }

    async fn check_server(&self) -> Result<(), PostgresError> {
        let server = || self.server.to_owned();
        let number = self.shown("server_version_num").await?.parse().unwrap_or(0);
        if number < OLDEST {
            let version = self.shown("server_version").await?;
            return Err(PostgresError::Old { server: server(), version });
        }
        for setting in ["fsync", "full_page_writes"] {
            if self.shown(setting).await? == "off" {
                return Err(PostgresError::NotDurable { server: server(), setting });
            }
        }
        Ok(())
    }

    /// Makes the schema, or takes the steps that it lacks, in one transaction.
    async fn bring_up_to_date(&self) -> Result<(), PostgresError> {
        let run = |text: String| async move {
            let done = self.client.batch_execute(&text).await;
            done.map_err(|error| self.report(&error))
        };
        run(format!("BEGIN; SELECT pg_advisory_xact_lock({OPENING})")).await?;
        let (schema, known) = (self.schema, MIGRATIONS.len());
        let found = self.version().await?;
        let found = match found {
            Some(version) => version,
            None => {
                run(format!(
                    "CREATE SCHEMA IF NOT EXISTS \"{schema}\"; \
                     SET LOCAL search_path TO \"{schema}\"; \
                     CREATE TABLE about \
                     (kind text NOT NULL, version integer NOT NULL, id text NOT NULL); \
                     INSERT INTO about VALUES ('{KIND}', 0, gen_random_uuid())"
                ))
                .await?;
                0
            }
        };
        let behind = usize::try_from(found).unwrap_or(0);
        if behind > known {
            let (server, schema) = (self.server.to_owned(), schema.to_owned());
            return Err(PostgresError::Newer { server, schema, found, known });
        }
        run(format!("SET LOCAL search_path TO \"{schema}\"")).await?;
        for step in MIGRATIONS.iter().skip(behind) {
            run((*step).to_owned()).await?;
        }
        // Sessions that ended a month ago are asked about by nobody.
        run(format!(
            "UPDATE about SET version = {known} WHERE version <> {known}; \
             DELETE FROM marks WHERE at < now() - interval '30 days'; COMMIT"
        ))
        .await
    }

    async fn id(&self) -> Result<String, PostgresError> {
        let asked = format!("SELECT id FROM \"{}\".about", self.schema);
        let row = self.client.query_one(&asked, &[]).await;
        row.and_then(|row| row.try_get(0)).map_err(|error| self.report(&error))
    }

    /// The version of the schema; `None` when it is missing or empty.
    async fn version(&self) -> Result<Option<i32>, PostgresError> {
        let report = |error| self.report(&error);
        let tables = "SELECT count(*), count(*) FILTER (WHERE c.relname = 'about') \
                      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                      WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f')";
        let row = self.client.query_one(tables, &[&self.schema]).await.map_err(report)?;
        let [all, about] = [0, 1].map(|place| row.try_get::<_, i64>(place).unwrap_or(0));
        if all == 0 {
            return Ok(None);
        }
        let foreign = || PostgresError::Foreign {
            server: self.server.to_owned(),
            schema: self.schema.to_owned(),
        };
        if about == 0 {
            return Err(foreign());
        }
        let asked = format!("SELECT version FROM \"{}\".about WHERE kind = '{KIND}'", self.schema);
        let rows = self.client.query(&asked, &[]).await.map_err(|_| foreign())?;
        let version = rows.first().map(|row| row.try_get::<_, i32>(0));
        version.transpose().ok().flatten().map(Some).ok_or_else(foreign)
    }
}
