//! A node's answers about its chain and its unspent outputs, to compare ours with.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Bitcoind, LIMIT};

/// The answers of a node at one tip.
pub struct Answers {
    /// The height of the tip.
    pub height: u32,
    /// The hash of the tip.
    pub tip: String,
    /// `getchaintips`.
    pub chain_tips: Value,
    /// `gettxoutsetinfo hash_serialized_3`.
    pub set: Value,
    /// `gettxoutsetinfo muhash` of every height, from genesis on.
    pub at_heights: Vec<Value>,
    /// The file that `dumptxoutset` writes.
    pub snapshot: Vec<u8>,
}

impl Answers {
    /// Queries a node that runs with `-coinstatsindex`, once the index has reached the tip.
    #[must_use]
    pub fn of(node: &Bitcoind) -> Self {
        let height = node.height();
        let begin = Instant::now();
        let indexed = || node.call("getindexinfo", &json!([]))["coinstatsindex"].clone();
        while indexed()["best_block_height"] != height || indexed()["synced"] != true {
            assert!(begin.elapsed() < LIMIT, "the index does not reach the tip");
            std::thread::sleep(Duration::from_millis(50));
        }
        let at = |height| node.call("gettxoutsetinfo", &json!(["muhash", height]));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("utxo.dat");
        node.call("dumptxoutset", &json!([file, "latest"]));
        Self {
            height,
            tip: node.tip(),
            chain_tips: node.call("getchaintips", &json!([])),
            set: node.call("gettxoutsetinfo", &json!(["hash_serialized_3"])),
            at_heights: (0..=height).map(at).collect(),
            snapshot: fs::read(file).unwrap(),
        }
    }
}
