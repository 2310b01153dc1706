//! The rival: ElectrumX from PyPI, with a real node behind it.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use varve_testdata::bitcoind::Bitcoind;

use super::BLOCKS;

/// How long it may take to index the chain.
const PATIENCE: Duration = Duration::from_secs(600);

/// The version of Core that ElectrumX 2 needs.
const NEEDED_BY_2: u64 = 310_000;

/// ElectrumX and its node, until dropped.
pub(super) struct Rival {
    child: Child,
    port: u16,
    _node: Bitcoind,
}

impl Rival {
    pub(super) fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }
}

impl Drop for Rival {
    fn drop(&mut self) {
        // It may have ended by itself; there is nothing to do about it here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Imports the chain into a node and has ElectrumX index it.
pub(super) fn start(folder: &Path, chain: &Path) -> Result<Rival> {
    let datadir = chain.parent().context("the chain is in a node's folder")?;
    let options = ["-reindex=1", "-txindex=1", "-rpcthreads=8", "-rpcworkqueue=256"];
    let node = Bitcoind::start_in(datadir, &options).context("there is no real node")?;
    node.wait_for_height(BLOCKS);
    let answer = node.call("getnetworkinfo", &json!([]));
    let version = answer.get("version").and_then(Value::as_u64).unwrap_or_default();
    let program = install(folder, version)?;
    let cookie = std::fs::read_to_string(node.cookie_file())?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let data = folder.join("electrumx");
    std::fs::create_dir_all(&data)?;
    let log = std::fs::File::create(folder.join("electrumx.log"))?;
    let child = Command::new(program)
        .env("DB_DIRECTORY", &data)
        .env("DAEMON_URL", format!("http://{}@{}", cookie.trim(), node.rpc_address()))
        .env("COIN", "Bitcoin")
        .env("NET", "regtest")
        .env("DB_ENGINE", "leveldb")
        .env("SERVICES", format!("tcp://127.0.0.1:{port}"))
        .env("PEER_DISCOVERY", "off")
        .env("ALLOW_ROOT", "1")
        .env("COST_SOFT_LIMIT", "0")
        .env("COST_HARD_LIMIT", "0")
        .env("INITIAL_CONCURRENT", "1000")
        .env("REQUEST_SLEEP", "0")
        .env("MAX_SEND", "10000000")
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .context("cannot start ElectrumX")?;
    let mut rival = Rival { child, port, _node: node };
    // It listens when it has indexed everything.
    let begun = Instant::now();
    while TcpStream::connect(rival.address()).is_err() {
        let ended = rival.child.try_wait()?;
        let said = || std::fs::read_to_string(folder.join("electrumx.log")).unwrap_or_default();
        ensure!(ended.is_none(), "ElectrumX has ended: {}", said());
        ensure!(begun.elapsed() < PATIENCE, "ElectrumX does not come up: {}", said());
        thread::sleep(Duration::from_millis(200));
    }
    Ok(rival)
}

/// Installs ElectrumX into a virtual environment: the newest that works with the node.
fn install(folder: &Path, node: u64) -> Result<PathBuf> {
    let package = if node >= NEEDED_BY_2 { "e-x" } else { "e-x<2" };
    let venv = folder.join("venv");
    let run = |program: &Path, words: &[&str]| -> Result<()> {
        let output = Command::new(program).args(words).output();
        let output = output.with_context(|| format!("cannot run {}", program.display()))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{} failed: {said}", program.display());
        Ok(())
    };
    let path = venv.to_str().context("a path in UTF-8")?;
    run(Path::new("python3"), &["-m", "venv", path])?;
    run(&venv.join("bin/pip"), &["install", "--quiet", package, "plyvel"])?;
    Ok(venv.join("bin/electrumx_server"))
}
