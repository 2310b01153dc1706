//! `varve sync`: takes blocks from a source, checks them, and stores what follows from them.

use std::path::Path;

use anyhow::{Result, bail};
use varve::{Checks, Network, Node, Source, SyncEvent, SyncJob, Synced, Verify};
use varve_server::json;
use varve_server::local::LocalServer;

use crate::args::{ChainOptions, Global, Sync};
use crate::data_dir::DataDir;
use crate::held;
use crate::output::print_json;
use crate::progress::{Lazy, Progress};
use crate::signals::stop_on_signals;

/// Runs the command.
pub(crate) fn run(args: &Sync, global: &Global) -> Result<()> {
    let (network, options) = (global.network, &args.chain);
    let source =
        source(options).map(|source| if args.follow { source.following() } else { source });
    let Some(source) = source else { bail!("name a source: --from, --peer or --rpc") };
    let verify = options.verify.map(Verify::from);
    // Mistakes are found before a folder is made.
    let checks = checks(&source, options, network)?;
    let source = source.connect(network)?;
    let node = open_node(options, global)?;
    let _local = listen(&node);
    let job = job(&node, source, options);
    stop_on_signals(&job.stop_handle().flag())?;
    eprintln!("{}", checks_line(checks, options, network));
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

/// Lets other commands ask this process. Without that the sync goes on all the same.
fn listen(node: &Node) -> Option<LocalServer> {
    match held::listen(node, None) {
        Ok(local) => Some(local),
        Err(error) => {
            eprintln!("warning: {error}");
            None
        }
    }
}

/// What a sync with these options checks. Mistakes are refused.
pub(crate) fn checks(source: &Source, options: &ChainOptions, network: Network) -> Result<Checks> {
    let verify = options.verify.map(Verify::from);
    let checks = Checks::of(source, network, verify, options.assume_valid.unwrap_or_default())?;
    if checks.verify == Verify::Spends && options.assume_valid.is_some() {
        bail!(
            "--assume-valid says which scripts to check, but none are; pass --verify scripts too"
        );
    }
    Ok(checks)
}

fn open_node(options: &ChainOptions, global: &Global) -> Result<Node> {
    let mut builder = DataDir::new(global).builder();
    if let Some(prune) = options.prune {
        builder = builder.prune(prune);
    }
    if let Some(indexes) = options.index {
        builder = builder.indexes(indexes);
    }
    if let Some(rule) = options.pushdata_rule {
        builder = builder.pushdata_rule(rule);
    }
    Ok(builder.open_or_create()?)
}

/// The source that the options name, if they name one.
pub(crate) fn source(options: &ChainOptions) -> Option<Source> {
    match (&options.from, &options.rpc, options.peers.as_slice()) {
        (Some(path), ..) if path == Path::new("-") => Some(Source::reader(std::io::stdin())),
        (Some(path), ..) => Some(Source::folder(path)),
        (None, Some(url), _) => Some(Source::rpc(url.clone())),
        (None, None, []) => None,
        (None, None, peers) => Some(Source::peers(peers.iter().cloned())),
    }
}

/// A sync from the source under these options.
pub(crate) fn job(node: &Node, source: Source, options: &ChainOptions) -> SyncJob<'static> {
    let mut job = node.sync(source).assume_valid(options.assume_valid.unwrap_or_default());
    job = job.mempool(!options.no_mempool);
    if let Some(verify) = options.verify {
        job = job.verify(verify.into());
    }
    if let Some(height) = options.stop_height {
        job = job.stop_height(height);
    }
    job
}

/// What is checked, and why no more than that.
pub(crate) fn checks_line(checks: Checks, options: &ChainOptions, network: Network) -> String {
    match (checks.verify, checks.assume_valid) {
        (Verify::Spends, _) if network.is_bsv() => {
            format!("spends are checked; scripts of {network} cannot be")
        }
        (Verify::Spends, _) if options.verify.is_none() => {
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
    let mut merging = Lazy::counting("merge", "MiB");
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
        SyncEvent::Merging { done, all } => merging.set(done >> 20, all >> 20),
        SyncEvent::MempoolOpened { kept } => {
            progress.say(&format!("the mempool is open; {kept} transactions from before"));
        }
        SyncEvent::MempoolClosed { reason } => {
            progress.say(&format!("warning: there is no mempool for now: {reason}"));
        }
        SyncEvent::Committed { height, hash } if follow && height >= headers => {
            progress.say(&format!("at height {height}, block {hash}"));
        }
        SyncEvent::Committed { .. }
        | SyncEvent::Stored { .. }
        | SyncEvent::MempoolChanged { .. } => {}
    });
    let done = job.run()?;
    drop((indexing, checking, merging));
    progress.set_length(done.connected);
    progress.finish(done.bytes);
    Ok(done)
}
