//! Counting tests: what `cargo test` prints, and the log of skipped tests.
//!
//! Each test program ends with a line
//!
//! ```text
//! test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s
//! ```
//!
//! and these lines are summed. Rust's test harness has no skipped tests: one that cannot run (no
//! data, no node) appends `PACKAGE TEST<TAB>REASON` to the file that `VARVE_SKIP_LOG` names and
//! returns, which the harness counts as passed. So each test in the log is moved from the passed to
//! the skipped. A test that logs several reasons is one skipped test.

use std::collections::BTreeMap;

/// The sums over all test programs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// As the harness counts, including skipped ones.
    passed: usize,
    failed: usize,
    /// Each skipped test with its reasons.
    skipped: BTreeMap<String, Vec<String>>,
    /// How many of `skipped` the harness itself reported as ignored, not as passed.
    ignored: usize,
}

impl Tally {
    /// Takes a line that `cargo test` printed.
    pub(crate) fn add_line(&mut self, line: &str) {
        if let Some(result) = line.strip_prefix("test result: ") {
            self.passed += number_before(result, " passed");
            self.failed += number_before(result, " failed");
            self.ignored += number_before(result, " ignored");
        } else if let Some((test, rest)) =
            line.strip_prefix("test ").and_then(|line| line.split_once(" ... ignored"))
        {
            let reason = rest.strip_prefix(", ").unwrap_or("marked as ignored");
            self.skip(test, reason);
        }
    }

    /// Takes the log of skipped tests.
    pub(crate) fn add_skip_log(&mut self, log: &str) {
        for line in log.lines() {
            let (test, reason) = line.split_once('\t').unwrap_or((line, "no reason given"));
            self.skip(test, reason);
        }
    }

    /// Takes a step that failed without a failed test, like one that does not compile, so that
    /// the last line never says `0 failed` when something did.
    pub(crate) fn add_failed_step(&mut self) {
        self.failed += 1;
    }

    /// How many tests failed, with the failed steps.
    pub(crate) fn failed(&self) -> usize {
        self.failed
    }

    /// Each skipped test with its reasons.
    pub(crate) fn skipped(&self) -> impl Iterator<Item = (&str, String)> {
        self.skipped.iter().map(|(test, reasons)| (test.as_str(), reasons.join("; ")))
    }

    /// The last line of `cargo xtask test`.
    pub(crate) fn last_line(&self) -> String {
        let skipped = self.skipped.len().max(self.ignored);
        let logged = skipped - self.ignored;
        let passed = self.passed.saturating_sub(logged);
        format!("{passed} passed, {} failed, {skipped} skipped", self.failed)
    }

    fn skip(&mut self, test: &str, reason: &str) {
        let reasons = self.skipped.entry(test.to_owned()).or_default();
        if !reasons.iter().any(|known| known == reason) {
            reasons.push(reason.to_owned());
        }
    }
}

/// The number that stands before `word`, as 3 in `ok. 3 passed;` before ` passed`; else 0.
fn number_before(text: &str, word: &str) -> usize {
    let before = text.split_once(word).map_or("", |(before, _)| before);
    before.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(lines: &str) -> Tally {
        let mut tally = Tally::default();
        lines.lines().for_each(|line| tally.add_line(line));
        tally
    }

    const TWO_PROGRAMS: &str = "\
running 3 tests
test a ... ok
test b ... FAILED
test c ... ignored, too slow
test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 7 filtered out; finished in 0.00s";

    #[test]
    fn sums_all_programs() {
        let tally = tally(TWO_PROGRAMS);
        assert_eq!(tally.last_line(), "13 passed, 1 failed, 1 skipped");
        assert_eq!(tally.failed(), 1);
        assert_eq!(tally.skipped().collect::<Vec<_>>(), [("c", "too slow".to_owned())]);
    }

    #[test]
    fn a_logged_skip_counts_as_skipped_and_not_as_passed() {
        let mut tally = tally(TWO_PROGRAMS);
        tally.add_skip_log("a\tno data\na\tno node\nx::y\tno node\n");
        assert_eq!(tally.last_line(), "11 passed, 1 failed, 3 skipped");
        let skipped: Vec<_> = tally.skipped().collect();
        assert_eq!(skipped.first(), Some(&("a", "no data; no node".to_owned())));
    }

    #[test]
    fn a_failed_step_is_never_zero_failed() {
        let mut tally = Tally::default();
        tally.add_failed_step();
        assert_eq!(tally.last_line(), "0 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn lines_of_tests_are_not_taken_for_results() {
        assert_eq!(tally("test result of a test ... ok\n9 passed"), Tally::default());
    }
}
