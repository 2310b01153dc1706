//! Options from the environment and from a configuration file, beside flags.
//!
//! ```text
//!  flag         --http 127.0.0.1:3000           goes first
//!  environment  VARVE_HTTP=127.0.0.1:3000       then this
//!  file         http = "127.0.0.1:3000"         then this: --config FILE, or DATADIR/varve.toml
//!  default      127.0.0.1:3000                  and last what the help says
//! ```
//!
//! The declarations in `args` are the one table of options. An option can be set outside the
//! command line when `varve serve` has it or every command has it; other commands, such as `sync`,
//! take those that they have too. What is set outside becomes a flag that is added to the command
//! line, unless the flag is there already, so every value is read and checked by the same code.
//!
//! The options that name a source are one choice: a source in one place hides those in the places
//! below it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Command};
use toml::{Table, Value};
use varve::{Network, Node};

/// The name of the configuration file in a data directory.
const FILE: &str = "varve.toml";
/// The command whose options can be set outside the command line.
const SERVE: &str = "serve";
/// The options that name a source.
const SOURCES: [&str; 3] = ["from", "peer", "rpc"];
/// Commands that have no data directory, or make their own.
const WITHOUT_FOLDER: [&str; 4] = ["sim", "demo", "completions", "man"];

/// A command line that has everything that was set outside of it.
#[derive(Debug)]
pub(crate) struct Layered {
    /// The command line.
    pub(crate) arguments: Vec<OsString>,
    /// The options that were added, and the place of each.
    added: Vec<(String, String)>,
}

impl Layered {
    /// Where the options that an error names were set, if not on the command line.
    pub(crate) fn places(&self, error: &str) -> Vec<String> {
        let is_named = |name: &str| error.contains(&format!("--{name}"));
        let named = self.added.iter().filter(|(name, _)| is_named(name));
        named.map(|(name, place)| format!("--{name} is set by {place}")).collect()
    }
}

/// One option that can be set outside.
struct Known<'a> {
    name: &'a str,
    id: &'a str,
    action: &'a ArgAction,
    /// Every command has it.
    is_global: bool,
}

/// Where options are set.
struct Layer {
    values: Vec<(String, Vec<String>)>,
    place: Box<dyn Fn(&str) -> String>,
}

/// Adds what is set outside to a command line.
pub(crate) fn layered(command: &Command, arguments: Vec<OsString>) -> Result<Layered> {
    let known = known(command);
    let first = command.clone().ignore_errors(true).try_get_matches_from(&arguments);
    let as_it_is = |arguments| Ok(Layered { arguments, added: Vec::new() });
    // Help and version need nothing more.
    let Ok(matches) = first else { return as_it_is(arguments) };
    let Some((name, matches)) = matches.subcommand() else { return as_it_is(arguments) };
    if WITHOUT_FOLDER.contains(&name) {
        return as_it_is(arguments);
    }
    let in_environment = environment(&known);
    let in_file = file(matches, &known, &in_environment)?;
    let has = |option: &Known<'_>| {
        let leaf = command.find_subcommand(name);
        option.is_global
            || leaf.is_some_and(|leaf| leaf.get_arguments().any(|a| a.get_id() == option.id))
    };
    let mut layered = Layered { arguments, added: Vec::new() };
    let mut given: Vec<&str> = known
        .iter()
        .filter(|option| has(option) && is_given(matches, option))
        .map(|o| o.name)
        .collect();
    for layer in [Some(in_environment), in_file].into_iter().flatten() {
        let hides_sources = given.iter().any(|name| SOURCES.contains(name));
        for option in known.iter().filter(|option| has(option)) {
            let is_hidden = hides_sources && SOURCES.contains(&option.name);
            let Some((_, values)) = layer.values.iter().find(|(key, _)| key == option.name) else {
                continue;
            };
            if given.contains(&option.name) || is_hidden {
                continue;
            }
            layered.add(option, values, (layer.place)(option.name))?;
            given.push(option.name);
        }
    }
    Ok(layered)
}

impl Layered {
    /// Adds a flag for each value, in front of what comes after `--`.
    fn add(&mut self, option: &Known<'_>, values: &[String], place: String) -> Result<()> {
        let end = self.arguments.iter().position(|argument| argument == "--");
        let mut end = end.unwrap_or(self.arguments.len());
        for value in values {
            let flag = match option.action {
                ArgAction::SetTrue => match value.as_str() {
                    "true" | "1" | "yes" => format!("--{}", option.name),
                    "false" | "0" | "no" | "" => continue,
                    other => bail!("{place} is `{other}`; write true or false"),
                },
                _ => format!("--{}={value}", option.name),
            };
            self.arguments.insert(end, flag.into());
            end += 1;
        }
        self.added.push((option.name.to_owned(), place));
        Ok(())
    }
}

/// The options of `serve`, and those of every command.
fn known(command: &Command) -> Vec<Known<'_>> {
    let of_all = command.get_arguments().filter(|argument| argument.is_global_set());
    let of_serve = command.find_subcommand(SERVE).into_iter().flat_map(Command::get_arguments);
    let known = of_all.map(|argument| (argument, true)).chain(of_serve.map(|a| (a, false)));
    known
        .filter(|(argument, _)| {
            !["help", "version", "config"].contains(&argument.get_id().as_str())
        })
        .filter_map(|(argument, is_global)| {
            let (id, action) = (argument.get_id().as_str(), argument.get_action());
            Some(Known { name: argument.get_long()?, id, action, is_global })
        })
        .collect()
}

fn is_given(matches: &ArgMatches, option: &Known<'_>) -> bool {
    // A command that does not have the option would panic when asked for it.
    matches.ids().any(|id| id.as_str() == option.id)
        && matches.value_source(option.id) == Some(ValueSource::CommandLine)
}

/// The name of an option in the environment.
fn variable(option: &str) -> String {
    format!("VARVE_{}", option.replace('-', "_").to_uppercase())
}

fn environment(known: &[Known<'_>]) -> Layer {
    let value = |option: &Known<'_>| {
        let text = env::var(variable(option.name)).ok()?;
        let values = match option.action {
            ArgAction::Append => text.split(',').map(|part| part.trim().to_owned()).collect(),
            _ => vec![text],
        };
        Some((option.name.to_owned(), values))
    };
    let values = known.iter().filter_map(value).collect();
    Layer { values, place: Box::new(|name| format!("{} in the environment", variable(name))) }
}

/// The file that the command line or the environment names, or that of the data directory.
fn file(matches: &ArgMatches, known: &[Known<'_>], environment: &Layer) -> Result<Option<Layer>> {
    let raw = |id: &str| {
        let given = matches.value_source(id) == Some(ValueSource::CommandLine);
        let flag = || matches.get_raw(id)?.next_back().map(OsStr::to_owned);
        let set = || {
            let (_, values) = environment.values.iter().find(|(key, _)| key == id)?;
            values.first().map(OsString::from)
        };
        given.then(flag).flatten().or_else(set)
    };
    let named = raw("config").or_else(|| env::var_os(variable("config"))).map(PathBuf::from);
    let is_named = named.is_some();
    let path = match named {
        Some(path) => path,
        None => {
            let mut builder = Node::builder();
            let network = raw("network").and_then(|name| name.to_str()?.parse::<Network>().ok());
            builder = builder.network(network.unwrap_or(Network::Mainnet));
            if let Some(folder) = raw("datadir") {
                builder = builder.datadir(folder);
            }
            let Ok(folder) = builder.path() else { return Ok(None) };
            folder.join(FILE)
        }
    };
    let shown = path.display().to_string();
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound && !is_named => return Ok(None),
        Err(error) if error.kind() == ErrorKind::NotADirectory && !is_named => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {shown}")),
    };
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error
            .span()
            .map_or(1, |span| 1 + text.get(..span.start).unwrap_or_default().matches('\n').count());
        anyhow::anyhow!("{shown}, line {line}: {}", error.message())
    })?;
    let mut values = Vec::new();
    for (key, value) in &table {
        if !known.iter().any(|option| option.name == key) {
            let names: Vec<&str> = known.iter().map(|option| option.name).collect();
            bail!("{shown} has the unknown key `{key}`; it may have {}", names.join(", "));
        }
        if key == "datadir" && !is_named {
            bail!("{shown} lies in the data directory, so it cannot have the key `datadir`");
        }
        values.push((key.clone(), texts(value).with_context(|| format!("{shown}: `{key}`"))?));
    }
    Ok(Some(Layer { values, place: Box::new(move |_| shown.clone()) }))
}

/// The values of a key as they would be written after a flag.
fn texts(value: &Value) -> Result<Vec<String>> {
    Ok(match value {
        Value::String(text) => vec![text.clone()],
        Value::Integer(number) => vec![number.to_string()],
        Value::Boolean(is_so) => vec![is_so.to_string()],
        Value::Array(items) => {
            items.iter().map(texts).collect::<Result<Vec<_>>>()?.into_iter().flatten().collect()
        }
        Value::Float(_) | Value::Datetime(_) | Value::Table(_) => {
            bail!("write a text, a number, true or false, or a list of texts")
        }
    })
}
