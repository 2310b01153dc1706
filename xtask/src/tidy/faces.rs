//! The public face of a crate: what it exports and no other production crate names.
//!
//! A `pub` item is a promise. One that only this crate, a test or a benchmark uses should be
//! `pub(crate)`, behind a feature for tests, or gone. The rule finds such items by their names:
//!
//! 1. The *face* of a layered crate is every `pub` function, type, trait, constant and module in
//!    its `src`, outside of test code. (`unreachable_pub` ensures that `pub` means reachable.)
//! 2. A *user* is the production code of another layered crate, or of `sim`, in which the name
//!    occurs as a word.
//! 3. A type that occurs in a public signature or field of its crate is used through that, and
//!    needs no user that names it.
//! 4. *Test code* is what `#[cfg(…)]` with `test` or a feature `test-…` marks, modules in other
//!    files included, and files named `tests.rs`. A module that is declared twice, public for tests
//!    and private otherwise, is production code without a face.
//!
//! Names are compared, not resolved: `new` or `len` always has a user, so the rule misses some
//! items, but reports none wrongly as long as names differ. What it finds today is counted in
//! `xtask/tidy-faces.txt`, one `COUNT CRATE` a line. A count may only shrink: more is an error, and
//! less is an error that asks for the new number. `cargo xtask tidy --faces` lists the items.

use super::source::Source;
use super::tree::{File, Tree};
use super::{Finding, edges};
use crate::metadata::Package;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

/// Where the counts are.
pub(super) const COUNTS: &str = "xtask/tidy-faces.txt";

const KINDS: &[&str] = &["fn", "struct", "enum", "trait", "type", "const", "static", "mod"];
const TYPES: &[&str] = &["struct", "enum", "trait", "type"];

/// A public item that no other production crate names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unused {
    pub path: PathBuf,
    pub line: usize,
    pub name: String,
}

/// The public items without a user, by crate.
pub(super) fn unused(tree: &Tree, packages: &[Package]) -> BTreeMap<String, Vec<Unused>> {
    let mut crates = Vec::new();
    for package in packages {
        let layered = edges::is_layered(&package.name);
        if layered || package.name == "varve-sim" {
            let folder = folder(tree, package);
            crates.push((package, layered, Code::of(tree, &folder)));
        }
    }
    let mut unused = BTreeMap::new();
    for (package, _, code) in crates.iter().filter(|(_, layered, _)| *layered) {
        let users = crates.iter().filter(|(user, ..)| user.name != package.name);
        let named: HashSet<&str> =
            users.flat_map(|(_, _, user)| user.words.iter().map(String::as_str)).collect();
        let without = code.face.iter().filter(|item| {
            let in_signature = TYPES.contains(&item.kind) && code.signatures.contains(&item.name);
            !in_signature && !named.contains(item.name.as_str())
        });
        let without = without.map(|item| Unused {
            path: item.path.clone(),
            line: item.line,
            name: item.name.clone(),
        });
        unused.insert(package.name.clone(), without.collect());
    }
    unused
}

/// Compares the counts with those that are committed.
pub(super) fn check(tree: &Tree, unused: &BTreeMap<String, Vec<Unused>>) -> Vec<Finding> {
    let text = tree.files.iter().find(|file| file.path == Path::new(COUNTS));
    let committed = text.map(|file| file.text.as_str()).unwrap_or_default();
    compare(committed, unused)
}

fn compare(committed: &str, unused: &BTreeMap<String, Vec<Unused>>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut missing: BTreeSet<&str> = unused.keys().map(String::as_str).collect();
    for (line, content) in (1..).zip(committed.lines()) {
        let content = content.split('#').next().unwrap_or_default().trim();
        if content.is_empty() {
            continue;
        }
        let entry = content.split_once(' ').map(|(count, name)| (count.parse::<usize>(), name));
        let Some((Ok(count), name)) = entry else {
            let message = format!("`{content}` is not `COUNT CRATE`; correct the line");
            findings.push(Finding::error(COUNTS, line, message));
            continue;
        };
        let found = unused.get(name).map_or(0, Vec::len);
        missing.remove(name);
        if found > count {
            let message = format!(
                "{name} has {found} public items that no other production crate names, more than \
                 {count}; make them private (`cargo xtask tidy --faces` lists them)"
            );
            findings.push(Finding::error(COUNTS, line, message));
        } else if found < count {
            let message = format!("the face of {name} has shrunk; write {found} here");
            findings.push(Finding::error(COUNTS, line, message));
        }
    }
    for name in missing {
        let found = unused.get(name).map_or(0, Vec::len);
        if found > 0 {
            let message = format!(
                "{name} has {found} public items that no other production crate names; make them \
                 private (`cargo xtask tidy --faces` lists them)"
            );
            findings.push(Finding::error(COUNTS, 1, message));
        }
    }
    findings
}

/// The folder of a package's sources, as seen from the root of the checkout.
fn folder(tree: &Tree, package: &Package) -> PathBuf {
    let root = package.roots.first().and_then(|root| root.parent());
    root.and_then(|root| root.strip_prefix(&tree.root).ok()).unwrap_or(Path::new("")).to_owned()
}

/// What the rule knows about the production code of a crate.
#[derive(Default)]
struct Code {
    face: Vec<Item>,
    /// The words of the signatures and fields of its face.
    signatures: HashSet<String>,
    /// All words.
    words: HashSet<String>,
}

struct Item {
    path: PathBuf,
    line: usize,
    kind: &'static str,
    name: String,
}

impl Code {
    fn of(tree: &Tree, folder: &Path) -> Self {
        let files = || tree.sources().filter(|(file, _)| file.path.starts_with(folder));
        let for_tests: Vec<TestModule> =
            files().flat_map(|(file, source)| test_modules(file, source)).collect();
        let mut code = Self::default();
        for (file, source) in files() {
            let mut modules = for_tests.iter().filter(|test| file.path.starts_with(&test.path));
            let shown = modules.clone().any(|test| test.is_shown);
            if !file.path.ends_with("tests.rs") && modules.all(|test| test.is_shown) {
                code.read(file, source, shown);
            }
        }
        code
    }

    /// Takes in a file. What is only `shown` to tests uses other crates, but is not part of the
    /// face.
    fn read(&mut self, file: &File, source: &Source, shown: bool) {
        let tests: Vec<_> = marks(file).filter_map(|line| source.item_lines(line)).collect();
        let mut signature_goes_on = false;
        for (number, line) in source.lines() {
            if tests.iter().any(|lines| lines.contains(&number)) {
                continue;
            }
            self.words.extend(words(line).map(str::to_owned));
            let public = line.trim_start().strip_prefix("pub ").filter(|_| !shown);
            let declared = public.and_then(declaration);
            if let Some((kind, name)) = declared {
                let (path, name) = (file.path.clone(), name.to_owned());
                self.face.push(Item { path, line: number, kind, name });
            }
            if public.is_some() || signature_goes_on {
                let own = declared.map(|(_, name)| name);
                let signature = words(line).filter(|word| Some(*word) != own);
                self.signatures.extend(signature.map(str::to_owned));
                // A function's signature ends at its body, that of a field or a constant on its
                // line.
                let begins = declared.is_some_and(|(kind, _)| kind == "fn");
                signature_goes_on = (begins || signature_goes_on) && !line.contains(['{', ';']);
            }
        }
    }
}

/// The kind and the name of what follows `pub `.
fn declaration(code: &str) -> Option<(&'static str, &str)> {
    let mut before = None;
    for word in words(code) {
        if let Some(kind) = before {
            // In `const fn` the second word is the kind.
            if !KINDS.contains(&word) {
                return Some((kind, word));
            }
        }
        match KINDS.iter().find(|kind| **kind == word) {
            Some(kind) => before = Some(*kind),
            None if ["async", "unsafe"].contains(&word) => {}
            None => return None,
        }
    }
    None
}

/// The lines of attributes that mark code for tests.
fn marks(file: &File) -> impl Iterator<Item = usize> {
    let lines = file.lines().filter(|(_, line)| {
        let line = line.trim_start();
        line.starts_with("#[cfg(")
            && !line.contains("not(")
            && words(line).any(|word| word == "test")
    });
    lines.map(|(number, _)| number)
}

/// A module that tests see and other crates do not.
struct TestModule {
    /// Its file, or its folder.
    path: PathBuf,
    /// It is production code, declared a second time without `pub`.
    is_shown: bool,
}

/// The modules that a file declares for tests.
fn test_modules(file: &File, source: &Source) -> Vec<TestModule> {
    let modules = source.modules();
    let stem = file.path.file_stem().unwrap_or_default();
    let folder = file.path.parent().unwrap_or(Path::new(""));
    let is_root = ["lib", "main"].iter().any(|root| stem == *root);
    let folder = if is_root { folder.to_owned() } else { folder.join(stem) };
    let marked = marks(file).filter_map(|line| source.item_lines(line));
    let names = marked.flat_map(|lines| {
        let inside = modules.iter().filter(move |(line, _)| lines.contains(line));
        inside.map(|(_, name)| *name).collect::<Vec<_>>()
    });
    let tests = names.flat_map(|name| {
        let is_shown = modules.iter().filter(|(_, other)| *other == name).count() > 1;
        let paths = [folder.join(format!("{name}.rs")), folder.join(name)];
        paths.map(|path| TestModule { path, is_shown })
    });
    tests.collect()
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, folder: &str) -> Package {
        Package {
            name: name.to_owned(),
            roots: vec![Path::new("/").join(folder).join("lib.rs")],
            ..Package::default()
        }
    }

    /// What the rule finds in `varve-types`, when `varve-io` is its only user.
    fn found(types: &[(&str, &str)], user: &str) -> Vec<String> {
        let mut files = vec![File::new("crates/io/src/lib.rs", user)];
        files.extend(
            types
                .iter()
                .map(|(name, text)| File::new(Path::new("crates/types/src").join(name), *text)),
        );
        let tree = Tree { root: "/".into(), files };
        let packages =
            [package("varve-types", "crates/types/src"), package("varve-io", "crates/io/src")];
        let mut unused = unused(&tree, &packages);
        let found = unused.remove("varve-types").unwrap();
        found.into_iter().map(|item| format!("{}:{}", item.line, item.name)).collect()
    }

    #[test]
    fn what_nobody_names() {
        let text = "pub struct Used;\npub(crate) struct Own;\npub const fn spare() {}\n\
                    pub const LIMIT: u32 = 1;\nimpl Used {\n    pub fn method(&self) {}\n}";
        assert_eq!(found(&[("lib.rs", text)], "use Used;"), ["3:spare", "4:LIMIT", "6:method"]);
        assert_eq!(found(&[("lib.rs", text)], "Used.method(); spare(LIMIT)"), [""; 0]);
        // A word in a comment or a string is not a user.
        assert_eq!(found(&[("lib.rs", "pub fn spare() {}")], "// spare\n\"spare\""), ["1:spare"]);
    }

    #[test]
    fn types_of_signatures_are_used_through_them() {
        let text = "pub struct Answer;\npub struct Field;\npub fn ask(\n    question: u8,\n\
                    ) -> Answer {\n}\npub struct Holder {\n    pub field: Field,\n}";
        assert_eq!(found(&[("lib.rs", text)], "ask Holder"), [""; 0]);
        // The body of a function is not part of its signature.
        let text = "pub struct Inner;\npub fn ask() {\n    Inner\n}";
        assert_eq!(found(&[("lib.rs", text)], "ask"), ["1:Inner"]);
    }

    #[test]
    fn test_code_is_neither_face_nor_user() {
        let root = "#[cfg(any(test, feature = \"test-suite\"))]\npub mod contract;\n\
                    #[cfg(test)]\nmod tests {\n    pub fn helper() {}\n}\n\
                    #[cfg(feature = \"test-suite\")]\npub fn gated() {}";
        let files = [
            ("lib.rs", root),
            ("contract.rs", "pub fn suite() {}"),
            ("contract/draft.rs", "pub fn draft() {}"),
            ("other/tests.rs", "pub fn more() {}"),
        ];
        assert_eq!(found(&files, ""), [""; 0]);
        // Production code that is shown to tests is not part of the face.
        let root = "#[cfg(not(feature = \"test-suite\"))]\nmod primitive;\n\
                    #[cfg(feature = \"test-suite\")]\npub mod primitive;";
        assert_eq!(found(&[("lib.rs", root), ("primitive.rs", "pub fn map() {}")], ""), [""; 0]);
        let user = "#[cfg(test)]\nmod tests {\n    fn f() { spare() }\n}";
        assert_eq!(found(&[("lib.rs", "pub fn spare() {}")], user), ["1:spare"]);
    }

    #[test]
    fn counts_may_only_shrink() {
        let item = || Unused { path: "a.rs".into(), line: 1, name: "a".to_owned() };
        let unused = BTreeMap::from([("a".to_owned(), vec![item(), item()])]);
        let messages = |committed: &str| -> Vec<String> {
            compare(committed, &unused).into_iter().map(|found| found.message).collect()
        };
        assert_eq!(messages("# Comment.\n2 a\n"), [""; 0]);
        assert!(messages("1 a").concat().contains("2 public items"));
        assert_eq!(messages("3 a"), ["the face of a has shrunk; write 2 here"]);
        assert!(messages("").concat().contains("2 public items"));
        assert_eq!(messages("two a\n2 a").len(), 1);
    }
}
