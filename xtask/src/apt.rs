//! The Debian packages that the tests need beyond the Rust toolchain and `build-essential`.

use crate::run;
use anyhow::{Result, bail};

/// A Debian package and why it is wanted.
pub(crate) struct Package {
    /// Its name for `apt-get install`.
    pub name: &'static str,
    /// A program, or the path of a file, that shows that it is there, however it came.
    pub program: &'static str,
    /// What it is for.
    pub reason: &'static str,
}

/// Fetches the Debian system that holds the real node.
pub(crate) const DEBOOTSTRAP: Package = Package {
    name: "debootstrap",
    program: "debootstrap",
    reason: "fetches the real bitcoind that tests compare with (`cargo xtask node`)",
};

/// Makes the bindings of `RocksDB`, a rival in benchmarks.
pub(crate) const CLANG: Package = Package {
    name: "clang",
    program: "clang",
    reason: "its libclang makes the bindings of RocksDB (`cargo xtask bench utxo`)",
};

/// Configures libbitcoinkernel.
pub(crate) const CMAKE: Package = Package {
    name: "cmake",
    program: "cmake",
    reason: "builds libbitcoinkernel (`cargo xtask kernel`)",
};

/// Headers that libbitcoinkernel includes.
pub(crate) const BOOST: Package = Package {
    name: "libboost-dev",
    program: "/usr/include/boost/version.hpp",
    reason: "libbitcoinkernel includes its headers (`cargo xtask kernel`)",
};

/// Everything that `cargo xtask test` wants.
pub(crate) const PACKAGES: &[Package] = &[DEBOOTSTRAP];

/// Installs what is missing, or says what to install.
pub(crate) fn ensure(packages: &[Package]) -> Result<()> {
    let missing: Vec<&Package> =
        packages.iter().filter(|package| run::find_program(package.program).is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for package in &missing {
        eprintln!("missing: {} ({})", package.name, package.reason);
    }
    let names: Vec<&str> = missing.iter().map(|package| package.name).collect();
    if !run::is_root() || run::find_program("apt-get").is_none() {
        bail!("not root on a Debian system; install by hand: {}", names.join(" "));
    }
    let apt = || {
        let mut command = run::system_program("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    run::run(apt().args(["update", "--quiet"]))?;
    run::run(apt().args(["install", "--yes", "--quiet", "--no-install-recommends"]).args(names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_whose_program_is_there_is_not_installed() {
        // Were it not found, this would try to install a package that does not exist.
        let shell = Package { name: "no-such-package", program: "sh", reason: "this test" };
        ensure(&[shell]).unwrap();
    }
}
