//! The crate stays pure: it depends on types, on errors and, behind features, on the verifiers.

use std::collections::BTreeSet;

/// The names in the sections of Cargo.toml that production code sees.
fn dependencies(manifest: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    let mut counts = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            counts = line.contains("dependencies") && !line.contains("dev-dependencies");
        } else if counts {
            found.extend(line.split(['.', '=', ' ']).next().filter(|name| !name.is_empty()));
        }
    }
    found
}

#[test]
fn nothing_but_types_and_errors() {
    let manifest = include_str!("../../Cargo.toml");
    let verifiers = ["bitcoinkernel", "varve-script-core"];
    let allowed = BTreeSet::from_iter(verifiers.into_iter().chain(["thiserror", "varve-types"]));
    assert_eq!(dependencies(manifest), allowed);
    for verifier in verifiers {
        let line = manifest.lines().find(|line| line.starts_with(verifier)).unwrap();
        assert!(line.contains("optional = true"), "{line}");
    }
}

#[test]
fn no_source_names_files_clocks_or_locks() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let mut folders = vec![std::path::PathBuf::from(folder)];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            seen += 1;
            let text = std::fs::read_to_string(&path).unwrap();
            for banned in ["std::fs", "std::io", "std::net", "std::time", "std::env", "Mutex"] {
                assert!(!text.contains(banned), "{} names {banned}", path.display());
            }
        }
    }
    assert!(seen > 20);
}
