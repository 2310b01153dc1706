//! What is reported of a node that has outages, and when it is given up.

use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::source::queue::{Inbox, queue};

/// A link whose clock the test sets, in milliseconds.
struct Rig {
    link: Link,
    clock: Arc<AtomicU64>,
    messages: Inbox<Message>,
}

impl Rig {
    fn new(follow: bool) -> Self {
        let (sender, messages) = queue(100);
        let clock = Arc::new(AtomicU64::new(0));
        let now = Arc::clone(&clock);
        let now = move || Duration::from_millis(now.load(Ordering::Relaxed));
        let to = ("node:1".to_owned(), Network::Regtest);
        Self { link: Link::new(to.0, to.1, Arc::new(now), follow, sender), clock, messages }
    }

    /// The node is in trouble at this time. Whether it is waited for, and what was reported.
    fn trouble(&self, at: u64, trouble: &Trouble) -> (bool, Vec<String>) {
        self.clock.store(at, Ordering::Relaxed);
        let is_waited_for = self.link.trouble(trouble).is_ok();
        let messages = iter::from_fn(|| self.messages.recv_timeout(Duration::ZERO).ok());
        let warnings = messages.map(|message| match message {
            Message::Warning(warning) => warning.to_string(),
            _ => panic!("only warnings"),
        });
        (is_waited_for, warnings.collect())
    }

    fn gone(&self, at: u64) -> Vec<String> {
        self.trouble(at, &Trouble::Unreachable("refused".to_owned())).1
    }

    fn busy(&self, at: u64) -> Vec<String> {
        self.trouble(at, &Trouble::Busy("warming up".to_owned())).1
    }
}

/// An outage that begins right after the last warning, with the same reason, is reported when a
/// second has passed since that.
#[test]
fn every_outage_that_lasts_is_reported_once() {
    let rig = Rig::new(true);
    rig.link.well();
    assert_eq!(rig.gone(0), ["node:1: refused"]);
    assert_eq!(rig.gone(900), [""; 0]);
    rig.link.well();
    assert_eq!(rig.gone(950), [""; 0], "too soon after the last");
    assert_eq!(rig.gone(1000), ["node:1: refused"]);
    for at in (1000..100_000).step_by(100) {
        assert_eq!(rig.gone(at), [""; 0], "once, at {at}");
    }
    rig.link.well();
    assert_eq!(rig.busy(100_100), ["node:1: warming up"]);
    rig.link.well();
    assert_eq!(rig.busy(100_200), [""; 0]);
    assert_eq!(rig.busy(110_000), [""; 0]);
    assert_eq!(rig.busy(110_100), ["node:1: warming up"]);
    // Then it dies, which is another matter.
    assert_eq!(rig.gone(111_100), ["node:1: refused"]);
    assert_eq!(rig.gone(112_000), [""; 0]);
    let stalls = Trouble::Unreachable("stalls".to_owned());
    assert_eq!(rig.trouble(113_000, &stalls).1, [""; 0]);
    assert_eq!(rig.trouble(121_100, &stalls).1, ["node:1: stalls"], "another reason, later");
}

/// Minutes of warming up say nothing about how long the node has been gone.
#[test]
fn a_busy_node_is_not_gone() {
    let rig = Rig::new(false);
    let gone = Trouble::Unreachable("reset".to_owned());
    rig.busy(0);
    rig.busy(300_000);
    assert!(rig.trouble(300_100, &gone).0, "one connection that was reset");
    assert!(rig.trouble(360_000, &gone).0);
    rig.busy(360_050);
    assert!(rig.trouble(360_200, &gone).0, "it has answered meanwhile");
    assert!(rig.trouble(420_100, &gone).0);
    assert!(!rig.trouble(420_200, &gone).0, "gone for a minute");
    let never = Rig::new(false);
    assert!(!never.trouble(0, &gone).0, "it was never reached");
}
