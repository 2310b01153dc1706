//! `varve index`: which optional indexes a folder keeps, and how far each goes.

use anyhow::Result;
use indicatif::BinaryBytes;
use varve::{Index, IndexSet, IndexStatus, Node, PushdataRule, Status};
use varve_server::json;

use crate::args::{Global, Indexes};
use crate::data_dir::DataDir;
use crate::output::print_json;
use crate::progress::Progress;

/// Runs the command.
pub(crate) fn run(args: &Indexes, global: &Global) -> Result<()> {
    let data = DataDir::new(global);
    let node = data.open_node()?;
    let status = match args {
        Indexes::List => node.status()?,
        Indexes::Add { names, pushdata_rule } => {
            let kept = kept(&node)?;
            let chosen = names.iter().fold(kept, IndexSet::with);
            // The folder is locked until this handle is gone.
            drop(node);
            add(&data, chosen, *pushdata_rule)?
        }
        Indexes::Drop { names } => {
            let left = kept(&node)?.iter().filter(|index| !names.has(*index));
            let left = left.fold(IndexSet::default(), IndexSet::with);
            drop(node);
            data.builder().indexes(left).open()?.status()?
        }
    };
    if global.json {
        return print_json(&json::Indexes::from(&status));
    }
    Index::ALL.into_iter().for_each(|index| print_index(index, &status));
    Ok(())
}

fn kept(node: &Node) -> Result<IndexSet> {
    let status = node.status()?;
    Ok(status.indexes.iter().fold(IndexSet::default(), |set, kept| set.with(kept.index)))
}

/// Tables of the archive are filled while the folder is opened, the others afterwards.
fn add(data: &DataDir<'_>, chosen: IndexSet, rule: Option<PushdataRule>) -> Result<Status> {
    let mut builder = data.builder_showing("index").indexes(chosen);
    if let Some(rule) = rule {
        builder = builder.pushdata_rule(rule);
    }
    let node = builder.open()?;
    let mut shown: Option<(Index, Progress)> = None;
    node.build_indexes(&mut |index, done, all| {
        if shown.as_ref().is_none_or(|(other, _)| *other != index) {
            finish(shown.take());
        }
        let (_, progress) =
            shown.get_or_insert_with(|| (index, Progress::start(index.name(), all)));
        progress.set(done, 0);
    })?;
    finish(shown);
    Ok(node.status()?)
}

fn finish(shown: Option<(Index, Progress)>) {
    if let Some((_, progress)) = shown {
        progress.finish(0);
    }
}

fn print_index(index: Index, status: &Status) {
    let name = index.name();
    match status.indexes.iter().find(|kept| kept.index == index) {
        None => println!("  {name:<10} not kept; `varve index add {name}` builds it"),
        Some(IndexStatus { damaged: Some(what), .. }) => {
            println!("  {name:<10} damaged: {what}; `varve repair` rebuilds it");
        }
        Some(IndexStatus { height: Some(height), bytes, .. }) => {
            println!("  {name:<10} up to height {height}, {}", BinaryBytes(*bytes));
        }
        Some(IndexStatus { height: None, .. }) => {
            println!("  {name:<10} not begun; the next sync builds it");
        }
    }
}
