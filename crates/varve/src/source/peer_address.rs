//! The address of a peer: a host with a port or without.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use super::rpc_url::{is_host, is_port, split_port};

/// The address of a peer. Without a port, the network's own is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerAddress(String);

/// Text that is no address of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write HOST or HOST:PORT, as in 127.0.0.1:8333 or [::1]:8333")]
pub struct ParsePeerAddressError;

impl FromStr for PeerAddress {
    type Err = ParsePeerAddressError;

    /// Reads a name or an address. A bare IPv6 address gets its brackets.
    fn from_str(text: &str) -> Result<Self, ParsePeerAddressError> {
        if text.parse::<Ipv6Addr>().is_ok() {
            return Ok(Self(format!("[{text}]")));
        }
        let (host, port) = split_port(text);
        if is_host(host) && port.is_none_or(is_port) {
            return Ok(Self(text.to_owned()));
        }
        Err(ParsePeerAddressError)
    }
}

impl From<PeerAddress> for String {
    fn from(address: PeerAddress) -> Self {
        address.0
    }
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers() {
        let read = |text: &str| text.parse::<PeerAddress>().map(String::from);
        for right in ["node", "10.0.0.1", "node.example:8333", "[::1]:8333", "[::1]"] {
            assert_eq!(read(right), Ok(right.to_owned()));
        }
        assert_eq!(read("::1"), Ok("[::1]".to_owned()));
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
            assert_eq!(read(wrong), Err(ParsePeerAddressError), "{wrong}");
        }
    }
}
