//! `cargo xtask tidy`: the project's rules, each with a message that says what to do.
//!
//! A rule reads the tree and returns [`Finding`]s, printed as `path:line: what is wrong; what to
//! do`. An error fails the command, a warning does not. Nothing is built and nothing is written,
//! so a run takes less than a second.
//!
//! | rule | file |
//! |---|---|
//! | crates depend only on crates of lower layers | `edges` |
//! | every path that the documents name exists | `paths` |
//! | rows of a table have the same number of cells | `tables` |
//! | no tracked file is larger than 1 MB | `size` |
//! | files, functions, lines and `lib.rs` keep their size, by a ratchet | `budget`, `ratchet` |
//! | public items that no other production crate names become fewer | `faces` |
//! | names of files, the first line, banned words, white space, `unsafe` | `text` |

mod budget;
mod edges;
mod faces;
mod paths;
mod ratchet;
mod size;
mod source;
mod tables;
mod text;
mod tree;

use crate::metadata::Metadata;
use crate::run;
use anyhow::Result;
use std::fmt;
use std::path::PathBuf;
use std::time::Instant;
use tree::Tree;

/// Where the exceptions to the budgets are listed.
const RATCHET: &str = "xtask/tidy-ratchet.txt";

/// Something that a rule found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The file, as seen from the root of the checkout.
    path: PathBuf,
    /// The line, counted from 1.
    line: usize,
    /// What is wrong, and what to do.
    message: String,
    /// Shown, but not a failure.
    warning: bool,
}

impl Finding {
    fn error(path: impl Into<PathBuf>, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.into(), line, message: message.into(), warning: false }
    }

    fn warning(path: impl Into<PathBuf>, line: usize, message: impl Into<String>) -> Self {
        Self { warning: true, ..Self::error(path, line, message) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.warning { "warning: " } else { "" };
        write!(f, "{}:{}: {kind}{}", self.path.display(), self.line, self.message)
    }
}

/// Prints the public items that no other production crate names, and how many there are by crate.
pub(crate) fn print_faces() -> Result<()> {
    let tree = Tree::load(run::root())?;
    let unused = faces::unused(&tree, &Metadata::load()?.packages);
    for item in unused.values().flatten() {
        println!("{}:{}: {}", item.path.display(), item.line, item.name);
    }
    for (name, items) in &unused {
        println!("{} {name}", items.len());
    }
    Ok(())
}

/// Checks every rule. Returns whether there was no error.
pub(crate) fn run() -> Result<bool> {
    let start = Instant::now();
    let tree = Tree::load(run::root())?;
    let metadata = Metadata::load()?;
    let mut findings = edges::check(&metadata.packages);
    findings.extend(paths::check(&tree));
    findings.extend(tables::check(&tree));
    findings.extend(size::check(&tree)?);
    findings.extend(text::check(&tree));
    findings.extend(text::check_roots(&tree, &metadata.packages));
    findings.extend(budget::check(&tree));
    findings.extend(faces::check(&tree, &faces::unused(&tree, &metadata.packages)));
    findings.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    for finding in &findings {
        println!("{finding}");
    }
    let warnings = findings.iter().filter(|finding| finding.warning).count();
    let errors = findings.len() - warnings;
    println!(
        "tidy: {} files, {errors} errors, {warnings} warnings, {:.1} s",
        tree.files.len(),
        start.elapsed().as_secs_f64()
    );
    Ok(errors == 0)
}
