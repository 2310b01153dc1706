//! Every path that the documents name exists.
//!
//! It reads `README.md`, `ARCHITECTURE.md`, `CONTRIBUTING.md`, `CHANGELOG.md` and everything under
//! `docs/`, outside fenced code. Two things count as paths:
//!
//! - the target of a link, `[text](docs/format.md#section)`, relative to the document, unless it is
//!   a web address;
//! - words in backticks with a `/` that begin with a file or folder of the root (`crates/io`), or
//!   end like a source file (`old/place.rs`), relative to the root or to the document. They may end
//!   with `:LINE` or `::ITEM`, may hold one `{a,b}` and a `*`, which stands for anything.
//!
//! Paths on a user's machine (`blocks/blk*.dat`, `~/.varve`, `DIR/x.json`) do not begin with a
//! folder of ours and so do not count.

use super::Finding;
use super::tree::{File, Tree};
use std::path::Path;

/// The documents in the root; with them goes everything under `docs/`.
const DOCUMENTS: &[&str] = &["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];

/// Extensions of the project's files.
const SOURCES: &[&str] = &["rs", "md", "toml"];

/// Checks all documents.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        let named = DOCUMENTS.iter().any(|name| file.path == Path::new(name));
        if named || (file.path.starts_with("docs") && file.has_ending("md")) {
            findings.extend(check_document(&tree.root, file));
        }
    }
    findings
}

fn check_document(root: &Path, file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut fenced = false;
    let here = root.join(file.path.parent().unwrap_or(Path::new("")));
    for (number, line) in file.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        let links = links(line).filter(|link| !exists(&here, link));
        let words = backticked(line)
            .filter(|word| looks_like_a_path(root, word))
            .filter(|word| !exists(root, word) && !exists(&here, word));
        for path in links.chain(words) {
            let message = format!("`{path}` does not exist; name an existing path from the root");
            findings.push(Finding::error(&file.path, number, message));
        }
    }
    findings
}

/// The targets of links, without those on the web or in the same document.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|after| {
        let target = after.split([')', '#', ' ']).next()?;
        let elsewhere = target.contains("://") || target.starts_with("mailto:");
        (!target.is_empty() && !elsewhere).then_some(target)
    })
}

/// The pieces in backticks, without a line or item after a colon.
fn backticked(line: &str) -> impl Iterator<Item = &str> {
    let pieces = line.split('`').skip(1).step_by(2);
    pieces.filter_map(|piece| piece.split([':', '#']).next())
}

fn looks_like_a_path(root: &Path, word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/{},*".contains(c);
    let Some((first, _)) = word.split_once('/') else { return false };
    if !word.chars().all(plain) || first.is_empty() || first == ".." || first == "target" {
        return false;
    }
    let is_source = SOURCES
        .iter()
        .any(|ending| Path::new(word).extension().is_some_and(|extension| extension == *ending));
    // A name in capitals is a placeholder.
    let placeholder = !first.chars().any(|c| c.is_ascii_lowercase());
    root.join(first).exists() || (is_source && !placeholder)
}

/// Whether the path exists, each of them when it holds `{a,b}`; up to the part with a `*`.
fn exists(folder: &Path, path: &str) -> bool {
    if let Some((before, rest)) = path.split_once('{')
        && let Some((choices, after)) = rest.split_once('}')
    {
        let mut each = choices.split(',').map(|choice| format!("{before}{choice}{after}"));
        return each.all(|path| exists(folder, &path));
    }
    match path.split_once('*') {
        Some((before, _)) => {
            let parent = before.rsplit_once('/').map_or("", |(parent, _)| parent);
            folder.join(parent).is_dir()
        }
        None => folder.join(path).exists(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paths found missing in a document of this checkout with this text.
    fn missing(text: &str) -> Vec<String> {
        let file = File::new("xtask/x.md", text);
        let findings = check_document(crate::run::root(), &file);
        let message = |finding: Finding| finding.message.split('`').nth(1).map(str::to_owned);
        findings.into_iter().filter_map(message).collect()
    }

    #[test]
    fn missing_paths_are_found() {
        assert_eq!(missing("see `xtask/src/gone.rs`."), ["xtask/src/gone.rs"]);
        assert_eq!(missing("see `gone/src/gone.rs:12`."), ["gone/src/gone.rs"]);
        assert_eq!(missing("see [it](gone.md#part)"), ["gone.md"]);
        assert_eq!(missing("`xtask/{src,gone}`"), ["xtask/{src,gone}"]);
        assert_eq!(missing("`xtask/gone/*.rs`"), ["xtask/gone/*.rs"]);
        assert_eq!(missing("a `b` and `crates/gone/` and `xtask`"), ["crates/gone/"]);
    }

    #[test]
    fn existing_paths_pass() {
        for text in [
            "`xtask/src/main.rs:1`, `xtask/src/tidy.rs::run`, `xtask/`, `src/main.rs`",
            "`xtask/src/{main,tidy}.rs`, `xtask/src/*.rs`",
            "[up](../Cargo.toml), [web](https://example.org/x.md), [here](#part)",
        ] {
            assert_eq!(missing(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn what_is_no_path_of_ours_passes() {
        for text in [
            "`and/or`, `a b/c.rs`, `tx.rs`, `target/x.md`",
            "`blocks/blk*.dat`, `~/.varve`, `DIR/expected.toml`, `../shared/data`",
            "```\n`xtask/gone.rs`\n```\n",
        ] {
            assert_eq!(missing(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn only_documents_are_read() {
        let mut tree = Tree { root: crate::run::root().to_owned(), ..Tree::default() };
        for path in ["README.md", "docs/adr/1.md", "seeds/1.md", "docs/x.txt"] {
            tree.files.push(File::new(path, "`xtask/gone.rs`"));
        }
        assert_eq!(check(&tree).len(), 2);
    }
}
