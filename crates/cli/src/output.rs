//! Printing to readers that may go away: `varve block 7 | head -1`.
//!
//! The standard library's `println!` and `eprintln!` panic when the reader has closed the pipe. The
//! macros of the same names here, which every module sees instead of those, do not:
//!
//! * A reader of standard output that has gone has read what it wanted, so the rest is dropped.
//! * Any other failure, such as a full disk, means that the answer is lost: it is kept for the end
//!   of the command ([`finish`]), which then fails.
//! * Standard error reports what happens. The work continues when nobody reads it.

use std::fmt::{self, Arguments};
use std::io::{self, ErrorKind, Write as _};
use std::sync::Mutex;

use anyhow::{Context as _, Result};
use serde::Serialize;

/// Why the answer could not be written.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

/// A line of the answer.
macro_rules! println {
    () => { $crate::output::answer(format_args!("")) };
    ($($line:tt)*) => { $crate::output::answer(format_args!($($line)*)) };
}

/// A line beside the answer.
macro_rules! eprintln {
    ($($line:tt)*) => { $crate::output::report(format_args!($($line)*)) };
}

/// Writes a line to standard output.
pub(crate) fn answer(line: Arguments<'_>) {
    let Err(error) = writeln!(io::stdout(), "{line}") else { return };
    if error.kind() != ErrorKind::BrokenPipe {
        LOST.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert(error);
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
    let _ = writeln!(io::stderr(), "{line}");
}

/// Fails if the answer was not written.
pub(crate) fn finish() -> Result<()> {
    let lost = LOST.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
    lost.map_or(Ok(()), Err).context("cannot write the answer to standard output")
}
