//! Who wants to know what: the subscriptions of all clients.
//!
//! # No notification is missed or doubled
//!
//! Every snapshot that answers a client or drives the notifier is taken here, under the lock, and
//! gets the next number, so numbers and snapshots grow together. A subscription remembers the state
//! that its client knows, and the number of the snapshot that state is of.
//!
//! 1. A client subscribes: the state at the snapshot of its request goes into its outbox, and only
//!    then is the subscription entered. So a notification never comes before the answer.
//! 2. The notifier takes a snapshot, which becomes the *present* one, finds what has changed since
//!    the one before ([`super::touched`]), computes the new states, and reports each to the
//!    subscriptions that know another state, unless theirs is of a later snapshot.
//! 3. A subscription whose state is of another moment than the present one was entered too late for
//!    the pass that saw the change, or too early for the next. It is put on the list of the
//!    *unchecked*, which the next pass looks at whatever has changed, and that pass is asked for.
//!
//! A state that is reported is one that the client does not know, and after the last pass every
//! client knows the state at the last snapshot.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use varve::{Node, Snapshot};

use super::client::{Client, Effect};
use super::fault::Fault;
use super::limits::Limits;
use super::outbox::Outbox;
use super::subject::{Naming, Print, State, Subject, Topic};
use super::touched::Moment;

/// What lines of a notification differ in: how the client names the subject, and its address.
type LineKey = (Naming, Option<Arc<str>>);

/// The subscriptions.
#[derive(Debug)]
pub(super) struct Switchboard {
    board: Mutex<Board>,
    /// There is something unchecked.
    unchecked: Notify,
    /// Subscriptions of all clients.
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct Board {
    /// The number of the last snapshot.
    number: u64,
    /// The moment of the notifier's last pass.
    present: Option<Moment>,
    lines: HashMap<Subject, Vec<Subscription>>,
    unchecked: HashSet<Subject>,
}

/// What one client knows of one subject.
#[derive(Debug)]
struct Subscription {
    outbox: Arc<Outbox>,
    naming: Naming,
    /// The address that the client gave for a script.
    address: Option<Arc<str>>,
    /// The state that the client knows.
    known: Print,
    /// The number of the snapshot that it is of.
    number: u64,
}

/// A snapshot and its number.
#[derive(Clone, Debug)]
pub(super) struct Numbered {
    pub(super) snapshot: Snapshot,
    number: u64,
}

impl Switchboard {
    pub(super) fn new() -> Self {
        Self { board: Mutex::default(), unchecked: Notify::new(), count: AtomicUsize::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a snapshot to answer from.
    pub(super) fn snapshot(&self, node: &Node) -> Numbered {
        self.lock().snapshot(node)
    }

    /// Takes the snapshot of a pass. Returns it, and the moment of the pass before.
    pub(super) fn begin_pass(&self, node: &Node) -> (Numbered, Option<Moment>) {
        let mut board = self.lock();
        let now = board.snapshot(node);
        let before = board.present.replace(Moment::of(&now.snapshot));
        (now, before)
    }

    /// Which of these are subscribed to.
    pub(super) fn watched(&self, subjects: impl Iterator<Item = Subject>) -> Vec<Subject> {
        let board = self.lock();
        subjects.filter(|subject| board.lines.contains_key(subject)).collect()
    }

    /// Everything that is subscribed to.
    pub(super) fn all(&self) -> Vec<Subject> {
        self.lock().lines.keys().copied().collect()
    }

    /// Whether nobody is subscribed to anything but the tip.
    pub(super) fn is_tip_alone(&self) -> bool {
        self.lock().lines.keys().all(|subject| *subject == Subject::Tip)
    }

    /// What the next pass must look at in any case.
    pub(super) fn take_unchecked(&self) -> HashSet<Subject> {
        std::mem::take(&mut self.lock().unchecked)
    }

    /// Looks at a subject again in the next pass, which is not asked for.
    pub(super) fn retry(&self, subject: Subject) {
        let mut board = self.lock();
        if board.lines.contains_key(&subject) {
            board.unchecked.insert(subject);
        }
    }

    /// Reports a state at the snapshot of a pass to all who know another.
    pub(super) fn report(&self, subject: Subject, state: &State, now: &Numbered, limits: &Limits) {
        let mut board = self.lock();
        let board = &mut *board;
        let Some(line) = board.lines.get_mut(&subject) else { return };
        let print = state.print();
        // Clients that name a script alike get the same line.
        let mut built: HashMap<LineKey, Arc<[u8]>> = HashMap::new();
        let (mut is_early, before) = (false, line.len());
        line.retain_mut(|entry| {
            if entry.number > now.number {
                is_early = true;
                return true;
            }
            entry.number = now.number;
            if entry.known == print {
                return true;
            }
            entry.known = print;
            let topic = Topic { subject, naming: entry.naming };
            let address = entry.address.as_ref();
            let bytes = built
                .entry((entry.naming, address.cloned()))
                .or_insert_with(|| topic.notification(address, state).into());
            entry.outbox.notify(Arc::clone(bytes), limits.backlog)
        });
        self.count.fetch_sub(before - line.len(), Ordering::Relaxed);
        if line.is_empty() {
            board.lines.remove(&subject);
        }
        if is_early {
            board.unchecked.insert(subject);
            self.unchecked.notify_one();
        }
    }

    /// Waits until something is unchecked.
    pub(super) async fn has_unchecked(&self) {
        self.unchecked.notified().await;
    }

    /// Checks that there is room for one subscription more.
    pub(super) fn check_room(&self, limits: &Limits) -> Result<(), Fault> {
        if self.count.load(Ordering::Relaxed) < limits.all_subscriptions {
            return Ok(());
        }
        Err(Fault::bad("too many subscriptions: the server has no room for more"))
    }

    /// Carries out what the answers of a request have promised. They are in the outbox already.
    pub(super) fn apply(&self, effects: Vec<Effect>, outbox: &Arc<Outbox>, at: &Numbered) {
        if effects.is_empty() {
            return;
        }
        let moment = Moment::of(&at.snapshot);
        let mut board = self.lock();
        let is_present = board.present.as_ref() == Some(&moment);
        for effect in effects {
            match effect {
                Effect::Unsubscribe { topic } => self.remove(&mut board, &topic, outbox),
                Effect::Subscribe { topic, address, print } => {
                    self.remove(&mut board, &topic, outbox);
                    let (outbox, number) = (Arc::clone(outbox), at.number);
                    let Topic { subject, naming } = topic;
                    let entry = Subscription { outbox, naming, address, known: print, number };
                    board.lines.entry(subject).or_default().push(entry);
                    self.count.fetch_add(1, Ordering::Relaxed);
                    if !is_present {
                        board.unchecked.insert(subject);
                        self.unchecked.notify_one();
                    }
                }
            }
        }
    }

    /// Ends all subscriptions of a client that has left.
    pub(super) fn leave(&self, client: &Client, outbox: &Arc<Outbox>) {
        let mut board = self.lock();
        for topic in client.topics() {
            self.remove(&mut board, topic, outbox);
        }
    }

    fn remove(&self, board: &mut Board, topic: &Topic, outbox: &Arc<Outbox>) {
        let Some(line) = board.lines.get_mut(&topic.subject) else { return };
        let is_it = |entry: &Subscription| {
            entry.naming == topic.naming && Arc::ptr_eq(&entry.outbox, outbox)
        };
        let Some(place) = line.iter().position(is_it) else { return };
        line.swap_remove(place);
        self.count.fetch_sub(1, Ordering::Relaxed);
        if line.is_empty() {
            board.lines.remove(&topic.subject);
            board.unchecked.remove(&topic.subject);
        }
    }
}

impl Board {
    fn snapshot(&mut self, node: &Node) -> Numbered {
        self.number += 1;
        Numbered { snapshot: node.snapshot(), number: self.number }
    }
}
