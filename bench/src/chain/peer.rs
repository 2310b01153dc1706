//! The other side: a real node that connects the same blocks, `-reindex-chainstate`.
//!
//! 1. A folder gets the block files as links, and one more file with empty blocks on top
//!    ([`padding`](super::padding)).
//! 2. `-reindex -stopatheight=1` makes the node's index of blocks. Not timed.
//! 3. `-reindex-chainstate -stopatheight=TIP`, with as much memory for its cache as we have,
//!    connects all blocks: with `-assumevalid=TIP` without scripts, with `-assumevalid=0 -par=2`
//!    with all of them. Its log names each height: the clock starts when half of the blocks are
//!    connected, and stops when the process has ended, having written its cache to disk. So both
//!    sides end with everything durable.
//!
//! The node does less: blocks are stored and indexed already, and it builds no index of
//! transactions and spenders.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use varve_bench::clock::{Clock, Measured, has_ended};
use varve_node::Verify;

use super::PROCESSORS;
use super::node::{MEMORY, NETWORK};
use super::padding::{self, Top};
use super::simulated::Simulated;

const POLL: Duration = Duration::from_millis(10);
/// A node that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(1800);

/// A node's program.
#[derive(Debug)]
pub(crate) struct Peer {
    program: PathBuf,
    /// The first line of `--version`.
    pub(crate) name: String,
}

/// The measurements of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    /// From the middle of the chain to the end of the process.
    pub(crate) measured: Measured,
    /// From the middle of the chain to the tip, in seconds, without writing the cache to disk.
    pub(crate) to_tip: f64,
}

impl Peer {
    /// The program that `BITCOIND_EXE` names, else `bitcoind` on the path.
    pub(crate) fn find() -> Option<Self> {
        let named = std::env::var_os("BITCOIND_EXE").map(PathBuf::from);
        let program = named.unwrap_or_else(|| PathBuf::from("bitcoind"));
        let output = Command::new(&program).arg("--version").output().ok()?;
        let name = String::from_utf8_lossy(&output.stdout).lines().next()?.to_owned();
        output.status.success().then_some(Self { program, name })
    }

    /// Makes the folder and the index of blocks.
    pub(crate) fn prepare(&self, chain: &Simulated, folder: &Path) -> Result<()> {
        let blocks = folder.join("regtest/blocks");
        fs::create_dir_all(&blocks)?;
        let mut files = 0;
        for entry in fs::read_dir(chain.folder.join("blocks"))? {
            let entry = entry?;
            fs::hard_link(entry.path(), blocks.join(entry.file_name()))?;
            files += 1;
        }
        let top = Top { height: chain.height, hash: chain.tip.parse()? };
        let records = padding::records(top, padding::BLOCKS, NETWORK);
        fs::write(blocks.join(format!("blk{files:05}.dat")), records)?;
        let mut node = self.start(folder, &["-reindex", "-stopatheight=1"])?;
        let status = node.0.wait()?;
        ensure!(status.success(), "the node could not index the blocks ({status})");
        Ok(())
    }

    /// Connects all blocks, and measures the second half.
    pub(crate) fn run(&self, chain: &Simulated, folder: &Path, verify: Verify) -> Result<Took> {
        let log = folder.join("regtest/debug.log");
        fs::remove_file(&log)?;
        let stop = format!("-stopatheight={}", chain.height);
        let assumed = match verify {
            Verify::Spends => &chain.tip,
            Verify::Scripts => "0",
        };
        let assumed = format!("-assumevalid={assumed}");
        let threads = format!("-par={PROCESSORS}");
        let options = ["-reindex-chainstate", &stop, &assumed, &threads];
        let mut node = self.start(folder, &options)?;
        let number = node.0.id();
        let (begin, mut log) = (Instant::now(), Log::new(log));
        let mut watch: Option<(Clock, Instant)> = None;
        let mut to_tip = None;
        while !has_ended(number) {
            ensure!(begin.elapsed() < LIMIT, "the node does not finish");
            let height = log.height()?;
            if watch.is_none() && height >= Some(chain.half()) {
                let mut clock = Clock::of_child(number);
                clock.start();
                watch = Some((clock, Instant::now()));
            }
            if let (None, Some((_, start))) = (to_tip, &watch) {
                let reached = height >= Some(chain.height);
                to_tip = reached.then(|| start.elapsed().as_secs_f64());
            }
            sleep(POLL);
        }
        let measured = watch.map(|(mut clock, _)| {
            clock.stop();
            clock.measured()
        });
        node.0.wait()?;
        let reached = log.height()?;
        match (measured, to_tip) {
            (Some(measured), Some(to_tip)) => Ok(Took { measured, to_tip }),
            _ => bail!("the node ended at height {reached:?}, not at {}", chain.height),
        }
    }

    fn start(&self, folder: &Path, options: &[&str]) -> Result<Running> {
        let child = Command::new(&self.program)
            .args(["-regtest", "-server=0", "-listen=0", "-connect=0", "-dnsseed=0"])
            .args(["-disablewallet", "-printtoconsole=0", "-maxtipage=9999999999"])
            .arg(format!("-dbcache={}", MEMORY >> 20))
            .arg(format!("-datadir={}", folder.display()))
            .args(options)
            .stdout(Stdio::null())
            .spawn();
        Ok(Running(child.with_context(|| format!("cannot start {}", self.program.display()))?))
    }
}

/// A node process that is killed when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It has usually ended already, which is fine.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The log of a node, read as it grows.
struct Log {
    path: PathBuf,
    file: Option<File>,
    /// Bytes of a line that has no end yet.
    rest: Vec<u8>,
    height: Option<u32>,
}

impl Log {
    const fn new(path: PathBuf) -> Self {
        Self { path, file: None, rest: Vec::new(), height: None }
    }

    /// The height of the last block that was connected.
    fn height(&mut self) -> Result<Option<u32>> {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        if let Some(file) = &mut self.file {
            file.read_to_end(&mut self.rest)?;
        }
        let whole = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let lines: Vec<u8> = self.rest.drain(..whole).collect();
        let last = String::from_utf8_lossy(&lines).lines().filter_map(height_of).next_back();
        self.height = last.or(self.height);
        Ok(self.height)
    }
}

/// `… UpdateTip: new best=HASH height=N version=…`
fn height_of(line: &str) -> Option<u32> {
    let (_, rest) = line.split_once("UpdateTip: new best=")?;
    rest.split_whitespace().find_map(|word| word.strip_prefix("height=")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::height_of;

    #[test]
    fn heights_are_read_from_a_log() {
        let line = "2026-01-01T00:00:00Z UpdateTip: new best=0a height=17 version=0x2 tx=18";
        assert_eq!(height_of(line), Some(17));
        assert_eq!(height_of("2026-01-01T00:00:00Z height=17"), None);
        assert_eq!(height_of("UpdateTip: new best=0a height=x"), None);
    }
}
