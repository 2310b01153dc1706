//! `cargo xtask dist`: what is given to people, made and checked.
//!
//! ```text
//! target/dist/
//!   varve                       the program, without shared libraries
//!   varve_VERSION_ARCH.deb      a Debian package (`debian`)
//!   varve-VERSION-oci.tar       an image as an OCI layout (`oci`): `podman load`, `skopeo copy`
//! ```
//!
//! The program is linked statically against musl where rustup has that target and there is a C++
//! compiler for it, else against glibc.
//! A static glibc looks names of hosts up without the system's plugins (mDNS, LDAP); addresses,
//! `/etc/hosts` and DNS work.
//!
//! Each of the three is checked when it is made: the program runs without a loader, the package is
//! unpacked and its program serves and ends in order, and so does the one in the image, in a chroot
//! when we are root.

mod debian;
mod oci;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::metadata::Metadata;
use crate::run;

/// What everything is made from.
pub(crate) struct Release {
    /// The static program.
    pub(crate) program: PathBuf,
    /// The version of the workspace.
    pub(crate) version: String,
    /// Debian's name of the architecture; OCI has the same names for ours.
    pub(crate) architecture: &'static str,
    /// Where the results go.
    pub(crate) out: PathBuf,
}

/// Makes and checks everything.
pub(crate) fn run() -> Result<bool> {
    let target = Metadata::load()?.target;
    let out = target.join("dist");
    if out.exists() {
        fs::remove_dir_all(&out).with_context(|| format!("cannot remove {}", out.display()))?;
    }
    fs::create_dir_all(&out)?;
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => bail!("packages are made on x86-64 and aarch64, and this is {other}"),
    };
    let program = build(&target, &out)?;
    let version = run::output(Command::new(&program).arg("--version"))?;
    let version = version.trim().rsplit(' ').next().unwrap_or_default().to_owned();
    let release = Release { program, version, architecture, out };
    trial::serves(&release.program, None).context("the static program")?;
    let package = debian::make(&release)?;
    debian::check(&package)?;
    let image = oci::make(&release)?;
    oci::check(&image)?;
    for made in [&release.program, &package, &image] {
        let bytes = fs::metadata(made)?.len();
        println!("{:>12} bytes  {}", bytes, made.display());
    }
    Ok(true)
}

/// Builds the program and puts it into the folder of the results.
fn build(target: &Path, out: &Path) -> Result<PathBuf> {
    let architecture = std::env::consts::ARCH;
    let triple = triple(architecture)?;
    println!("building for {triple}, linked statically");
    let mut cargo = run::cargo();
    cargo.args(["build", "--release", "--package=varve-cli", "--bin=varve", "--target", &triple]);
    let folder = target.join("static");
    cargo.arg("--target-dir").arg(&folder).env("RUSTFLAGS", "-C target-feature=+crt-static");
    // The verifier is C++. Its library is linked as an archive too: a shared one in a static
    // program crashes at its first use.
    run::run(cargo.env("CXXSTDLIB_STATIC", "1"))?;
    let built = folder.join(&triple).join("release/varve");
    let program = out.join("varve");
    run::run(Command::new("strip").arg("-o").arg(&program).arg(&built))?;
    let headers = run::output(Command::new("readelf").arg("--program-headers").arg(&program))?;
    if headers.contains("INTERP") {
        bail!("{} wants a loader, so it is not static", program.display());
    }
    Ok(program)
}

/// The target: musl's where rustup has it and a C++ compiler for it is there, else glibc's.
fn triple(architecture: &str) -> Result<String> {
    let musl = format!("{architecture}-unknown-linux-musl");
    let sysroot = run::output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let has_target = Path::new(sysroot.trim()).join("lib/rustlib").join(&musl).exists();
    let has_compiler = run::find_program(&musl_compiler(architecture)).is_some();
    Ok(if has_target && has_compiler { musl } else { format!("{architecture}-unknown-linux-gnu") })
}

fn musl_compiler(architecture: &str) -> String {
    format!("{architecture}-linux-musl-g++")
}

/// A new folder below the results, for what is unpacked or put together.
fn scratch(out: &Path, name: &str) -> Result<PathBuf> {
    let folder = out.join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Writes a file, with its folders.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// Sets the mode of a file or folder.
fn set_mode(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(mode))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A release of a script that answers what packaging asks it.
    pub(crate) fn release(name: &str) -> Release {
        let out = std::env::temp_dir().join(format!("varve-xtask-{}-{name}", std::process::id()));
        let program = out.join("varve");
        let script = "#!/bin/sh\nif [ \"$1\" = man ]; then mkdir -p \"$3\"; echo page > \
                      \"$3/varve-serve.1\"; else echo script; fi\n";
        write(&program, script.as_bytes()).unwrap();
        set_mode(&program, 0o755).unwrap();
        Release { program, version: "1.2.3".to_owned(), architecture: "amd64", out }
    }
}
