//! The sync of a served node, in its own thread: tried again when it fails, paused when a command
//! needs the writers, and reported to the servers.
//!
//! ```text
//!            ┌───────────────── failed: wait, longer each time ────────────────┐
//!            ▼                                                                 │
//!  idle ─► sync from the source ─┬─ asked to pause ─► idle until the command is done ─► idle
//!                                ├─ the source ended, or the stop height ─► idle for good
//!                                └─ asked to stop ─► the thread ends
//! ```
//!
//! While the thread is idle nobody has the writers, so a command may take them.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;
use varve::{Node, Source, StopHandle, SyncEvent, Synced, Warning};
use varve_server::log::{self, Level};
use varve_server::service::Service;
use varve_server::sync_state::SyncPhase;

use crate::args::ChainOptions;
use crate::command::sync;
use crate::sentence;

/// The wait after the first failure; each further one doubles it.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// How often the progress of a long sync is logged.
const LOG_EVERY: Duration = Duration::from_secs(5);
/// A source that is silent for this long, and was not reported lost, has nothing new.
const SILENCE: Duration = Duration::from_secs(2);
/// Blocks that the tip may be behind the best header when it follows: the one that just came.
const LAG: u32 = 1;

/// What makes sources, again for every try; `None` when there is none any more.
pub(crate) type MakeSource = dyn Fn() -> Option<Source> + Send + Sync;

/// The syncing thread.
pub(crate) struct Follower {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    service: Arc<Service>,
    node: Node,
    options: ChainOptions,
    make_source: Box<MakeSource>,
    turn: Mutex<Turn>,
    changed: Condvar,
}

/// Who has the writers, and who wants them.
#[derive(Default)]
struct Turn {
    /// Ends the sync that runs.
    job: Option<StopHandle>,
    /// Commands that want the writers or have them.
    commands: usize,
    is_stopped: bool,
    /// When the sync that runs began.
    began: Option<Instant>,
    /// Something came from the source.
    has_heard: bool,
    /// The source was lost and has not come back.
    is_lost: bool,
}

impl Follower {
    /// Starts the thread. Without a source it brings the indexes up to date, and is idle then.
    pub(crate) fn start(
        service: &Arc<Service>,
        node: &Node,
        options: ChainOptions,
        make_source: Box<MakeSource>,
    ) -> Result<Self> {
        let shared = Arc::new(Shared {
            service: Arc::clone(service),
            node: node.clone(),
            options,
            make_source,
            turn: Mutex::default(),
            changed: Condvar::new(),
        });
        let thread = {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name("varve-sync".to_owned()).spawn(move || shared.run())?
        };
        Ok(Self { shared, thread: Some(thread) })
    }

    /// What runs a command that needs the writers.
    pub(crate) fn with_writers(&self) -> Arc<crate::held::WithWriters> {
        let shared = Arc::clone(&self.shared);
        Arc::new(move |act: &mut dyn FnMut()| shared.with_writers(act))
    }

    /// Brings the phase up to date; called a few times a second.
    pub(crate) fn tick(&self) {
        self.shared.tick();
    }

    /// Asks the sync to end. It commits what it has reached.
    pub(crate) fn stop(&self) {
        let mut turn = self.shared.lock();
        turn.is_stopped = true;
        turn.job.iter().for_each(StopHandle::stop);
        drop(turn);
        self.shared.changed.notify_all();
    }

    /// Waits until it has ended.
    pub(crate) fn join(mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // A panic has ended the process.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, turn: MutexGuard<'a, Turn>, most: Duration) -> MutexGuard<'a, Turn> {
        self.changed.wait_timeout(turn, most).unwrap_or_else(PoisonError::into_inner).0
    }

    fn phase(&self, phase: SyncPhase) {
        self.service.sync_state().set(phase);
    }

    fn run(&self) {
        let mut wait = FIRST_WAIT;
        while self.is_free() {
            let Some(source) = (self.make_source)() else {
                self.idle_without_source();
                continue;
            };
            match self.sync(source) {
                Ok(done) if self.is_interrupted() => {
                    let fields = json!({ "height": done.tip.height.to_u32() });
                    log::event(Level::Info, "sync_paused", &fields);
                    wait = FIRST_WAIT;
                }
                Ok(done) => self.end(&done),
                Err(error) => {
                    self.fail(&error, wait);
                    self.rest(wait);
                    wait = LONGEST_WAIT.min(wait * 2);
                }
            }
        }
    }

    /// Waits for commands that have the writers. Whether to go on after that.
    fn is_free(&self) -> bool {
        let mut turn = self.lock();
        while turn.commands > 0 && !turn.is_stopped {
            self.phase(SyncPhase::Paused);
            turn = self.wait(turn, LONGEST_WAIT);
        }
        !turn.is_stopped
    }

    fn is_interrupted(&self) -> bool {
        let turn = self.lock();
        turn.commands > 0 || turn.is_stopped
    }

    /// Waits for a while, or until a command or the end comes.
    fn rest(&self, time: Duration) {
        let end = Instant::now() + time;
        let mut turn = self.lock();
        while !turn.is_stopped && turn.commands == 0 && Instant::now() < end {
            turn = self.wait(turn, end.saturating_duration_since(Instant::now()));
        }
    }

    /// Builds the indexes of a folder that has no source, and waits.
    fn idle_without_source(&self) {
        let stop = StopHandle::default();
        if !self.begin(stop) {
            return;
        }
        let built = self.node.build_indexes(&mut |_, _, _| {});
        self.finish();
        match built {
            Ok(()) => self.phase(SyncPhase::NoSource),
            Err(error) => self.fail(&error.into(), Duration::ZERO),
        }
        self.rest(Duration::from_secs(u64::from(u32::MAX)));
    }

    /// Takes the writers for a sync, unless a command has come first.
    fn begin(&self, job: StopHandle) -> bool {
        let mut turn = self.lock();
        if turn.commands > 0 || turn.is_stopped {
            return false;
        }
        turn.job = Some(job);
        (turn.began, turn.has_heard, turn.is_lost) = (Some(Instant::now()), false, false);
        true
    }

    /// Gives the writers back.
    fn finish(&self) {
        let mut turn = self.lock();
        turn.job = None;
        turn.began = None;
        drop(turn);
        self.changed.notify_all();
    }

    fn sync(&self, source: Source) -> Result<Synced> {
        let checks = sync::checks(&source, &self.options, self.node.network())?;
        let source = source.following();
        let fields = json!({
            "source": format!("{source:?}"),
            "checks": sync::checks_line(checks, &self.options, self.node.network()),
        });
        let job = sync::job(&self.node, source, &self.options);
        let mut shown = Shown::new(self);
        let job = job.on_event(|event| shown.event(event));
        if !self.begin(job.stop_handle()) {
            job.stop_handle().stop();
        }
        log::event(Level::Info, "sync", &fields);
        let done = job.run();
        self.finish();
        Ok(done?)
    }

    fn end(&self, done: &Synced) {
        let shortfall = done.shortfall.as_ref().map(ToString::to_string);
        let fields = json!({
            "height": done.tip.height.to_u32(),
            "block": done.tip.hash.to_string(),
            "shortfall": shortfall,
        });
        log::event(Level::Info, "sync_ended", &fields);
        self.phase(SyncPhase::Ended);
        self.rest(Duration::from_secs(u64::from(u32::MAX)));
    }

    fn fail(&self, error: &anyhow::Error, wait: Duration) {
        let sentence = sentence(error);
        let fields = json!({ "reason": sentence, "retry_in_seconds": wait.as_secs() });
        log::event(Level::Error, "sync_failed", &fields);
        self.service.sync_state().fail(sentence);
    }

    /// Runs a command that needs the writers, when the sync has given them back.
    fn with_writers(&self, act: &mut dyn FnMut()) {
        let mut turn = self.lock();
        turn.commands += 1;
        turn.job.iter().for_each(StopHandle::stop);
        self.changed.notify_all();
        while turn.job.is_some() {
            turn = self.wait(turn, LONGEST_WAIT);
        }
        drop(turn);
        act();
        self.lock().commands -= 1;
        self.changed.notify_all();
    }

    /// Something came from the source.
    fn heard(&self) {
        let mut turn = self.lock();
        turn.has_heard = true;
        turn.is_lost = false;
    }

    fn lost(&self) {
        self.lock().is_lost = true;
    }

    fn tick(&self) {
        let turn = self.lock();
        let Some(began) = turn.began.filter(|_| turn.commands == 0) else { return };
        let is_quiet = began.elapsed() >= SILENCE && !turn.is_lost;
        let (has_heard, snapshot) = (turn.has_heard, self.node.snapshot());
        drop(turn);
        let behind =
            snapshot.header_height().to_u32().saturating_sub(snapshot.tip().height.to_u32());
        self.phase(match behind {
            0..=LAG if has_heard || is_quiet => SyncPhase::Following,
            _ if has_heard => SyncPhase::Syncing,
            _ => SyncPhase::Starting,
        });
    }
}

/// Logs what a sync does.
struct Shown<'a> {
    shared: &'a Shared,
    headers: u32,
    blocks: u64,
    bytes: u64,
    logged: Instant,
}

impl<'a> Shown<'a> {
    fn new(shared: &'a Shared) -> Self {
        let headers = shared.node.snapshot().header_height().to_u32();
        Self { shared, headers, blocks: 0, bytes: 0, logged: Instant::now() }
    }

    fn event(&mut self, event: SyncEvent<'_>) {
        match event {
            SyncEvent::Headers { height } => {
                self.headers = height.to_u32();
                self.shared.heard();
            }
            SyncEvent::Connected { height, bytes } => {
                self.blocks += 1;
                self.bytes += bytes;
                self.progress(height.to_u32());
            }
            SyncEvent::Committed { height, hash } => {
                self.shared.heard();
                if height.to_u32() >= self.headers {
                    let fields = json!({ "height": height.to_u32(), "block": hash.to_string() });
                    log::event(Level::Info, "tip", &fields);
                }
            }
            SyncEvent::Stored { .. } => self.shared.heard(),
            SyncEvent::Refused { hash, reason } => {
                let fields = json!({ "block": hash.to_string(), "reason": reason });
                log::event(Level::Warn, "block_refused", &fields);
            }
            SyncEvent::Missing { hash } => {
                log::event(Level::Warn, "block_missing", &json!({ "block": hash.to_string() }));
            }
            SyncEvent::Warning(warning) => {
                if matches!(warning, Warning::Lost { .. }) {
                    self.shared.lost();
                }
                log::event(Level::Warn, "source", &json!({ "reason": warning.to_string() }));
            }
            SyncEvent::ScriptsPruned { blocks } => {
                log::event(Level::Warn, "scripts_pruned", &json!({ "blocks": blocks }));
            }
            SyncEvent::MempoolOpened { kept } => {
                log::event(Level::Info, "mempool_opened", &json!({ "kept": kept }));
            }
            SyncEvent::MempoolClosed { reason } => {
                let fields = json!({ "reason": reason.to_string() });
                log::event(Level::Warn, "mempool_closed", &fields);
            }
            SyncEvent::MempoolChanged { .. } => {}
            SyncEvent::Indexed { index, done, all } => {
                self.long("index", &json!({ "index": index.name(), "done": done, "all": all }))
            }
            SyncEvent::Merging { done, all } => {
                self.long("merge", &json!({ "done": done, "all": all }));
            }
            SyncEvent::ScriptsChecked { done, all } => {
                self.long("scripts", &json!({ "done": done, "all": all }));
            }
        }
    }

    fn progress(&mut self, height: u32) {
        let fields = json!({
            "height": height, "headers": self.headers, "blocks": self.blocks, "bytes": self.bytes,
        });
        self.long("progress", &fields);
    }

    /// Logs a step of long work now and then.
    fn long(&mut self, name: &str, fields: &serde_json::Value) {
        if self.logged.elapsed() >= LOG_EVERY {
            self.logged = Instant::now();
            log::event(Level::Info, name, fields);
        }
    }
}
