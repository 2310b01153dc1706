//! A store that is open, and what it answers to lines.
//!
//! Lines that create or spend are *units* and may be done many at once; all others are done one
//! by one. [`apply`](super::apply) decides which units go together.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, anyhow};
use serde_json::{Value, json};
use varve_records::{BlockState, RecordError, Store};

use super::arguments::Arguments;
use super::failure::{Failure, refusal};
use super::operation::{self, Line, conflict};
use super::tip::TipFile;
use super::unit::{UnitDraft, UnitLine};

/// A store that is open.
pub(super) struct Session {
    /// The store.
    pub(super) store: Store,
    /// Where the tip is written down; nowhere for records in memory.
    tip: Option<TipFile>,
}

impl Session {
    /// This store on the tip that was told last.
    pub(super) fn new(store: Store, tip: Option<TipFile>) -> Result<Self> {
        if let Some(state) = tip.as_ref().map(TipFile::load).transpose()?.flatten() {
            store.set_block_state(state)?;
        }
        conflict::replay(&store).map_err(|failure| sentence(&failure))?;
        Ok(Self { store, tip })
    }

    /// Sets the tip and writes it down.
    pub(super) fn set_tip(&self, state: BlockState) -> Result<(), Failure> {
        let before = self.store.block_state();
        self.store.set_block_state(state)?;
        if state == before {
            return Ok(());
        }
        self.tip.as_ref().map_or(Ok(()), |tip| tip.save(state)).map_err(Failure::Tip)
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
        let told = answers.into_iter().zip(summaries).map(|(answer, summary)| match answer {
            Ok(spent) => Ok(summary.show(&spent)),
            Err(error) => Err(error.into()),
        });
        Ok(told.collect())
    }

    /// Does a line that a command stands for; what is refused is the error of the command.
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
