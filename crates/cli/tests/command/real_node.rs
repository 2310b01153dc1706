//! What users run, beside a real node: sync by every way, questions about what came, following,
//! kills on either side, peers that stall or do not agree.

mod every_kind;
mod follow;
mod peers;
mod proxy;

use std::path::Path;

use serde_json::json;
use varve_testdata::bitcoind::Bitcoind;

use crate::varve::ask;

/// The ways to a node: the flag of `varve sync` and what it takes.
fn ways(node: &Bitcoind) -> [[String; 2]; 3] {
    let login = node.cookie_file().display().to_string();
    [
        ["--peer".to_owned(), node.p2p_address()],
        ["--rpc".to_owned(), format!("http://{login}@{}", node.rpc_address())],
        ["--from".to_owned(), node.folder().display().to_string()],
    ]
}

/// Tip and set are those of the node, and the stores agree with one another.
fn check_tip(data: &Path, node: &Bitcoind) {
    let status = ask(data, &["status"]);
    assert_eq!(status["bestblock"], node.tip());
    assert_eq!((&status["height"], &status["headers"]), (&json!(node.height()), &status["height"]));
    let set = node.call("gettxoutsetinfo", &json!(["hash_serialized_3"]));
    let ours = ask(data, &["utxo", "stats"]);
    for field in ["height", "bestblock", "txouts", "bogosize", "hash_serialized_3"] {
        assert_eq!(ours[field], set[field], "{field}");
    }
    assert_eq!(ask(data, &["verify"])["txouts"], set["txouts"]);
}
