//! The whole node against peers of every kind: branches of any length, headers without blocks,
//! headers that come in drops, announcements without end, blocks that come slowly.
//!
//! Where nothing else is said, the clock of the source runs ten times as fast as ours, so its
//! pauses and limits are short.

mod branches;
mod floods;
mod follow;
mod low_work;
mod sentences;
mod slow;
mod withheld;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use varve_node::source::p2p::{P2p, Settings};
use varve_node::{Error, Options, Organizer, Report, SyncOptions, Verify};
use varve_types::{Network, blk};

use crate::miner::{Mined, young_options};
use crate::rig::{disk, sync_options};
use crate::script_peer::ScriptPeer;

/// A sync that takes longer than this is stopped, so that a test fails and does not hang.
const LIMIT: Duration = Duration::from_secs(120);

/// Two chains that share genesis alone.
static SHORT: LazyLock<Vec<Mined>> = LazyLock::new(|| Mined::genesis().plain_chain(1, 2500));
static LONG: LazyLock<Vec<Mined>> = LazyLock::new(|| Mined::genesis().plain_chain(2, 4500));

/// What a sync said, one line for each report that a user would see.
pub(crate) struct Outcome {
    pub(crate) said: Vec<String>,
    pub(crate) error: Option<Error>,
    pub(crate) took: Duration,
}

impl Outcome {
    fn count(&self, text: &str) -> usize {
        self.said.iter().filter(|line| line.contains(text)).count()
    }
}

fn open(folder: &Path) -> Organizer {
    open_with(folder, young_options())
}

fn open_with(folder: &Path, options: Options) -> Organizer {
    Organizer::open(disk(folder), options).unwrap()
}

/// A source whose clock runs `speed` times as fast as ours.
fn source(speed: u32, network: Network, peers: &[&ScriptPeer]) -> P2p {
    let begin = Instant::now();
    P2p::new(Settings {
        network,
        peers: peers.iter().map(|peer| peer.address.clone()).collect(),
        clock: Arc::new(move || begin.elapsed() * speed),
        epoch: 0,
        nonce: 5,
        relay: false,
    })
}

/// Takes what the peers have until there is no more.
fn sync(node: &mut Organizer, peers: &[&ScriptPeer]) -> Outcome {
    sync_from(source(10, Network::Regtest, peers), node)
}

fn sync_from(mut source: P2p, node: &mut Organizer) -> Outcome {
    let begin = Instant::now();
    let (stop, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (stopped, ended) = (stop.clone(), over.clone());
    thread::spawn(move || {
        while begin.elapsed() < LIMIT && !ended.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(50));
        }
        stopped.store(true, Ordering::Relaxed);
    });
    let all_branches = false;
    let options =
        SyncOptions { verify: Verify::Spends, all_branches, stop: stop.clone(), ..sync_options() };
    let mut said = Vec::new();
    let ended = node.sync(&mut source, &options, &mut |report| match report {
        Report::Refused { .. } | Report::Missing { .. } => said.push(format!("{report:?}")),
        Report::Warning(warning) => said.push(format!("warning: {warning}")),
        _ => {}
    });
    let took = begin.elapsed();
    assert!(!stop.load(Ordering::Relaxed), "no end after {took:?}: {said:#?}");
    over.store(true, Ordering::Relaxed);
    Outcome { said, error: ended.err(), took }
}

/// Blocks from a file, as a start.
fn fill(node: &mut Organizer, chain: &[Mined]) {
    let mut file = Vec::new();
    let magic = Network::Regtest.disk_magic();
    chain.iter().for_each(|block| blk::write_record(magic, &block.bytes, &mut file));
    let limit = varve_node::source::pipe::WAITING_LIMIT;
    let cursor = std::io::Cursor::new(file);
    let mut pipe = varve_node::source::pipe::Pipe::new(cursor, Network::Regtest, limit);
    let options = SyncOptions { verify: Verify::Spends, ..sync_options() };
    node.sync(&mut pipe, &options, &mut |_| ()).unwrap();
}

#[track_caller]
fn assert_tip(node: &Organizer, tip: &Mined, outcome: &Outcome) {
    let (height, hash) = node.snapshot().tip;
    assert_eq!((height.to_u32(), hash), (tip.height, tip.hash), "{:#?}", outcome.said);
}
