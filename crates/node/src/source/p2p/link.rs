//! The writing side of a connection.
//!
//! ```text
//! decisions ─► outbox ─► thread that writes ─► socket
//! ```
//!
//! The deciding thread never waits for a socket: it puts a message into the outbox, and gives up a
//! peer whose outbox is full because it does not read.

use std::io::{self, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use varve_types::Network;

use super::wire::Message;

/// How long the socket may take no byte.
const WRITE: Duration = Duration::from_secs(20);
/// Messages that wait to be written.
const OUTBOX: usize = 64;

/// The writing side.
pub(super) struct Link {
    stream: TcpStream,
    outbox: SyncSender<Vec<u8>>,
    pub(super) network: Network,
    /// Bytes that have been read: a sign of life.
    pub(super) received: AtomicU64,
    /// Those of them that are of blocks.
    pub(super) block_bytes: AtomicU64,
    /// Transactions that the peer was asked for and may send.
    expected_txs: AtomicUsize,
    /// Whether it announces all its transactions when it is asked to.
    announces_all: AtomicBool,
}

impl Link {
    /// Starts the thread that writes. It ends with the link, or with the connection.
    pub(super) fn new(stream: &TcpStream, network: Network) -> io::Result<Self> {
        let (outbox, messages) = sync_channel::<Vec<u8>>(OUTBOX);
        let mut writer = stream.try_clone()?;
        writer.set_write_timeout(Some(WRITE))?;
        thread::spawn(move || {
            for bytes in messages {
                if writer.write_all(&bytes).is_err() {
                    close(&writer);
                    return;
                }
            }
        });
        Ok(Self {
            stream: stream.try_clone()?,
            outbox,
            network,
            received: AtomicU64::new(0),
            block_bytes: AtomicU64::new(0),
            expected_txs: AtomicUsize::new(0),
            announces_all: AtomicBool::new(false),
        })
    }

    /// The peer is asked for this many transactions.
    pub(super) fn expect_txs(&self, count: usize) {
        self.expected_txs.fetch_add(count, Ordering::Relaxed);
    }

    /// A transaction came, or one that will not. Whether one was expected.
    pub(super) fn take_expected_tx(&self) -> bool {
        let one_less = |count: usize| count.checked_sub(1);
        self.expected_txs.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
    }

    pub(super) fn set_announces_all(&self) {
        self.announces_all.store(true, Ordering::Relaxed);
    }

    pub(super) fn announces_all(&self) -> bool {
        self.announces_all.load(Ordering::Relaxed)
    }

    /// Sends a message without waiting. `false` when the peer does not read what it is sent. Other
    /// errors show on the reading side.
    #[must_use]
    pub(super) fn send(&self, message: &Message) -> bool {
        let sent = self.outbox.try_send(message.encode(self.network));
        !matches!(sent, Err(TrySendError::Full(_)))
    }

    /// The same, and waits while the outbox is full: for the thread that reads.
    pub(super) fn answer(&self, message: &Message) -> io::Result<()> {
        let sent = self.outbox.send(message.encode(self.network));
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Ends the connection; the reading side sees its end.
    pub(super) fn close(&self) {
        close(&self.stream);
    }
}

fn close(stream: &TcpStream) {
    // It may be closed already.
    let _ = stream.shutdown(Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Instant;

    use super::*;

    /// Megabytes to a peer that never reads: nobody waits, neither to send nor to close.
    #[test]
    fn a_peer_that_does_not_read_keeps_nobody_waiting() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_peer, _) = listener.accept().unwrap();
        let link = Link::new(&stream, Network::Regtest).unwrap();
        let block = Message::Block(vec![7; 1 << 20]);
        let begin = Instant::now();
        let sent = (0..1000).take_while(|_| link.send(&block)).count();
        assert!((OUTBOX..1000).contains(&sent), "{sent}");
        link.close();
        assert!(begin.elapsed() < WRITE / 2, "{:?}", begin.elapsed());
        // The writer has been waiting for the peer, and ends too.
        while link.answer(&Message::Verack).is_ok() {
            assert!(begin.elapsed() < WRITE, "the thread that writes does not end");
        }
    }
}
