//! `cargo xtask node`: a real `bitcoind`, for the tests that compare with one.
//!
//! 1. `BITCOIND_EXE`, when it is set.
//! 2. `bitcoind` on the `PATH`.
//! 3. The one fetched before: `$XDG_CACHE_HOME/varve/node`, or `~/.cache/varve/node`. It lies
//!    outside the checkout, so that a clean clone does not fetch it again.
//! 4. Fetched now, from Debian: `debootstrap` puts a small Debian (the unstable suite, which has
//!    the package `bitcoin-knots`, a relative of Bitcoin Core) into that folder. This needs root
//!    and the network, about a minute and 300 MB.
//!
//! ```text
//! ~/.cache/varve/node/
//!   bitcoind       a script that runs rootfs/usr/bin/bitcoind by the loader and with the libraries
//!   bitcoin-cli    of rootfs, so that no chroot and no root is needed to run it
//!   rootfs/        the Debian system
//! ```
//!
//! The folder is built under another name and renamed when the node in it has answered, so an
//! interrupted build is never mistaken for a complete one.

use crate::{apt, run};
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Provides the node and prints its path as the last line.
pub(crate) fn run() -> Result<bool> {
    let bitcoind = provide()?;
    println!("{}", bitcoind.display());
    Ok(true)
}

/// The path of a `bitcoind` that runs.
pub(crate) fn provide() -> Result<PathBuf> {
    if let Some(given) = std::env::var_os("BITCOIND_EXE") {
        let given = PathBuf::from(given);
        check(&given).context("BITCOIND_EXE does not name a bitcoind that runs; unset it")?;
        return Ok(given);
    }
    if let Some(installed) = run::find_program("bitcoind") {
        check(&installed).context("the bitcoind on the PATH does not run")?;
        return Ok(installed);
    }
    let folder = cache_folder()?.join("node");
    if !folder.exists() {
        fetch(&folder)?;
    }
    let bitcoind = folder.join("bitcoind");
    check(&bitcoind).with_context(|| {
        format!("the fetched node does not run; remove {} and try again", folder.display())
    })?;
    Ok(bitcoind)
}

/// Runs `bitcoind --version` and shows its first line.
fn check(bitcoind: &Path) -> Result<()> {
    let version = run::output(Command::new(bitcoind).arg("--version"))?;
    eprintln!("{}: {}", bitcoind.display(), version.lines().next().unwrap_or_default());
    Ok(())
}

fn cache_folder() -> Result<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("XDG_CACHE_HOME")
        .or_else(|| set("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join("varve"))
        .context("neither XDG_CACHE_HOME nor HOME is set; set one, or BITCOIND_EXE")
}

fn fetch(folder: &Path) -> Result<()> {
    let script = Script::new(std::env::consts::ARCH)?;
    if !run::is_root() {
        bail!(
            "fetching a node needs root; install bitcoind, set BITCOIND_EXE, or run this as root"
        );
    }
    apt::ensure(&[apt::DEBOOTSTRAP])?;
    let parent = folder.parent().expect("the folder was joined to a parent");
    fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    // Held until the end of this function: another process waits, and then finds the node.
    let lock = fs::File::create(parent.join("node.lock"))?;
    lock.lock()?;
    if folder.exists() {
        return Ok(());
    }
    let building = parent.join("node.building");
    remove(&building)?;
    build(&building, &script).context(
        "cannot fetch a node; check the network, or install bitcoind or set BITCOIND_EXE",
    )?;
    fs::rename(&building, folder)?;
    Ok(())
}

/// Removes what an interrupted build left. It may have left file systems mounted, whose content
/// must not be removed.
fn remove(folder: &Path) -> Result<()> {
    run::run(Command::new("rm").args(["-rf", "--one-file-system"]).arg(folder))
}

fn build(building: &Path, script: &Script) -> Result<()> {
    eprintln!("fetching a real node from Debian: about a minute, 300 MB");
    fs::create_dir_all(building)?;
    let progress = run::stream(
        run::system_program(apt::DEBOOTSTRAP.program)
            .args(["--variant=minbase", "--include=bitcoin-knots", "sid"])
            .arg(building.join("rootfs")),
        |line| eprintln!("  {line}"),
    )?;
    if !progress {
        bail!("debootstrap failed");
    }
    for program in ["bitcoind", "bitcoin-cli"] {
        let path = building.join(program);
        fs::write(&path, script.text(program))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    check(&building.join("bitcoind"))
}

/// Writes the scripts that run a program of the fetched system without a chroot.
struct Script {
    /// The loader, as seen from the root of the fetched system.
    loader: &'static str,
    /// Debian's name for the architecture in the folders of libraries.
    libraries: &'static str,
}

impl Script {
    fn new(architecture: &str) -> Result<Self> {
        match architecture {
            "x86_64" => {
                Ok(Self { loader: "lib64/ld-linux-x86-64.so.2", libraries: "x86_64-linux-gnu" })
            }
            "aarch64" => {
                Ok(Self { loader: "lib/ld-linux-aarch64.so.1", libraries: "aarch64-linux-gnu" })
            }
            other => bail!("no node is fetched for {other}; install bitcoind or set BITCOIND_EXE"),
        }
    }

    /// The script finds the system beside itself, so the folder can be renamed.
    fn text(&self, program: &str) -> String {
        let Self { loader, libraries } = self;
        format!(
            "#!/bin/sh\n\
             rootfs=$(dirname \"$(readlink -f \"$0\")\")/rootfs\n\
             exec \"$rootfs/{loader}\" \\\n    \
             --library-path \"$rootfs/lib/{libraries}:$rootfs/usr/lib/{libraries}\" \\\n    \
             \"$rootfs/usr/bin/{program}\" \"$@\"\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_runs_the_program_by_its_own_loader() {
        let text = Script::new("x86_64").unwrap().text("bitcoind");
        let expected = "#!/bin/sh
rootfs=$(dirname \"$(readlink -f \"$0\")\")/rootfs
exec \"$rootfs/lib64/ld-linux-x86-64.so.2\" \\
    --library-path \"$rootfs/lib/x86_64-linux-gnu:$rootfs/usr/lib/x86_64-linux-gnu\" \\
    \"$rootfs/usr/bin/bitcoind\" \"$@\"
";
        assert_eq!(text, expected);
    }

    #[test]
    fn an_architecture_without_a_node_is_an_error() {
        assert!(Script::new("riscv64").is_err());
    }

    #[test]
    fn a_program_that_fails_is_not_a_node() {
        assert!(check(Path::new("false")).is_err());
        assert!(check(Path::new("no-such-program")).is_err());
    }
}
