//! Starts this program again as a child that does one piece of work under a separate memory limit.
//!
//! The child reads the work from its standard input and prints figures. Everything else is on its
//! command line:
//!
//! ```text
//! varve-bench-rivals child SIDE FOLDER GROUP|unlimited [MORE…]
//! ```

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use varve_bench::figures::Figures;
use varve_testdata::cgroup::Cgroup;

/// What a child is to do.
#[derive(Clone, Debug)]
pub(crate) struct Task<'a> {
    /// The name of the work, as in [`crate::command`].
    pub(crate) side: &'a str,
    /// Where its files go.
    pub(crate) folder: &'a Path,
    /// Its memory, page cache included; `None` for no limit.
    pub(crate) memory: Option<u64>,
    /// Further words of its command line.
    pub(crate) more: Vec<OsString>,
    /// What it reads.
    pub(crate) input: &'a Path,
    /// When it prints this line, it is killed without warning, which is not an error.
    pub(crate) kill_at: Option<&'a str>,
}

/// The result of a child.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) figures: Figures,
    /// Whether the memory limit was in force.
    pub(crate) limited: bool,
    /// Its peak memory, page cache included.
    pub(crate) peak: Option<u64>,
}

impl Task<'_> {
    /// Does the work.
    pub(crate) fn run(&self) -> Result<Outcome> {
        let group = self.memory.and_then(Cgroup::new);
        std::fs::create_dir_all(self.folder)?;
        let entered = group.as_ref().map_or(Path::new("unlimited"), |group| group.path());
        let mut child = Command::new(std::env::current_exe()?)
            .arg("child")
            .arg(self.side)
            .args([self.folder, entered])
            .args(&self.more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start a child")?;
        let mut pipe = child.stdin.take().context("the child has no input")?;
        let mut input = File::open(self.input)
            .with_context(|| format!("cannot open {}", self.input.display()))?;
        // A child that has read enough closes its end, which is not an error.
        let feeder = std::thread::spawn(move || drop(std::io::copy(&mut input, &mut pipe)));
        let stdout = child.stdout.take().context("the child has no output")?;
        let mut figures = Figures::default();
        let mut killed = false;
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            if self.kill_at == Some(line.as_str()) {
                child.kill()?;
                killed = true;
            } else if !figures.take(&line) {
                println!("{line}");
            }
        }
        let status = child.wait()?;
        let _ = feeder.join();
        if !status.success() && !killed {
            bail!("the child `{}` failed ({status})", self.side);
        }
        let peak = group.as_ref().and_then(Cgroup::peak);
        Ok(Outcome { figures, limited: group.is_some(), peak })
    }
}
