//! Our side: a node opened and synced as `varve sync` does it.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use varve_bench::figures::Figures;
use varve_io::Disk;
use varve_node::source::directory::Directory;
use varve_node::{
    IndexSet, Options, Organizer, Report, SettingsChange, Source, SyncOptions, Verify,
};
use varve_types::{BlockHash, Height, Network};
use varve_utxo::SetHash;

/// The network of simulated chains of this profile.
pub(crate) const NETWORK: Network = Network::Regtest;
/// The default of `--memory`.
pub(crate) const MEMORY: usize = 2 << 30;

/// Opens the node of a folder, or makes one.
pub(crate) fn open(folder: &Path) -> Result<Organizer> {
    open_with(folder, "none")
}

/// The same with these indexes.
pub(crate) fn open_with(folder: &Path, indexes: &str) -> Result<Organizer> {
    fs::create_dir_all(folder)?;
    let workers = available_parallelism()?;
    let settings =
        SettingsChange { indexes: Some(indexes.parse::<IndexSet>()?), ..SettingsChange::default() };
    let options = Options { memory: MEMORY, workers, settings, ..Options::new(NETWORK, [7; 32]) };
    Ok(Organizer::open(Arc::new(Disk::open(folder)?), options)?)
}

/// `varve sync --from CHAIN --verify spends [--stop-height STOP]`.
pub(crate) fn sync(
    node: &mut Organizer,
    chain: &Path,
    stop: Option<u32>,
    report: &mut dyn FnMut(Report<'_>),
) -> Result<()> {
    let mut source = Directory::open(chain, NETWORK, false)?;
    sync_from(node, &mut source, stop, report)
}

/// `varve sync --from CHAIN --verify scripts [--stop-height STOP]`.
pub(crate) fn sync_scripts(node: &mut Organizer, chain: &Path, stop: Option<u32>) -> Result<()> {
    let mut source = Directory::open(chain, NETWORK, false)?;
    let options = SyncOptions { verify: Verify::Scripts, ..options(stop) };
    Ok(node.sync(&mut source, &options, &mut |_| ())?)
}

/// The same from any source.
pub(crate) fn sync_from(
    node: &mut Organizer,
    source: &mut dyn Source,
    stop: Option<u32>,
    report: &mut dyn FnMut(Report<'_>),
) -> Result<()> {
    Ok(node.sync(source, &options(stop), report)?)
}

fn options(stop: Option<u32>) -> SyncOptions {
    let start = Instant::now();
    let now = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
    };
    SyncOptions {
        verify: Verify::Spends,
        assume_valid: None,
        stop_height: stop.map(Height::new),
        follow: false,
        mempool: false,
        all_branches: true,
        stop: Arc::default(),
        clock: Arc::new(move || start.elapsed()),
        now: Arc::new(now),
    }
}

/// Reports `tip` and `muhash` of the node at the end.
pub(crate) fn report_set(node: &Organizer) -> Result<()> {
    let snapshot = node.snapshot();
    let threads = available_parallelism()?;
    let found = snapshot.utxo.statistics(SetHash::Muhash, threads, &mut |_, _| ())?;
    let hash = found.hash.context("the set has no hash")?;
    ensure!(found.tip.is_some_and(|(_, tip)| tip == snapshot.tip.1), "the set has another tip");
    Figures::report("tip", snapshot.tip.1);
    // Shown reversed, like a block hash.
    Figures::report("muhash", BlockHash::from_bytes(hash));
    Figures::report("coins", found.txouts);
    Ok(())
}
