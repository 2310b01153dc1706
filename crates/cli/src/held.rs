//! A command on a folder that another process holds is run by that process.
//!
//! `varve serve` and `varve sync` listen on a socket in their folder (`varve_server::local`). Any
//! other command that finds somebody there passes its arguments on and copies the answer. The
//! holder parses them, gives the command its open node ([`Global::held`](crate::args::Global)) and
//! runs it as if it had been typed there, in a thread that prints to the socket.
//!
//! | a command needs | beside `varve serve` | beside `varve sync` |
//! |---|---|---|
//! | snapshots | runs | runs |
//! | the writers | runs while the sync pauses | is refused |
//! | the folder alone | is refused | is refused |

use std::env;
use std::io;
use std::process;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Parser as _;
use varve::{Error, Node};
use varve_server::local::{self, LocalServer, Reply, Request};

use crate::args::{Args, Needs};
use crate::data_dir::DataDir;
use crate::output::{self, Answer, Report, Sink};
use crate::{command, sentence};

/// How long a command waits for a folder that somebody has locked: another question is about to
/// end, or a server that is starting will listen soon.
const PATIENCE: Duration = Duration::from_secs(3);
const INTERVAL: Duration = Duration::from_millis(20);

/// Runs a command, here or where the folder is held, and returns its exit code.
pub(crate) fn run(args: &Args) -> Result<u8> {
    let begin = Instant::now();
    let alone = args.command.needs() == Needs::Alone;
    loop {
        if !alone && let Some(code) = ask_holder(args)? {
            output::finish()?;
            return Ok(code);
        }
        match command::run(args) {
            Err(error) if !alone && is_in_use(&error) && begin.elapsed() < PATIENCE => {
                thread::sleep(INTERVAL);
            }
            done => return done.and_then(|()| output::finish()).map(|()| 0),
        }
    }
}

fn is_in_use(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Error>().is_some_and(Error::is_in_use)
}

/// Asks the process that holds the folder; `None` when nobody listens there.
fn ask_holder(args: &Args) -> Result<Option<u8>> {
    let builder = DataDir::new(&args.global).builder();
    let folder = builder.path()?;
    if !local::exists(&folder) {
        return Ok(None);
    }
    builder.check_network()?;
    let arguments: Result<Vec<String>, _> =
        env::args_os().skip(1).map(|a| a.into_string()).collect();
    let Ok(arguments) = arguments else {
        bail!("another process has {} open and takes UTF-8 arguments alone", folder.display());
    };
    let request = Request {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        arguments,
        directory: env::current_dir().context("the current folder is gone; change to another")?,
        json: args.global.json,
    };
    let asked = local::ask(&folder, &request, &mut Quiet(Answer), &mut Quiet(Report));
    Ok(asked?)
}

/// A writer whose reader may go away: the rest is dropped then, as at the end of any command.
struct Quiet<W>(W);

impl<W: io::Write> io::Write for Quiet<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(bytes.len()),
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// How a command that needs the writers gets them: stops the sync, runs the command, and lets the
/// sync go on. `None` where the sync cannot pause.
pub(crate) type WithWriters = dyn Fn(&mut dyn FnMut()) + Send + Sync;

/// Listens in the folder of a node that this process holds.
pub(crate) fn listen(node: &Node, with_writers: Option<Arc<WithWriters>>) -> Result<LocalServer> {
    let folder = node.path().to_owned();
    let node = node.clone();
    let execute = move |request: &Request, reply: &mut Reply| {
        execute(&node, with_writers.as_deref(), request, reply)
    };
    Ok(LocalServer::start(&folder, Arc::new(execute))?)
}

/// Runs a command of another process.
fn execute(
    node: &Node,
    with_writers: Option<&WithWriters>,
    request: &Request,
    reply: &mut Reply,
) -> u8 {
    let Ok(sink) = reply.try_clone() else { return 1 };
    output::divert(Remote(sink), || {
        let parsed = Args::try_parse_from(
            std::iter::once("varve").chain(request.arguments.iter().map(String::as_str)),
        );
        let done = match parsed {
            Ok(mut args) => {
                args.global.held = Some(node.clone());
                args.global.directory = Some(request.directory.clone());
                args.global.json = request.json;
                run_here(&args, with_writers)
            }
            // The asking process has parsed it, with the same version.
            Err(error) => Err(error.into()),
        };
        match done {
            Ok(()) => 0,
            Err(error) if error.is::<output::Closed>() => 1,
            Err(error) => {
                eprintln!("error: {}", sentence(&error));
                1
            }
        }
    })
}

fn run_here(args: &Args, with_writers: Option<&WithWriters>) -> Result<()> {
    let busy = || {
        let name = env::args().nth(1).unwrap_or_default();
        format!(
            "process {} (`varve {name}`) has the folder and is syncing it; stop it first, or wait \
             for its end",
            process::id()
        )
    };
    match (args.command.needs(), with_writers) {
        (Needs::Alone, _) => bail!(busy()),
        (Needs::Snapshots, _) => command::run(args),
        (Needs::Writers, Some(with_writers)) => {
            let mut done = Ok(());
            with_writers(&mut || done = command::run(args));
            done
        }
        (Needs::Writers, None) => match command::run(args) {
            Err(error) if matches!(error.downcast_ref(), Some(Error::Busy)) => bail!(busy()),
            done => done,
        },
    }
}

/// Prints to the process that asked.
struct Remote(Reply);

impl Sink for Remote {
    fn answer(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.output(bytes)
    }

    fn report(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.report(bytes)
    }
}
