//! The Debian package: the program, its pages and completions, a hardened unit, a user and a
//! configuration file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::{Release, scratch, set_mode, trial, write};
use crate::run;

/// Files of `packaging/`, and where they go.
const FILES: &[(&str, &str)] = &[
    ("varve.service", "usr/lib/systemd/system/varve.service"),
    ("varve.sysusers", "usr/lib/sysusers.d/varve.conf"),
    ("varve.toml", "etc/varve/varve.toml"),
    ("copyright", "usr/share/doc/varve/copyright"),
    ("../LICENSE-MIT", "usr/share/doc/varve/LICENSE-MIT"),
    ("../LICENSE-APACHE", "usr/share/doc/varve/LICENSE-APACHE"),
];

/// Scripts that Debian's tools run.
const SCRIPTS: &[&str] = &["postinst", "prerm"];

/// Shells and where each looks for completions.
const SHELLS: &[(&str, &str)] = &[
    ("bash", "usr/share/bash-completion/completions/varve"),
    ("zsh", "usr/share/zsh/vendor-completions/_varve"),
    ("fish", "usr/share/fish/vendor_completions.d/varve.fish"),
];

/// Makes the package, and returns its path.
pub(super) fn make(release: &Release) -> Result<PathBuf> {
    let tree = scratch(&release.out, "package")?;
    let program = tree.join("usr/bin/varve");
    write(&program, &fs::read(&release.program)?)?;
    set_mode(&program, 0o755)?;
    let packaging = run::root().join("packaging");
    for (file, place) in FILES {
        let from = packaging.join(file);
        let bytes = fs::read(&from).with_context(|| format!("cannot read {}", from.display()))?;
        write(&tree.join(place), &bytes)?;
    }
    for (shell, place) in SHELLS {
        let script = run::output(Command::new(&program).args(["completions", shell]))?;
        write(&tree.join(place), script.as_bytes())?;
    }
    let pages = tree.join("usr/share/man/man1");
    run::run(Command::new(&program).args(["man", "--out"]).arg(&pages))?;
    for page in fs::read_dir(&pages)? {
        run::run(Command::new("gzip").args(["-9", "--no-name"]).arg(page?.path()))?;
    }
    let control = tree.join("DEBIAN");
    write(&control.join("control"), control_file(release, &tree)?.as_bytes())?;
    write(&control.join("conffiles"), b"/etc/varve/varve.toml\n")?;
    for script in SCRIPTS {
        write(&control.join(script), &fs::read(packaging.join(script))?)?;
        set_mode(&control.join(script), 0o755)?;
    }
    let Release { version, architecture, out, .. } = release;
    let package = out.join(format!("varve_{version}_{architecture}.deb"));
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "--build"]).arg(&tree).arg(&package);
    run::run(&mut build).context("a Debian package is made by dpkg-deb, of the package dpkg")?;
    fs::remove_dir_all(&tree)?;
    Ok(package)
}

fn control_file(release: &Release, tree: &Path) -> Result<String> {
    let size = run::output(Command::new("du").args(["--summarize", "--block-size=1K"]).arg(tree))?;
    let size = size.split_whitespace().next().unwrap_or("0");
    Ok(format!(
        "Package: varve\n\
         Version: {}\n\
         Architecture: {}\n\
         Maintainer: The Varve developers <varve@localhost>\n\
         Installed-Size: {size}\n\
         Depends: adduser | systemd\n\
         Section: net\n\
         Priority: optional\n\
         Description: chain database for Bitcoin and its servers\n \
         Varve keeps the blocks of a Bitcoin-family chain, their history, the unspent\n \
         outputs and search indexes in one store, and serves them by the Electrum\n \
         protocol, REST and an explorer.\n",
        release.version, release.architecture
    ))
}

/// Unpacks the package, and lets its program serve.
pub(super) fn check(package: &Path) -> Result<()> {
    let tree = unpack(package)?;
    trial::serves(&tree.join("usr/bin/varve"), None).context("the program of the package")?;
    fs::remove_dir_all(&tree)?;
    Ok(())
}

/// Unpacks the package, and looks whether everything is there.
fn unpack(package: &Path) -> Result<PathBuf> {
    let out = package.parent().context("a package lies in a folder")?;
    let tree = scratch(out, "unpacked-package")?;
    run::run(Command::new("dpkg-deb").arg("--extract").arg(package).arg(&tree))?;
    let places = FILES.iter().chain(SHELLS).map(|(_, place)| *place);
    for place in places.chain(["usr/share/man/man1/varve-serve.1.gz"]) {
        ensure!(tree.join(place).is_file(), "the package has no {place}");
    }
    let fields = run::output(Command::new("dpkg-deb").arg("--field").arg(package))?;
    ensure!(fields.contains("Package: varve"), "the package says: {fields}");
    if run::find_program("systemd-analyze").is_some() {
        verify_unit(&tree)?;
    }
    Ok(tree)
}

/// Systemd's own check of the unit.
fn verify_unit(tree: &Path) -> Result<()> {
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no"]).arg("--root").arg(tree).arg("varve.service");
    let output = verify.output()?;
    let report = String::from_utf8_lossy(&output.stderr);
    // What is wrong with a line of the unit comes with its number; that the package alone has no
    // other units says nothing.
    let is_wrong = |line: &&str| {
        let (_, rest) = line.split_once("varve.service:").unwrap_or_default();
        rest.starts_with(|first: char| first.is_ascii_digit())
    };
    let wrong: Vec<&str> = report.lines().filter(is_wrong).collect();
    ensure!(wrong.is_empty(), "systemd refuses the unit: {}", wrong.join("; "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::tests::release;

    #[test]
    fn a_package_has_its_program_unit_pages_and_completions() {
        if run::find_program("dpkg-deb").is_none() {
            println!("skipped: no dpkg-deb");
            return;
        }
        let release = release("deb");
        let package = make(&release).unwrap();
        assert!(package.ends_with("varve_1.2.3_amd64.deb"));
        let tree = unpack(&package).unwrap();
        let program = fs::read(tree.join("usr/bin/varve")).unwrap();
        assert_eq!(program, fs::read(&release.program).unwrap());
        let unit = fs::read_to_string(tree.join(FILES[0].1)).unwrap();
        assert!(unit.contains("NoNewPrivileges=yes") && unit.contains("User=varve"));
        let fields = run::output(Command::new("dpkg-deb").arg("--field").arg(&package)).unwrap();
        assert!(fields.contains("Version: 1.2.3") && fields.contains("Architecture: amd64"));
        fs::remove_dir_all(&release.out).unwrap();
    }
}
