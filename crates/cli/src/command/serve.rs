//! `varve serve`: syncs a node, follows its source, and serves it.
//!
//! 1. Take the ports, so that one in use is found before a folder is made.
//! 2. Open the folder, or make one, with all indexes unless the options say otherwise.
//! 3. Listen on the local socket, start the servers, print where they are.
//! 4. Sync and follow in a thread of its own (`follower`).
//! 5. On a signal: stop the servers, stop the sync, which commits, and close the folder. What has
//!    not ended after [`GRACE`] is ended by the process's end; what was committed is safe.

mod follower;

use std::fs;
use std::path::Path;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::json as object;
use varve::{Index, IndexSet, Node, Source};
use varve_server::electrum::{ElectrumOptions, TlsIdentity};
use varve_server::http::HttpOptions;
use varve_server::json;
use varve_server::local::LocalServer;
use varve_server::log::{self, Level};
use varve_server::serve::{Listeners, ServeOptions, Server, Servers};
use varve_server::service::Service;

pub(crate) use self::follower::{Follower, MakeSource};
use crate::args::{ChainOptions, Global, LogFormat, LogLevel, LogOptions, Serve};
use crate::command::sync;
use crate::data_dir::DataDir;
use crate::held;
use crate::output::print_json;
use crate::signals::stop_on_signals;

/// How long an ordered end may take.
const GRACE: Duration = Duration::from_secs(15);
/// How long requests and commands may still run after the signal.
const REQUESTS: Duration = Duration::from_secs(5);
/// Characters of a token at least.
const TOKEN_MIN: usize = 16;
/// How often the process looks at signals and at the sync.
const TICK: Duration = Duration::from_millis(100);

/// Runs the command.
pub(crate) fn run(args: &Serve, global: &Global) -> Result<()> {
    start_log(&args.log);
    let options = serve_options(args)?;
    check_source(&args.chain, global)?;
    let listeners = Listeners::bind([
        (Server::Http, args.http.address()),
        (Server::Electrum, args.electrum.address()),
        (Server::ElectrumTls, args.electrum_tls.address()),
        (Server::ElectrumWs, args.electrum_ws.address()),
    ])?;
    let stop = Arc::new(AtomicBool::new(false));
    stop_on_signals(&stop)?;
    let node = open_node(&args.chain, global)?;
    let running = Running::start(&node, listeners, options, args.chain.clone())?;
    running.print(&node, global.json)?;
    while !stop.load(Ordering::Relaxed) {
        running.follower.tick();
        thread::sleep(TICK);
    }
    running.stop();
    Ok(())
}

/// Everything that runs for a served node.
pub(crate) struct Running {
    pub(crate) follower: Follower,
    addresses: Vec<(Server, std::net::SocketAddr)>,
    local: Option<LocalServer>,
    servers: Servers,
}

impl Running {
    /// Starts the local socket, the servers and the sync.
    pub(crate) fn start(
        node: &Node,
        listeners: Listeners,
        options: ServeOptions,
        chain: ChainOptions,
    ) -> Result<Self> {
        let is_read = AtomicBool::new(false);
        let source_options = chain.clone();
        let make_source = move || make_source(&source_options, &is_read);
        Self::start_from(node, listeners, options, (chain, Box::new(make_source)))
    }

    /// The same with another maker of sources.
    pub(crate) fn start_from(
        node: &Node,
        listeners: Listeners,
        options: ServeOptions,
        (chain, make_source): (ChainOptions, Box<MakeSource>),
    ) -> Result<Self> {
        let service = Service::new(node.clone());
        let addresses =
            Server::ALL.into_iter().filter_map(|s| Some((s, listeners.address(s)?))).collect();
        let servers = Servers::start(&service, listeners, options)?;
        let follower = Follower::start(&service, node, chain, make_source)?;
        let local = match held::listen(node, Some(follower.with_writers())) {
            Ok(local) => Some(local),
            Err(error) => {
                log::event(
                    Level::Warn,
                    "no_local_socket",
                    &object!({ "reason": error.to_string() }),
                );
                None
            }
        };
        Ok(Self { follower, addresses, local, servers })
    }

    /// Where a server listens.
    pub(crate) fn address(&self, server: Server) -> Option<std::net::SocketAddr> {
        self.addresses.iter().find(|(found, _)| *found == server).map(|(_, address)| *address)
    }

    /// Prints where the servers are.
    fn print(&self, node: &Node, as_json: bool) -> Result<()> {
        if as_json {
            let [http, electrum, electrum_tls, electrum_ws] =
                Server::ALL.map(|server| self.address(server).map(|at| at.to_string()));
            print_json(&json::Serve {
                network: node.network(),
                datadir: &node.path().to_string_lossy(),
                pid: process::id(),
                http,
                electrum,
                electrum_tls,
                electrum_ws,
            })?;
        } else {
            println!("serving {} from {}", node.network(), node.path().display());
            for (server, address) in &self.addresses {
                let name = server.option();
                match server {
                    Server::Http => println!("  {name:<13} http://{address}"),
                    Server::Electrum => println!("  {name:<13} {address}:t"),
                    Server::ElectrumTls => println!("  {name:<13} {address}:s"),
                    Server::ElectrumWs => println!("  {name:<13} ws://{address}"),
                }
            }
        }
        Ok(())
    }

    /// Ends everything in order, and the process if that takes too long.
    pub(crate) fn stop(self) {
        log::event(Level::Info, "stopping", &object!({}));
        let watchdog = thread::Builder::new().name("varve-watchdog".to_owned());
        // Without a thread for it the end may take longer.
        let _ = watchdog.spawn(|| {
            thread::sleep(GRACE);
            log::event(Level::Warn, "stopped_late", &object!({ "seconds": GRACE.as_secs() }));
            process::exit(0);
        });
        let Self { follower, local, servers, .. } = self;
        follower.stop();
        servers.stop(REQUESTS);
        if let Some(local) = local {
            local.stop(REQUESTS);
        }
        follower.join();
        log::event(Level::Info, "stopped", &object!({}));
    }
}

/// The source of a try. Standard input can be read once.
fn make_source(options: &ChainOptions, is_read: &AtomicBool) -> Option<Source> {
    let is_input = options.from.as_deref().is_some_and(|from| from == Path::new("-"));
    if is_input && is_read.swap(true, Ordering::Relaxed) {
        return None;
    }
    sync::source(options)
}

fn start_log(options: &LogOptions) {
    let format = match options.format {
        LogFormat::Text => log::Format::Text,
        LogFormat::Json => log::Format::Json,
    };
    let level = match options.level {
        LogLevel::Error => Level::Error,
        LogLevel::Warn => Level::Warn,
        LogLevel::Info => Level::Info,
        LogLevel::Debug => Level::Debug,
    };
    log::start(format, level);
}

/// Finds mistakes in the options of the source before a folder is made. Nodes may be away for now;
/// files must be there.
fn check_source(options: &ChainOptions, global: &Global) -> Result<()> {
    let Some(source) = sync::source(options) else {
        return Ok(());
    };
    sync::checks(&source, options, global.network)?;
    let is_input = options.from.as_deref().is_some_and(|from| from == Path::new("-"));
    if options.from.is_some() && !is_input {
        source.connect(global.network)?;
    }
    Ok(())
}

fn serve_options(args: &Serve) -> Result<ServeOptions> {
    let tls = match (&args.cert, &args.key) {
        (Some(cert), Some(key)) => Some(TlsIdentity::load(cert, key)?),
        (None, None) => None,
        _ => bail!("TLS needs both --cert FILE and --key FILE"),
    };
    if tls.is_none() && args.electrum_tls.address().is_some() {
        bail!("--electrum-tls needs --cert FILE and --key FILE");
    }
    let http = HttpOptions {
        limits: args.limits.http(),
        reference_server: args.reference_server.clone(),
        token: args.token_file.as_deref().map(read_token).transpose()?,
    };
    let electrum = ElectrumOptions {
        limits: args.limits.electrum(),
        banner: args.banner.clone(),
        ..ElectrumOptions::default()
    };
    Ok(ServeOptions { http, electrum, tls })
}

/// The token in a file, without the end of its line.
fn read_token(path: &Path) -> Result<String> {
    let shown = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    let token = text.trim();
    if token.len() < TOKEN_MIN || token.contains(char::is_whitespace) {
        bail!("{shown} must have one word of {TOKEN_MIN} characters or more, which nobody guesses");
    }
    Ok(token.to_owned())
}

/// Opens the folder, or makes one, with all indexes unless the options say otherwise.
fn open_node(options: &ChainOptions, global: &Global) -> Result<Node> {
    let indexes = options.index.unwrap_or_else(all_indexes);
    let mut builder = DataDir::new(global).builder().indexes(indexes);
    if let Some(prune) = options.prune {
        builder = builder.prune(prune);
    }
    if let Some(rule) = options.pushdata_rule {
        builder = builder.pushdata_rule(rule);
    }
    builder.open_or_create().context("cannot serve the folder")
}

/// Every optional index.
pub(crate) fn all_indexes() -> IndexSet {
    Index::ALL.into_iter().fold(IndexSet::default(), IndexSet::with)
}
