//! A sync: what is taken from a source, how much of it is checked, and how it ends.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use varve_node::{Options, Report, ScriptsChecked, Shortfall, SyncOptions, Verify};
use varve_types::{BlockHash, Height, Network};

use crate::answer::Tip;
use crate::error::Error;
use crate::node::Node;
use crate::source::Source;
use crate::system;

/// Up to where scripts are taken on trust when they are checked at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AssumeValid {
    /// With peers up to the block that is built in for the network; with other sources nowhere.
    #[default]
    BuiltIn,
    /// Nowhere: all scripts are checked.
    Off,
    /// Up to this block, once it is on the best chain and two weeks old.
    Block(BlockHash),
}

/// How much of a block a sync checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    /// Spends alone, or scripts as well.
    pub verify: Verify,
    /// Scripts up to this block are taken on trust.
    pub assume_valid: Option<BlockHash>,
}

impl Checks {
    /// What a sync from this source checks. By default the scripts of peers, who are strangers, but
    /// for those that Core's developers vouch for; and spends alone with files and interfaces,
    /// which are those of the user's own node. Scripts of BSV networks cannot be checked.
    pub fn of(
        source: &Source,
        network: Network,
        verify: Option<Verify>,
        assume_valid: AssumeValid,
    ) -> Result<Self, Error> {
        let is_strange = source.traits().is_of_strangers && !network.is_bsv();
        let by_default = if is_strange { Verify::Scripts } else { Verify::Spends };
        let verify = verify.unwrap_or(by_default);
        if verify == Verify::Scripts && network.is_bsv() {
            return Err(varve_node::Error::NoScripts { network }.into());
        }
        let assume_valid = match assume_valid {
            AssumeValid::Block(block) => Some(block),
            AssumeValid::BuiltIn if is_strange => {
                Options::new(network, [0; 32]).params.assume_valid
            }
            AssumeValid::BuiltIn | AssumeValid::Off => None,
        };
        let assume_valid = assume_valid.filter(|_| verify == Verify::Scripts);
        Ok(Self { verify, assume_valid })
    }
}

/// Ends a sync from another thread or a signal handler.
#[derive(Clone, Debug, Default)]
pub struct StopHandle(Arc<AtomicBool>);

impl StopHandle {
    /// Asks the sync to end. It commits what it has reached, makes that durable and returns.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked to end.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The flag itself, as libraries for signals want it.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

/// What happens during a sync, in the order in which it happens.
pub type SyncEvent<'a> = Report<'a>;

type OnEvent<'e> = Box<dyn FnMut(SyncEvent<'_>) + Send + 'e>;

/// A sync that has not started: [`Node::sync`], [`Node::follow`].
#[must_use = "a sync does nothing before it is run or started"]
pub struct SyncJob<'e> {
    node: Node,
    source: Source,
    verify: Option<Verify>,
    assume_valid: AssumeValid,
    stop_height: Option<Height>,
    mempool: bool,
    stop: StopHandle,
    on_event: Option<OnEvent<'e>>,
}

/// What a sync came to.
#[derive(Clone, Debug)]
pub struct Synced {
    /// The tip at the end.
    pub tip: Tip,
    /// The height of the best header.
    pub headers: Height,
    /// Blocks that were connected, counting those that were disconnected again.
    pub connected: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Blocks and headers that were refused.
    pub refused: u64,
    /// Blocks whose scripts were to be checked and cannot be, because blocks are pruned.
    pub unchecked: u64,
    /// Up to where scripts were checked.
    pub scripts: ScriptsChecked,
    /// Whether it was stopped before its end.
    pub stopped: bool,
    /// What is missing at the end, if the chain should go further.
    pub shortfall: Option<Shortfall>,
}

impl<'e> SyncJob<'e> {
    pub(crate) fn new(node: Node, source: Source) -> Self {
        let (verify, assume_valid, stop_height) = (None, AssumeValid::default(), None);
        let (mempool, stop, on_event) = (true, StopHandle::default(), None);
        Self { node, source, verify, assume_valid, stop_height, mempool, stop, on_event }
    }

    /// How much is checked. By default scripts are checked with peers, and spends alone with files
    /// and interfaces, whose node has checked the scripts.
    pub fn verify(mut self, verify: Verify) -> Self {
        self.verify = Some(verify);
        self
    }

    /// Up to where scripts are taken on trust.
    pub fn assume_valid(mut self, assume_valid: AssumeValid) -> Self {
        self.assume_valid = assume_valid;
        self
    }

    /// The chain does not go above this height.
    pub fn stop_height(mut self, height: Height) -> Self {
        self.stop_height = Some(height);
        self
    }

    /// Whether unconfirmed transactions are taken too, once everything is there. By default a sync
    /// that follows does; others never do.
    pub fn mempool(mut self, mempool: bool) -> Self {
        self.mempool = mempool;
        self
    }

    /// Calls `on_event` in the syncing thread with everything that happens.
    pub fn on_event<'n>(self, on_event: impl FnMut(SyncEvent<'_>) + Send + 'n) -> SyncJob<'n> {
        let Self { node, source, verify, assume_valid, stop_height, mempool, stop, .. } = self;
        let on_event: Option<OnEvent<'n>> = Some(Box::new(on_event));
        SyncJob { node, source, verify, assume_valid, stop_height, mempool, stop, on_event }
    }

    /// What ends this sync from another thread.
    #[must_use]
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// The height that the chain does not go above, if there is one.
    #[must_use]
    pub const fn height_limit(&self) -> Option<Height> {
        self.stop_height
    }

    /// Syncs in this thread. What was committed stays, also when an error ends it.
    pub fn run(self) -> Result<Synced, Error> {
        let Self { node, source, verify, assume_valid, stop_height, mempool, stop, mut on_event } =
            self;
        let Checks { verify, assume_valid } =
            Checks::of(&source, node.network(), verify, assume_valid)?;
        let (clock, traits, follow) = (system::stopwatch(), source.traits(), source.is_following());
        let options = SyncOptions {
            verify,
            assume_valid,
            stop_height,
            follow,
            all_branches: traits.all_branches,
            mempool,
            stop: stop.flag(),
            clock: Arc::clone(&clock),
            now: Arc::new(|| u32::try_from(system::unix_seconds()).unwrap_or(u32::MAX)),
        };
        let mut source = source.into_inner(node.network(), &clock)?;
        let (mut connected, mut bytes, mut refused, mut unchecked) = (0, 0, 0, 0);
        let handle = node.clone();
        node.with_writer(|writers| {
            writers.sync(source.as_mut(), &options, &mut |event| {
                match event {
                    Report::Connected { bytes: more, .. } => {
                        connected += 1;
                        bytes += more;
                    }
                    Report::Refused { .. } => refused += 1,
                    Report::ScriptsPruned { blocks } => unchecked = blocks,
                    Report::Committed { height, hash } => handle.announce(Tip { height, hash }),
                    Report::MempoolChanged { .. } => handle.mempool_changed(),
                    _ => {}
                }
                if let Some(on_event) = &mut on_event {
                    on_event(event);
                }
            })?;
            Ok(Synced {
                tip: writers.snapshot().tip.into(),
                headers: writers.header_height(),
                connected,
                bytes,
                refused,
                unchecked,
                scripts: writers.scripts(),
                stopped: stop.is_stopped(),
                shortfall: writers.shortfall(stop_height),
            })
        })
    }
}

impl SyncJob<'static> {
    /// Syncs in a thread of its own.
    pub fn start(self) -> Result<SyncThread, Error> {
        let stop = self.stop_handle();
        let builder = thread::Builder::new().name("varve-sync".to_owned());
        let thread = builder.spawn(|| self.run()).map_err(Error::Thread)?;
        Ok(SyncThread { stop, thread: Some(thread) })
    }
}

impl fmt::Debug for SyncJob<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("SyncJob");
        debug.field("node", &self.node).field("source", &self.source).finish_non_exhaustive()
    }
}

/// A sync in its own thread: [`SyncJob::start`]. When this is dropped, the sync is stopped and
/// waited for.
#[derive(Debug)]
pub struct SyncThread {
    stop: StopHandle,
    thread: Option<JoinHandle<Result<Synced, Error>>>,
}

impl SyncThread {
    /// Asks the sync to end, and does not wait for that.
    pub fn stop(&self) {
        self.stop.stop();
    }

    /// What ends it from another thread.
    #[must_use]
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the end of the sync. A panic of its thread goes on here.
    pub fn wait(mut self) -> Result<Synced, Error> {
        let thread = self.thread.take().expect("it is taken here and when dropped alone");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for SyncThread {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.stop.stop();
            // Whoever drops it does not ask how it ended.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_of_strangers_are_checked_and_those_of_the_own_node_on_request() {
        let other = BlockHash::from_bytes([0x1f; 32]);
        let peers = || Source::peers(["127.0.0.1".parse().unwrap()]);
        let own = [Source::folder("blocks"), Source::rpc("127.0.0.1:8332".parse().unwrap())];
        for network in Network::ALL {
            let built_in = Options::new(network, [0; 32]).params.assume_valid;
            let checks = |source: &Source, verify, assume_valid| {
                let checks = Checks::of(source, network, verify, assume_valid).ok()?;
                Some((checks.verify, checks.assume_valid))
            };
            let (spends, scripts) = (Some((Verify::Spends, None)), Some((Verify::Scripts, None)));
            for own in &own {
                assert_eq!(checks(own, None, AssumeValid::BuiltIn), spends, "{network}");
                let all = checks(own, Some(Verify::Scripts), AssumeValid::BuiltIn);
                assert_eq!(all, scripts.filter(|_| !network.is_bsv()), "{network}");
            }
            let found = checks(&peers(), None, AssumeValid::BuiltIn);
            if network.is_bsv() {
                assert_eq!(found, spends, "{network}");
                continue;
            }
            assert_eq!(built_in.is_some(), network != Network::Regtest, "{network}");
            assert_eq!(found, Some((Verify::Scripts, built_in)), "{network}");
            assert_eq!(checks(&peers(), None, AssumeValid::Off), scripts);
            let found = checks(&peers(), None, AssumeValid::Block(other));
            assert_eq!(found, Some((Verify::Scripts, Some(other))));
            assert_eq!(checks(&peers(), Some(Verify::Spends), AssumeValid::BuiltIn), spends);
        }
    }
}
