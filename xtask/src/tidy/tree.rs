//! The files of the checkout that the rules read.

use super::source::Source;
use anyhow::{Context as _, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// The endings of text files. Files of other kinds (pictures, vectors) are not read.
const TEXT: &[&str] = &["md", "rs", "sh", "toml", "txt", "yml"];

/// The only folders with a dot that belong to the project.
const DOTTED: &[&str] = &[".cargo", ".ci"];

/// The text files of the checkout.
#[derive(Default)]
pub(crate) struct Tree {
    /// The root of the checkout, for rules that check whether something exists.
    pub root: PathBuf,
    /// In order of their paths.
    pub files: Vec<File>,
}

/// One text file.
pub(crate) struct File {
    /// As seen from the root.
    pub path: PathBuf,
    /// Its content.
    pub text: String,
    /// Its content as Rust, for a `.rs` file.
    pub source: Option<Source>,
}

impl Tree {
    /// Reads the checkout.
    pub(crate) fn load(root: &Path) -> Result<Self> {
        let mut tree = Self { root: root.to_owned(), files: Vec::new() };
        tree.visit(Path::new(""))?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    fn visit(&mut self, folder: &Path) -> Result<()> {
        let path = self.root.join(folder);
        let entries = fs::read_dir(&path).with_context(|| format!("cannot read {path:?}"))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let path = folder.join(name.as_ref());
            if entry.file_type()?.is_dir() {
                let ours = name != "target" && (!name.starts_with('.') || is_in(&name, DOTTED));
                if ours {
                    self.visit(&path)?;
                }
            } else if is_text(&path) {
                let text = fs::read_to_string(self.root.join(&path))
                    .with_context(|| format!("cannot read {path:?} as text"))?;
                self.files.push(File::new(path, text));
            }
        }
        Ok(())
    }

    /// The Rust files, with their content as Rust.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&File, &Source)> {
        self.files.iter().filter_map(|file| Some((file, file.source.as_ref()?)))
    }
}

impl File {
    /// A file with this text.
    pub(crate) fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        let (path, text) = (path.into(), text.into());
        let source = has_ending(&path, "rs").then(|| Source::new(&text));
        Self { path, text, source }
    }

    /// Whether the file's name has this extension.
    pub(crate) fn has_ending(&self, ending: &str) -> bool {
        has_ending(&self.path, ending)
    }

    /// Its lines, counted from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }
}

fn is_text(path: &Path) -> bool {
    // `.ci/run` is a script without an ending.
    path.starts_with(".ci") || TEXT.iter().any(|ending| has_ending(path, ending))
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|extension| extension == ending)
}

fn is_in(name: &str, list: &[&str]) -> bool {
    list.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_this_checkout_and_nothing_that_is_built() {
        let tree = Tree::load(crate::run::root()).unwrap();
        let has = |path: &str| tree.files.iter().any(|file| file.path == Path::new(path));
        assert!(has("xtask/src/tidy/tree.rs"));
        assert!(has(".ci/run"));
        assert!(!tree.files.iter().any(|file| file.path.starts_with("target")));
        assert!(!tree.files.iter().any(|file| file.path.starts_with(".git")));
    }
}
