//! The Debian packages that the tests need beyond the Rust toolchain and `build-essential`.

use crate::run;
use anyhow::{Result, bail};

/// A Debian package and why it is wanted.
pub(crate) struct Package {
    /// Its name for `apt-get install`.
    pub name: &'static str,
    /// A program, or the path of a file, whose presence shows that it is installed.
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

/// The server of an engine of the records.
pub(crate) const POSTGRES: Package = Package {
    name: "postgresql",
    program: "pg_createcluster",
    reason: "tests and benchmarks of the records on PostgreSQL start servers of their own",
};

/// A wallet that tests let ask our servers.
pub(crate) const ELECTRUM: Package = Package {
    name: "electrum",
    program: "electrum",
    reason: "a real wallet that asks `varve serve`, without a window",
};

/// The browser in which tests look at the explorer.
pub(crate) const CHROMIUM: Package = Package {
    name: "chromium",
    program: "/usr/bin/chromium",
    reason: "tests look at the explorer in a real browser",
};

/// The program that drives it.
pub(crate) const CHROMIUM_DRIVER: Package = Package {
    name: "chromium-driver",
    program: "chromedriver",
    reason: "drives the browser in tests of the explorer",
};

/// The packages for `cargo xtask test`.
pub(crate) const PACKAGES: &[Package] =
    &[DEBOOTSTRAP, ELECTRUM, POSTGRES, CHROMIUM, CHROMIUM_DRIVER];

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
        // If it were not found, this would try to install a package that does not exist.
        let shell = Package { name: "no-such-package", program: "sh", reason: "this test" };
        ensure(&[shell]).unwrap();
    }
}
