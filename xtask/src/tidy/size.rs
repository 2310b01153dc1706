//! No large file is part of the repository.
//!
//! A committed file stays in every clone for ever. Large files are made by a test when it runs, or
//! are beside the checkout (`VARVE_DATA`). Untracked files are ignored.

use super::Finding;
use super::tree::Tree;
use anyhow::Result;
use std::path::PathBuf;
use std::process::Command;

/// The largest file that passes, in bytes.
const SIZE_MAX: u64 = 1_000_000;

/// Checks all files that git tracks. Without git there is nothing that could be committed.
pub(super) fn check(tree: &Tree) -> Result<Vec<Finding>> {
    if !tree.root.join(".git").exists() {
        return Ok(Vec::new());
    }
    let listed =
        crate::run::output(Command::new("git").args(["ls-files", "-z"]).current_dir(&tree.root))?;
    let paths = listed.split('\0').filter(|path| !path.is_empty()).map(PathBuf::from);
    let findings = paths.filter_map(|path| {
        // A file that was removed and not yet committed has no size.
        let size = tree.root.join(&path).symlink_metadata().ok()?.len();
        check_size(path, size)
    });
    Ok(findings.collect())
}

fn check_size(path: PathBuf, size: u64) -> Option<Finding> {
    let message = || {
        format!(
            "{size} bytes in the repository, more than {SIZE_MAX}; make the file in the test, or \
             take it from VARVE_DATA"
        )
    };
    (size > SIZE_MAX).then(|| Finding::error(path, 1, message()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_file_is_found_and_this_checkout_has_none() {
        assert_eq!(check_size("x".into(), SIZE_MAX), None);
        assert!(check_size("x".into(), SIZE_MAX + 1).is_some());
        let tree = Tree { root: crate::run::root().to_owned(), ..Tree::default() };
        assert_eq!(check(&tree).unwrap(), []);
    }
}
