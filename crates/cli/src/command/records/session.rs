//! An open store, and its answers to lines.
//!
//! Lines that create or spend are *units* and may be done in batches; all others are done one by
//! one. [`apply`](super::apply) decides which units go together.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, anyhow};
use serde_json::{Value, json};
use varve::records::{BlockState, EngineUrl, RecordError, RecordStore, Settings};

use super::arguments::Arguments;
use super::failure::{Failure, refusal};
use super::operation::{self, Line, conflict};
use super::unit::{UnitDraft, UnitLine};

/// An open store.
pub(super) struct Session {
    pub(super) store: RecordStore,
}

impl Session {
    /// Opens the store that a URL names, in `folder` where it needs one, within `memory` bytes, and
    /// finishes the conflict resolutions that were cut off.
    pub(super) fn open(
        url: &EngineUrl,
        folder: &Path,
        settings: Settings,
        memory: u64,
    ) -> Result<Self> {
        let store = RecordStore::at(url, folder, settings, memory)?;
        conflict::replay(&store).map_err(|failure| sentence(&failure))?;
        Ok(Self { store })
    }

    /// Sets the tip and writes it to the folder.
    pub(super) fn set_tip(&self, state: BlockState) -> Result<(), Failure> {
        self.store.set_tip(state).map_err(|error| match error {
            varve::Error::Records(error) => Failure::Store(*error),
            other => Failure::Tip(other),
        })
    }

    /// Does one line, and answers with what is in `ok`.
    pub(super) fn perform(&self, line: &Value) -> Result<Value, Failure> {
        let Some(object) = line.as_object() else {
            return Err(Failure::Argument("a line is one JSON object".to_owned()));
        };
        let arguments = Arguments::new(object);
        match operation::find(&arguments)? {
            Line::Unit(kind) => {
                let unit = UnitDraft::read(kind, arguments, self)?.finish(self)?;
                let answer = self.perform_units(vec![unit])?.pop();
                answer.unwrap_or_else(|| Ok(Value::Null))
            }
            Line::Other(perform) => perform(self, &arguments),
        }
    }

    /// Does units in their order, in one step. An error is that of the storage.
    pub(super) fn perform_units(
        &self,
        lines: Vec<UnitLine>,
    ) -> Result<Vec<Result<Value, Failure>>, Failure> {
        let (units, summaries): (Vec<_>, Vec<_>) =
            lines.into_iter().map(UnitLine::into_parts).unzip();
        let answers = self.store.submit(units)?;
        let shown = answers.into_iter().zip(summaries).map(|(answer, summary)| match answer {
            Ok(spent) => Ok(summary.show(&spent)),
            Err(error) => Err(error.into()),
        });
        Ok(shown.collect())
    }

    /// Does the line that a command stands for; a refusal is the error of the command.
    pub(super) fn order(&self, line: &Value) -> Result<Value> {
        match self.perform(line) {
            Ok(answer) => Ok(answer),
            Err(failure) => Err(sentence(&failure)),
        }
    }

    /// The time, in milliseconds.
    pub(super) fn now() -> u64 {
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
    }
}

/// A failure as the error of a command.
pub(super) fn sentence(failure: &Failure) -> anyhow::Error {
    let answer = failure.to_json();
    let text = |name: &str| answer.get(name).and_then(Value::as_str).unwrap_or_default();
    anyhow!("{}: {}", text("error"), text("message"))
}

/// The line of an answer.
pub(super) fn answer(result: &Result<Value, Failure>) -> Value {
    match result {
        Ok(value) => json!({ "ok": value }),
        Err(failure) => failure.to_json(),
    }
}

/// One of several answers in a line.
pub(super) fn item(result: Result<Value, RecordError>) -> Value {
    match result {
        Ok(value) => json!({ "ok": value }),
        Err(error) => refusal(&error),
    }
}
