//! Where records are kept, as a URL.
//!
//! | URL | is |
//! |---|---|
//! | `memory:` | in memory, gone at the end |
//! | `embedded:` | in the folder of the node's data; `embedded:PATH` in another |
//! | `postgres://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME` | in PostgreSQL, shared |

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where records are kept. It is shown without passwords.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EngineUrl {
    /// In memory.
    Memory,
    /// In a folder; `None` for that of the node's data.
    Embedded(Option<PathBuf>),
    /// In PostgreSQL: the URL.
    Postgres(String),
}

/// A text that names no engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineUrlError {
    /// There is nothing before a colon.
    #[error("{0} has no scheme; name embedded:PATH, memory: or postgres://…")]
    NoScheme(String),
    /// The scheme is not known.
    #[error("there is no engine {0:?}; name embedded:PATH, memory: or postgres://…")]
    Unknown(String),
    /// Memory has no place.
    #[error("nothing can follow memory:")]
    MemoryPlace,
}

impl FromStr for EngineUrl {
    type Err = EngineUrlError;

    fn from_str(text: &str) -> Result<Self, EngineUrlError> {
        let split = text.split_once(':');
        let (scheme, rest) = split.ok_or_else(|| EngineUrlError::NoScheme(text.to_owned()))?;
        match scheme {
            "memory" if rest.trim_matches('/').is_empty() => Ok(Self::Memory),
            "memory" => Err(EngineUrlError::MemoryPlace),
            "embedded" => {
                let path = rest.strip_prefix("//").unwrap_or(rest);
                Ok(Self::Embedded((!path.is_empty()).then(|| path.into())))
            }
            "postgres" | "postgresql" => Ok(Self::Postgres(text.to_owned())),
            other => Err(EngineUrlError::Unknown(other.to_owned())),
        }
    }
}

impl fmt::Display for EngineUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory:"),
            Self::Embedded(None) => f.write_str("embedded:"),
            Self::Embedded(Some(folder)) => write!(f, "embedded:{}", folder.display()),
            Self::Postgres(url) => {
                let (base, query) = url.split_once('?').unwrap_or((url, ""));
                let rest = base.split_once("://").map_or(base, |(_, rest)| rest);
                // A password may hold anything but the last @ before the host.
                let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
                write!(f, "postgres://{place}")?;
                let schema = query.split('&').find(|pair| pair.starts_with("schema="));
                schema.map_or(Ok(()), |schema| write!(f, "?{schema}"))
            }
        }
    }
}

impl fmt::Debug for EngineUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_engines() {
        let read = |text: &str| text.parse::<EngineUrl>();
        assert_eq!(read("memory:"), Ok(EngineUrl::Memory));
        assert_eq!(read("memory://"), Ok(EngineUrl::Memory));
        assert_eq!(read("embedded:"), Ok(EngineUrl::Embedded(None)));
        assert_eq!(read("embedded:data/a"), Ok(EngineUrl::Embedded(Some("data/a".into()))));
        assert_eq!(read("embedded:///a/b"), Ok(EngineUrl::Embedded(Some("/a/b".into()))));
        assert_eq!(read("memory:here"), Err(EngineUrlError::MemoryPlace));
        assert_eq!(read("records"), Err(EngineUrlError::NoScheme("records".to_owned())));
        assert_eq!(read("rocks:db"), Err(EngineUrlError::Unknown("rocks".to_owned())));
    }

    #[test]
    fn passwords_are_not_shown() {
        let url = "postgres://me:s@cr/et@db:5433/chain?password=also&schema=a&connections=2";
        let url: EngineUrl = url.parse().unwrap();
        assert_eq!(url.to_string(), "postgres://db:5433/chain?schema=a");
        assert_eq!(format!("{url:?}"), url.to_string());
    }
}
