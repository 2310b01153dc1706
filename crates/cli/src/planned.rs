//! Commands that are planned and not built.
//!
//! Typing one gives an error that says so, rather than "unrecognized subcommand" or the suggestion
//! of a similar name. A command that is built leaves this table and gets its variant in `args`.

use clap::{Arg, ArgMatches, Command};

/// The name of each, and what it will do.
const PLANNED: [(&str, &str); 2] = [
    ("sql", "answer questions in SQL"),
    ("bench", "measure this machine; for now use `cargo xtask bench NAME`"),
];

/// Adds the planned commands, hidden from the help, with any arguments.
pub(crate) fn with_planned(command: Command) -> Command {
    let planned = PLANNED.into_iter().filter(|(name, _)| command.find_subcommand(name).is_none());
    let hidden: Vec<Command> = planned
        .map(|(name, _)| {
            let any =
                Arg::new("any").num_args(0..).trailing_var_arg(true).allow_hyphen_values(true);
            Command::new(name).hide(true).disable_help_flag(true).arg(any)
        })
        .collect();
    let names: Vec<&str> = hidden.iter().map(Command::get_name).collect();
    let note = format!("Planned, and not in this version: {}", names.join(", "));
    command.after_help(note).subcommands(hidden)
}

/// The error for a planned command that was typed.
pub(crate) fn refusal(matches: &ArgMatches) -> Option<String> {
    let typed = matches.subcommand_name()?;
    let (name, what) = PLANNED.iter().find(|(name, _)| *name == typed)?;
    Some(format!("`varve {name}` is not in this version; it will {what}"))
}
