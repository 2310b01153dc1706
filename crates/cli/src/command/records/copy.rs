//! `varve records copy`: all records from one engine to another, compared afterwards.

use std::path::Path;

use anyhow::{Result, bail};
use serde_json::json;
use varve::Height;
use varve::records::store::copy;
use varve::records::{EngineUrl, RecordStore, Settings};

use crate::args::Global;
use crate::progress::Progress;

/// Runs the command. Conflict resolutions that are pending stay as they are.
pub(super) fn run(
    from: &EngineUrl,
    to: &EngineUrl,
    folder: &Path,
    settings: &Settings,
    global: &Global,
) -> Result<()> {
    if from == to {
        bail!("--from and --to name the same records");
    }
    let open = |url| RecordStore::at(url, folder, settings.clone(), global.memory / 2);
    let source = open(from)?;
    let target = open(to)?;
    let records = source.engine().status()?.keys;
    let mut progress = Progress::start_counting("copying", "records", records.saturating_mul(2));
    let report = copy(&source, &target, &mut |done| progress.set(done, 0))?;
    let tip = source.block_state();
    if tip.height > Height::GENESIS {
        target.set_tip(tip)?;
    }
    progress.set_length(report.records * 2);
    progress.finish(0);
    if global.json {
        let (records, blobs, intents) = (report.records, report.blobs, report.intents);
        println!("{}", json!({ "records": records, "blobs": blobs, "intents": intents }));
        return Ok(());
    }
    println!("  from     {from}");
    println!("  to       {to}");
    println!("  records  {}, each compared with its copy", report.records);
    println!("  blobs    {}", report.blobs);
    println!("  intents  {}", report.intents);
    Ok(())
}
