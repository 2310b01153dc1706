//! One checkpoint: which runs and which window file the set consists of, and for which tip.
//!
//! The manifest is that of `varve-runs`: one small file, replaced atomically, with the list of runs
//! and what the owner adds. Runs, window file and undo log are all of the same step, so nothing
//! else is needed to open the set as it was. The set's own part:
//!
//! ```text
//!  network     │ length u8 │ name │
//!  parameters  │ window u32 │ flush interval u32 │ fan-in u32 │ most probed u32 │
//!  checkpoint  │ sequence u32 │ has a tip u8 │ height u32 │ block hash 32 │
//!  window      │ number u64, 0 = none │ pages u64 │
//!  undo        │ length u32 │ checkpoint, as in `undo/log` │
//! ```
//!
//! The envelope is of kind `UTXOMAN`, version 2.

use varve_io::{FormatError, Kind, Storage, StoreId};
use varve_runs::{Fields, Kept, RunInfo, RunNumber, Secret, Sequence, StoreKey, Tiers};
use varve_types::{BlockHash, Height, Network, Reader};

use crate::run_error::RunError;
use crate::undo::UndoCheckpoint;
use crate::window::WindowFile;

const FORMAT: (Kind, u32) = (Kind(*b"UTXOMAN\0"), 2);
/// The extension of window files.
const WINDOW: &str = "window";

/// The shape of a set, chosen when it is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// How deep a block is before it leaves the window.
    pub window: u32,
    /// How many blocks are flushed into one run.
    pub flush_interval: u32,
    /// How many runs of similar size are merged into one.
    pub fan_in: u32,
    /// The most runs that a lookup probes.
    pub max_probed: u32,
}

impl Parameters {
    /// The merge policy.
    pub(crate) const fn tiers(&self) -> Tiers {
        Tiers { fan_in: self.fan_in as usize, max_probed: self.max_probed as usize }
    }
}

impl Default for Parameters {
    fn default() -> Self {
        Self { window: 144, flush_interval: 256, fan_in: 4, max_probed: 12 }
    }
}

/// A durable state of the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Checkpoint {
    /// The last step whose changes are in the files.
    pub sequence: Sequence,
    /// The last block of the set at that step; `None` for the empty set.
    pub tip: Option<(Height, BlockHash)>,
}

/// The window file of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedWindow {
    /// Its number: runs and window files are counted together.
    pub number: RunNumber,
    /// How many pages it has.
    pub pages: u64,
}

impl SavedWindow {
    /// The name of the window file with this number.
    #[must_use]
    pub fn file_name(number: RunNumber) -> String {
        number.name(WINDOW)
    }

    /// The identity needed to load the file.
    #[must_use]
    pub fn file(&self, key: &StoreKey) -> WindowFile {
        let (name, id) = (Self::file_name(self.number), key.file_id(self.number));
        WindowFile { name, id, pages: self.pages }
    }
}

/// The set's table of contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The store's id.
    pub store: StoreId,
    /// The key of its hashes.
    pub secret: Secret,
    /// The chain whose coins these are.
    pub network: Network,
    /// The shape of a set, chosen when it is created.
    pub parameters: Parameters,
    /// A durable moment of the set.
    pub checkpoint: Checkpoint,
    /// The number for the next file.
    pub next_run: RunNumber,
    /// The window; `None` when it is empty.
    pub window: Option<SavedWindow>,
    /// Where the undo log stands.
    pub undo: UndoCheckpoint,
    /// The runs, youngest first.
    pub runs: Vec<RunInfo>,
}

impl Manifest {
    /// The manifest of an empty set, with an id and a secret that the caller drew at random.
    #[must_use]
    pub fn new(key: StoreKey, network: Network, parameters: Parameters) -> Self {
        Self {
            store: key.id,
            secret: key.secret,
            network,
            parameters,
            checkpoint: Checkpoint { sequence: Sequence::ZERO, tip: None },
            next_run: RunNumber(1),
            window: None,
            undo: UndoCheckpoint::default(),
            runs: Vec::new(),
        }
    }

    /// What all runs share.
    #[must_use]
    pub const fn key(&self) -> StoreKey {
        StoreKey { id: self.store, secret: self.secret }
    }

    /// Reads the manifest of a directory that must be of `network`; `None` when there is none.
    pub fn load(storage: &dyn Storage, network: Network) -> Result<Option<Self>, RunError> {
        let manifest = varve_runs::Manifest::load(storage, FORMAT, Self::of)?;
        if let Some(Self { network: found, .. }) = manifest
            && found != network
        {
            let path = storage.path().to_path_buf();
            return Err(RunError::OtherNetwork { path, found, wanted: network });
        }
        Ok(manifest)
    }

    /// Replaces the manifest of a directory. When this returns, it is durable.
    pub fn store(&self, storage: &dyn Storage) -> Result<(), RunError> {
        assert!(
            self.runs.iter().all(|run| run.span.last <= self.checkpoint.sequence),
            "no run is younger than its checkpoint"
        );
        Ok(self.parts().store(storage, FORMAT)?)
    }

    /// Removes runs and window files that the manifest does not list, except what is `kept`;
    /// returns how many. Called when the store is opened, and after a checkpoint. Refuses when a
    /// foreign file has such a name: the store would overwrite it eventually.
    pub fn sweep(&self, storage: &dyn Storage, kept: &Kept) -> Result<usize, RunError> {
        let window = self.window.map(|window| window.number);
        let numbers = kept.numbers.iter().copied().chain(window).collect();
        let kept = Kept { numbers, from: kept.from };
        Ok(self.parts().sweep(storage, &kept, &[WINDOW])?)
    }

    /// Whether a file of this name is a run or a window file: it is removed when no manifest lists
    /// it.
    pub(crate) fn is_swept(name: &str) -> bool {
        varve_runs::Manifest::is_swept(name, &[WINDOW])
    }

    /// The payload.
    #[cfg(feature = "test-suite")]
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.parts().encode()
    }

    /// Decodes a payload.
    #[cfg(feature = "test-suite")]
    pub fn decode(payload: &[u8]) -> Result<Self, FormatError> {
        Self::of(varve_runs::Manifest::decode(payload)?)
    }

    /// The manifest with the set's own part in bytes.
    fn parts(&self) -> varve_runs::Manifest {
        let (next, runs) = (self.next_run, self.runs.clone());
        varve_runs::Manifest { key: self.key(), next, runs, owner: self.own_part() }
    }

    fn own_part(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let name = self.network.name();
        out.push(u8::try_from(name.len()).expect("names of networks are short"));
        out.extend_from_slice(name.as_bytes());
        let Parameters { window, flush_interval, fan_in, max_probed } = self.parameters;
        for number in [window, flush_interval, fan_in, max_probed] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        let Checkpoint { sequence, tip } = self.checkpoint;
        let (height, hash) = tip.unwrap_or_default();
        out.extend_from_slice(&sequence.to_u32().to_le_bytes());
        out.push(u8::from(tip.is_some()));
        out.extend_from_slice(&height.to_u32().to_le_bytes());
        out.extend_from_slice(hash.as_bytes());
        let (window, pages) = self.window.map_or((0, 0), |window| (window.number.0, window.pages));
        out.extend_from_slice(&window.to_le_bytes());
        out.extend_from_slice(&pages.to_le_bytes());
        let mut undo = Vec::new();
        self.undo.encode(&mut undo);
        let len = u32::try_from(undo.len()).expect("a checkpoint has a mark every 64 blocks");
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&undo);
        out
    }

    /// Decodes the set's own part.
    fn of(parts: varve_runs::Manifest) -> Result<Self, FormatError> {
        let varve_runs::Manifest { key, next: next_run, runs, owner } = parts;
        let mut fields = Fields::new(&owner);
        let network = decode_network(&mut fields)?;
        let parameters = Parameters {
            window: fields.u32()?,
            flush_interval: fields.u32()?,
            fan_in: fields.u32()?,
            max_probed: fields.u32()?,
        };
        let sequence = Sequence::new(fields.u32()?);
        let has_tip = fields.take::<1>()? != [0];
        let tip = (Height::new(fields.u32()?), BlockHash::from_bytes(fields.take()?));
        let checkpoint = Checkpoint { sequence, tip: has_tip.then_some(tip) };
        let window = SavedWindow { number: RunNumber(fields.u64()?), pages: fields.u64()? };
        let window = (window.number.0 > 0).then_some(window);
        let undo = decode_undo(&mut fields)?;
        let at = fields.offset();
        if !fields.rest().is_empty() {
            return Err(FormatError::Damaged { at, what: "bytes follow the set's own part" });
        }
        if window.is_some_and(|window| window.number >= next_run) {
            return Err(FormatError::Damaged { at, what: "the window file is out of order" });
        }
        let StoreKey { id: store, secret } = key;
        Ok(Self { store, secret, network, parameters, checkpoint, next_run, window, undo, runs })
    }
}

fn decode_network(fields: &mut Fields<'_>) -> Result<Network, FormatError> {
    let unknown = FormatError::Damaged { at: fields.offset(), what: "the network is not known" };
    let [len] = fields.take()?;
    let name = fields.bytes(usize::from(len))?;
    std::str::from_utf8(name).ok().and_then(|name| name.parse().ok()).ok_or(unknown)
}

fn decode_undo(fields: &mut Fields<'_>) -> Result<UndoCheckpoint, FormatError> {
    let len = fields.u32()? as usize;
    let at = fields.offset();
    let damaged = FormatError::Damaged { at, what: "the undo checkpoint is damaged" };
    let mut reader = Reader::new(fields.bytes(len)?);
    let undo = UndoCheckpoint::decode(&mut reader).map_err(|_| damaged)?;
    reader.end().map_err(|_| damaged)?;
    Ok(undo)
}

#[cfg(test)]
mod tests;
