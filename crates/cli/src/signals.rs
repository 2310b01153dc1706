//! Ctrl-C, `kill` and a closed terminal.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// The first signal sets `stop`, and the work ends in order; a second one ends the process at once.
pub(crate) fn stop_on_signals(stop: &Arc<AtomicBool>) -> Result<()> {
    let mut signals = vec![(SIGINT, 130), (SIGTERM, 143)];
    if !ignores_hangup() {
        signals.push((SIGHUP, 129));
    }
    for (signal, exit_code) in signals {
        flag::register_conditional_shutdown(signal, exit_code, Arc::clone(stop))
            .and_then(|_| flag::register(signal, Arc::clone(stop)))
            .context("cannot listen to signals")?;
    }
    Ok(())
}

/// Whether the process was started, as by `nohup`, to outlive its terminal.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & (1 << (SIGHUP - 1)) != 0)
}
