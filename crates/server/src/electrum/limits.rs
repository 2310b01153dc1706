//! How much one client, and all of them, may take.
//!
//! The defaults let a wallet on the same machine send thousands of requests a second, and bound the
//! memory of ten thousand connections:
//!
//! | what | bound |
//! |---|---|
//! | a connection that rests | 3 KB and 200 bytes a subscription |
//! | lines that are being received | 16 KB a connection, and `received` for longer ones together |
//! | answers that are being computed | 16 of `response` |
//! | answers that wait to be read | `queued` together; whoever does not read is disconnected |

use std::time::Duration;

/// Limits of the Electrum server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// Connections at a time from one address; loopback addresses have no such limit.
    pub connections_per_address: usize,
    /// Bytes of a line, or of a message of a WebSocket.
    pub request: usize,
    /// Requests in a batch.
    pub batch: usize,
    /// Bytes of an answer; a batch is one answer.
    pub response: usize,
    /// Transactions of a script's history, and unspent outputs, in an answer.
    pub history: usize,
    /// Subscriptions of a connection.
    pub subscriptions: usize,
    /// Subscriptions of all connections.
    pub all_subscriptions: usize,
    /// Bytes of notifications that wait for one client, beside its answers.
    pub backlog: usize,
    /// Bytes of all lines over 16 KB that are being received.
    pub received: usize,
    /// Bytes of everything that waits for clients to read it.
    pub queued: usize,
    /// How long a client may be silent.
    pub idle: Duration,
    /// How long a client may take to send a line that it has begun.
    pub line: Duration,
    /// How long a client may take to read the next bytes.
    pub write: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 20_000,
            connections_per_address: 1_000,
            request: 5_000_000,
            batch: 10_000,
            response: 16 << 20,
            history: 125_000,
            subscriptions: 50_000,
            all_subscriptions: 2_000_000,
            backlog: 4 << 20,
            received: 128 << 20,
            queued: 256 << 20,
            idle: Duration::from_secs(600),
            line: Duration::from_secs(60),
            write: Duration::from_secs(30),
        }
    }
}
