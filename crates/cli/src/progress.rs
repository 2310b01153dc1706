//! Progress of long work: a bar with rate and time left on a terminal, log lines otherwise.
//!
//! Both go to standard error, so that standard output stays what the command answers.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, ProgressBar, ProgressStyle};

/// How often a log line is written when there is no terminal.
const LOG_EVERY: Duration = Duration::from_secs(5);

/// One piece of work that is measured in steps and in bytes.
pub(crate) struct Progress {
    what: &'static str,
    steps: u64,
    bar: Option<ProgressBar>,
    started: Instant,
    logged: Instant,
}

impl Progress {
    /// Starts showing `what`, which takes `steps` steps.
    pub(crate) fn start(what: &'static str, steps: u64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template(
                "{prefix:>10} {bar:32.yellow/white.dim} {pos}/{len} blocks  {msg}  {eta} left",
            )
            .expect("the template is a constant that has been seen to parse")
            .progress_chars("▓▒░");
            ProgressBar::new(steps).with_prefix(what).with_style(style)
        });
        let started = Instant::now();
        Self { what, steps, bar, started, logged: started }
    }

    /// Says how far the work has come.
    pub(crate) fn set(&mut self, step: u64, bytes: u64) {
        let rate = rate(bytes, self.started.elapsed());
        if let Some(bar) = &self.bar {
            bar.set_position(step);
            bar.set_message(rate);
        } else if self.logged.elapsed() >= LOG_EVERY {
            self.logged = Instant::now();
            eprintln!("{}: {step}/{} blocks, {rate}", self.what, self.steps);
        }
    }

    /// Ends the display with one line that stays, and gives the time it took.
    pub(crate) fn finish(self, bytes: u64) -> Duration {
        let took = self.started.elapsed();
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let (size, rate) = (HumanBytes(bytes), rate(bytes, took));
        eprintln!("{:>10}: {} blocks, {size} in {took:.1?} ({rate})", self.what, self.steps);
        took
    }
}

/// Bytes over time, for people.
fn rate(bytes: u64, took: Duration) -> String {
    format!("{:.0} MB/s", megabytes_per_second(bytes, took))
}

/// Bytes over time in millions a second.
#[expect(clippy::cast_precision_loss, reason = "a rate that people read needs no 53rd bit")]
pub(crate) fn megabytes_per_second(bytes: u64, took: Duration) -> f64 {
    bytes as f64 / 1e6 / took.as_secs_f64().max(1e-9)
}
