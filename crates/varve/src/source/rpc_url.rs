//! Where a node answers REST or JSON-RPC, and who asks: `http://user:password@host:port`.

use std::str::FromStr;

use varve_node::source::rpc::Login;

use crate::error::Error;

/// The address of a node's REST or JSON-RPC interface.
///
/// `http://user:password@host:port`. What stands before the `@` without a colon is the path of a
/// cookie file. REST needs neither.
#[derive(Clone, Debug)]
pub struct RpcUrl {
    /// `host:port`.
    pub(super) address: String,
    pub(super) login: Login,
}

impl FromStr for RpcUrl {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let rest = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
        let (login, address) = match rest.rsplit_once('@') {
            None => (Login::Nobody, rest),
            Some((login, address)) => match login.split_once(':') {
                Some((user, password)) => {
                    let (user, password) = (user.to_owned(), password.to_owned());
                    (Login::Password { user, password }, address)
                }
                None if login.is_empty() => return Err(Error::RpcUrl),
                None => (Login::Cookie(login.into()), address),
            },
        };
        let (host, port) = split_port(address);
        if !is_host(host) || !port.is_some_and(is_port) {
            return Err(Error::RpcUrl);
        }
        Ok(Self { address: address.to_owned(), login })
    }
}

/// Host and port. A colon within brackets belongs to the host.
pub(super) fn split_port(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':').filter(|_| !text.ends_with(']')) {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    }
}

pub(super) fn is_host(host: &str) -> bool {
    let bracketed = host.starts_with('[') && host.ends_with(']') && host.len() > 2;
    let strange = |letter: char| letter.is_whitespace() || "/@[]:".contains(letter);
    bracketed || (!host.is_empty() && !host.contains(strange))
}

pub(super) fn is_port(port: &str) -> bool {
    port.parse::<u16>().is_ok_and(|port| port > 0)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn interfaces_with_and_without_a_login() {
        let RpcUrl { address, login } = "http://me:se:c@ret@127.0.0.1:8332/".parse().unwrap();
        assert_eq!(address, "127.0.0.1:8332");
        assert!(matches!(login, Login::Password { user, password }
            if (user.as_str(), password.as_str()) == ("me", "se:c@ret")));
        let RpcUrl { address, login } = "http://node/.cookie@[::1]:18443".parse().unwrap();
        assert_eq!(address, "[::1]:18443");
        assert!(matches!(login, Login::Cookie(path) if path == Path::new("node/.cookie")));
        assert!(matches!("node:1".parse::<RpcUrl>().unwrap().login, Login::Nobody));
        let wrong = [
            "",
            "http://",
            "http://@node:1",
            "https://node:8332",
            "http://node",
            "http://node:0",
            "http://node:99999",
            "http://:8332",
            "http://a:b@",
            "http://node:8332/path",
            "node:",
        ];
        for wrong in wrong {
            assert!(wrong.parse::<RpcUrl>().is_err(), "{wrong}");
        }
    }
}
