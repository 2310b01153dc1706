//! Printing to readers that may go away: `varve block 7 | head -1`.
//!
//! The standard library's `println!` and `eprintln!` panic when the reader has closed the pipe. The
//! macros of the same names here, which every module sees instead of those, do not:
//!
//! * A reader of standard output that has gone has read what it wanted, so the rest is dropped.
//! * Any other failure, such as a full disk, means that the answer is lost: it is kept for the end
//!   of the command ([`finish`]), which then fails.
//! * Standard error reports what happens. The work continues when nobody reads it.
//!
//! A command that runs for another process ([`divert`]) prints to that process instead: its thread
//! has a [`Sink`], and everything that the thread prints goes there.

use std::cell::RefCell;
use std::fmt::{self, Arguments};
use std::io::{self, ErrorKind, IsTerminal as _, Write};
use std::sync::Mutex;

use anyhow::{Context as _, Result};
use serde::Serialize;

/// Why the answer could not be written.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

thread_local! {
    /// Where this thread prints, if not to the standard streams.
    static SINK: RefCell<Option<Box<dyn Sink>>> = const { RefCell::new(None) };
}

/// Where a thread prints to when its command runs for another process.
pub(crate) trait Sink {
    /// Bytes of the answer.
    fn answer(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Bytes beside the answer.
    fn report(&mut self, bytes: &[u8]) -> io::Result<()>;
}

/// A line of the answer.
macro_rules! println {
    () => { $crate::output::answer(format_args!("")) };
    ($($line:tt)*) => { $crate::output::answer(format_args!($($line)*)) };
}

/// A line beside the answer.
macro_rules! eprintln {
    ($($line:tt)*) => { $crate::output::report(format_args!($($line)*)) };
}

/// Runs `act` with everything that this thread prints going to `sink`.
pub(crate) fn divert<T>(sink: impl Sink + 'static, act: impl FnOnce() -> T) -> T {
    SINK.set(Some(Box::new(sink)));
    let done = act();
    SINK.set(None);
    done
}

/// Whether this thread prints to another process.
pub(crate) fn is_diverted() -> bool {
    SINK.with_borrow(Option::is_some)
}

/// Whether standard error is a terminal, where a bar can move.
pub(crate) fn has_terminal() -> bool {
    !is_diverted() && io::stderr().is_terminal()
}

/// Writes a line to standard output.
pub(crate) fn answer(line: Arguments<'_>) {
    let diverted = SINK.with_borrow_mut(|sink| {
        // The process that asked has gone, and nobody else waits for the rest.
        sink.as_mut().map(|sink| drop(sink.answer(format!("{line}\n").as_bytes())))
    });
    if diverted.is_some() {
        return;
    }
    let Err(error) = writeln!(io::stdout(), "{line}") else { return };
    if error.kind() != ErrorKind::BrokenPipe {
        LOST.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert(error);
    }
}

/// Standard output, or where this thread prints instead. Not buffered in the second case.
pub(crate) struct Answer;

impl Write for Answer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        SINK.with_borrow_mut(|sink| match sink {
            Some(sink) => sink.answer(bytes).map(|()| bytes.len()),
            None => io::stdout().write(bytes),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        SINK.with_borrow(|sink| if sink.is_some() { Ok(()) } else { io::stdout().flush() })
    }
}

/// Prints the answer of `--json`.
pub(crate) fn print_json(answer: &impl Serialize) -> Result<()> {
    println!("{}", serde_json::to_string(answer)?);
    Ok(())
}

/// The reader of standard output closed it before it had everything, where a part is of no use.
#[derive(Debug)]
pub(crate) struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the reader of standard output has closed it")
    }
}

impl std::error::Error for Closed {}

/// Writes a line to standard error.
pub(crate) fn report(line: Arguments<'_>) {
    // A failure could be reported nowhere.
    let _ = Report.write_all(format!("{line}\n").as_bytes());
}

/// Standard error, or where this thread prints instead.
pub(crate) struct Report;

impl Write for Report {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        SINK.with_borrow_mut(|sink| match sink {
            Some(sink) => sink.report(bytes).map(|()| bytes.len()),
            None => io::stderr().write(bytes),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Fails if the answer was not written.
pub(crate) fn finish() -> Result<()> {
    let lost = LOST.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
    lost.map_or(Ok(()), Err).context("cannot write the answer to standard output")
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<[Vec<u8>; 2]>>);

    impl Sink for Kept {
        fn answer(&mut self, bytes: &[u8]) -> io::Result<()> {
            self.0.lock().unwrap()[0].extend_from_slice(bytes);
            Ok(())
        }

        fn report(&mut self, bytes: &[u8]) -> io::Result<()> {
            self.0.lock().unwrap()[1].extend_from_slice(bytes);
            Ok(())
        }
    }

    #[test]
    fn a_thread_that_is_diverted_prints_to_its_sink() {
        let kept = Kept::default();
        let done = divert(kept.clone(), || {
            println!("answer {}", 1);
            eprintln!("beside it");
            assert!(!has_terminal());
            print_json(&serde_json::json!({ "a": 2 })).unwrap();
            7
        });
        assert_eq!(done, 7);
        let [out, err] = kept.0.lock().unwrap().clone();
        assert_eq!(out, b"answer 1\n{\"a\":2}\n");
        assert_eq!(err, b"beside it\n");
        assert!(SINK.with_borrow(Option::is_none), "the next command prints as before");
    }
}
