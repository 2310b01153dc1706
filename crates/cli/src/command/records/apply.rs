//! `varve records apply`: operations from a file or a pipe, one answer for each line.
//!
//! 1. Empty lines and lines that begin with `#` are skipped, and so is a byte order mark. Every
//!    other line has one answer, in order.
//! 2. Lines that create or spend are collected and done in one step, as long as whole lines are
//!    waiting in the input buffer: one sync of the disk serves them all. Any other line, and one
//!    that must see the current records, first executes the collected ones.
//! 3. Answers are written when their lines are done and durable, and flushed before the next read
//!    that may block. So a producer that waits for each answer gets it at once.
//!
//! Collecting changes no answer: the engine executes the collected lines one after the other. The
//! store may retry some of them, though, and then a child must not find a parent that came after
//! it. So a line about a transaction that collected lines mention waits until they are done.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use varve::Txid;

use super::arguments::Arguments;
use super::failure::Failure;
use super::operation::{self, Line};
use super::session::{Session, answer};
use super::unit::{UnitDraft, UnitLine};

/// Bytes of the input buffer. Lines are collected within it; a longer line stands alone.
const BUFFER: usize = 1 << 20;
/// Some programs write this at the beginning of a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Lines that are executed in one step.
const COLLECT: usize = 1_000;

/// Runs the command.
pub(super) fn run(session: &Session, path: &Path) -> Result<()> {
    let input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        Box::new(file)
    };
    let output = BufWriter::with_capacity(BUFFER, io::stdout().lock());
    Apply { session, output, collected: Vec::new(), mentioned: HashSet::new() }
        .run(BufReader::with_capacity(BUFFER, input))
        .with_context(|| format!("cannot continue with {}", path.display()))
}

struct Apply<'a, W: Write> {
    session: &'a Session,
    output: W,
    collected: Vec<UnitLine>,
    mentioned: HashSet<Txid>,
}

impl<W: Write> Apply<'_, W> {
    fn run(mut self, mut input: BufReader<impl Read>) -> Result<()> {
        let mut line = Vec::new();
        loop {
            if !input.buffer().contains(&b'\n') {
                self.perform_collected()?;
                self.output.flush()?;
            }
            line.clear();
            if input.read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            let text = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line).trim_ascii();
            if !text.is_empty() && !text.starts_with(b"#") {
                self.line(text)?;
            }
        }
    }

    fn line(&mut self, text: &[u8]) -> Result<()> {
        let parsed = serde_json::from_slice::<Value>(text);
        let parsed = parsed.map_err(|error| Failure::Argument(format!("not JSON: {error}")));
        match parsed.and_then(|line| self.collect(line)) {
            Ok(Some(line)) => {
                self.perform_collected()?;
                self.answer(&self.session.perform(&line))
            }
            Ok(None) => Ok(()),
            Err(failure) => {
                self.perform_collected()?;
                self.answer(&Err(failure))
            }
        }
    }

    /// Collects a line, or returns it when it cannot wait.
    fn collect(&mut self, line: Value) -> Result<Option<Value>, Failure> {
        let arguments = line.as_object().map(Arguments::new);
        let Some(arguments) = arguments else { return Ok(Some(line)) };
        let Line::Unit(kind) = operation::find(&arguments)? else { return Ok(Some(line)) };
        let draft = UnitDraft::read(kind, arguments, self.session)?;
        if draft.needs_records() {
            return Ok(Some(line));
        }
        let unit = draft.finish(self.session)?;
        if self.mentioned.contains(&unit.txid()) || self.collected.len() >= COLLECT {
            return Ok(Some(line));
        }
        self.mentioned.extend(unit.txids());
        self.collected.push(unit);
        Ok(None)
    }

    fn perform_collected(&mut self) -> Result<()> {
        if self.collected.is_empty() {
            return Ok(());
        }
        self.mentioned.clear();
        let lines = std::mem::take(&mut self.collected);
        match self.session.perform_units(lines) {
            Ok(answers) => answers.iter().try_for_each(|result| self.answer(result)),
            Err(failure) => self.answer(&Err(failure)),
        }
    }

    /// Writes an answer. When the storage failed it is the last.
    fn answer(&mut self, result: &Result<Value, Failure>) -> Result<()> {
        let value = answer(result);
        serde_json::to_writer(&mut self.output, &value)?;
        self.output.write_all(b"\n")?;
        if let Err(failure) = result
            && failure.is_fatal()
        {
            self.output.flush()?;
            bail!("{}", value.get("message").and_then(Value::as_str).unwrap_or_default());
        }
        Ok(())
    }
}
