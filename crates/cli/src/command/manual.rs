//! `varve completions` and `varve man`: what a shell and a reader want to know of the commands.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::args::Args;
use crate::output::Answer;

/// Prints the script of a shell.
pub(crate) fn completions(shell: Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "varve", &mut script);
    print(&script)
}

/// Prints the page of the command itself, or writes a page for each command.
pub(crate) fn pages(folder: Option<&Path>) -> Result<()> {
    let Some(folder) = folder else { return print(&page(Args::command())?) };
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut commands = vec![("varve".to_owned(), Args::command())];
    // A page says which command it is of: `varve utxo get` is in varve-utxo-get.1.
    while let Some((name, command)) = commands.pop() {
        for inside in command.get_subcommands().filter(|inside| !inside.is_hide_set()) {
            commands.push((format!("{name}-{}", inside.get_name()), inside.clone()));
        }
        let path = folder.join(format!("{name}.1"));
        let page = page(command.name(name))?;
        fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn page(command: clap::Command) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page).context("cannot make the page")?;
    Ok(page)
}

fn print(text: &[u8]) -> Result<()> {
    match std::io::Write::write_all(&mut Answer, text) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        done => done.context("cannot write to standard output"),
    }
}
