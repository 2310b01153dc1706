//! `varve sync`: takes blocks from a source, checks them, and stores what follows from them.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use varve::{Checks, Network, Node, Source, StopHandle, SyncEvent, SyncJob, Synced, Verify};
use varve_server::json;

use crate::args::{Global, Sync};
use crate::data_dir::DataDir;
use crate::output::print_json;
use crate::progress::{Lazy, Progress};

/// Runs the command.
pub(crate) fn run(args: &Sync, global: &Global) -> Result<()> {
    let network = global.network;
    let (source, verify) = (source(args), args.verify.map(Verify::from));
    // Mistakes are found before a folder is made.
    let checks = Checks::of(&source, network, verify, args.assume_valid.unwrap_or_default())?;
    if checks.verify == Verify::Spends && args.assume_valid.is_some() {
        bail!(
            "--assume-valid says which scripts to check, but none are; pass --verify scripts too"
        );
    }
    let source = source.connect(network)?;
    let node = open_node(args, global)?;
    let job = job(&node, source, args);
    stop_on_signals(&job.stop_handle())?;
    eprintln!("{}", checks_line(checks, args, network));
    let done = show(job, &node, args.follow)?;
    if done.stopped && !args.follow {
        bail!("stopped at height {}; run the same command again to resume", done.tip.height);
    }
    let shortfall = done.shortfall.as_ref().map(ToString::to_string);
    let shortfall = shortfall.or_else(|| unchecked(&done, verify));
    if global.json {
        print_json(&json::Sync::new(network, &done, shortfall.is_none()))?;
    } else {
        println!("at {}", done.tip);
    }
    // A sync that follows ends when it is stopped, wherever it is.
    shortfall.filter(|_| !args.follow).map_or(Ok(()), |sentence| bail!(sentence))
}

fn open_node(args: &Sync, global: &Global) -> Result<Node> {
    let mut builder = DataDir::new(global).builder();
    if let Some(prune) = args.prune {
        builder = builder.prune(prune);
    }
    if let Some(indexes) = args.index {
        builder = builder.indexes(indexes);
    }
    Ok(builder.open_or_create()?)
}

fn source(args: &Sync) -> Source {
    let source = match (&args.from, &args.rpc) {
        (Some(path), _) if path == Path::new("-") => Source::reader(std::io::stdin()),
        (Some(path), _) => Source::folder(path),
        (None, Some(url)) => Source::rpc(url.clone()),
        (None, None) => Source::peers(args.peers.iter().cloned()),
    };
    if args.follow { source.following() } else { source }
}

fn job(node: &Node, source: Source, args: &Sync) -> SyncJob<'static> {
    let mut job = node.sync(source).assume_valid(args.assume_valid.unwrap_or_default());
    if let Some(verify) = args.verify {
        job = job.verify(verify.into());
    }
    if let Some(height) = args.stop_height {
        job = job.stop_height(height);
    }
    job
}

/// What is checked, and why no more than that.
fn checks_line(checks: Checks, args: &Sync, network: Network) -> String {
    match (checks.verify, checks.assume_valid) {
        (Verify::Spends, _) if network.is_bsv() => {
            format!("spends are checked; scripts of {network} cannot be")
        }
        (Verify::Spends, _) if args.verify.is_none() => {
            "spends are checked, scripts are not: your own node has checked them; --verify scripts \
             checks them here too"
                .to_owned()
        }
        (Verify::Spends, _) => "spends are checked, scripts are not".to_owned(),
        (Verify::Scripts, None) => "spends and all scripts are checked".to_owned(),
        (Verify::Scripts, Some(block)) => format!(
            "spends and scripts are checked; scripts up to block {block} are assumed to be valid, \
             --assume-valid 0 checks them too"
        ),
    }
}

/// Ctrl-C, a closed terminal and `kill` end the sync in order; a second signal ends it at once.
fn stop_on_signals(stop: &StopHandle) -> Result<()> {
    let mut signals = vec![(SIGINT, 130), (SIGTERM, 143)];
    if !ignores_hangup() {
        signals.push((SIGHUP, 129));
    }
    for (signal, exit_code) in signals {
        flag::register_conditional_shutdown(signal, exit_code, stop.flag())
            .and_then(|_| flag::register(signal, stop.flag()))
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

/// That scripts were not checked, in one sentence, when the user has asked for it. By default
/// scripts are checked of new blocks, and the rest is a warning.
fn unchecked(done: &Synced, asked: Option<Verify>) -> Option<String> {
    (asked == Some(Verify::Scripts) && done.unchecked > 0).then(|| {
        format!(
            "the scripts of {} blocks were not checked and cannot be, because blocks are pruned; \
             sync into another --datadir to check them",
            done.unchecked
        )
    })
}

/// Syncs under a progress bar. A sync that follows has no end, so it prints where it begins and
/// every new tip.
pub(crate) fn show(job: SyncJob<'_>, node: &Node, follow: bool) -> Result<Synced> {
    let mut progress = Progress::start("sync", 0);
    let mut indexing = Lazy::new("index");
    let mut checking = Lazy::new("scripts");
    let (mut headers, mut bytes_done) = (node.snapshot().header_height(), 0);
    if follow {
        progress.say(&format!("at {}", node.snapshot().tip()));
    }
    let stop_height = job.height_limit();
    let job = job.on_event(|event| match event {
        SyncEvent::Headers { height } => {
            headers = height;
            let end = stop_height.map_or(height, |stop| stop.min(height));
            progress.set_length(u64::from(end.to_u32()));
        }
        SyncEvent::Connected { height, bytes } => {
            bytes_done += bytes;
            progress.set(u64::from(height.to_u32()), bytes_done);
        }
        SyncEvent::Refused { hash, reason } => {
            progress.say(&format!("block {hash} is refused: {reason}"));
        }
        SyncEvent::Missing { hash } => {
            progress.say(&format!("nobody has block {hash}; sync from another source too"));
        }
        SyncEvent::Warning(warning) => progress.say(&format!("warning: {warning}")),
        SyncEvent::ScriptsChecked { done, all } => checking.set(done, all),
        SyncEvent::ScriptsPruned { blocks } => progress.say(&format!(
            "warning: the scripts of {blocks} blocks are not checked, because blocks are pruned"
        )),
        SyncEvent::Indexed { done, all, .. } => indexing.set(done, all),
        SyncEvent::Committed { height, hash } if follow && height >= headers => {
            progress.say(&format!("at height {height}, block {hash}"));
        }
        SyncEvent::Committed { .. } | SyncEvent::Stored { .. } => {}
    });
    let done = job.run()?;
    drop((indexing, checking));
    progress.set_length(done.connected);
    progress.finish(done.bytes);
    Ok(done)
}
