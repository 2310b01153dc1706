//! Writes a run, from entries in order, in one pass.
//!
//! ```text
//!  page 0       1 …                              …                …                last
//!  ┌────────┬───────────────────────────────┬────────────────┬────────────────┬────────┐
//!  │ header │ leaves, and before a leaf the │ directory      │ filter         │ footer │
//!  │ page   │ pages of its spilled coins    │                │                │        │
//!  └────────┴───────────────────────────────┴────────────────┴────────────────┴────────┘
//! ```
//!
//! An entry goes into the leaf in the making; a full leaf goes to the file, its first key to the
//! directory, its hashes to the filter. A coin too large for a leaf is written to pages of its own
//! at once, and the leaf refers to them. Memory: the directory and the filter, which are needed
//! afterwards anyway, one chunk of the filter, and 1 MiB of pages to be written.
//!
//! [`RunWriter::finish`] syncs data and name; then a manifest may name the run.

use std::path::PathBuf;
use std::sync::Arc;

use varve_io::{
    Checksum, FileId, Kind, PAGE_PAYLOAD_LEN, PageFileWriter, PageNumber, Storage, StoreId,
};
use varve_types::{Amount, Outpoint, varint};

use crate::directory::DirectoryBuilder;
use crate::entry::Entry;
use crate::filter::FilterBuilder;
use crate::footer::{Footer, RunNumber, Span};
use crate::fuse::Width;
use crate::hasher::OutpointHasher;
use crate::packed::{PackedCoin, pack};
use crate::page::{DELETE, SPILLED, fold};
use crate::page_builder::{BODY_MAX, CROWD_MAX, LeafBuilder};
use crate::run::{Record, Run};
use crate::run_error::RunError;
use crate::secret::Secret;
use crate::sequence::Sequence;

/// What the page file of a run says it is.
pub(crate) const KIND: Kind = Kind(*b"UTXORUN\0");

/// Runs with fewer entries than this get fingerprints of two bytes. They are the young ones, of
/// which a lookup asks many; all of them together are a small part of the set.
const WIDE_BELOW: u64 = 1 << 20;

/// The width of the fingerprints of a run with so many entries.
///
/// The oldest run, which has the first step of all, is by far the largest. A key comes down to it
/// when nothing younger has its coin, so but for questions about coins that nobody has it is there:
/// a precise filter would keep few readings away. One key costs one page of it at most, whatever
/// the filter says.
fn width_of(expected: u64, span: Span) -> Width {
    if expected < WIDE_BELOW {
        Width::Two
    } else if span.first <= Sequence::new(1) {
        Width::Half
    } else {
        Width::One
    }
}

/// The id of a run's file begins with so many bytes of the store's.
pub const IN_FILE_ID: usize = 8;

/// What all runs of a store share.
#[derive(Clone, Copy, Debug)]
pub struct StoreKey {
    /// The store.
    pub id: StoreId,
    /// The key of its hashes.
    pub secret: Secret,
}

impl StoreKey {
    /// The id of a run's file: half of the store's, and the run's number.
    pub(crate) fn file_id(&self, number: RunNumber) -> FileId {
        let mut id = self.id.0;
        let (_, rest) = id.split_at_mut(IN_FILE_ID);
        rest.copy_from_slice(&number.0.to_le_bytes());
        FileId(id)
    }
}

/// A run in the making. Dropped before it is finished, it takes its file away: a disk that is full
/// must not stay full.
#[derive(Debug)]
pub struct RunWriter {
    claim: Claim,
    hasher: OutpointHasher,
    path: PathBuf,
    file: PageFileWriter,
    footer: Footer,
    leaf: LeafBuilder,
    directory: DirectoryBuilder,
    filter: FilterBuilder,
    digest: Checksum,
    last: Option<Last>,
    /// Memory for a packed coin, a body and a page, kept from one to the next.
    packed: Vec<u8>,
    body: Vec<u8>,
    payload: Vec<u8>,
}

/// The entry pushed before.
#[derive(Clone, Copy, Debug)]
struct Last {
    outpoint: Outpoint,
    birth: Sequence,
    /// How many entries of its outpoint came before it.
    before: u32,
}

/// The name of an unfinished file.
#[derive(Debug)]
struct Claim {
    storage: Arc<dyn Storage>,
    name: String,
    finished: bool,
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.finished {
            // A file that cannot be removed now is swept away when the store is opened.
            let _ = self.storage.remove(&self.name);
        }
    }
}

impl RunWriter {
    /// Begins run `number` with the changes of the steps of `span`. `expected` is a guess at the
    /// number of entries.
    pub fn create(
        storage: &Arc<dyn Storage>,
        key: StoreKey,
        (number, span): (RunNumber, Span),
        expected: u64,
    ) -> Result<Self, RunError> {
        let name = number.file_name();
        let file = PageFileWriter::create(&**storage, &name, KIND, key.file_id(number))?;
        let width = width_of(expected, span);
        let footer = Footer {
            store: key.id,
            number,
            span,
            adds: 0,
            deletes: 0,
            data_pages: 0,
            directory: DirectoryBuilder::default().finish().counts(),
            width,
            chunks: 0,
            filter_len: 0,
            digest: 0,
        };
        let path = storage.path().join(&name);
        Ok(Self {
            claim: Claim { storage: Arc::clone(storage), name, finished: false },
            hasher: key.secret.hasher(),
            path,
            file,
            footer,
            leaf: LeafBuilder::default(),
            directory: DirectoryBuilder::default(),
            filter: FilterBuilder::new(width),
            digest: Checksum::new(),
            last: None,
            packed: Vec::new(),
            body: Vec::new(),
            payload: Vec::new(),
        })
    }

    /// Chunks of the filter have this many keys.
    pub(crate) const fn set_chunk_keys(&mut self, keys: usize) {
        self.filter.set_chunk_keys(keys);
    }

    /// The number of entries so far.
    #[must_use]
    pub const fn entries(&self) -> u64 {
        self.footer.adds + self.footer.deletes
    }

    /// Adds an entry behind all before it.
    pub fn push(&mut self, entry: &Entry<'_>) -> Result<(), RunError> {
        let Entry { outpoint, birth, coin } = *entry;
        let Some(coin) = coin else {
            return self.push_record(&Record { outpoint, birth, coin: None });
        };
        if coin.value > Amount::MAX_MONEY {
            return Err(RunError::Amount { outpoint });
        }
        let mut packed = std::mem::take(&mut self.packed);
        packed.clear();
        pack(&coin, &mut packed);
        let coin = Some(PackedCoin::new(&packed));
        let pushed = self.push_record(&Record { outpoint, birth, coin });
        self.packed = packed;
        pushed
    }

    /// Adds an entry whose coin is packed already.
    pub fn push_record(&mut self, record: &Record<'_>) -> Result<(), RunError> {
        let alone = self.check_order(record)?;
        let Record { outpoint, birth, coin } = *record;
        self.body.clear();
        varint::write(u64::from(outpoint.vout), &mut self.body);
        let flags = match coin {
            None => {
                self.footer.deletes += 1;
                varint::write(u64::from(birth.to_u32()), &mut self.body);
                DELETE
            }
            Some(coin) => {
                self.footer.adds += 1;
                self.put_coin((record, alone), coin)?
            }
        };
        let hash = self.hasher.hash(&outpoint).bits();
        if !self.leaf.push((outpoint, hash), flags, &self.body) {
            let stays = self.leaf.tail(&outpoint);
            let next = self.leaf.split_tail(stays);
            self.write_leaf()?;
            self.leaf = next;
            let fits = self.leaf.push((outpoint, hash), flags, &self.body);
            debug_assert!(fits, "what is carried over leaves room for the largest record");
        }
        Ok(())
    }

    /// Whether the entry, if it may follow the last, is the first of its outpoint.
    fn check_order(&mut self, record: &Record<'_>) -> Result<bool, RunError> {
        let Record { outpoint, birth, .. } = *record;
        let mut before = 0;
        if let Some(last) = &self.last {
            if (last.outpoint, last.birth) >= (outpoint, birth) {
                return Err(RunError::Order { outpoint, birth });
            }
            before = if last.outpoint == outpoint { last.before + 1 } else { 0 };
        }
        if before >= CROWD_MAX {
            return Err(RunError::Crowd { outpoint });
        }
        self.last = Some(Last { outpoint, birth, before });
        Ok(before == 0)
    }

    /// Puts the body of an added coin behind the output's place; returns its flags.
    fn put_coin(
        &mut self,
        (record, alone): (&Record<'_>, bool),
        coin: PackedCoin<'_>,
    ) -> Result<u16, RunError> {
        let amount = |_| RunError::Amount { outpoint: record.outpoint };
        let (height, _) = coin.code().map_err(amount)?;
        let bytes = coin.as_bytes();
        if alone && self.body.len() + varint::MAX_LEN + bytes.len() <= BODY_MAX {
            varint::write(fold(record.birth, height.to_u32()), &mut self.body);
            self.body.extend_from_slice(bytes);
            return Ok(0);
        }
        let mut first = None;
        for part in bytes.chunks(PAGE_PAYLOAD_LEN) {
            let page = self.write_page(part)?;
            self.footer.data_pages += 1;
            first.get_or_insert(page);
        }
        let first = first.map_or(0, |page| page.0);
        varint::write(u64::from(record.birth.to_u32()), &mut self.body);
        varint::write(bytes.len() as u64, &mut self.body);
        varint::write(first, &mut self.body);
        Ok(SPILLED)
    }

    /// Writes the leaf in the making, unless it is empty.
    fn write_leaf(&mut self) -> Result<(), RunError> {
        let (Some(first), Some(last)) = (self.leaf.first(), self.leaf.last()) else {
            return Ok(());
        };
        let number = self.directory.next();
        let number = number.ok_or_else(|| RunError::TooManyLeaves { path: self.path.clone() })?;
        let mut payload = std::mem::take(&mut self.payload);
        self.leaf.encode(&mut payload);
        let page = self.write_page(&payload)?;
        self.payload = payload;
        self.footer.data_pages += 1;
        self.directory.push(number, (first, last), page);
        self.filter.push_leaf(first, self.leaf.hashes());
        Ok(())
    }

    /// Writes a page and takes it into the digest, with the zeroes at its end.
    fn write_page(&mut self, payload: &[u8]) -> Result<PageNumber, RunError> {
        const ZEROES: [u8; PAGE_PAYLOAD_LEN] = [0; PAGE_PAYLOAD_LEN];
        let zeroes = ZEROES.get(payload.len()..).unwrap_or_default();
        self.digest = self.digest.with(payload).with(zeroes);
        Ok(self.file.push(payload)?)
    }

    /// Writes the rest, syncs the file and its name, and opens it.
    pub fn finish(mut self) -> Result<Run, RunError> {
        self.write_leaf()?;
        let directory = std::mem::take(&mut self.directory).finish();
        let filter = std::mem::replace(&mut self.filter, FilterBuilder::new(Width::One)).finish();
        for section in [directory.encode(), filter.encode()] {
            for part in section.chunks(PAGE_PAYLOAD_LEN) {
                self.write_page(part)?;
            }
        }
        let footer = Footer {
            directory: directory.counts(),
            chunks: filter.chunks(),
            filter_len: filter.encoded_len(),
            digest: self.digest.get(),
            ..self.footer
        };
        self.file.push(&footer.encode())?;
        let file = self.file.finish()?;
        self.claim.storage.sync_dir()?;
        self.claim.finished = true;
        Ok(Run::assemble((file, self.path), self.hasher, footer, (directory, filter)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::Source as _;
    use crate::fixture::{KEY, disk, outpoint, owned, span};

    #[test]
    fn the_oldest_run_has_the_smallest_filter() {
        let many = WIDE_BELOW;
        assert_eq!(width_of(many, span(1, 900)), Width::Half);
        assert_eq!(width_of(many, span(2, 900)), Width::One);
        assert_eq!(width_of(many - 1, span(1, 900)), Width::Two);
    }

    /// A writer that would not look at the order: what it writes is refused by whoever reads it,
    /// within a leaf and from one leaf to the next; also an entry that comes twice.
    #[test]
    fn entries_out_of_order_are_damage_to_the_reader() {
        let mut keys: Vec<Outpoint> = (0..300).map(outpoint).collect();
        keys.sort_unstable();
        let changes: [fn(&mut Vec<Outpoint>); 3] =
            [|keys| keys.swap(0, 1), |keys| keys.swap(0, 299), |keys| keys[1] = keys[0]];
        for change in changes {
            let (_dir, storage) = disk();
            let named = (RunNumber(1), span(1, 1));
            let mut writer = RunWriter::create(&storage, KEY, named, 300).unwrap();
            let mut keys = keys.clone();
            change(&mut keys);
            for key in keys {
                writer.last = None;
                let coin = owned(1);
                writer.push(&Entry::add(key, Sequence::new(1), coin.coin())).unwrap();
            }
            let run = Arc::new(writer.finish().unwrap());
            let mut cursor = Run::cursor(&run).unwrap();
            let error = (0..300).find_map(|_| cursor.advance().err()).unwrap().to_string();
            assert!(error.contains("out of order") && error.contains("0000000001.run"), "{error}");
        }
    }
}
