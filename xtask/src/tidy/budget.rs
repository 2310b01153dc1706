//! Limits on the size of files, functions and lines.
//!
//! | what | budget | counted |
//! |---|---|---|
//! | code of a file | 400 lines, a warning | without `#[cfg(test)]` items; test files have none |
//! | a whole file | 600 lines | with its tests |
//! | `lib.rs` | 119 lines | crate doc, modules, re-exports |
//! | a function | 70 lines | from `fn` to its closing brace |
//! | a line of Rust | 100 characters | |
//!
//! Files and functions that are over their budget today are listed in the ratchet, see
//! [`Ratchet`]. For a line there is no exception.

use super::ratchet::Ratchet;
use super::source::Source;
use super::tree::{File, Tree};
use super::{Finding, RATCHET};
use std::path::Path;

const FILE_CODE: usize = 400;
const FILE_WHOLE: usize = 600;
const LIB: usize = 119;
const FUNCTION: usize = 70;
const LINE: usize = 100;

/// Something that has a size and a budget.
pub(super) struct Measure {
    /// The name by which the ratchet knows it: the path, and `::NAME` for a function.
    pub name: String,
    /// Where it begins.
    pub line: usize,
    /// Lines.
    pub size: usize,
    /// Lines.
    pub budget: usize,
    /// What to do when it is too large.
    pub remedy: &'static str,
}

/// Checks all Rust files.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let ratchet = tree.files.iter().find(|file| file.path == Path::new(RATCHET));
    let mut ratchet = Ratchet::parse(ratchet.map_or("", |file| &file.text));
    let mut findings = Vec::new();
    for (file, source) in tree.sources() {
        findings.extend(check_lines(file));
        findings.extend(warn_of_code(file, source));
        for measure in measures(file, source) {
            findings.extend(ratchet.judge(&file.path, measure));
        }
    }
    findings.extend(ratchet.leftovers());
    findings
}

fn measures(file: &File, source: &Source) -> Vec<Measure> {
    let path = file.path.display();
    let is_lib = file.path.ends_with("src/lib.rs");
    let mut measures = vec![Measure {
        name: path.to_string(),
        line: 1,
        size: file.text.lines().count(),
        budget: if is_lib { LIB } else { FILE_WHOLE },
        remedy: if is_lib { "move code into a module" } else { "split it by its nouns" },
    }];
    measures.extend(source.functions().into_iter().map(|function| Measure {
        name: format!("{path}::{}", function.name),
        line: *function.lines.start(),
        size: function.lines.count(),
        budget: FUNCTION,
        remedy: "split it by its steps",
    }));
    measures
}

fn warn_of_code(file: &File, source: &Source) -> Option<Finding> {
    if is_test(&file.path) {
        return None;
    }
    let tests: usize = source.test_lines().into_iter().map(Iterator::count).sum();
    let code = file.text.lines().count().saturating_sub(tests);
    (code > FILE_CODE).then(|| {
        let message = format!("{code} lines of code, more than {FILE_CODE}; consider splitting it");
        Finding::warning(&file.path, 1, message)
    })
}

fn is_test(path: &Path) -> bool {
    path.file_stem().is_some_and(|stem| stem == "tests")
        || path.components().any(|part| part.as_os_str() == "tests")
}

fn check_lines(file: &File) -> Vec<Finding> {
    let long = file.lines().filter_map(|(number, line)| {
        let width = line.chars().count();
        (width > LINE).then(|| {
            let message = format!("{width} characters, more than {LINE}; break the line");
            Finding::error(&file.path, number, message)
        })
    });
    long.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found in one file with this text, with this ratchet.
    fn findings(path: &str, text: &str, ratchet: &str) -> Vec<String> {
        let files = vec![File::new(path, text), File::new(RATCHET, ratchet)];
        let found = check(&Tree { files, ..Tree::default() });
        found.iter().map(ToString::to_string).collect()
    }

    fn function(lines: usize) -> String {
        format!("//! Doc.\nfn long() {{\n{}}}\n", "    x();\n".repeat(lines - 2))
    }

    #[test]
    fn long_functions_are_found() {
        assert_eq!(findings("a.rs", &function(70), ""), [""; 0]);
        let expected = "a.rs:2: 71 lines, more than 70; split it by its steps";
        assert_eq!(findings("a.rs", &function(71), ""), [expected]);
    }

    #[test]
    fn long_files_are_found() {
        let warning = "a.rs:1: warning: 401 lines of code, more than 400; consider splitting it";
        assert_eq!(findings("a.rs", &"//!\n".repeat(400), ""), [""; 0]);
        assert_eq!(findings("a.rs", &"//!\n".repeat(401), ""), [warning]);
        let tests = format!("//!\n#[cfg(test)]\nmod tests {{\n{}}}\n", "//\n".repeat(590));
        assert_eq!(findings("a.rs", &tests, ""), [""; 0]);
        assert_eq!(findings("a/tests.rs", &"//!\n".repeat(600), ""), [""; 0]);
        let error = "a/tests.rs:1: 601 lines, more than 600; split it by its nouns";
        assert_eq!(findings("a/tests.rs", &"//!\n".repeat(601), ""), [error]);
        let error = "a/src/lib.rs:1: 120 lines, more than 119; move code into a module";
        assert_eq!(findings("a/src/lib.rs", &"//!\n".repeat(120), ""), [error]);
    }

    #[test]
    fn long_lines_are_found() {
        assert_eq!(findings("a.rs", &"é".repeat(100), ""), [""; 0]);
        let expected = "a.rs:1: 101 characters, more than 100; break the line";
        assert_eq!(findings("a.rs", &"é".repeat(101), ""), [expected]);
    }

    #[test]
    fn the_ratchet_lets_pass_what_it_lists() {
        assert_eq!(findings("a.rs", &function(90), "90 a.rs::long\n"), [""; 0]);
    }
}
