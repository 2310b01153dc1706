//! Arguments of `varve serve`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueEnum;
use varve_server::http::ReferenceServer;

use super::limits::LimitOptions;
use super::sync::ChainOptions;

/// Arguments of `varve serve`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("source").required(false))]
pub(crate) struct Serve {
    /// Where REST, the explorer, metrics and health are served; `off` for none
    #[arg(long, value_name = "HOST:PORT|off", default_value = "127.0.0.1:3000")]
    pub http: Listen,

    /// Where the Electrum protocol is served; `off` for none
    #[arg(long, value_name = "HOST:PORT|off", default_value = "127.0.0.1:50001")]
    pub electrum: Listen,

    /// Where the Electrum protocol is served with TLS, which needs --cert and --key
    #[arg(long, value_name = "HOST:PORT|off", default_value = "off")]
    pub electrum_tls: Listen,

    /// Where the Electrum protocol is served over WebSocket; with TLS when --cert and --key are
    /// given
    #[arg(long, value_name = "HOST:PORT|off", default_value = "off")]
    pub electrum_ws: Listen,

    /// The certificates for TLS, in PEM: the server's own first
    #[arg(long, value_name = "FILE")]
    pub cert: Option<PathBuf>,

    /// The private key of the certificate, in PEM
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,

    /// A file with the token that clients must have to change anything from another machine, and
    /// to change records at all
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,

    /// Where matches of Conduit's tip filters are sent: http://host:port
    #[arg(long, value_name = "URL")]
    pub reference_server: Option<ReferenceServer>,

    /// What wallets show when they connect by Electrum
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub banner: String,

    #[command(flatten)]
    pub log: LogOptions,

    #[command(flatten)]
    pub chain: ChainOptions,

    #[command(flatten)]
    pub limits: LimitOptions,
}

/// How events are logged.
#[derive(Debug, clap::Args)]
pub(crate) struct LogOptions {
    /// How events are written to standard error
    #[arg(id = "log", long = "log", value_enum, default_value = "text")]
    pub format: LogFormat,

    /// The least important events that are written
    #[arg(id = "log-level", long = "log-level", value_enum, default_value = "info")]
    pub level: LogLevel,
}

/// The forms of a log.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    /// A line an event: time, level, event, fields
    Text,
    /// A JSON object an event
    Json,
}

/// How important an event is.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogLevel {
    /// What fails
    Error,
    /// What may need attention
    Warn,
    /// What happens
    Info,
    /// Every connection and request that is refused
    Debug,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    /// Nowhere.
    Off,
    /// At this host and port.
    At(String),
}

impl Listen {
    /// The address, if there is one.
    pub(crate) fn address(&self) -> Option<&str> {
        match self {
            Self::Off => None,
            Self::At(address) => Some(address),
        }
    }
}

impl FromStr for Listen {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "off" {
            return Ok(Self::Off);
        }
        let (host, port) = text.rsplit_once(':').unwrap_or_default();
        let is_bracketed = host.starts_with('[') && host.ends_with(']');
        let is_host = !host.is_empty() && (is_bracketed || !host.contains(':'));
        if !is_host || port.parse::<u16>().is_err() {
            return Err("write a host and a port, as in 127.0.0.1:3000 or [::1]:3000, or `off`; \
                        port 0 is any that is free");
        }
        Ok(Self::At(text.to_owned()))
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.address().unwrap_or("off"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_to_listen_at() {
        assert_eq!("off".parse(), Ok(Listen::Off));
        for good in ["127.0.0.1:0", "[::1]:3000", "localhost:50001", "0.0.0.0:65535"] {
            assert_eq!(good.parse(), Ok(Listen::At(good.to_owned())));
        }
        for wrong in ["", "3000", ":3000", "::1:3000", "host:", "host:65536", "host:x", "on"] {
            assert!(wrong.parse::<Listen>().is_err(), "{wrong}");
        }
    }
}
