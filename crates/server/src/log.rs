//! The log of a server: one line an event on standard error, as text or as JSON.
//!
//! ```text
//! 2026-11-18T10:20:33.041Z info  listening address=127.0.0.1:50001 protocol=electrum
//! {"time":"2026-11-18T10:20:33.041Z","level":"info","event":"listening","protocol":"electrum",…}
//! ```
//!
//! One log for the process, because there is one standard error. Before [`start`] is called nothing
//! is logged: a program that embeds the servers may have its own ways.
//!
//! Whoever logs passes fields, never a whole request or a URL: those can hold passwords and tokens.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};

static LOG: OnceLock<Log> = OnceLock::new();

/// How events are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Time, level, event, then `name=value` of every field.
    Text,
    /// A JSON object.
    Json,
}

/// How important an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something failed, and an operator has to look.
    Error,
    /// Something may need attention, or mends itself.
    Warn,
    /// What happens.
    Info,
    /// What a client did wrong, and other detail.
    Debug,
}

impl Level {
    const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}

#[derive(Debug)]
struct Log {
    format: Format,
    level: Level,
}

/// Logs from now on everything that is at least as important as `level`. The first call decides.
pub fn start(format: Format, level: Level) {
    LOG.get_or_init(|| Log { format, level });
}

/// Logs an event with the fields of a JSON object: `json!({ "height": 7 })`.
pub fn event(level: Level, name: &str, fields: &Value) {
    let Some(log) = LOG.get().filter(|log| level <= log.level) else { return };
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let time = moment(since.as_secs(), since.subsec_millis());
    let empty = Map::new();
    let fields = fields.as_object().unwrap_or(&empty);
    let mut line = match log.format {
        Format::Text => text(&time, level, name, fields),
        Format::Json => json(&time, level, name, fields),
    };
    line.push('\n');
    // One write, so that lines of threads do not mix. A failure could be reported nowhere.
    let _ = io::stderr().write_all(line.as_bytes());
}

fn text(time: &str, level: Level, name: &str, fields: &Map<String, Value>) -> String {
    let mut line = format!("{time} {:<5} {name}", level.name());
    for (key, value) in fields {
        let is_plain = |text: &str| {
            !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() && c != '"' && c != '=')
        };
        // Writing to a String does not fail.
        let _ = match value {
            Value::String(text) if is_plain(text) => write!(line, " {key}={text}"),
            value => write!(line, " {key}={value}"),
        };
    }
    line
}

fn json(time: &str, level: Level, name: &str, fields: &Map<String, Value>) -> String {
    let head = serde_json::json!([time, level.name(), name]);
    let [time, level, name] = [0, 1, 2].map(|at| head.get(at).cloned().unwrap_or_default());
    let mut line = format!("{{\"time\":{time},\"level\":{level},\"event\":{name}");
    for (key, value) in fields {
        let _ = write!(line, ",{}:{value}", Value::String(key.clone()));
    }
    line.push('}');
    line
}

/// A moment as RFC 3339 writes it, in UTC.
fn moment(seconds: u64, milliseconds: u32) -> String {
    const DAY: u64 = 86_400;
    // Days since 1 March of the year 0, in eras of 400 years: the leap day is the last of a year.
    let days = seconds / DAY + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (seconds % DAY / 3_600, seconds % 3_600 / 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

#[cfg(test)]
mod tests {
    use serde_json::json as object;

    use super::*;

    #[test]
    fn moments_before_and_after_leap_days() {
        for (seconds, shown) in [
            (0, "1970-01-01T00:00:00.007Z"),
            (1_231_006_505, "2009-01-03T18:15:05.007Z"),
            (951_782_399, "2000-02-28T23:59:59.007Z"),
            (951_782_400, "2000-02-29T00:00:00.007Z"),
            (951_868_800, "2000-03-01T00:00:00.007Z"),
            (4_107_542_399, "2100-02-28T23:59:59.007Z"),
            (4_107_542_400, "2100-03-01T00:00:00.007Z"),
        ] {
            assert_eq!(moment(seconds, 7), shown);
        }
    }

    #[test]
    fn an_event_is_one_line_whatever_its_fields_hold() {
        let fields = object!({ "reason": "two\nlines \"quoted\"", "height": 7, "peer": "a:1" });
        let fields = fields.as_object().expect("it is one");
        let line = text("T", Level::Warn, "refused", fields);
        assert_eq!(line, r#"T warn  refused height=7 peer=a:1 reason="two\nlines \"quoted\"""#);
        let line = json("T", Level::Warn, "refused", fields);
        assert_eq!(line.lines().count(), 1);
        let parsed: Value = serde_json::from_str(&line).expect("it is JSON");
        assert_eq!(parsed["event"], "refused");
        assert_eq!(parsed["reason"], "two\nlines \"quoted\"");
    }
}
