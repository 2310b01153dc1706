//! Where records are: the URL, with the settings that are not the server's.

use std::str::FromStr as _;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::Host;

use super::open::PostgresError;
use super::trouble::sentence;

/// The schema when the URL names none.
const SCHEMA: &str = "varve_records";
/// Connections when the URL does not say: batches that are done at once.
const CONNECTIONS: usize = 8;
const MOST_CONNECTIONS: usize = 1_000;
/// How long a server may take to answer a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// The longest name that the server takes.
const LONGEST_NAME: usize = 63;

/// A database, and the schema in it.
#[derive(Clone, Debug)]
pub(super) struct Address {
    pub(super) config: Config,
    pub(super) schema: String,
    pub(super) connections: usize,
}

impl Address {
    /// Reads a URL. Errors never show it: it may have a password.
    pub(super) fn parse(url: &str) -> Result<Self, PostgresError> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut schema = SCHEMA.to_owned();
        let mut connections = CONNECTIONS;
        let mut theirs = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("schema", name)) => schema = checked(name)?,
                Some(("connections", count)) => {
                    let count = count.parse().ok().filter(|n| (1..=MOST_CONNECTIONS).contains(n));
                    connections = count.ok_or_else(|| {
                        let why = format!("connections is a number from 1 to {MOST_CONNECTIONS}");
                        PostgresError::Url { why }
                    })?;
                }
                _ => theirs.push(pair),
            }
        }
        let url = if theirs.is_empty() { base.to_owned() } else { base_with(base, &theirs) };
        let bad = |error: &tokio_postgres::Error| PostgresError::Url { why: sentence(error) };
        let mut config = Config::from_str(&url).map_err(|error| bad(&error))?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        // As the server's own programs do, so that no password need be in a command line.
        if let (None, Ok(password)) = (config.get_password(), std::env::var("PGPASSWORD")) {
            config.password(password);
        }
        if config.get_application_name().is_none() {
            config.application_name("varve");
        }
        if config.get_dbname().is_none() || config.get_hosts().is_empty() {
            let why = "it names no host or no database".to_owned();
            return Err(PostgresError::Url { why });
        }
        Ok(Self { config, schema, connections })
    }

    /// The server and the database, without user and password.
    pub(super) fn shown(&self) -> String {
        let ports = self.config.get_ports();
        let port = |place: usize| ports.get(place).or(ports.first()).copied().unwrap_or(5432);
        let host = |(place, host): (usize, &Host)| match host {
            Host::Tcp(name) => format!("{name}:{}", port(place)),
            Host::Unix(path) => path.display().to_string(),
        };
        let hosts: Vec<String> = self.config.get_hosts().iter().enumerate().map(host).collect();
        format!("{}/{}", hosts.join(","), self.config.get_dbname().unwrap_or_default())
    }

    /// The user, as far as the URL names one.
    pub(super) fn user(&self) -> &str {
        self.config.get_user().unwrap_or("of this system")
    }
}

fn base_with(base: &str, pairs: &[&str]) -> String {
    format!("{base}?{}", pairs.join("&"))
}

/// A name that needs no quotes, so it means the same everywhere.
fn checked(name: &str) -> Result<String, PostgresError> {
    let letter = |c: char| c.is_ascii_lowercase() || c == '_';
    let fits = name.len() <= LONGEST_NAME
        && name.starts_with(letter)
        && name.chars().all(|c| letter(c) || c.is_ascii_digit())
        && !name.starts_with("pg_");
    if fits {
        return Ok(name.to_owned());
    }
    let why = "schema is a name of small letters, digits and _, at most 63".to_owned();
    Err(PostgresError::Url { why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_database_schema_and_connections() {
        let url = "postgres://me:secret@db1:5433,db2/chain?schema=test_7&connections=3";
        let address = Address::parse(url).unwrap();
        assert_eq!(address.shown(), "db1:5433,db2:5433/chain".replace("db2:5433", "db2:5432"));
        assert_eq!((address.schema.as_str(), address.connections), ("test_7", 3));
        assert_eq!(address.user(), "me");
        let plain = Address::parse("postgres://localhost/chain").unwrap();
        assert_eq!((plain.schema.as_str(), plain.connections), (SCHEMA, CONNECTIONS));
    }

    #[test]
    fn a_bad_url_is_reported_without_its_password() {
        for url in [
            "postgres://me:secret@localhost:port/chain",
            "postgres://me:secret@localhost/chain?schema=A%20b",
            "postgres://me:secret@localhost/chain?connections=0",
            "postgres://me:secret@localhost/chain?nonsense=1",
            "postgres://me:secret@localhost",
        ] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
            assert!(error.starts_with("the URL of PostgreSQL cannot be used: "), "{error}");
        }
    }
}
