//! What `cargo metadata` says about the workspace: its packages, their roots, and the edges between
//! them.

use crate::run;
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::path::PathBuf;

/// The workspace.
pub(crate) struct Metadata {
    /// Where cargo builds.
    pub target: PathBuf,
    /// Every package of the workspace.
    pub packages: Vec<Package>,
}

/// One package of the workspace.
#[derive(Debug, Default)]
pub(crate) struct Package {
    /// Its name, as in `-p NAME`.
    pub name: String,
    /// The root files of its library and its programs.
    pub roots: Vec<PathBuf>,
    /// Its edges to other packages of the workspace.
    pub edges: Vec<Edge>,
}

/// One package of the workspace uses another.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    /// The name of the other.
    pub to: String,
    /// Only its tests, examples and benches use it.
    pub dev: bool,
}

impl Metadata {
    /// Asks cargo.
    pub(crate) fn load() -> Result<Self> {
        let text = run::output(run::cargo().args(["metadata", "--no-deps", "--format-version=1"]))?;
        Self::parse(&text).context("`cargo metadata` returned an unexpected form")
    }

    fn parse(text: &str) -> Result<Self> {
        let json: Value = serde_json::from_str(text)?;
        let target = string(&json, "target_directory")?.into();
        let packages = list(&json, "packages")?.iter().map(package).collect::<Result<_>>()?;
        Ok(Self { target, packages })
    }
}

fn package(json: &Value) -> Result<Package> {
    let mut package = Package { name: string(json, "name")?.to_owned(), ..Package::default() };
    for target in list(json, "targets")? {
        let kinds = list(target, "kind")?;
        if kinds.iter().any(|kind| kind == "lib" || kind == "bin") {
            package.roots.push(string(target, "src_path")?.into());
        }
    }
    for dependency in list(json, "dependencies")? {
        // A dependency with a path is a member of the workspace.
        if dependency.get("path").is_some_and(Value::is_string) {
            let dev = dependency.get("kind").is_some_and(|kind| kind == "dev");
            package.edges.push(Edge { to: string(dependency, "name")?.to_owned(), dev });
        }
    }
    Ok(package)
}

fn list<'a>(json: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    json.get(key).and_then(Value::as_array).with_context(|| format!("no list `{key}`"))
}

fn string<'a>(json: &'a Value, key: &str) -> Result<&'a str> {
    json.get(key).and_then(Value::as_str).with_context(|| format!("no text `{key}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_edges_and_roots() {
        let text = r#"{"target_directory": "/t", "packages": [{
            "name": "a",
            "targets": [
                {"kind": ["lib"], "src_path": "/a/src/lib.rs"},
                {"kind": ["test"], "src_path": "/a/tests/t.rs"}
            ],
            "dependencies": [
                {"name": "serde", "kind": null},
                {"name": "b", "kind": null, "path": "/b"},
                {"name": "c", "kind": "dev", "path": "/c"}
            ]}]}"#;
        let metadata = Metadata::parse(text).unwrap();
        assert_eq!(metadata.target, PathBuf::from("/t"));
        let [package] = metadata.packages.as_slice() else { panic!("one package") };
        assert_eq!(package.roots, [PathBuf::from("/a/src/lib.rs")]);
        let b = Edge { to: "b".into(), dev: false };
        let c = Edge { to: "c".into(), dev: true };
        assert_eq!(package.edges, [b, c]);
    }

    #[test]
    fn an_unknown_form_is_an_error() {
        assert!(Metadata::parse("{}").is_err());
        assert!(Metadata::parse("not json").is_err());
    }

    #[test]
    fn knows_this_workspace() {
        let metadata = Metadata::load().unwrap();
        assert!(metadata.packages.iter().any(|package| package.name == "xtask"));
    }
}
