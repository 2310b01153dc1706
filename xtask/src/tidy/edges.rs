//! Crates depend only on crates of lower layers.
//!
//! The layers are the table of the architecture; the edges come from `cargo metadata`. The same
//! holds for the tests of a crate, because a test that needs a crate above or beside its own is in
//! the wrong place:
//!
//! 1. A layered crate uses only layered crates of lower layers. Crates of the same layer never see
//!    one another, so an engine cannot depend on another engine. The exceptions are that `types`
//!    uses `sha256`, `blocks` and `runs` use `io`, and `server` uses the library `varve`.
//! 2. No crate uses `bench`, `bench-rivals`, `fuzz` or `xtask`, except that `bench-rivals` uses the
//!    measuring tools of `bench`; and `xtask` uses none, because it is built first.
//! 3. `sim` is used by the tools, by the tests of the engines and of what is above them, and by
//!    the command line, which offers it as `varve sim`.
//! 4. `testdata` is used by the tools and by tests.
//! 5. The tests of a crate may name the crate itself, to turn on one of its features.

use super::Finding;
use crate::metadata::{Edge, Package};

/// The layered crates. An edge goes from a higher number to a lower one.
const LAYERS: &[(&str, u8)] = &[
    ("varve-sha256", 0),
    ("varve-types", 0),
    ("varve-script-core", 0),
    ("varve-io", 1),
    ("varve-runs", 1),
    ("varve-blocks", 1),
    ("varve-consensus", 1),
    ("varve-utxo", 2),
    ("varve-archive", 2),
    ("varve-records", 2),
    ("varve-node", 3),
    ("varve", 4),
    ("varve-server", 4),
    ("varve-cli", 5),
];

/// The lowest layer whose tests may simulate chains: the engines. Crates below get their blocks as
/// bytes.
const ENGINES: u8 = 2;

/// The crates beside the layers.
const TOOLS: &[&str] =
    &["varve-sim", "varve-testdata", "varve-bench", "varve-bench-rivals", "varve-fuzz", "xtask"];

/// Allowed edges within a layer.
const SAME_LAYER: &[(&str, &str)] = &[
    ("varve-types", "varve-sha256"),
    ("varve-blocks", "varve-io"),
    ("varve-runs", "varve-io"),
    ("varve-server", "varve"),
];

/// Checks all edges.
pub(super) fn check(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let manifest = manifest(package);
        if layer(&package.name).is_none() && !is_tool(&package.name) {
            let message = format!(
                "{} has no layer; add it to LAYERS or TOOLS in xtask/src/tidy/edges.rs and to \
                 ARCHITECTURE.md",
                package.name
            );
            findings.push(Finding::error(&manifest, 1, message));
        }
        for edge in &package.edges {
            if let Err(reason) = judge(&package.name, edge) {
                let message = format!("{} must not use {}: {reason}", package.name, edge.to);
                findings.push(Finding::error(&manifest, 1, message));
            }
        }
    }
    findings
}

/// Whether the edge is allowed, or why it is not, and what to do.
fn judge(from: &str, edge: &Edge) -> Result<(), &'static str> {
    let Edge { to, dev } = edge;
    if from == to && *dev {
        return Ok(());
    }
    if from == "xtask" {
        return Err("xtask is built before everything else; do it without");
    }
    match (layer(from), to.as_str()) {
        (None, "varve-sim" | "varve-testdata") => Ok(()),
        (None, "varve-bench") if from == "varve-bench-rivals" => Ok(()),
        (Some(_), "varve-testdata") if *dev => Ok(()),
        (Some(_), "varve-testdata") => Err("it is for tests; make it a dev-dependency"),
        (Some(_), "varve-sim") if from == "varve-cli" => Ok(()),
        (Some(from), "varve-sim") if *dev && from >= ENGINES => Ok(()),
        (Some(_), "varve-sim") => Err("only tests from the engines up may; pass the blocks in"),
        _ => judge_layers(from, to),
    }
}

fn judge_layers(from: &str, to: &str) -> Result<(), &'static str> {
    let Some(to_layer) = layer(to) else {
        return Err("no crate uses this tool; move what is shared into a layered crate");
    };
    match layer(from) {
        None => Ok(()),
        Some(from_layer) if from_layer > to_layer => Ok(()),
        Some(_) if SAME_LAYER.contains(&(from, to)) => Ok(()),
        Some(from_layer) if from_layer == to_layer => {
            Err("crates of one layer do not see one another; join them in a layer above")
        }
        Some(_) => Err("it is in a layer above; edges point down only"),
    }
}

/// Whether the crate is part of the architecture, and not a tool beside it.
pub(super) fn is_layered(name: &str) -> bool {
    layer(name).is_some()
}

fn layer(name: &str) -> Option<u8> {
    LAYERS.iter().find(|(known, _)| *known == name).map(|(_, layer)| *layer)
}

fn is_tool(name: &str) -> bool {
    TOOLS.contains(&name)
}

fn manifest(package: &Package) -> String {
    match package.name.strip_prefix("varve-") {
        Some(name) if layer(&package.name).is_some() => format!("crates/{name}/Cargo.toml"),
        Some(name) => format!("{name}/Cargo.toml"),
        None if package.name == "varve" => "crates/varve/Cargo.toml".to_owned(),
        None => format!("{}/Cargo.toml", package.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Metadata;

    fn allowed(from: &str, to: &str, dev: bool) -> bool {
        let edges = vec![Edge { to: to.to_owned(), dev }];
        check(&[Package { name: from.to_owned(), edges, ..Package::default() }]).is_empty()
    }

    #[test]
    fn edges_point_down() {
        assert!(allowed("varve-utxo", "varve-io", false));
        assert!(allowed("varve", "varve-sha256", false));
        assert!(allowed("varve-server", "varve", false));
        assert!(!allowed("varve", "varve-server", false));
        assert!(!allowed("varve-io", "varve-utxo", false));
        assert!(!allowed("varve-io", "varve-utxo", true));
    }

    #[test]
    fn crates_of_one_layer_do_not_see_one_another() {
        assert!(!allowed("varve-utxo", "varve-archive", false));
        assert!(!allowed("varve-utxo", "varve-archive", true));
        assert!(!allowed("varve-io", "varve-consensus", false));
        assert!(allowed("varve-types", "varve-sha256", false));
        assert!(!allowed("varve-sha256", "varve-types", false));
        assert!(allowed("varve-blocks", "varve-io", false));
        assert!(!allowed("varve-io", "varve-blocks", false));
        assert!(allowed("varve-runs", "varve-io", false));
        assert!(!allowed("varve-runs", "varve-blocks", false));
    }

    #[test]
    fn a_crate_may_turn_on_its_own_features_for_its_tests() {
        assert!(allowed("varve-io", "varve-io", true));
        assert!(!allowed("varve-io", "varve-io", false));
    }

    #[test]
    fn nobody_uses_the_tools() {
        for tool in ["varve-bench", "varve-bench-rivals", "varve-fuzz", "xtask"] {
            assert!(!allowed("varve-cli", tool, false), "{tool}");
            assert!(!allowed("varve-sim", tool, true), "{tool}");
        }
        assert!(!allowed("xtask", "varve-types", false));
        assert!(!allowed("varve-fuzz", "varve-bench", false));
        assert!(allowed("varve-bench-rivals", "varve-bench", false));
        assert!(allowed("varve-fuzz", "varve-node", false));
    }

    #[test]
    fn the_simulator_and_the_data_are_for_tests() {
        assert!(allowed("varve-cli", "varve-sim", false));
        assert!(!allowed("varve", "varve-sim", false));
        assert!(allowed("varve", "varve-sim", true));
        assert!(allowed("varve-bench", "varve-sim", false));
        assert!(allowed("varve-utxo", "varve-sim", true));
        assert!(!allowed("varve-utxo", "varve-sim", false));
        assert!(!allowed("varve-types", "varve-sim", true));
        assert!(allowed("varve-types", "varve-testdata", true));
        assert!(!allowed("varve-types", "varve-testdata", false));
        assert!(allowed("varve-fuzz", "varve-testdata", false));
    }

    #[test]
    fn a_crate_without_a_layer_is_found() {
        let package = Package { name: "varve-new".to_owned(), ..Package::default() };
        assert_eq!(check(&[package]).len(), 1);
    }

    #[test]
    fn the_table_names_exactly_the_crates_of_this_workspace() {
        let packages = Metadata::load().unwrap().packages;
        let mut names: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
        let mut table: Vec<&str> =
            LAYERS.iter().map(|(name, _)| *name).chain(TOOLS.iter().copied()).collect();
        names.sort_unstable();
        table.sort_unstable();
        assert_eq!(names, table);
        for package in &packages {
            assert!(crate::run::root().join(manifest(package)).exists(), "{}", package.name);
        }
    }
}
