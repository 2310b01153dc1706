//! `varve utxo`: the unspent set of a data directory.

use std::fs::{File, Permissions};
use std::io::{self, BufWriter, ErrorKind, IsTerminal as _, Write};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use hex_conservative::DisplayHex as _;
use varve::{Amount, ExportError, Height, Outpoint, SetHash, Statistics, UnspentSet, shown_hash};
use varve_server::json;

use crate::address::described;
use crate::args::{Global, Utxo};
use crate::data_dir::DataDir;
use crate::output::{self, Answer, Closed, print_json};
use crate::progress::Progress;

/// Bytes that are written at once.
const BUFFER: usize = 1 << 20;

/// Runs the command.
pub(crate) fn run(command: &Utxo, global: &Global) -> Result<()> {
    let data = DataDir::new(global);
    match command {
        Utxo::Get { outpoint } => get(&data, *outpoint, global),
        Utxo::Stats { hash, at: None } => {
            let hash = hash.map_or(SetHash::HashSerialized3, SetHash::from);
            let found = statistics(&data.open_unspent()?, hash)?;
            print_statistics(&found, hash, global.json)
        }
        Utxo::Stats { hash, at: Some(height) } => {
            let hash = hash.map_or(SetHash::Muhash, SetHash::from);
            print_statistics(&stats_at(&data, *height, hash)?, hash, global.json)
        }
        Utxo::Export { file } => export(&data, file, global),
        Utxo::Import { file, height } => import(&data, file, *height, global),
    }
}

fn get(data: &DataDir<'_>, outpoint: Outpoint, global: &Global) -> Result<()> {
    let set = data.open_unspent()?;
    let Some(output) = set.get(&[outpoint])?.pop().flatten() else {
        let tip = set.tip().map_or("the empty set".to_owned(), |tip| format!("the set at {tip}"));
        bail!("{outpoint} is not in {tip}: it never was there, or it is spent");
    };
    if global.json {
        return print_json(&json::Utxo::from(&output));
    }
    println!("  output     {outpoint}");
    println!("  value      {} ({} satoshi)", output.value, output.value.to_sat());
    println!("  height     {}{}", output.height, if output.coinbase { ", coinbase" } else { "" });
    println!("  script     {}", output.script.to_lower_hex_string());
    println!("  pays       {}", described(&output.script, global.network));
    Ok(())
}

/// The figures of a past height.
fn stats_at(data: &DataDir<'_>, height: Height, hash: SetHash) -> Result<Statistics> {
    if hash == SetHash::HashSerialized3 {
        bail!(varve::Error::HashOfTheTipAlone { height });
    }
    let node = data.open_node()?;
    let mut progress = Progress::start("count", u64::from(height.to_u32()));
    let found = node.stats_at(height, hash, &mut |done, _| progress.set(done, 0))?;
    progress.finish(0);
    Ok(found)
}

/// Counts under a progress bar.
pub(crate) fn statistics(set: &UnspentSet, hash: SetHash) -> Result<Statistics> {
    let mut progress = Progress::start_counting("count", "coins", set.coin_count());
    let found = set.stats(hash, &mut |done, _| progress.set(done, 0))?;
    progress.finish(0);
    Ok(found)
}

fn print_statistics(found: &Statistics, hash: SetHash, as_json: bool) -> Result<()> {
    if as_json {
        return print_json(&json::Stats::new(found, hash));
    }
    let name = match hash {
        SetHash::Muhash => "muhash",
        SetHash::HashSerialized3 => "hash_serialized_3",
        SetHash::None => "",
    };
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "none".to_owned());
    let amount = found.total_amount.map(Amount::to_sat);
    println!("  height             {}", or_none(found.tip.map(|(height, _)| height.to_string())));
    println!("  bestblock          {}", or_none(found.tip.map(|(_, block)| block.to_string())));
    println!("  txouts             {}", found.txouts);
    println!("  bogosize           {}", found.bogosize);
    if let Some(hash) = found.hash.map(shown_hash) {
        println!("  {name:<18} {hash}");
    }
    println!("  total_amount       {} satoshi", or_none(amount.map(|amount| amount.to_string())));
    Ok(())
}

/// Writes the set to a file, or to standard output when the file is `-`.
fn export(data: &DataDir<'_>, path: &Path, global: &Global) -> Result<()> {
    let set = data.open_unspent()?;
    let is_pipe = path == Path::new("-");
    let Exported { coins, bytes } = if is_pipe {
        export_to_pipe(&set)?
    } else {
        // Relative to the folder of whoever asks.
        let from = global.directory.as_deref().unwrap_or(Path::new(""));
        export_to_file(&set, &from.join(path))?
    };
    let tip = set.tip().context("a set that was exported has a tip")?;
    let name = path.to_string_lossy();
    let answer = if global.json {
        serde_json::to_string(&json::Export::new(tip, coins, bytes, &name))?
    } else {
        let place = if is_pipe { "on standard output" } else { &*name };
        format!("{coins} outputs at {tip}, in {place}")
    };
    match is_pipe {
        true => eprintln!("{answer}"),
        false => println!("{answer}"),
    }
    Ok(())
}

/// The size of a snapshot file.
struct Exported {
    coins: u64,
    bytes: u64,
}

/// Writes the set to a new file, which gets its name when it is complete: half a snapshot must not
/// be taken for a whole one.
fn export_to_file(set: &UnspentSet, path: &Path) -> Result<Exported> {
    let failed = || format!("cannot make {}; name a file that does not exist yet", path.display());
    let name = path.file_name().with_context(failed)?;
    if path.symlink_metadata().is_ok() {
        bail!(failed());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let file = tempfile::Builder::new()
        .prefix(name)
        .suffix(".incomplete")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder.unwrap_or(Path::new(".")))
        .with_context(|| format!("cannot make {}", path.display()))?;
    let mut out = BufWriter::with_capacity(BUFFER, Counted { out: file.as_file(), bytes: 0 });
    let coins =
        write_set(set, &mut out).with_context(|| format!("cannot write {}", path.display()))?;
    let bytes = out.get_ref().bytes;
    drop(out);
    file.as_file().sync_all().with_context(|| format!("cannot write {}", path.display()))?;
    file.persist_noclobber(path).with_context(failed)?;
    Ok(Exported { coins, bytes })
}

/// Writes the set to standard output.
fn export_to_pipe(set: &UnspentSet) -> Result<Exported> {
    let out: Box<dyn Write> = if output::is_diverted() {
        Box::new(Answer)
    } else if io::stdout().is_terminal() {
        bail!("the outputs are not text; send standard output to a file or a program");
    } else {
        // The standard library's handle is line-buffered.
        let out = io::stdout().as_fd().try_clone_to_owned();
        Box::new(File::from(out.context("cannot use standard output")?))
    };
    let counted = Counted { out, bytes: 0 };
    let mut out = BufWriter::with_capacity(BUFFER, counted);
    match write_set(set, &mut out) {
        Ok(coins) => Ok(Exported { coins, bytes: out.get_ref().bytes }),
        Err(ExportError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => {
            Err(Closed.into())
        }
        Err(error) => Err(error).context("cannot write to standard output"),
    }
}

/// Writes the set under a progress bar, and returns the number of coins.
fn write_set(set: &UnspentSet, out: &mut dyn Write) -> Result<u64, ExportError> {
    let mut progress = Progress::start_counting("export", "coins", set.coin_count());
    let coins = set.export(out, &mut |done, _| progress.set(done, 0))?;
    progress.finish(0);
    Ok(coins)
}

/// Counts the bytes that are written.
struct Counted<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn import(data: &DataDir<'_>, path: &Path, height: Option<Height>, global: &Global) -> Result<()> {
    let mut progress = Progress::start_counting("import", "coins", 0);
    let imported = data.builder().import_unspent(path, height, &mut |done, all| {
        progress.set_length(all);
        progress.set(done, 0);
    })?;
    progress.finish(0);
    if global.json {
        return print_json(&json::Import::from(&imported));
    }
    println!("{} outputs at {}", imported.coins, imported.tip);
    if !imported.checked {
        println!("compare the hash of `varve utxo stats` with one that you trust");
    }
    Ok(())
}
