//! Names, first lines, banned words, white space, and where `unsafe` may be.
//!
//! - Every `.rs` file begins with a `//!` doc, so that a reader knows the mechanism first.
//! - No `mod.rs` (six open tabs of one name), no modules like `utils` (they collect everything).
//! - Words of unfinished work, and paths of somebody's machine, do not reach the repository.
//! - No trailing blanks, no tabs in Rust, and a text file ends with a newline.
//! - Every library and program forbids `unsafe`, except the few that need it.

use super::Finding;
use super::source::Source;
use super::tree::{File, Tree};
use crate::metadata::Package;
use std::path::{Component, Path};

/// Names that say nothing, and so collect everything.
const ROOMS: &[&str] = &["util", "utils", "helper", "helpers", "misc", "common"];

/// Banned in Rust code, with what to do instead.
const BANNED_CODE: &[(&str, &str)] = &[
    ("todo!(", "write it, or leave the item out"),
    ("unimplemented!(", "write it, or leave the item out"),
    ("dbg!(", "remove it"),
    ("#[ignore", "call varve_testdata::skip with a reason, or remove the test"),
];

/// Banned as words in every text. Concatenated here, so that this file does not contain them.
const BANNED_WORDS: &[(&str, &str)] = &[
    (concat!("FIX", "ME"), "fix it now, or describe the present state"),
    (concat!("XX", "X"), "fix it now, or describe the present state"),
    (concat!("/ho", "me/"), "a path of one machine; take it from the environment"),
    (concat!("/ro", "ot/"), "a path of one machine; take it from the environment"),
    (concat!("/wo", "rk/"), "a path of one machine; take it from the environment"),
];

/// The packages that may hold `unsafe`: system calls and maps, SIMD, Core's C++, and a rival's
/// open.
const MAY_BE_UNSAFE: &[&str] =
    &["varve-io", "varve-sha256", "varve-script-core", "varve-bench-rivals"];

/// Checks all texts.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files.iter().flat_map(check_file).collect()
}

/// Checks the root file of each library and program.
pub(super) fn check_roots(tree: &Tree, packages: &[Package]) -> Vec<Finding> {
    let safe = packages.iter().filter(|package| !MAY_BE_UNSAFE.contains(&package.name.as_str()));
    let mut findings = Vec::new();
    for root in safe.flat_map(|package| &package.roots) {
        let root = root.strip_prefix(&tree.root).unwrap_or(root);
        let file = tree.sources().find(|(file, _)| file.path == root);
        let forbids = |source: &Source| {
            source.lines().any(|(_, line)| line.trim() == "#![forbid(unsafe_code)]")
        };
        if !file.is_some_and(|(_, source)| forbids(source)) {
            let message = "`unsafe` is not forbidden; add `#![forbid(unsafe_code)]`";
            findings.push(Finding::error(root, 1, message));
        }
    }
    findings
}

fn check_file(file: &File) -> Vec<Finding> {
    let mut findings = check_words(file);
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        let last = file.text.lines().count();
        findings.push(Finding::error(&file.path, last, "no newline at the end; add one"));
    }
    if let Some(source) = &file.source {
        findings.extend(check_names(&file.path, source));
        findings.extend(check_code(file, source));
    }
    findings
}

fn check_words(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in file.lines() {
        if line.ends_with([' ', '\t']) {
            let message = "blanks at the end of the line; remove them";
            findings.push(Finding::error(&file.path, number, message));
        }
        let found = BANNED_WORDS.iter().filter(|(word, _)| contains_word(line, word));
        findings.extend(found.map(|(word, remedy)| {
            Finding::error(&file.path, number, format!("`{word}` is banned; {remedy}"))
        }));
    }
    findings
}

/// Whether the word occurs and is not the end of a longer name or path.
fn contains_word(line: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || "._-~}".contains(c);
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).unwrap_or_default();
        let after = line.get(at + word.len()..).unwrap_or_default();
        let ends = word.ends_with('/') || !after.starts_with(|c: char| c.is_alphanumeric());
        !before.ends_with(inside) && ends
    })
}

fn check_names(path: &Path, source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    if path.file_name().is_some_and(|name| name == "mod.rs") {
        let message = "`mod.rs` is banned; use `NAME.rs` beside the folder `NAME`";
        findings.push(Finding::error(path, 1, message));
    }
    let banned = |name: &str| {
        ROOMS.contains(&name).then(|| {
            format!("`{name}` says nothing; name it by what it does, or move it to its one user")
        })
    };
    let without_ending = path.with_extension("");
    for part in without_ending.components() {
        if let Component::Normal(name) = part {
            let message = banned(&name.to_string_lossy());
            findings.extend(message.map(|message| Finding::error(path, 1, message)));
        }
    }
    for (line, module) in source.modules() {
        findings.extend(banned(module).map(|message| Finding::error(path, line, message)));
    }
    findings
}

fn check_code(file: &File, source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !file.text.starts_with("//!") {
        let message = "no doc; begin the file with `//!` and what it is about";
        findings.push(Finding::error(&file.path, 1, message));
    }
    for (number, _) in file.lines().filter(|(_, line)| line.contains('\t')) {
        let message = "a tab; use blanks, or `\\t` in a string";
        findings.push(Finding::error(&file.path, number, message));
    }
    for (number, line) in source.lines() {
        let found = BANNED_CODE.iter().filter(|(code, _)| line.contains(code));
        findings.extend(found.map(|(code, remedy)| {
            Finding::error(&file.path, number, format!("`{code}` is banned; {remedy}"))
        }));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// The beginning of each message about a file with this text.
    fn messages(path: &str, text: &str) -> Vec<String> {
        let findings = check_file(&File::new(path, text));
        let short = |finding: Finding| {
            let message = finding.message.split(';').next().unwrap_or_default().to_owned();
            format!("{}: {message}", finding.line)
        };
        findings.into_iter().map(short).collect()
    }

    fn rust(code: &str) -> Vec<String> {
        messages("a.rs", &format!("//! Doc.\n{code}\n"))
    }

    #[test]
    fn unfinished_work_is_found() {
        assert_eq!(rust("fn a() { todo!() }"), ["2: `todo!(` is banned"]);
        assert_eq!(rust("fn a() { unimplemented!() }"), ["2: `unimplemented!(` is banned"]);
        assert_eq!(rust("fn a() { dbg!(1); }"), ["2: `dbg!(` is banned"]);
        assert_eq!(rust("#[ignore = \"slow\"]"), ["2: `#[ignore` is banned"]);
        assert_eq!(rust("// todo!() and \"dbg!(\" are words here"), [""; 0]);
        for (word, _) in BANNED_WORDS {
            let expected = format!("2: `{word}` is banned");
            assert_eq!(rust(&format!("// ({word} mine)")), [expected]);
            assert_eq!(messages("a.md", &format!("a\n{word}\n")).len(), 1, "{word}");
            assert_eq!(rust(&format!("// inside of a{word}")), [""; 0]);
        }
        assert_eq!(rust(concat!("// XX", "XL")), [""; 0]);
    }

    #[test]
    fn white_space_is_found() {
        assert_eq!(rust("fn a() {} "), ["2: blanks at the end of the line"]);
        assert_eq!(rust("\tfn a() {}"), ["2: a tab"]);
        assert_eq!(messages("a.md", "a\n\tb"), ["2: no newline at the end"]);
        assert_eq!(messages("a.md", "a  \n"), ["1: blanks at the end of the line"]);
        assert_eq!(messages("a.txt", ""), [""; 0]);
    }

    #[test]
    fn names_are_checked() {
        assert_eq!(messages("a/mod.rs", "//! Doc.\n").len(), 1);
        assert_eq!(messages("a/utils.rs", "//! Doc.\n").len(), 1);
        assert_eq!(messages("common/a.rs", "//! Doc.\n").len(), 1);
        assert_eq!(rust("pub mod helpers {}").len(), 1);
        assert_eq!(messages("a/commonplace.rs", "//! Doc.\n"), [""; 0]);
    }

    #[test]
    fn a_file_begins_with_its_doc() {
        assert_eq!(messages("a.rs", "// Doc.\n"), ["1: no doc"]);
    }

    #[test]
    fn every_root_forbids_unsafe() {
        let found = |name: &str, text: &str| {
            let root = PathBuf::from("/x");
            let files = vec![File::new("a/src/lib.rs", text)];
            let roots = vec![root.join("a/src/lib.rs")];
            let package = Package { name: name.to_owned(), roots, ..Package::default() };
            check_roots(&Tree { root, files }, &[package]).len()
        };
        assert_eq!(found("varve-utxo", "//! Doc.\n#![forbid(unsafe_code)]\n"), 0);
        assert_eq!(found("varve-utxo", "//! Doc.\n"), 1);
        assert_eq!(found("varve-utxo", "//! Doc.\n// #![forbid(unsafe_code)]\n"), 1);
        assert_eq!(found("varve-io", "//! Doc.\n"), 0);
    }
}
