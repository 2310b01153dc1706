//! Running other programs: find them, start them, report clearly when they fail.

use anyhow::{Context as _, Result, bail};
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// The root of the checkout.
pub(crate) fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        // Cargo's current value takes precedence: checkouts that share a target folder share this
        // program.
        let here = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let here = here.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        here.parent().expect("xtask/ lies in the root of the checkout").to_owned()
    });
    &ROOT
}

/// The cargo that runs us, started in the root of the checkout.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a program with our own standard output and error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", name(command)))?;
    if !status.success() {
        bail!("{} failed ({status})", name(command));
    }
    Ok(())
}

/// Runs a program and returns what it wrote to standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", name(command)))?;
    if !output.status.success() {
        bail!("{} failed ({})", name(command), output.status);
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("{} wrote something that is not UTF-8", name(command)))
}

/// Runs a program and passes each line of its standard output to `on_line` as it arrives. Returns
/// whether it succeeded.
pub(crate) fn stream(command: &mut Command, on_line: impl FnMut(&str)) -> Result<bool> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", name(command)))?;
    let stdout = child.stdout.take().expect("standard output is a pipe");
    each_line(stdout, on_line)?;
    Ok(child.wait()?.success())
}

/// Passes each line of `from` to `on_line` as it arrives; bytes that are not UTF-8 are replaced.
pub(crate) fn each_line(from: impl Read, mut on_line: impl FnMut(&str)) -> Result<()> {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? != 0 {
        on_line(String::from_utf8_lossy(&line).trim_end_matches('\n'));
        line.clear();
    }
    Ok(())
}

/// Where a program is.
pub(crate) fn find_program(program: &str) -> Option<PathBuf> {
    search_path().map(|folder| folder.join(program)).find(|candidate| candidate.is_file())
}

/// A system program that needs others in folders missing from an ordinary user's `PATH`.
pub(crate) fn system_program(program: &str) -> Command {
    let path = std::env::join_paths(search_path()).expect("the folders come from a PATH");
    let mut command = Command::new(program);
    command.env("PATH", path);
    command
}

/// The folders of `PATH`, and those of the system's own programs.
fn search_path() -> impl Iterator<Item = PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.into_iter().chain(["/usr/sbin".into(), "/sbin".into()])
}

/// Whether we may install packages and build a Debian system.
pub(crate) fn is_root() -> bool {
    output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

fn name(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut name =
        program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
    // The first argument is the subcommand, which says more than the program's name.
    if let Some(first) = command.get_args().next() {
        name = format!("`{name} {}`", first.to_string_lossy());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_program_is_named() {
        let error = run(Command::new("sh").args(["-c", "exit 3"])).unwrap_err();
        assert_eq!(error.to_string(), "`sh -c` failed (exit status: 3)");
        let error = run(&mut Command::new("no-such-program")).unwrap_err();
        assert_eq!(error.to_string(), "cannot start no-such-program");
    }

    #[test]
    fn lines_come_one_by_one() {
        let mut lines = Vec::new();
        let ok = stream(Command::new("printf").arg("a\\nb\\377\\nc"), |line| {
            lines.push(line.to_owned());
        });
        assert!(ok.unwrap());
        assert_eq!(lines, ["a", "b\u{fffd}", "c"]);
    }

    #[test]
    fn programs_are_found_on_the_path() {
        assert!(find_program("sh").is_some());
        assert!(find_program("no-such-program").is_none());
    }
}
