//! One checkpoint: which runs and which window file the set consists of, and for which tip.
//!
//! One small file, `manifest`, replaced atomically (see `varve_io::replace`). A file counts when
//! the manifest names it, and not before: what a crash leaves of a run that was being written, or
//! of runs whose merge was named already, is swept away when the store is opened. Runs, window file
//! and undo log are all of the same step, so nothing else is needed to open the set as it was.
//!
//! ```text
//!  store id 16 │ secret 16
//!  network     │ length u8 │ name │
//!  parameters  │ window u32 │ flush interval u32 │ fan-in u32 │ most probed u32 │
//!  checkpoint  │ sequence u32 │ has a tip u8 │ height u32 │ block hash 32 │
//!  next file   │ u64 │
//!  window      │ number u64, 0 = none │ pages u64 │
//!  undo        │ length u32 │ checkpoint, as in `undo/log` │
//!  runs        │ count u32 │ then for each, youngest first:
//!              │ number u64 │ first step u32 │ last step u32 │ adds u64 │ deletes u64 │
//!              │ pages u64 │ digest u32 │
//! ```
//!
//! This is the payload of an envelope of kind `UTXOMAN`, version 1.

use varve_io::{
    Envelope, FileOffset, FormatError, Kind, Storage, StoreId, is_envelope, is_far, is_segment,
    load, remove_unnamed, replace,
};
use varve_types::{BlockHash, Height, Network, Reader};

use crate::compact::Policy;
use crate::footer::{Fields, RunNumber, Span};
use crate::run::RunInfo;
use crate::run_error::RunError;
use crate::run_writer::{IN_FILE_ID, StoreKey};
use crate::secret::Secret;
use crate::sequence::Sequence;
use crate::undo::{UNDO_PREFIX, UndoCheckpoint};
use crate::window::WindowFile;

/// The name of the file.
pub const MANIFEST_FILE: &str = "manifest";
const KIND: Kind = Kind(*b"UTXOMAN\0");
const VERSION: u32 = 1;
const RUN_LEN: usize = 44;

/// What was chosen when the set was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// How deep a block is before it leaves the window.
    pub window: u32,
    /// How many blocks are flushed into one run.
    pub flush_interval: u32,
    /// How many alike runs are merged into one.
    pub fan_in: u32,
    /// The most runs that a lookup probes.
    pub max_probed: u32,
}

impl Parameters {
    /// When runs are merged.
    #[must_use]
    pub const fn policy(&self) -> Policy {
        Policy { fan_in: self.fan_in as usize, max_probed: self.max_probed as usize }
    }
}

impl Default for Parameters {
    fn default() -> Self {
        Self { window: 144, flush_interval: 256, fan_in: 4, max_probed: 12 }
    }
}

/// The moment the files stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Checkpoint {
    /// The last step whose changes are in the files.
    pub sequence: Sequence,
    /// The block the set stood at after that step; `None` for the empty set.
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
        format!("{:010}.window", number.0)
    }

    /// What it takes to load it.
    #[must_use]
    pub fn file(&self, key: &StoreKey) -> WindowFile {
        let (name, id) = (Self::file_name(self.number), key.file_id(self.number));
        WindowFile { name, id, pages: self.pages }
    }
}

/// Files that a manifest does not name and that stay all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Runs that a later manifest will name.
    pub numbers: Vec<RunNumber>,
    /// All files from this number on: they were begun after the manifest was made.
    pub from: RunNumber,
}

impl Kept {
    /// Nothing stays: nobody is writing.
    pub const NOTHING: Self = Self { numbers: Vec::new(), from: RunNumber(u64::MAX) };
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
    /// What was chosen when the set was made.
    pub parameters: Parameters,
    /// The moment the files stand for.
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
        let Some(Envelope { version, payload }) = load(storage, MANIFEST_FILE, KIND)? else {
            return Ok(None);
        };
        let decoded = match version {
            VERSION => Self::decode(&payload),
            found => Err(FormatError::Version { found, supported: VERSION }),
        };
        let path = storage.path().join(MANIFEST_FILE);
        let base = FileOffset::new(varve_io::ENVELOPE_HEADER_LEN as u64);
        let manifest = decoded.map_err(|error| error.in_file(&path, base))?;
        if manifest.network != network {
            let (found, wanted) = (manifest.network, network);
            let path = storage.path().to_path_buf();
            return Err(RunError::OtherNetwork { path, found, wanted });
        }
        Ok(Some(manifest))
    }

    /// Replaces the manifest of a directory. When this returns, it is durable.
    pub fn store(&self, storage: &dyn Storage) -> Result<(), RunError> {
        let payload = self.encode();
        let envelope = Envelope { version: VERSION, payload: payload.as_slice() };
        Ok(replace(storage, MANIFEST_FILE, KIND, &envelope)?)
    }

    /// Removes runs and window files that the manifest does not name, except what is `kept`;
    /// returns how many. Called when the store is opened, and after a checkpoint. Refuses when
    /// another file has such a name: the store would write over it some day.
    pub fn sweep(&self, storage: &dyn Storage, kept: &Kept) -> Result<usize, RunError> {
        let runs = self.runs.iter().map(|run| run.number).chain(kept.numbers.iter().copied());
        let mut named: Vec<String> = runs.map(RunNumber::file_name).collect();
        named.extend(self.window.map(|window| SavedWindow::file_name(window.number)));
        let begun = |name: &str| number_of(name).is_some_and(|number| number >= kept.from);
        let mut removed = 0;
        for name in storage.list()? {
            if Self::is_swept(&name) && !named.contains(&name) && !begun(&name) {
                let is_far =
                    number_of(&name).is_none_or(|number| is_far(number.0, self.next_run.0));
                remove_unnamed(storage, &name, (self.store, IN_FILE_ID), is_far)?;
                removed += 1;
            }
        }
        if removed > 0 {
            storage.sync_dir()?;
        }
        Ok(removed)
    }

    /// Whether a file of this name is a run or a window file: it goes when no manifest names it.
    pub(crate) fn is_swept(name: &str) -> bool {
        let is_named = |number: RunNumber| {
            [number.file_name(), SavedWindow::file_name(number)].contains(&name.to_owned())
        };
        number_of(name).is_some_and(is_named)
    }

    /// The payload.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&self.store.0);
        out.extend_from_slice(&self.secret.to_bytes());
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
        out.extend_from_slice(&self.next_run.0.to_le_bytes());
        let (window, pages) = self.window.map_or((0, 0), |window| (window.number.0, window.pages));
        out.extend_from_slice(&window.to_le_bytes());
        out.extend_from_slice(&pages.to_le_bytes());
        let mut undo = Vec::new();
        self.undo.encode(&mut undo);
        let len = u32::try_from(undo.len()).expect("a checkpoint has a mark every 64 blocks");
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&undo);
        let count = u32::try_from(self.runs.len()).expect("runs are few");
        out.extend_from_slice(&count.to_le_bytes());
        for run in &self.runs {
            encode_run(run, &mut out);
        }
        out
    }

    /// Decodes a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, FormatError> {
        let mut fields = Fields { rest: payload, at: 0 };
        let store = StoreId(fields.take()?);
        let secret = Secret::new(fields.take()?);
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
        let next_run = RunNumber(fields.u64()?);
        let window = SavedWindow { number: RunNumber(fields.u64()?), pages: fields.u64()? };
        let window = (window.number.0 > 0).then_some(window);
        let undo = decode_undo(&mut fields)?;
        let count = fields.u32()?;
        let at = fields.at;
        let damaged = |what| FormatError::Damaged { at, what };
        let (runs, rest) = fields.rest.as_chunks::<RUN_LEN>();
        if runs.len() as u64 != u64::from(count) || !rest.is_empty() {
            return Err(damaged("the list of runs has another length than it says"));
        }
        let runs: Vec<RunInfo> = runs.iter().map(decode_run).collect::<Result<_, _>>()?;
        let in_order = runs.is_sorted_by(|young, old| young.span.first > old.span.last)
            && runs.iter().all(|run| run.number < next_run)
            && window.is_none_or(|window| window.number < next_run);
        if !in_order {
            return Err(damaged("the runs are out of order"));
        }
        Ok(Self { store, secret, network, parameters, checkpoint, next_run, window, undo, runs })
    }
}

/// Whether a set writes files of this name.
#[must_use]
pub fn is_store_file(name: &str) -> bool {
    is_envelope(MANIFEST_FILE, name) || Manifest::is_swept(name) || is_segment(UNDO_PREFIX, name)
}

/// The number in the name of a run or window file.
fn number_of(name: &str) -> Option<RunNumber> {
    let (number, _) = name.split_once('.')?;
    number.parse().ok().map(RunNumber)
}

fn decode_network(fields: &mut Fields<'_>) -> Result<Network, FormatError> {
    let unknown = FormatError::Damaged { at: fields.at, what: "the network is not known" };
    let [len] = fields.take()?;
    let name = fields.rest.split_at_checked(usize::from(len));
    let (name, rest) = name.ok_or(unknown)?;
    fields.rest = rest;
    fields.at += name.len();
    std::str::from_utf8(name).ok().and_then(|name| name.parse().ok()).ok_or(unknown)
}

fn decode_undo(fields: &mut Fields<'_>) -> Result<UndoCheckpoint, FormatError> {
    let len = fields.u32()? as usize;
    let damaged = FormatError::Damaged { at: fields.at, what: "the undo checkpoint is damaged" };
    let (undo, rest) = fields.rest.split_at_checked(len).ok_or(damaged)?;
    fields.rest = rest;
    fields.at += len;
    let mut reader = Reader::new(undo);
    let undo = UndoCheckpoint::decode(&mut reader).map_err(|_| damaged)?;
    reader.end().map_err(|_| damaged)?;
    Ok(undo)
}

fn encode_run(run: &RunInfo, out: &mut Vec<u8>) {
    out.extend_from_slice(&run.number.0.to_le_bytes());
    out.extend_from_slice(&run.span.first.to_u32().to_le_bytes());
    out.extend_from_slice(&run.span.last.to_u32().to_le_bytes());
    out.extend_from_slice(&run.adds.to_le_bytes());
    out.extend_from_slice(&run.deletes.to_le_bytes());
    out.extend_from_slice(&run.pages.to_le_bytes());
    out.extend_from_slice(&run.digest.to_le_bytes());
}

fn decode_run(bytes: &[u8; RUN_LEN]) -> Result<RunInfo, FormatError> {
    let mut fields = Fields { rest: bytes, at: 0 };
    Ok(RunInfo {
        number: RunNumber(fields.u64()?),
        span: Span { first: Sequence::new(fields.u32()?), last: Sequence::new(fields.u32()?) },
        adds: fields.u64()?,
        deletes: fields.u64()?,
        pages: fields.u64()?,
        digest: fields.u32()?,
    })
}

#[cfg(test)]
mod tests;
