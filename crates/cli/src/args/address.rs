//! Addresses as they are typed: a peer, and the interface of a node.
//!
//! A port that cannot be and an empty host are mistakes in the command line, and are said before
//! anything is connected to.

use varve_node::source::rpc::Login;

/// Where a node answers REST or JSON-RPC, and who asks.
#[derive(Clone, Debug)]
pub(crate) struct RpcAddress {
    /// `host:port`.
    pub address: String,
    pub login: Login,
}

/// A host or an address, with a port or without; an IPv6 address gets its brackets.
pub(super) fn peer(text: &str) -> Result<String, String> {
    if text.parse::<std::net::Ipv6Addr>().is_ok() {
        return Ok(format!("[{text}]"));
    }
    let (host, port) = split(text);
    if is_host(host) && port.is_none_or(is_port) {
        return Ok(text.to_owned());
    }
    Err("write HOST or HOST:PORT, as in 127.0.0.1:8333 or [::1]:8333".to_owned())
}

/// The parts of `http://user:password@host:port`. What stands before the host without a password
/// is the path of a cookie file; REST needs neither.
pub(super) fn rpc(text: &str) -> Result<RpcAddress, String> {
    let wrong = || {
        "write the address of a node, with a port from 1 to 65535, as in \
         http://user:password@127.0.0.1:8332"
            .to_owned()
    };
    let rest = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
    let (login, address) = match rest.rsplit_once('@') {
        None => (Login::Nobody, rest),
        Some((login, address)) => match login.split_once(':') {
            Some((user, password)) => {
                let (user, password) = (user.to_owned(), password.to_owned());
                (Login::Password { user, password }, address)
            }
            None if login.is_empty() => return Err(wrong()),
            None => (Login::Cookie(login.into()), address),
        },
    };
    let (host, port) = split(address);
    if !is_host(host) || !port.is_some_and(is_port) {
        return Err(wrong());
    }
    Ok(RpcAddress { address: address.to_owned(), login })
}

/// Host and port. A colon within brackets belongs to the host.
fn split(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':').filter(|_| !text.ends_with(']')) {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    }
}

fn is_host(host: &str) -> bool {
    let bracketed = host.starts_with('[') && host.ends_with(']') && host.len() > 2;
    let strange = |letter: char| letter.is_whitespace() || "/@[]:".contains(letter);
    bracketed || (!host.is_empty() && !host.contains(strange))
}

fn is_port(port: &str) -> bool {
    port.parse::<u16>().is_ok_and(|port| port > 0)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn peers() {
        for right in ["node", "10.0.0.1", "node.example:8333", "[::1]:8333", "[::1]"] {
            assert_eq!(peer(right), Ok(right.to_owned()));
        }
        assert_eq!(peer("::1"), Ok("[::1]".to_owned()));
        let wrong = [
            "",
            " ",
            ":8333",
            "node:",
            "node:port",
            "node:70000",
            "node:0",
            "a:b:8333",
            "node:-1",
            "http://node:8333",
            "[]:1",
            "node/path:1",
        ];
        for wrong in wrong {
            assert!(peer(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn interfaces_with_and_without_a_login() {
        let RpcAddress { address, login } = rpc("http://me:se:c@ret@127.0.0.1:8332/").unwrap();
        assert_eq!(address, "127.0.0.1:8332");
        assert!(matches!(login, Login::Password { user, password }
            if (user.as_str(), password.as_str()) == ("me", "se:c@ret")));
        let RpcAddress { address, login } = rpc("http://node/.cookie@[::1]:18443").unwrap();
        assert_eq!(address, "[::1]:18443");
        assert!(matches!(login, Login::Cookie(path) if path == Path::new("node/.cookie")));
        assert!(matches!(rpc("node:1").unwrap().login, Login::Nobody));
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
            assert!(rpc(wrong).is_err(), "{wrong}");
        }
    }
}
