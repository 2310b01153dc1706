//! The ratchet: exceptions to the budgets, which only shrink.
//!
//! `xtask/tidy-ratchet.txt` lists what is over its budget today, one `SIZE NAME` a line, where the
//! name is a path, or `PATH::FUNCTION`. `#` begins a comment. For what is listed:
//!
//! - larger than listed is an error: nothing grows;
//! - smaller than listed is an error that asks for the new size: nothing grows back;
//! - within the budget, or gone, is an error that asks to remove the line.

use super::budget::Measure;
use super::{Finding, RATCHET};
use std::path::Path;

/// The exceptions.
pub(super) struct Ratchet {
    entries: Vec<Entry>,
    findings: Vec<Finding>,
}

struct Entry {
    name: String,
    size: usize,
    line: usize,
    used: bool,
}

impl Ratchet {
    /// Reads the list.
    pub(super) fn parse(text: &str) -> Self {
        let mut ratchet = Self { entries: Vec::new(), findings: Vec::new() };
        for (line, content) in (1..).zip(text.lines()) {
            let content = content.split('#').next().unwrap_or_default().trim();
            if content.is_empty() {
                continue;
            }
            let parts = content.split_once(' ').map(|(size, name)| (size.parse(), name.trim()));
            if let Some((Ok(size), name)) = parts {
                ratchet.entries.push(Entry { name: name.to_owned(), size, line, used: false });
            } else {
                let message = format!("`{content}` is not `SIZE NAME`; correct the line");
                ratchet.findings.push(Finding::error(RATCHET, line, message));
            }
        }
        ratchet
    }

    /// The finding about one measure, if any.
    pub(super) fn judge(&mut self, path: &Path, measure: Measure) -> Option<Finding> {
        let Measure { name, line, size, budget, remedy } = measure;
        if size <= budget {
            return None;
        }
        let message = match self.entries.iter_mut().find(|entry| entry.name == name) {
            None => format!("{size} lines, more than {budget}; {remedy}"),
            Some(entry) => {
                entry.used = true;
                if size == entry.size {
                    return None;
                }
                if size < entry.size {
                    let message = format!("`{name}` has shrunk; write {size} here");
                    return Some(Finding::error(RATCHET, entry.line, message));
                }
                format!("{size} lines, more than the {} of the ratchet; {remedy}", entry.size)
            }
        };
        Some(Finding::error(path, line, message))
    }

    /// The findings about the list itself, after all measures.
    pub(super) fn leftovers(self) -> Vec<Finding> {
        let mut findings = self.findings;
        findings.extend(self.entries.iter().filter(|entry| !entry.used).map(|entry| {
            let message = format!("`{}` is within its budget, or gone; remove this", entry.name);
            Finding::error(RATCHET, entry.line, message)
        }));
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the list `80 a.rs::f` says of that function at this size.
    fn at_size(size: usize) -> Vec<String> {
        let mut ratchet = Ratchet::parse("# Comment.\n80 a.rs::f # why\n");
        let name = "a.rs::f".to_owned();
        let measure = Measure { name, line: 7, size, budget: 70, remedy: "split it" };
        let finding = ratchet.judge(Path::new("a.rs"), measure);
        finding.into_iter().chain(ratchet.leftovers()).map(|found| found.to_string()).collect()
    }

    #[test]
    fn what_is_listed_may_only_shrink() {
        assert_eq!(at_size(80), [""; 0]);
        assert_eq!(at_size(81), ["a.rs:7: 81 lines, more than the 80 of the ratchet; split it"]);
        let shrunk = "xtask/tidy-ratchet.txt:2: `a.rs::f` has shrunk; write 79 here";
        assert_eq!(at_size(79), [shrunk]);
        let gone = "xtask/tidy-ratchet.txt:2: `a.rs::f` is within its budget, or gone; remove this";
        assert_eq!(at_size(70), [gone]);
    }

    #[test]
    fn a_line_that_is_not_understood_is_found() {
        assert_eq!(Ratchet::parse("a.rs 80\n\n80\n").leftovers().len(), 2);
    }
}
