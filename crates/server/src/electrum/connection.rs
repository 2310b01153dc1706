//! One client: what it sends, what it is sent, until one of them ends.
//!
//! Two loops in one task. *Reading* takes lines, has them answered and queues the answers; it does
//! not take the next while the last answer waits, so a client has one request under way, or one
//! batch. *Writing* empties the outbox. When reading ends, what is queued is still written; when
//! writing ends, reading is cut off. Either may take a while, and neither holds a thread.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, split};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use super::Shared;
use super::client::Client;
use super::fault::Fault;
use super::lines::{End, LineReader, Lines};
use super::method::{answer_line, may_wait};
use super::outbox::Outbox;
use crate::metrics::Protocol;
use crate::service::{Shutdown, stopping};

/// An answer is queued when it is this long, before further lines are answered.
const PIECE: usize = 256 << 10;
/// The longest message of a WebSocket, which is received into memory outside of the budget.
const MAX_MESSAGE: usize = 1 << 20;
/// How long a client may take to open a TLS session or a WebSocket.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(10);

/// Where lines come from.
trait Receive {
    async fn next(&mut self) -> Result<Lines, End>;
    /// Reads what still comes, for a moment, and drops it: a connection that is closed with unread
    /// bytes takes what was just written with it.
    async fn discard(&mut self);
}

/// Where lines go.
trait Transmit {
    /// Writes a piece of one or more lines. False when the connection is broken, or the client
    /// does not read.
    async fn send(&mut self, bytes: &[u8], outbox: &Outbox, patience: Duration) -> bool;
    async fn end(&mut self);
}

/// Serves a client over a stream of lines.
pub(super) async fn over_stream<S>(stream: S, shared: Arc<Shared>, shutdown: Shutdown)
where
    S: AsyncRead + AsyncWrite,
{
    let (reader, writer) = split(stream);
    let reader = LineReader::new(reader, shared.limits, Arc::clone(&shared.receiving));
    converse(reader, LineWriter(writer), shared, shutdown).await;
}

/// Serves a client over a WebSocket: a message is a line.
pub(super) async fn over_web_socket<S>(stream: S, shared: Arc<Shared>, shutdown: Shutdown)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let size = shared.limits.request.min(MAX_MESSAGE);
    let config = WebSocketConfig::default()
        .read_buffer_size(4 << 10)
        .write_buffer_size(0)
        .max_message_size(Some(size))
        .max_frame_size(Some(size));
    let accepted = tokio_tungstenite::accept_async_with_config(stream, Some(config));
    let Ok(Ok(socket)) = timeout(HANDSHAKE, accepted).await else { return };
    let (sink, source) = socket.split();
    let source = MessageReader { source, patience: shared.limits.idle };
    converse(source, MessageWriter(sink), shared, shutdown).await;
}

async fn converse(
    mut source: impl Receive,
    mut sink: impl Transmit,
    shared: Arc<Shared>,
    mut shutdown: Shutdown,
) {
    let outbox = Outbox::new(&shared.queued);
    let _closing = CloseOnDrop(&outbox);
    shared.enter(&outbox);
    let mut client = Client::default();
    let reading = async {
        read(&mut client, &mut source, &outbox, &shared, &mut shutdown).await;
        outbox.finish();
    };
    let writing = async {
        while let Some(bytes) = outbox.next().await {
            if !sink.send(&bytes, &outbox, shared.limits.write).await {
                break;
            }
            outbox.written();
        }
        if outbox.is_closed() {
            // Somebody had to disconnect a client that does not read.
            shared.service.metrics().dropped(Protocol::Electrum);
        }
        outbox.close();
        let _ = timeout(Duration::from_secs(1), sink.end()).await;
    };
    tokio::join!(reading, writing);
    shared.switchboard.leave(&client, &outbox);
}

/// Closes an outbox when its connection ends in whatever way, so that nothing is queued for it.
struct CloseOnDrop<'a>(&'a Outbox);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

async fn read(
    client: &mut Client,
    source: &mut impl Receive,
    outbox: &Arc<Outbox>,
    shared: &Arc<Shared>,
    shutdown: &mut Shutdown,
) {
    while outbox.drained().await {
        let lines = tokio::select! {
            lines = source.next() => lines,
            () = outbox.closed() => return,
            () = stopping(shutdown) => return,
        };
        match lines {
            Ok(lines) => {
                if !answer(client, lines, outbox, shared).await {
                    return;
                }
            }
            Err(End::TooLong) => {
                let limit = shared.limits.request;
                let fault = Fault::bad(format!("the request is over the limit of {limit} bytes"));
                outbox.answer(refusal(&fault).into());
                return source.discard().await;
            }
            Err(End::Closed | End::TimedOut) => return,
        }
    }
}

/// Answers lines piece by piece. False when the client is to be disconnected.
async fn answer(
    client: &mut Client,
    lines: Lines,
    outbox: &Arc<Outbox>,
    shared: &Arc<Shared>,
) -> bool {
    let (lines, mut from) = (Arc::new(lines), 0);
    while from < lines.len() {
        if !outbox.drained().await {
            return false;
        }
        shared.make_room().await;
        let question = Question { lines: Arc::clone(&lines), from, shared: Arc::clone(shared) };
        let asked = std::mem::take(client);
        let waits = question.may_wait();
        let answer = move || question.answer(asked);
        let answered = match waits {
            true => shared.service.act_outside(answer).await,
            false => shared.service.act(answer).await,
        };
        (*client, from) = (answered.client, answered.next);
        if !answered.bytes.is_empty() {
            outbox.answer(answered.bytes.into());
        }
        let effects = std::mem::take(&mut client.effects);
        shared.switchboard.apply(effects, outbox, &answered.at);
        if client.is_leaving {
            return false;
        }
    }
    true
}

/// Lines to answer at one snapshot.
struct Question {
    lines: Arc<Lines>,
    from: usize,
    shared: Arc<Shared>,
}

struct Answered {
    client: Client,
    bytes: Vec<u8>,
    /// The first line that is not answered.
    next: usize,
    at: super::switchboard::Numbered,
}

impl Question {
    /// Whether some line may have to wait for the node behind the server.
    fn may_wait(&self) -> bool {
        (self.from..self.lines.len()).any(|at| self.lines.get(at).is_some_and(may_wait))
    }

    fn answer(self, mut client: Client) -> Answered {
        let Self { lines, from, shared } = self;
        let at = shared.switchboard.snapshot(&shared.service.node);
        let (mut bytes, mut next) = (Vec::new(), from);
        while let Some(line) = lines.get(next)
            && bytes.len() < PIECE
            && !client.is_leaving
        {
            answer_line(line, &at.snapshot, (&shared, &mut client), &mut bytes);
            next += 1;
        }
        bytes.shrink_to_fit();
        Answered { client, bytes, next, at }
    }
}

/// The line that says why a client is not served.
pub(super) fn refusal(fault: &Fault) -> Vec<u8> {
    let line = serde_json::json!({"jsonrpc": "2.0", "error": fault, "id": null});
    let mut line = serde_json::to_vec(&line).unwrap_or_default();
    line.push(b'\n');
    line
}

impl<R: AsyncRead + Unpin> Receive for LineReader<R> {
    async fn next(&mut self) -> Result<Lines, End> {
        Self::next(self).await
    }

    async fn discard(&mut self) {
        Self::discard(self).await;
    }
}

struct LineWriter<W>(W);

impl<W: AsyncWrite + Unpin> Transmit for LineWriter<W> {
    async fn send(&mut self, mut bytes: &[u8], outbox: &Outbox, patience: Duration) -> bool {
        while !bytes.is_empty() {
            match timeout(patience, self.0.write(bytes)).await {
                Ok(Ok(written @ 1..)) => bytes = bytes.get(written..).unwrap_or_default(),
                _ => return false,
            }
            outbox.moved();
        }
        matches!(timeout(patience, self.0.flush()).await, Ok(Ok(())))
    }

    async fn end(&mut self) {
        let _ = self.0.shutdown().await;
    }
}

struct MessageReader<S> {
    source: S,
    patience: Duration,
}

impl<S, E> Receive for MessageReader<S>
where
    S: StreamExt<Item = Result<Message, E>> + Unpin,
{
    async fn next(&mut self) -> Result<Lines, End> {
        loop {
            let message = timeout(self.patience, self.source.next()).await;
            match message.map_err(|_| End::TimedOut)? {
                Some(Ok(Message::Text(text))) => return Ok(Lines::one(text.as_bytes().to_vec())),
                Some(Ok(Message::Binary(bytes))) => return Ok(Lines::one(bytes.to_vec())),
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(End::Closed),
            }
        }
    }

    /// The protocol of WebSockets says itself why it closes.
    async fn discard(&mut self) {}
}

struct MessageWriter<S>(S);

impl<S> Transmit for MessageWriter<futures_util::stream::SplitSink<WebSocketStream<S>, Message>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    async fn send(&mut self, bytes: &[u8], outbox: &Outbox, patience: Duration) -> bool {
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let text = String::from_utf8_lossy(line).into_owned();
            if !matches!(timeout(patience, self.0.send(Message::text(text))).await, Ok(Ok(()))) {
                return false;
            }
            outbox.moved();
        }
        true
    }

    async fn end(&mut self) {
        let _ = self.0.close().await;
    }
}
