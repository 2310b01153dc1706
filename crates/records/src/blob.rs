//! Transactions that are too large for a record, as files outside.
//!
//! ```text
//! │ magic 8: "T-1.0   " or "O-1.0   " │ extended transaction, or wrapped outputs │
//! ```
//!
//! Names and what lies beside a blob are drawn in `blob/name.rs`. The life of a blob:
//!
//! 1. The blob is durable, with its checksum, before its record is created. A crash in between
//!    leaves a blob that no record needs; the next creation replaces it, or the cleaner removes it.
//! 2. While a record needs it, it stays. The heights beside it are hints: they follow the record
//!    without a sync, and they may be stale.
//! 3. The operation that removes the record removes the blob. The cleaner takes what a crash left:
//!    it reads the height again, looks for the record, and only then removes. Every run of the
//!    pruner and every restart cleans a bounded number of files and notes in the file `cleaned`
//!    where the next run resumes.
//!
//! Writing or removing a blob *holds* its txid, together with the look at the record that decides
//! it. So a removal never overlaps a creation.
//!
//! Every read checks the SHA-256 of header and data: a flipped bit is an error that names the
//! blob.

mod bucket;
mod cache;
mod disk;
mod hold;
mod name;
mod object;
#[cfg(test)]
mod tests;

use bitcoin_hashes::{Hash as _, HashEngine as _, sha256};
use bytes::Bytes;
use varve_types::{Height, Txid};

pub use bucket::{Bucket, BucketError, Upload};
#[cfg(feature = "test-suite")]
pub(crate) use cache::CACHE_CAPACITY;
pub(crate) use cache::{CacheConfig, ExternalCache};
pub use disk::DiskBucket;
use hold::{Held, Holds};
pub(crate) use name::BlobKind;
pub use name::Fanout;
use name::{BlobName, MAGIC_LEN, Sidecar};
pub use object::ObjectBucket;

/// Bytes hashed and passed to the bucket at once.
const CHUNK: usize = 1 << 20;

/// The file that says where the cleaner resumes.
const CLEANED: &str = "cleaned";

/// Some of the txids that have files, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlobPage {
    /// The txids.
    pub(crate) txids: Vec<Txid>,
    /// The last file; `None` when there are no more.
    pub(crate) next: Option<String>,
}

/// Blobs by txid.
#[derive(Debug)]
pub struct Blobs {
    bucket: Box<dyn Bucket>,
    fanout: Fanout,
    holds: Holds,
}

/// Why a blob cannot be read or written.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BlobError {
    /// There is none.
    #[error("no blob of transaction {txid}")]
    NotFound {
        /// The transaction.
        txid: Txid,
    },
    /// Its bytes are not those that were written.
    #[error("blob {name} is damaged: {what}; restore it from a copy")]
    Damaged {
        /// The file.
        name: String,
        /// What is wrong.
        what: &'static str,
    },
    /// The bucket failed.
    #[error("the store of blobs failed: {0}")]
    Bucket(#[from] BucketError),
}

type Result<T, E = BlobError> = std::result::Result<T, E>;

impl Blobs {
    /// The blobs in this bucket.
    pub fn new(bucket: impl Bucket + 'static, fanout: Fanout) -> Self {
        Self { bucket: Box::new(bucket), fanout, holds: Holds::default() }
    }

    /// Waits until none of these txids is held, and holds them all.
    pub(crate) fn hold(&self, txids: &[Txid]) -> Held<'_> {
        self.holds.take(txids)
    }

    /// Writes a blob with its checksum, in place of one that is there. Durable on return.
    pub(crate) fn put(&self, txid: Txid, kind: BlobKind, data: &Bytes) -> Result<()> {
        self.put_pieces(txid, kind, std::iter::once(Ok(data.clone())))
    }

    /// The same from pieces that come one after the other, in the memory of one piece. An error
    /// among them ends the blob, and leaves what was there before.
    pub(crate) fn put_pieces(
        &self,
        txid: Txid,
        kind: BlobKind,
        pieces: impl Iterator<Item = Result<Bytes>>,
    ) -> Result<()> {
        let name = self.name(txid, kind);
        let mut engine = sha256::Hash::engine();
        let mut upload = self.bucket.upload(name.key())?;
        let magic = Bytes::copy_from_slice(&kind.magic());
        for piece in std::iter::once(Ok(magic)).chain(pieces) {
            let mut piece = piece?;
            while !piece.is_empty() {
                let chunk = piece.split_to(piece.len().min(CHUNK));
                engine.input(&chunk);
                upload.write(chunk)?;
            }
        }
        self.put_checksum(&name, &sha256::Hash::from_engine(engine))?;
        Ok(upload.finish()?)
    }

    /// The blob of a transaction: the transaction itself, or else its outputs.
    pub(crate) fn get(&self, txid: Txid) -> Result<(BlobKind, Bytes)> {
        for kind in BlobKind::ALL {
            let name = self.name(txid, kind);
            if let Some(bytes) = self.bucket.read(name.key())? {
                return Ok((kind, self.checked(&name, kind, bytes)?));
            }
        }
        Err(BlobError::NotFound { txid })
    }

    /// Whether there is a blob of this transaction.
    pub(crate) fn contains(&self, txid: Txid) -> Result<bool> {
        Ok(self.find(txid)?.is_some())
    }

    /// Notes the height from which the blob may be removed; `None` takes the note away, and is
    /// then no error when there is no blob.
    pub(crate) fn set_delete_at(&self, txid: Txid, height: Option<Height>) -> Result<()> {
        let found = self.find(txid)?;
        let Some(height) = height.filter(|height| *height > Height::GENESIS) else {
            for kind in BlobKind::ALL {
                self.bucket.remove(&self.name(txid, kind).sidecar(Sidecar::DeleteAt))?;
            }
            return Ok(());
        };
        let name = found.ok_or(BlobError::NotFound { txid })?;
        let text = height.to_u32().to_string();
        Ok(self.bucket.write_hint(&name.sidecar(Sidecar::DeleteAt), text.as_bytes())?)
    }

    /// The height from which the blob may be removed. A note that is no height above 0 is as
    /// good as none, and is taken away.
    pub(crate) fn delete_at(&self, txid: Txid) -> Result<Option<Height>> {
        self.height(txid, Sidecar::DeleteAt)
    }

    /// Notes the height to which the blob must be kept, in place of the other note.
    pub(crate) fn set_preserve_until(&self, txid: Txid, height: Height) -> Result<()> {
        self.set_delete_at(txid, None)?;
        let name = self.find(txid)?.ok_or(BlobError::NotFound { txid })?;
        let text = height.to_u32().to_string();
        Ok(self.bucket.write_hint(&name.sidecar(Sidecar::PreserveUntil), text.as_bytes())?)
    }

    /// The height to which the blob must be kept.
    #[cfg(test)]
    pub(crate) fn preserve_until(&self, txid: Txid) -> Result<Option<Height>> {
        self.height(txid, Sidecar::PreserveUntil)
    }

    /// Takes away the blob and all beside it. The caller holds the txid and knows that no record
    /// needs it.
    pub(crate) fn remove(&self, txid: Txid) -> Result<()> {
        for kind in BlobKind::ALL {
            let name = self.name(txid, kind);
            self.bucket.remove(name.key())?;
            for sidecar in Sidecar::ALL {
                self.bucket.remove(&name.sidecar(sidecar))?;
            }
        }
        Ok(())
    }

    /// The txids of the next files behind a place, at most `limit` files.
    pub(crate) fn page(&self, after: Option<&str>, limit: usize) -> Result<BlobPage> {
        let keys = self.bucket.list(after, limit)?;
        let mut txids: Vec<Txid> = keys.iter().filter_map(|key| BlobName::txid_of(key)).collect();
        txids.sort_unstable();
        txids.dedup();
        let full = keys.len() == limit;
        Ok(BlobPage { txids, next: keys.into_iter().next_back().filter(|_| full) })
    }

    /// Where the cleaner resumes: behind this file.
    pub(crate) fn cleaned_to(&self) -> Result<Option<String>> {
        let bytes = self.bucket.read(CLEANED)?;
        Ok(bytes.and_then(|bytes| String::from_utf8(bytes.to_vec()).ok()))
    }

    /// Notes where the cleaner resumes; `None` for the beginning. A lost note costs a second look.
    pub(crate) fn set_cleaned_to(&self, place: Option<&str>) -> Result<()> {
        match place {
            Some(place) => self.bucket.write_hint(CLEANED, place.as_bytes())?,
            None => drop(self.bucket.remove(CLEANED)?),
        }
        Ok(())
    }

    fn name(&self, txid: Txid, kind: BlobKind) -> BlobName {
        BlobName::new(txid, kind, self.fanout)
    }

    fn find(&self, txid: Txid) -> Result<Option<BlobName>> {
        for kind in BlobKind::ALL {
            let name = self.name(txid, kind);
            if self.bucket.contains(name.key())? {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    fn height(&self, txid: Txid, sidecar: Sidecar) -> Result<Option<Height>> {
        for kind in BlobKind::ALL {
            let key = self.name(txid, kind).sidecar(sidecar);
            let Some(bytes) = self.bucket.read(&key)? else { continue };
            let number = std::str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse().ok());
            match number.filter(|number| *number > 0) {
                Some(number) => return Ok(Some(Height::new(number))),
                None => self.bucket.remove(&key)?,
            };
        }
        Ok(None)
    }

    fn put_checksum(&self, name: &BlobName, digest: &sha256::Hash) -> Result<()> {
        // The hash prints in the order of its bytes, as sha256sum does.
        let line = format!("{digest}  {}\n", name.file());
        let mut upload = self.bucket.upload(&name.sidecar(Sidecar::Checksum))?;
        upload.write(Bytes::from(line))?;
        Ok(upload.finish()?)
    }

    /// The data of a blob, its checksum and header verified.
    fn checked(&self, name: &BlobName, kind: BlobKind, mut bytes: Bytes) -> Result<Bytes> {
        let damaged = |what| BlobError::Damaged { name: name.to_string(), what };
        let line = self.bucket.read(&name.sidecar(Sidecar::Checksum))?;
        let line = line.ok_or_else(|| damaged("its checksum is missing"))?;
        let digest = sha256::Hash::hash(&bytes).to_string();
        if !line.starts_with(digest.as_bytes()) {
            return Err(damaged("its checksum is another"));
        }
        let magic = bytes.first_chunk::<MAGIC_LEN>();
        if !magic.is_some_and(|magic| kind.has_magic(*magic)) {
            return Err(damaged("it begins as another kind of file"));
        }
        Ok(bytes.split_off(MAGIC_LEN))
    }
}
