//! `varve sync`: takes blocks from a source, checks them, and stores what follows from them.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use varve_node::source::Clock;
use varve_node::source::directory::Directory;
use varve_node::source::p2p::{P2p, Settings};
use varve_node::source::pipe::{Pipe, WAITING_LIMIT};
use varve_node::source::rpc::{self, Rpc};
use varve_node::{
    Options as NodeOptions, Organizer, Report, SettingsChange, Source, SyncOptions, Verify,
};
use varve_types::{BlockHash, Height, Network};

use crate::args::address::RpcAddress;
use crate::args::{AssumeValid, Global, Sync};
use crate::command::show::scripts_json;
use crate::data_dir::{DataDir, random};
use crate::progress::{Lazy, Progress};

/// Runs the command.
pub(crate) fn run(args: &Sync, global: &Global) -> Result<()> {
    let network = global.network;
    let options = sync_options(args, network);
    // Before a folder is made.
    if options.verify == Verify::Scripts && network.is_bsv() {
        bail!(varve_node::Error::NoScripts { network });
    }
    if options.verify == Verify::Spends && args.assume_valid.is_some() {
        bail!(
            "--assume-valid says which scripts to check, but none are; pass --verify scripts too"
        );
    }
    let mut source = source(args, global.network, &options.clock)?;
    let settings = SettingsChange { prune: args.prune, indexes: args.index };
    let mut node = DataDir::new(global)?.create_node(settings)?;
    stop_on_signals(&options.stop)?;
    eprintln!("{}", checks_line(&options, args, network));
    let done = sync(&mut node, source.as_mut(), &options)?;
    let (height, hash) = node.snapshot().tip;
    if options.stop.load(Ordering::Relaxed) && !options.follow {
        bail!("stopped at height {height}; run the same command again to go on");
    }
    let shortfall = node.shortfall(options.stop_height).map(|short| short.to_string());
    let shortfall = shortfall.or_else(|| done.unchecked(args));
    if global.json {
        let answer = json!({
            "network": global.network.name(),
            "height": height.to_u32(),
            "bestblock": hash.to_string(),
            "headers": node.header_height().to_u32(),
            "connected": done.connected,
            "bytes": done.bytes,
            "refused": done.refused,
            "scripts": scripts_json(node.scripts()),
            "complete": shortfall.is_none(),
        });
        println!("{answer}");
    } else {
        println!("{}", at((height, hash)));
    }
    // One that follows ends when somebody wants it to, wherever it is.
    shortfall.filter(|_| !options.follow).map_or(Ok(()), |sentence| bail!(sentence))
}

/// What is checked, and why no more than that.
fn checks_line(options: &SyncOptions, args: &Sync, network: Network) -> String {
    match (options.verify, options.assume_valid) {
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
fn stop_on_signals(stop: &Arc<AtomicBool>) -> Result<()> {
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

/// Whether whoever started the process, such as `nohup`, has it go on when its terminal closes.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & (1 << (SIGHUP - 1)) != 0)
}

/// A tip, in words.
fn at((height, hash): (Height, BlockHash)) -> String {
    format!("at height {height}, block {hash}")
}

/// What a sync came to.
#[derive(Default)]
pub(crate) struct Done {
    /// Blocks joined to the set, counting those that were disconnected again.
    pub(crate) connected: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Blocks that were reported as refused.
    refused: u64,
    /// Blocks whose scripts were to be checked in place and cannot be, because blocks are pruned.
    pruned: u64,
}

impl Done {
    /// That scripts were not checked, in one sentence, when the user has asked for it. By default
    /// scripts are checked of new blocks, and the rest is a warning.
    fn unchecked(&self, args: &Sync) -> Option<String> {
        let is_asked = args.verify.map(Verify::from) == Some(Verify::Scripts);
        (is_asked && self.pruned > 0).then(|| {
            format!(
                "the scripts of {} blocks were not checked and cannot be, because blocks are \
                 pruned; sync into another --datadir to check them",
                self.pruned
            )
        })
    }
}

/// Syncs under a progress bar. A sync that follows has no end, so it prints where it begins and
/// every new tip.
pub(crate) fn sync(
    node: &mut Organizer,
    source: &mut dyn Source,
    options: &SyncOptions,
) -> Result<Done> {
    let mut progress = Progress::start("sync", 0);
    let mut indexing = Lazy::new("index");
    let mut checking = Lazy::new("scripts");
    let mut done = Done::default();
    let mut headers = node.header_height();
    if options.follow {
        progress.say(&at(node.snapshot().tip));
    }
    node.sync(source, options, &mut |report| match report {
        Report::Headers { height } => {
            headers = height;
            let end = options.stop_height.map_or(height, |stop| stop.min(height));
            progress.set_length(u64::from(end.to_u32()));
        }
        Report::Connected { height, bytes } => {
            done.connected += 1;
            done.bytes += bytes;
            progress.set(u64::from(height.to_u32()), done.bytes);
        }
        Report::Refused { hash, reason } => {
            done.refused += 1;
            progress.say(&format!("block {hash} is refused: {reason}"));
        }
        Report::Missing { hash } => {
            progress.say(&format!("nobody has block {hash}; sync from another source too"));
        }
        Report::Warning(warning) => progress.say(&format!("warning: {warning}")),
        Report::ScriptsChecked { done, all } => checking.set(done, all),
        Report::ScriptsPruned { blocks } => {
            done.pruned = blocks;
            progress.say(&format!(
                "warning: the scripts of {blocks} blocks are not checked, because blocks are pruned"
            ));
        }
        Report::Indexed { done, all, .. } => indexing.set(done, all),
        Report::Committed { height, hash } if options.follow && height >= headers => {
            progress.say(&at((height, hash)));
        }
        Report::Committed { .. } | Report::Stored { .. } => {}
    })?;
    indexing.finish();
    checking.finish();
    progress.set_length(done.connected);
    progress.finish(done.bytes);
    Ok(done)
}

fn sync_options(args: &Sync, network: Network) -> SyncOptions {
    // Other nodes are strangers; files and interfaces are those of one's own node.
    let strangers = !args.peers.is_empty() && !network.is_bsv();
    let by_default = if strangers { Verify::Scripts } else { Verify::Spends };
    let verify = args.verify.map_or(by_default, Verify::from);
    let assume_valid = match args.assume_valid {
        Some(AssumeValid::Block(block)) => Some(block),
        Some(AssumeValid::Off) => None,
        None if strangers => NodeOptions::new(network, [0; 32]).params.assume_valid,
        None => None,
    };
    SyncOptions {
        verify,
        assume_valid: assume_valid.filter(|_| verify == Verify::Scripts),
        stop_height: args.stop_height.map(Height::new),
        follow: args.follow,
        all_branches: args.from.is_some(),
        ..plain_options()
    }
}

/// A sync of everything that a source has, without scripts.
pub(crate) fn plain_options() -> SyncOptions {
    let start = Instant::now();
    let now = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
    };
    SyncOptions {
        verify: Verify::Spends,
        assume_valid: None,
        stop_height: None,
        follow: false,
        all_branches: true,
        stop: Arc::default(),
        clock: Arc::new(move || start.elapsed()),
        now: Arc::new(now),
    }
}

fn source(args: &Sync, network: Network, clock: &Clock) -> Result<Box<dyn Source>> {
    if let Some(path) = &args.from {
        if path == Path::new("-") {
            return Ok(Box::new(Pipe::new(std::io::stdin(), network, WAITING_LIMIT)));
        }
        // A named pipe or a device cannot be read twice.
        if path.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
            let file =
                File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
            return Ok(Box::new(Pipe::new(file, network, WAITING_LIMIT)));
        }
        return Ok(Box::new(Directory::open(path, network, args.follow)?));
    }
    if let Some(RpcAddress { address, login }) = args.rpc.clone() {
        let (follow, clock) = (args.follow, Arc::clone(clock));
        let settings = rpc::Settings { address, network, login, follow, clock };
        return Ok(Box::new(Rpc::connect(settings)?));
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Box::new(P2p::new(Settings {
        network,
        peers: args.peers.clone(),
        clock: Arc::clone(clock),
        epoch: since.as_secs(),
        nonce: u64::from_le_bytes(random()?),
    })))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Args, Command};

    fn options(network: Network, args: &[&str]) -> SyncOptions {
        let args = Args::try_parse_from([&["varve", "sync"], args].concat()).unwrap();
        let Command::Sync(sync) = args.command else { panic!("not a sync") };
        sync_options(&sync, network)
    }

    /// Peers are strangers: scripts are checked, but for those that Core's developers vouch for.
    #[test]
    fn what_is_checked_by_default() {
        let other = "1f".repeat(32);
        for network in Network::ALL {
            let built_in = NodeOptions::new(network, [0; 32]).params.assume_valid;
            let found = |args: &[&str]| {
                let options = options(network, args);
                (options.verify, options.assume_valid)
            };
            for own in [["--from", "blocks"], ["--rpc", "http://127.0.0.1:8332"]] {
                assert_eq!(found(&own), (Verify::Spends, None), "{network}");
                let all = [&own[..], &["--verify", "scripts"]].concat();
                assert_eq!(found(&all), (Verify::Scripts, None), "{network}");
            }
            let peer = ["--peer", "127.0.0.1:8333"];
            if network.is_bsv() {
                assert_eq!(found(&peer), (Verify::Spends, None), "{network}");
                continue;
            }
            assert_eq!(found(&peer), (Verify::Scripts, built_in), "{network}");
            let has_one = network != Network::Regtest;
            assert_eq!(built_in.is_some(), has_one, "{network}");
            let with = |more: &[&str]| found(&[&peer[..], more].concat());
            assert_eq!(with(&["--assume-valid", "0"]), (Verify::Scripts, None));
            assert_eq!(with(&["--assume-valid", &other]), (Verify::Scripts, other.parse().ok()));
            assert_eq!(with(&["--verify", "spends"]), (Verify::Spends, None));
        }
    }
}
