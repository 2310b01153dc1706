//! One of our nodes that follows a source in a thread of its own until it is told to stop.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use varve_node::mempool::FeeRate;
use varve_node::source::Outlook;
use varve_node::source::transactions::{Gateway, OwnTx, TxName};
use varve_node::{
    Error, Event, Giver, NodeReader, NodeSnapshot, Organizer, Report, Source, SourceError,
    SyncOptions,
};
use varve_types::{BlockHash, Network, Txid};

use crate::rig::{disk, options, sync_options};

/// How long a tip may take: a node that comes back may have been called a moment before.
const LIMIT: Duration = Duration::from_secs(30);

pub(crate) struct Follower {
    pub(crate) name: String,
    reader: NodeReader,
    stop: Arc<AtomicBool>,
    told: Arc<Mutex<Vec<String>>>,
    thread: JoinHandle<(Organizer, Error)>,
}

impl Follower {
    /// Begins to follow, with a folder of its own under `folder`.
    pub(crate) fn start(name: &str, folder: &Path, source: Box<dyn Source>) -> Self {
        Self::start_with(name, folder, source, false)
    }

    /// The same, with a mempool or without.
    pub(crate) fn start_with(
        name: &str,
        folder: &Path,
        source: Box<dyn Source>,
        mempool: bool,
    ) -> Self {
        let path = folder.join(name);
        std::fs::create_dir_all(&path).unwrap();
        let mut ours = Organizer::open(disk(&path), options(Network::Regtest)).unwrap();
        let (reader, stop) = (ours.reader(), Arc::new(AtomicBool::new(false)));
        let told = Arc::new(Mutex::new(Vec::new()));
        let (mut source, tell) = (Stoppable { source, stop: stop.clone() }, told.clone());
        let thread = thread::spawn(move || {
            let options = SyncOptions { follow: true, mempool, ..sync_options() };
            let error = ours.sync(&mut source, &options, &mut |report| match report {
                Report::Headers { .. }
                | Report::Stored { .. }
                | Report::Connected { .. }
                | Report::MempoolChanged { .. } => {}
                other => tell.lock().unwrap().push(format!("{other:?}")),
            });
            (ours, error.expect_err("one that follows is stopped by an error"))
        });
        Self { name: name.to_owned(), reader, stop, told, thread }
    }

    /// The node at this tip, when it has come there. Its set is there too.
    pub(crate) fn reaches(&self, tip: &str) -> Arc<NodeSnapshot> {
        let (begin, tip) = (Instant::now(), tip.parse::<BlockHash>().unwrap());
        loop {
            let snapshot = self.reader.snapshot();
            if snapshot.tip.1 == tip {
                assert_eq!(snapshot.utxo.tip(), Some(snapshot.tip));
                return snapshot;
            }
            let in_time = begin.elapsed() < LIMIT && !self.thread.is_finished();
            assert!(
                in_time,
                "{} is at {:?}, not at {tip}: {:#?}",
                self.name,
                snapshot.tip,
                self.told()
            );
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// What snapshots are taken from.
    pub(crate) const fn reader(&self) -> &NodeReader {
        &self.reader
    }

    /// The tip as it is.
    pub(crate) fn tip(&self) -> String {
        self.reader.snapshot().tip.1.to_string()
    }

    /// What it has told meanwhile.
    pub(crate) fn told(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }

    /// Ends it, and gives the node that followed.
    pub(crate) fn stop(self) -> Organizer {
        self.stop.store(true, Ordering::Relaxed);
        let (ours, error) = self.thread.join().unwrap();
        assert!(error.to_string().contains(STOPPED), "{}: {error}", self.name);
        ours
    }
}

const STOPPED: &str = "the test is over";

/// A source that fails when it is told to.
struct Stoppable {
    source: Box<dyn Source>,
    stop: Arc<AtomicBool>,
}

impl Source for Stoppable {
    fn seek(&mut self, locator: &[BlockHash]) -> Result<(), SourceError> {
        self.source.seek(locator)
    }

    fn more(&mut self, giver: Giver, locator: &[BlockHash]) -> Result<(), SourceError> {
        self.source.more(giver, locator)
    }

    fn stray(&mut self, giver: Giver) {
        self.source.stray(giver);
    }

    fn want(&mut self, giver: Giver, hashes: &[BlockHash]) -> Result<(), SourceError> {
        self.source.want(giver, hashes)
    }

    fn room(&self, giver: Giver) -> Option<usize> {
        self.source.room(giver)
    }

    fn is_trusted(&self) -> bool {
        self.source.is_trusted()
    }

    fn outlook(&self) -> Outlook {
        self.source.outlook()
    }

    fn next_event(&mut self, timeout: Duration) -> Result<Event, SourceError> {
        if self.stop.load(Ordering::Relaxed) {
            let (address, reason) = (String::new(), STOPPED.to_owned());
            return Err(SourceError::Rpc { address, reason });
        }
        self.source.next_event(timeout)
    }

    fn blame(&mut self, giver: Giver, reason: &str) {
        self.source.blame(giver, reason);
    }

    fn relay(&mut self, rate: Option<FeeRate>) {
        self.source.relay(rate);
    }

    fn want_txs(&mut self, giver: Giver, names: &[TxName]) {
        self.source.want_txs(giver, names);
    }

    fn fetch_txs(&mut self, txids: &[Txid]) {
        self.source.fetch_txs(txids);
    }

    fn list_txs(&mut self) {
        self.source.list_txs();
    }

    fn announce(&mut self, tx: OwnTx) {
        self.source.announce(tx);
    }

    fn withdraw(&mut self, txids: &[Txid]) {
        self.source.withdraw(txids);
    }

    fn gateway(&self) -> Option<Arc<dyn Gateway>> {
        self.source.gateway()
    }
}
