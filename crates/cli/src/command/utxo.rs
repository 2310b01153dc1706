//! `varve utxo`: the unspent set of a data directory.

use std::fs::{self, File, Permissions};
use std::io::{self, BufReader, BufWriter, ErrorKind, IsTerminal as _, Write};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use hex_conservative::DisplayHex as _;
use serde_json::{Map, Value, json};
use varve_types::{Amount, BlockHash, Height, Network, Outpoint};
use varve_utxo::{Error, SetHash, SnapshotError, SnapshotHeader, Statistics, Version};

use crate::address::described;
use crate::args::{Global, HashKind, Utxo};
use crate::data_dir::{DataDir, threads};
use crate::output::Closed;
use crate::progress::Progress;
use crate::snapshot_base::SnapshotBase;

/// Bytes that are read or written of a file at once.
const BUFFER: usize = 1 << 20;

/// Runs the command.
pub(crate) fn run(command: &Utxo, global: &Global) -> Result<()> {
    let data = DataDir::new(global)?;
    match command {
        Utxo::Get { outpoint } => get(&data, *outpoint, global),
        Utxo::Stats { hash, at: None } => {
            let set = data.open_set()?;
            let hash = hash.unwrap_or(HashKind::HashSerialized3);
            let found = statistics(&set.version, hash.into())?;
            print_statistics(&found, hash, global.json);
            Ok(())
        }
        Utxo::Stats { hash, at: Some(height) } => {
            let hash = hash.unwrap_or(HashKind::Muhash);
            stats_at(&data, Height::new(*height), hash, global.json)
        }
        Utxo::Export { file } => export(&data, file, global),
        Utxo::Import { file, height } => import(&data, file, *height, global),
    }
}

fn get(data: &DataDir, outpoint: Outpoint, global: &Global) -> Result<()> {
    let set = data.open_set()?;
    let coins = set.version.get(&[outpoint])?;
    let Some(coin) = coins.get(0) else {
        let tip = set.version.tip().map_or("the empty set".to_owned(), |(height, hash)| {
            format!("the set at height {height}, block {hash}")
        });
        bail!("{outpoint} is not in {tip}: it never was there, or it is spent");
    };
    let Outpoint { txid, vout } = outpoint;
    let (height, script) = (coin.height.to_u32(), coin.script.to_lower_hex_string());
    if global.json {
        let answer = json!({
            "txid": txid.to_string(),
            "vout": vout,
            "height": height,
            "coinbase": coin.coinbase,
            "value": coin.value.to_sat(),
            "script_pubkey": script,
        });
        println!("{answer}");
    } else {
        println!("  output     {outpoint}");
        println!("  value      {} ({} satoshi)", coin.value, coin.value.to_sat());
        println!("  height     {height}{}", if coin.coinbase { ", coinbase" } else { "" });
        println!("  script     {script}");
        println!("  pays       {}", described(coin.script, global.network));
    }
    Ok(())
}

/// The figures of a past height.
fn stats_at(data: &DataDir, height: Height, hash: HashKind, as_json: bool) -> Result<()> {
    if matches!(hash, HashKind::HashSerialized3) {
        bail!(
            "hash_serialized_3 is known for the tip alone; ask for --hash muhash or none, or sync \
             another --datadir with --stop-height {height}"
        );
    }
    let node = data.open_node()?;
    let mut progress = Progress::start("count", u64::from(height.to_u32()));
    let found = node.stats_at(height, &mut |done, _| progress.set(done, 0))?;
    progress.finish(0);
    let found = Statistics {
        tip: Some((found.height, found.block)),
        txouts: found.txouts,
        transactions: 0,
        bogosize: found.bogosize,
        total_amount: Some(Amount::from_sat(found.total_amount)),
        hash: matches!(hash, HashKind::Muhash).then(|| found.muhash()),
    };
    print_statistics(&found, hash, as_json);
    Ok(())
}

/// Counts under a progress bar.
pub(crate) fn statistics(version: &Version, hash: SetHash) -> Result<Statistics> {
    let mut progress = Progress::start_counting("count", "coins", version.coin_count());
    let found = version.statistics(hash, threads(), &mut |done, _| progress.set(done, 0))?;
    progress.finish(0);
    Ok(found)
}

fn print_statistics(found: &Statistics, hash: HashKind, as_json: bool) {
    let hash_name = match hash {
        HashKind::Muhash => Some("muhash"),
        HashKind::HashSerialized3 => Some("hash_serialized_3"),
        HashKind::None => None,
    };
    let hash = hash_name.zip(found.hash.map(shown));
    let amount = found.total_amount.map(varve_types::Amount::to_sat);
    let (height, block) = (
        found.tip.map(|(height, _)| height.to_u32()),
        found.tip.map(|(_, block)| block.to_string()),
    );
    if as_json {
        let mut answer = Map::new();
        answer.insert("height".into(), json!(height));
        answer.insert("bestblock".into(), json!(block));
        answer.insert("txouts".into(), json!(found.txouts));
        answer.insert("bogosize".into(), json!(found.bogosize));
        answer.extend(hash.map(|(name, hash)| (name.to_owned(), Value::String(hash))));
        answer.insert("total_amount".into(), json!(amount));
        println!("{}", Value::Object(answer));
        return;
    }
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "none".to_owned());
    println!("  height             {}", or_none(height.map(|height| height.to_string())));
    println!("  bestblock          {}", or_none(block));
    println!("  txouts             {}", found.txouts);
    println!("  bogosize           {}", found.bogosize);
    if let Some((name, hash)) = hash {
        println!("  {name:<18} {hash}");
    }
    println!("  total_amount       {} satoshi", or_none(amount.map(|amount| amount.to_string())));
}

/// Writes the set to a file, or to standard output when the file is `-`.
fn export(data: &DataDir, path: &Path, global: &Global) -> Result<()> {
    let set = data.open_set()?;
    let version = &set.version;
    let is_pipe = path == Path::new("-");
    let (coins, bytes) = match is_pipe {
        true => export_to_pipe(version, global.network)?,
        false => export_to_file(version, global.network, path)?,
    };
    let (height, block) = version.tip().context("a set that was exported has a tip")?;
    let answer = if global.json {
        let answer = json!({
            "height": height.to_u32(),
            "bestblock": block.to_string(),
            "txouts": coins,
            "bytes": bytes,
            "file": path,
        });
        answer.to_string()
    } else {
        let place = if is_pipe { "on standard output".into() } else { path.to_string_lossy() };
        format!("{coins} outputs at height {height}, block {block}, in {place}")
    };
    match is_pipe {
        true => eprintln!("{answer}"),
        false => println!("{answer}"),
    }
    Ok(())
}

/// Writes the set to a new file, which gets its name when it is complete: half a snapshot must not
/// be taken for one. Gives the numbers of coins and of bytes.
fn export_to_file(version: &Version, network: Network, path: &Path) -> Result<(u64, u64)> {
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
    let coins = write_set(version, network, &mut out)
        .with_context(|| format!("cannot write {}", path.display()))?;
    let bytes = out.get_ref().bytes;
    drop(out);
    file.as_file().sync_all().with_context(|| format!("cannot write {}", path.display()))?;
    file.persist_noclobber(path).with_context(failed)?;
    Ok((coins, bytes))
}

/// Writes the set to standard output.
fn export_to_pipe(version: &Version, network: Network) -> Result<(u64, u64)> {
    if io::stdout().is_terminal() {
        bail!("the outputs are not text; send standard output to a file or a program");
    }
    // The standard library's own handle looks for the ends of lines.
    let out = io::stdout().as_fd().try_clone_to_owned().context("cannot use standard output")?;
    let counted = Counted { out: File::from(out), bytes: 0 };
    let mut out = BufWriter::with_capacity(BUFFER, counted);
    match write_set(version, network, &mut out) {
        Ok(coins) => Ok((coins, out.get_ref().bytes)),
        Err(Error::Snapshot(SnapshotError::Write(error)))
            if error.kind() == ErrorKind::BrokenPipe =>
        {
            Err(Closed.into())
        }
        Err(error) => Err(error).context("cannot write to standard output"),
    }
}

/// Writes the set under a progress bar; gives the number of coins.
fn write_set(version: &Version, network: Network, out: &mut dyn Write) -> Result<u64, Error> {
    let mut progress = Progress::start_counting("export", "coins", version.coin_count());
    let coins = version.export(network, out, &mut |done, _| progress.set(done, 0))?;
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

fn import(data: &DataDir, path: &Path, height: Option<u32>, global: &Global) -> Result<()> {
    let open = || File::open(path).with_context(|| format!("cannot read {}", path.display()));
    let header = SnapshotHeader::read(open()?, global.network)
        .with_context(|| format!("cannot import {}", path.display()))?;
    let base = SnapshotBase::find(global.network, header.base);
    let height = match (height, base) {
        (Some(height), Some(base)) if height != base.height => {
            bail!("block {} is at height {}, not {height}", header.base, base.height)
        }
        (Some(height), _) => height,
        (None, Some(base)) => base.height,
        (None, None) => bail!(
            "the file does not say at which height its base block {} is; pass --height HEIGHT",
            header.base
        ),
    };
    let (height, block) = data.fill_utxo(|database| {
        let mut progress = Progress::start_counting("import", "coins", header.coins);
        let input = BufReader::with_capacity(BUFFER, open()?);
        let (height, block) = database
            .import(input, Height::new(height), &mut |done, _| progress.set(done, 0))
            .with_context(|| format!("cannot import {}", path.display()))?;
        progress.finish(fs::metadata(path)?.len());
        if let Some(base) = base {
            let found = statistics(&database.snapshot(), SetHash::HashSerialized3)?;
            let hash = found.hash.map(shown).unwrap_or_default();
            if hash != base.set_hash {
                bail!(
                    "the outputs in {} are not those of block {block}: their hash is {hash}, not \
                     {}; get the file anew",
                    path.display(),
                    base.set_hash
                );
            }
        }
        Ok((height, block))
    })?;
    if global.json {
        let answer = json!({
            "height": height.to_u32(),
            "bestblock": block.to_string(),
            "txouts": header.coins,
            "checked": base.is_some(),
        });
        println!("{answer}");
    } else {
        println!("{} outputs at height {height}, block {block}", header.coins);
        if base.is_none() {
            println!("compare what `varve utxo stats` says with a hash that you trust");
        }
    }
    Ok(())
}

/// A hash of the set as Core shows it.
pub(crate) fn shown(hash: [u8; 32]) -> String {
    BlockHash::from_bytes(hash).to_string()
}
