//! Starts a `varve serve`, looks whether it serves, and ends it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

/// How long it may take to start, to answer, or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Serves a new regtest folder with a program, in a root folder when one is given.
pub(super) fn serves(program: &Path, root: Option<&Path>) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("varve-dist-{}", std::process::id()));
    let data = if root.is_some() { Path::new("/data/trial") } else { &folder };
    let mut command = match root {
        Some(root) => {
            let mut chroot = Command::new("chroot");
            chroot.arg(root).arg(program);
            chroot
        }
        None => Command::new(program),
    };
    command.args(["serve", "--network=regtest", "--json"]).arg("--datadir").arg(data);
    command.args(["--http=127.0.0.1:0", "--electrum=127.0.0.1:0"]);
    let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start it")?;
    let tried = try_it(&mut child);
    // It has ended, or is not to stay.
    let _ = child.kill();
    let _ = child.wait();
    let _ = std::fs::remove_dir_all(&folder);
    tried
}

fn try_it(child: &mut Child) -> Result<()> {
    let stdout = child.stdout.take().context("standard output was asked for as a pipe")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    let places: Value = serde_json::from_str(&line).context("it does not say where it serves")?;
    let http = places.get("http").and_then(Value::as_str).context("it serves no HTTP")?;
    let mut stream = TcpStream::connect(http)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET /api/blocks/tip/height HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    ensure!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\n0"), "{answer}");
    let kill = Command::new("kill").arg(child.id().to_string()).status()?;
    ensure!(kill.success(), "it cannot be asked to end");
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait()? {
            ensure!(status.success(), "it ended with {status}");
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    bail!("it does not end")
}
