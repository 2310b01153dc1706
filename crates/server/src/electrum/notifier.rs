//! Reports what has changed to those who subscribed.
//!
//! One task wakes when the node has moved or something is unchecked, and makes a pass in a thread
//! where it may block: what has changed ([`touched`]), its state now, a line to each client that
//! knows another state ([`super::switchboard`]). A pass and the pause behind it take equally long,
//! so that a burst of changes costs half a core at most; a slow pass skips states in between.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::{Shared, touched};
use crate::service::{Shutdown, stopping};

/// The shortest time between two passes.
const PAUSE: Duration = Duration::from_millis(10);

/// Makes passes until the server is shut down.
pub(super) async fn run(shared: Arc<Shared>, mut shutdown: Shutdown) {
    let mut changes = shared.service.changes();
    loop {
        let begun = Instant::now();
        let pass = spawn_blocking({
            let shared = Arc::clone(&shared);
            move || pass(&shared)
        });
        if pass.await.is_err() {
            return;
        }
        let pause = sleep(begun.elapsed().max(PAUSE));
        tokio::select! {
            () = pause => {}
            () = stopping(&mut shutdown) => return,
        }
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = shared.switchboard.has_unchecked() => {}
            () = stopping(&mut shutdown) => return,
        }
    }
}

fn pass(shared: &Shared) {
    let (now, before) = shared.switchboard.begin_pass(&shared.service.node);
    let mut subjects = shared.switchboard.take_unchecked();
    if let Some(before) = before {
        subjects.extend(touched::between(&before, &now.snapshot, &shared.switchboard));
    }
    for subject in subjects {
        match subject.state(&now.snapshot, &shared.statuses) {
            Ok(state) => shared.switchboard.report(subject, &state, &now, &shared.limits),
            // A disk that failed, or a history that outgrew the limit: looked at again when the
            // node moves on.
            Err(_) => shared.switchboard.retry(subject),
        }
    }
}
