//! `varve compact`: compresses old blocks and merges search tables.

use anyhow::Result;
use indicatif::BinaryBytes;
use varve_server::json;

use crate::args::Global;
use crate::data_dir::DataDir;
use crate::output::print_json;
use crate::progress::Progress;

/// Runs the command.
pub(crate) fn run(global: &Global) -> Result<()> {
    let node = DataDir::new(global).open_node()?;
    let mut progress = Progress::start_counting("compact", "bytes", 0);
    let compacted = node.compact(&mut |done, all| {
        progress.set_length(all);
        progress.set(done, done);
    })?;
    progress.finish(compacted.bytes_before);
    let tip = node.snapshot().tip();
    if global.json {
        return print_json(&json::Compact::new(tip, &compacted));
    }
    let [before, after] = [compacted.bytes_before, compacted.bytes_after].map(BinaryBytes);
    match compacted.files {
        0 => println!("search tables are merged; no old file of blocks was left to compress"),
        files => println!("{files} files of blocks took {before} and take {after} now"),
    }
    Ok(())
}
