//! A data directory, and the ways to talk to it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A data directory of its own.
pub(crate) struct Store {
    folder: TempDir,
    options: Vec<String>,
}

impl Store {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), options: Vec::new() }
    }

    /// With more options for every command.
    pub(crate) fn with(options: &[&str]) -> Self {
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        Self { options, ..Self::new() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_varve"));
        command.arg("records").args(arguments).args(&self.options);
        command.args(["--network", "bsv-regtest", "--datadir"]).arg(self.path());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).stdin(Stdio::null()).output().unwrap()
    }

    /// The JSON that a command prints.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The sentence of a command that fails.
    pub(crate) fn refusal(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(output.stdout.is_empty());
        String::from_utf8(output.stderr).unwrap()
    }

    /// The answers to lines from a pipe that is closed behind them.
    pub(crate) fn apply_text(&self, text: &str) -> Vec<Value> {
        let mut pipe = self.pipe();
        let mut input = pipe.input.take().unwrap();
        let text = text.to_owned();
        // In a thread, because answers come while lines are still being written.
        let writer = std::thread::spawn(move || input.write_all(text.as_bytes()).unwrap());
        let answers = std::iter::from_fn(|| pipe.answer()).collect();
        writer.join().unwrap();
        assert!(pipe.child.wait().unwrap().success());
        answers
    }

    /// The answers to lines.
    pub(crate) fn apply(&self, lines: &[Value]) -> Vec<Value> {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let answers = self.apply_text(&text);
        assert_eq!(answers.len(), lines.len(), "one answer a line");
        answers
    }

    /// The answer to one line, which must be done.
    pub(crate) fn ok(&self, line: &Value) -> Value {
        ok(&self.apply(std::slice::from_ref(line))[0])
    }

    /// A run of `apply` that lines can be sent to one by one.
    pub(crate) fn pipe(&self) -> Pipe {
        let mut command = self.command(&["apply", "-"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Pipe { child, input, output }
    }
}

/// A run of `apply` with both its ends.
pub(crate) struct Pipe {
    pub(crate) child: Child,
    pub(crate) input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Pipe {
    /// The next answer; `None` when there are no more.
    pub(crate) fn answer(&mut self) -> Option<Value> {
        let mut line = String::new();
        // A run that was killed may have written half a line.
        self.output.read_line(&mut line).unwrap();
        line.ends_with('\n').then(|| serde_json::from_str(&line).unwrap())
    }

    /// Sends a line and waits for its answer.
    pub(crate) fn ask(&mut self, line: &Value) -> Value {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
        self.answer().unwrap()
    }

    /// Closes the input and waits for the end.
    pub(crate) fn close(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }
}

/// What is in `ok`.
pub(crate) fn ok(answer: &Value) -> Value {
    assert!(answer.get("ok").is_some(), "{answer}");
    answer["ok"].clone()
}

/// The name of an error.
pub(crate) fn error(answer: &Value) -> &str {
    answer["error"].as_str().unwrap_or_else(|| panic!("no error: {answer}"))
}
