//! A subscriber of ZeroMQ's protocol (ZMTP 3.0), as far as it takes to hear a node.
//!
//! ```text
//! greeting   ff 00×8 7f │ 03 00 │ "NULL" 00×16 │ 00 │ 00×31                 64 bytes, both sides
//! frame      flags u8 │ length u8, or u64be when flags has LONG │ body
//! flags      01 MORE: another frame of the message follows   02 LONG   04 COMMAND
//! READY      05 "READY" │ 0b "Socket-Type" │ 00 00 00 03 "SUB"              a command
//! subscribe  01 topic                                                       a message
//! ```
//!
//! A node's messages have three frames: the topic, the body, and a counter of the topic (u32le).
//! Lengths are checked against [`MAX_FRAME`] before memory is given, and a message has at most
//! [`MAX_FRAMES`]. Mechanisms other than `NULL` are not spoken: nodes have none.

use std::io::{self, Read};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

/// A transaction of 4 MB and more.
const MAX_FRAME: u64 = 64 << 20;
/// Frames of one message.
const MAX_FRAMES: usize = 8;
/// How much a frame grows by before its bytes are there.
const STEP: u64 = 1 << 20;
/// How long a connection and each part of the greeting may take.
const CONNECT: Duration = Duration::from_secs(5);

const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// The part of a greeting that both sides begin with, filled up with zeros.
const GREETING_LEN: usize = 64;
const READY: &[u8] = b"\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB";

/// A message of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Published {
    pub(super) topic: Vec<u8>,
    pub(super) body: Vec<u8>,
    /// How many messages of the topic there were before, modulo 2^32.
    pub(super) counter: u32,
}

/// A connection that has subscribed.
#[derive(Debug)]
pub(super) struct Subscriber<S = TcpStream> {
    stream: S,
}

impl Subscriber {
    /// Connects to `host:port` and subscribes to topics. Reads wait at most `tick`.
    pub(super) fn connect(address: &str, topics: &[&str], tick: Duration) -> io::Result<Self> {
        let mut last = io::Error::other("the name has no address");
        for address in address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(CONNECT))?;
                    stream.set_write_timeout(Some(CONNECT))?;
                    let subscriber = Subscriber::greet(stream, topics)?;
                    subscriber.stream.set_read_timeout(Some(tick))?;
                    return Ok(subscriber);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

impl<S: Read + io::Write> Subscriber<S> {
    /// Shakes hands and subscribes.
    fn greet(mut stream: S, topics: &[&str]) -> io::Result<Self> {
        stream.write_all(&greeting())?;
        let mut theirs = [0; GREETING_LEN];
        stream.read_exact(&mut theirs)?;
        check_greeting(&theirs)?;
        let mut hello = frame(COMMAND, READY);
        for topic in topics {
            hello.extend(frame(0, &[b"\x01", topic.as_bytes()].concat()));
        }
        stream.write_all(&hello)?;
        Ok(Self { stream })
    }

    /// The next message; `None` when none began within the time of a read. `is_over` is asked while
    /// the rest of a message is waited for: `true` ends it with an error.
    pub(super) fn next(&mut self, is_over: &dyn Fn() -> bool) -> io::Result<Option<Published>> {
        let mut frames: Vec<Vec<u8>> = Vec::new();
        loop {
            let mut flags = [0];
            match self.stream.read(&mut flags) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if is_tick(&error) && frames.is_empty() => return Ok(None),
                Err(error) if is_tick(&error) && !is_over() => continue,
                Err(error) => return Err(error),
            }
            let [flags] = flags;
            let body = self.body(flags, is_over)?;
            if flags & COMMAND != 0 {
                continue;
            }
            frames.push(body);
            if frames.len() > MAX_FRAMES {
                return Err(bad("a message with too many frames"));
            }
            if flags & MORE == 0 {
                match published(std::mem::take(&mut frames)) {
                    Some(message) => return Ok(Some(message)),
                    // Nothing that a node sends.
                    None => continue,
                }
            }
        }
    }

    /// The body of a frame.
    fn body(&mut self, flags: u8, is_over: &dyn Fn() -> bool) -> io::Result<Vec<u8>> {
        let length = if flags & LONG != 0 {
            let mut length = [0; 8];
            self.fill(&mut length, is_over)?;
            u64::from_be_bytes(length)
        } else {
            let mut length = [0];
            self.fill(&mut length, is_over)?;
            u64::from(u8::from_be_bytes(length))
        };
        if length > MAX_FRAME {
            return Err(bad("a frame that is too long"));
        }
        let mut body = Vec::new();
        while (body.len() as u64) < length {
            let step = (length - body.len() as u64).min(STEP);
            let step = usize::try_from(step).unwrap_or(usize::MAX);
            let begin = body.len();
            body.resize(begin + step, 0);
            self.fill(body.get_mut(begin..).unwrap_or_default(), is_over)?;
        }
        Ok(body)
    }

    /// Fills `bytes`, however many reads that takes.
    fn fill(&mut self, bytes: &mut [u8], is_over: &dyn Fn() -> bool) -> io::Result<()> {
        let mut read = 0;
        while let Some(rest) = bytes.get_mut(read..).filter(|rest| !rest.is_empty()) {
            match self.stream.read(rest) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => read += count,
                Err(error) if is_tick(&error) && !is_over() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Whether a read ended because nothing came in its time.
fn is_tick(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

fn greeting() -> [u8; GREETING_LEN] {
    let mut greeting = [0; GREETING_LEN];
    let parts: [(usize, &[u8]); 3] = [(0, b"\xff"), (9, b"\x7f\x03"), (12, b"NULL")];
    for (at, bytes) in parts {
        let places = greeting.iter_mut().skip(at).zip(bytes);
        places.for_each(|(place, byte)| *place = *byte);
    }
    greeting
}

fn check_greeting(theirs: &[u8; GREETING_LEN]) -> io::Result<()> {
    let at = |index: usize| theirs.get(index).copied().unwrap_or_default();
    if at(0) != 0xff || at(9) != 0x7f || at(10) < 3 {
        return Err(bad("no publisher of ZMTP 3"));
    }
    let mechanism = theirs.get(12..32).unwrap_or_default();
    if mechanism.get(..5) != Some(b"NULL\0") {
        return Err(bad("a publisher that wants a login"));
    }
    Ok(())
}

fn frame(flags: u8, body: &[u8]) -> Vec<u8> {
    let length = u8::try_from(body.len()).expect("what we send is short");
    [&[flags, length], body].concat()
}

/// The three frames of a node's message.
fn published(frames: Vec<Vec<u8>>) -> Option<Published> {
    let [topic, body, counter]: [Vec<u8>; 3] = frames.try_into().ok()?;
    let counter = u32::from_le_bytes(counter.try_into().ok()?);
    Some(Published { topic, body, counter })
}

fn bad(what: &str) -> io::Error {
    io::Error::other(format!("ZMQ: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a publisher sends, and what it was sent.
    struct Script {
        input: io::Cursor<Vec<u8>>,
        output: Vec<u8>,
    }

    impl Read for Script {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            // A few bytes at a time, with pauses: frames are cut anywhere.
            let count = bytes.len().min(3);
            match self.input.read(&mut bytes[..count])? {
                0 => Err(io::ErrorKind::WouldBlock.into()),
                count => Ok(count),
            }
        }
    }

    impl io::Write for Script {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.output.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn long(flags: u8, body: &[u8]) -> Vec<u8> {
        [&[flags | LONG][..], &(body.len() as u64).to_be_bytes(), body].concat()
    }

    fn connect(input: Vec<u8>) -> io::Result<Subscriber<Script>> {
        let input = io::Cursor::new([&greeting()[..], &input].concat());
        Subscriber::greet(Script { input, output: Vec::new() }, &["sequence", "rawtx"])
    }

    #[test]
    fn messages_in_short_and_long_frames_come_through() {
        let body = vec![7; 300];
        let input = [
            frame(COMMAND, READY),
            frame(MORE, b"sequence"),
            frame(MORE, &[1; 41]),
            frame(0, &9_u32.to_le_bytes()),
            frame(COMMAND, b"\x04PING\x00\x00"),
            frame(MORE, b"rawtx"),
            long(MORE, &body),
            frame(0, &u32::MAX.to_le_bytes()),
            frame(0, b"what no node sends"),
        ];
        let mut subscriber = connect(input.concat()).unwrap();
        let never = || false;
        let first = subscriber.next(&never).unwrap().unwrap();
        assert_eq!((&first.topic[..], first.body.len(), first.counter), (&b"sequence"[..], 41, 9));
        let second = subscriber.next(&never).unwrap().unwrap();
        assert_eq!(
            (&second.topic[..], second.body, second.counter),
            (&b"rawtx"[..], body, u32::MAX)
        );
        assert_eq!(subscriber.next(&never).unwrap(), None);
        let sent = &subscriber.stream.output;
        assert_eq!(sent[..12], *b"\xff\0\0\0\0\0\0\0\0\x7f\x03\0");
        assert_eq!(sent[12..17], *b"NULL\0");
        let hello = [frame(COMMAND, READY), frame(0, b"\x01sequence"), frame(0, b"\x01rawtx")];
        assert_eq!(sent[64..], hello.concat());
    }

    #[test]
    fn lengths_are_not_believed_and_half_a_message_can_be_given_up() {
        let huge = [&[LONG][..], &u64::MAX.to_be_bytes()].concat();
        assert!(connect(huge).unwrap().next(&|| false).is_err());
        let parts = vec![frame(MORE, b"x"); MAX_FRAMES + 1].concat();
        assert!(connect(parts).unwrap().next(&|| false).is_err());
        let mut half = connect(long(MORE, &[5; 500])[..100].to_vec()).unwrap();
        assert!(half.next(&|| true).is_err(), "whoever waits wants to go");
    }

    #[test]
    fn others_are_refused() {
        let greet = |bytes: Vec<u8>| {
            let script = Script { input: io::Cursor::new(bytes), output: Vec::new() };
            Subscriber::greet(script, &[]).is_ok()
        };
        assert!(greet(greeting().to_vec()));
        let mut old = greeting().to_vec();
        old[10] = 1;
        assert!(!greet(old));
        let mut curve = greeting().to_vec();
        curve[12..17].copy_from_slice(b"CURVE");
        assert!(!greet(curve));
        assert!(!greet(b"HTTP/1.1 400 Bad Request\r\n\r\n".repeat(5)));
    }
}
