//! Progress of long work: a bar with rate and time left on a terminal, log lines otherwise.
//!
//! Both go to standard error, so that standard output stays what the command answers.

use std::time::{Duration, Instant};

use indicatif::{HumanBytes, ProgressBar, ProgressStyle};

use crate::output;

/// How often a log line is written when there is no terminal.
const LOG_EVERY: Duration = Duration::from_secs(5);

/// Work that takes less than this is not shown.
const PATIENCE: Duration = Duration::from_secs(1);

/// One piece of work that is measured in steps, and in bytes where it has any.
pub(crate) struct Progress {
    what: &'static str,
    unit: &'static str,
    steps: u64,
    bar: Option<ProgressBar>,
    started: Instant,
    logged: Instant,
}

impl Progress {
    /// Starts showing `what`, which takes `steps` blocks.
    pub(crate) fn start(what: &'static str, steps: u64) -> Self {
        Self::start_counting(what, "blocks", steps)
    }

    /// Starts showing `what`, which takes `steps` of `unit`.
    pub(crate) fn start_counting(what: &'static str, unit: &'static str, steps: u64) -> Self {
        let bar = output::has_terminal().then(|| {
            let style = ProgressStyle::with_template(&format!(
                "{{prefix:>10}} {{bar:32.yellow/white.dim}} {{pos}}/{{len}} {unit}  {{msg}}  \
                 {{eta}} left",
            ))
            .expect("the template is a constant that has been seen to parse")
            .progress_chars("▓▒░");
            ProgressBar::new(steps).with_prefix(what).with_style(style)
        });
        let started = Instant::now();
        Self { what, unit, steps, bar, started, logged: started }
    }

    /// Sets the number of steps, when that becomes known.
    pub(crate) fn set_length(&mut self, steps: u64) {
        self.steps = steps;
        if let Some(bar) = &self.bar {
            bar.set_length(steps);
        }
    }

    /// Prints a line beside the work.
    pub(crate) fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => eprintln!("{line}"),
        }
    }

    /// Shows how far the work has come.
    pub(crate) fn set(&mut self, step: u64, bytes: u64) {
        let rate = self.rate(step, bytes, self.started.elapsed());
        if let Some(bar) = &self.bar {
            bar.set_position(step);
            bar.set_message(rate);
        } else if self.logged.elapsed() >= LOG_EVERY {
            self.logged = Instant::now();
            eprintln!("{}: {step}/{} {}, {rate}", self.what, self.steps, self.unit);
        }
    }

    /// Ends the display with one line that stays, and returns the time that the work took.
    pub(crate) fn finish(self, bytes: u64) -> Duration {
        let took = self.started.elapsed();
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let rate = self.rate(self.steps, bytes, took);
        let size = if bytes > 0 { format!(", {}", HumanBytes(bytes)) } else { String::new() };
        let Self { what, unit, steps, .. } = self;
        eprintln!("{what:>10}: {steps} {unit}{size} in {took:.1?} ({rate})");
        took
    }

    /// Bytes over time, or steps where there are no bytes, for people.
    fn rate(&self, steps: u64, bytes: u64, took: Duration) -> String {
        match bytes {
            0 => format!("{:.0} {}/s", 1e6 * megabytes_per_second(steps, took), self.unit),
            _ => {
                let rate = megabytes_per_second(bytes, took);
                format!("{rate:.*} MB/s", usize::from(rate < 10.0))
            }
        }
    }
}

/// Progress of work that is usually short or absent: shown only once it takes longer than a second,
/// and ended when it is dropped.
pub(crate) struct Lazy {
    what: &'static str,
    unit: &'static str,
    begin: Option<Instant>,
    shown: Option<Progress>,
}

impl Lazy {
    /// Work that is called this.
    pub(crate) const fn new(what: &'static str) -> Self {
        Self::counting(what, "blocks")
    }

    /// The same, counted in `unit`.
    pub(crate) const fn counting(what: &'static str, unit: &'static str) -> Self {
        Self { what, unit, begin: None, shown: None }
    }

    /// Shows how many are done of how many.
    pub(crate) fn set(&mut self, done: u64, all: u64) {
        let begin = *self.begin.get_or_insert_with(Instant::now);
        if self.shown.is_none() && begin.elapsed() < PATIENCE {
            return;
        }
        let progress =
            self.shown.get_or_insert_with(|| Progress::start_counting(self.what, self.unit, all));
        progress.set_length(all);
        progress.set(done, 0);
    }
}

impl Drop for Lazy {
    fn drop(&mut self) {
        if let Some(progress) = self.shown.take() {
            progress.finish(0);
        }
    }
}

/// Bytes over time in millions a second.
#[expect(clippy::cast_precision_loss, reason = "a rate that people read needs no 53rd bit")]
pub(crate) fn megabytes_per_second(bytes: u64, took: Duration) -> f64 {
    bytes as f64 / 1e6 / took.as_secs_f64().max(1e-9)
}
