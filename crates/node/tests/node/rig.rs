//! A node on a storage of choice, fed with blocks in any order.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use varve_io::{Disk, Storage};
use varve_node::source::pipe::{Pipe, WAITING_LIMIT};
use varve_node::{Error, Options, Organizer, Report, Source, SyncOptions, Verify};
use varve_types::blk::write_record;
use varve_types::{Height, Network};
use varve_utxo::{SetHash, Statistics};

/// How a test opens its node: two workers, a small window, everything else as usual.
pub(crate) fn options(network: Network) -> Options {
    Options {
        workers: NonZeroUsize::new(2).unwrap(),
        memory: 256 << 20,
        ..Options::new(network, [7; 32])
    }
}

/// How a test syncs: spends and scripts, all branches, up to where the source ends.
pub(crate) fn sync_options() -> SyncOptions {
    let start = Instant::now();
    SyncOptions {
        verify: Verify::Scripts,
        assume_valid: None,
        stop_height: None,
        follow: false,
        all_branches: true,
        mempool: false,
        stop: Arc::default(),
        clock: Arc::new(move || start.elapsed()),
        now: Arc::new(|| 4_000_000_000),
    }
}

pub(crate) fn stop_at(height: u64) -> SyncOptions {
    let stop_height = Some(Height::new(u32::try_from(height).unwrap()));
    SyncOptions { stop_height, ..sync_options() }
}

pub(crate) fn disk(path: &Path) -> Arc<dyn Storage> {
    Arc::new(Disk::open(path).unwrap())
}

/// Blocks in the framing of block files.
pub(crate) fn framed<'a>(
    network: Network,
    blocks: impl IntoIterator<Item = &'a Vec<u8>>,
) -> Vec<u8> {
    let mut file = Vec::new();
    blocks.into_iter().for_each(|block| write_record(network.disk_magic(), block, &mut file));
    file
}

/// A source of these blocks.
pub(crate) fn pipe<'a>(network: Network, blocks: impl IntoIterator<Item = &'a Vec<u8>>) -> Pipe {
    Pipe::new(std::io::Cursor::new(framed(network, blocks)), network, WAITING_LIMIT)
}

/// Syncs, and gives what was refused, with the reasons.
pub(crate) fn sync(
    node: &mut Organizer,
    source: &mut dyn Source,
    options: &SyncOptions,
) -> Result<Vec<(String, String)>, Error> {
    let mut refused = Vec::new();
    node.sync(source, options, &mut |report| match report {
        Report::Refused { hash, reason } => refused.push((hash.to_string(), reason.to_owned())),
        Report::Warning(warning) => eprintln!("{warning}"),
        _ => {}
    })?;
    Ok(refused)
}

/// What the node says of its set.
pub(crate) fn statistics(node: &Organizer, hash: SetHash) -> Statistics {
    let snapshot = node.snapshot();
    assert_eq!(snapshot.utxo.tip(), Some(snapshot.tip), "set and node are at one tip");
    snapshot.utxo.statistics(hash, NonZeroUsize::MIN, &mut |_, _| {}).unwrap()
}

pub(crate) fn set_hash(node: &Organizer, hash: SetHash) -> String {
    let found = statistics(node, hash).hash.unwrap();
    varve_types::BlockHash::from_bytes(found).to_string()
}

pub(crate) fn tip(node: &Organizer) -> (u64, String) {
    let (height, hash) = node.snapshot().tip;
    (u64::from(height.to_u32()), hash.to_string())
}

/// Height, hash and branch length of every tip, sorted.
pub(crate) fn chain_tips(node: &Organizer) -> Vec<(u64, String, u64)> {
    let number = |number: u32| u64::from(number);
    let tips = node.chain_tips().into_iter();
    let mut tips: Vec<_> = tips
        .map(|tip| (number(tip.height.to_u32()), tip.hash.to_string(), number(tip.branch_length)))
        .collect();
    tips.sort();
    tips
}

/// The same, out of an answer of `getchaintips`.
pub(crate) fn expected_tips(tips: &serde_json::Value) -> Vec<(u64, String, u64)> {
    let tip = |tip: &serde_json::Value| {
        let number = |field: &str| tip[field].as_u64().unwrap();
        (number("height"), tip["hash"].as_str().unwrap().to_owned(), number("branchlen"))
    };
    let mut tips: Vec<_> = tips.as_array().unwrap().iter().map(tip).collect();
    tips.sort();
    tips
}

/// Whether the long form of a test is asked for: how many lives it may have.
pub(crate) fn lives() -> Option<usize> {
    std::env::var("VARVE_SEQUENCES").ok()?.parse().ok()
}

/// Whether the long form of a test is asked for.
pub(crate) fn is_long() -> bool {
    lives().is_some()
}

/// Numbers that look random and are always the same.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}
