//! A small file that is replaced whole: manifests, checkpoints, settings.
//!
//! ```text
//!  0        8        12       16       24       28       36      40
//!  ┌────────┬────────┬────────┬────────┬────────┬────────┬───────┬─────────┐
//!  │ magic  │ version│ zero   │ kind   │ payload│ length │ crc   │ payload │
//!  │VARVEENV│ u32 = 1│ u32    │ 8 bytes│ version│ u64    │ u32   │ `length`│
//!  │        │        │        │        │ u32    │        │       │ bytes   │
//!  └────────┴────────┴────────┴────────┴────────┴────────┴───────┴─────────┘
//! ```
//!
//! crc = CRC32C(bytes 0 to 36 ‖ payload). `version` is the envelope's; the payload's version is
//! defined by the owner. The file is exactly 40 + length bytes.
//!
//! [`replace`] writes `NAME.tmp`, syncs it, renames it to `NAME` and syncs the directory. A crash
//! leaves the old file or the new one, and after `replace` returned, the new one. A `NAME.tmp` left
//! by a crash is overwritten by the next replace and never read.

use crate::checksum::{Checksum, Kind};
use crate::error::{Error, FormatError, Result};
use crate::fields::{array, put, u32_at, u64_at};
use crate::offset::FileOffset;
use crate::storage::{Access, Caching, Storage};

const MAGIC: [u8; 8] = *b"VARVEENV";
const VERSION: u32 = 1;

const MAGIC_AT: usize = 0;
const VERSION_AT: usize = MAGIC_AT + size_of::<[u8; 8]>();
const ZERO_AT: usize = VERSION_AT + size_of::<u32>();
const KIND_AT: usize = ZERO_AT + size_of::<u32>();
const PAYLOAD_VERSION_AT: usize = KIND_AT + size_of::<Kind>();
const LENGTH_AT: usize = PAYLOAD_VERSION_AT + size_of::<u32>();
const CRC_AT: usize = LENGTH_AT + size_of::<u64>();
/// The length of an envelope without its payload.
pub const ENVELOPE_HEADER_LEN: usize = CRC_AT + size_of::<u32>();
const _: () = assert!(ENVELOPE_HEADER_LEN == 40);

/// The longest payload. Envelopes are read whole, so they are for small things.
pub(crate) const ENVELOPE_MAX: u64 = 64 << 20;

/// The content of an envelope: a payload and the version its owner gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope<P> {
    /// The version of the payload's format.
    pub version: u32,
    /// The payload.
    pub payload: P,
}

impl<'a> Envelope<&'a [u8]> {
    /// The bytes of the file.
    #[must_use]
    pub fn encode(&self, kind: Kind) -> Vec<u8> {
        let mut bytes = vec![0; ENVELOPE_HEADER_LEN];
        put(&mut bytes, MAGIC_AT, &MAGIC);
        put(&mut bytes, VERSION_AT, &VERSION.to_le_bytes());
        put(&mut bytes, KIND_AT, &kind.0);
        put(&mut bytes, PAYLOAD_VERSION_AT, &self.version.to_le_bytes());
        put(&mut bytes, LENGTH_AT, &(self.payload.len() as u64).to_le_bytes());
        let crc = crc(&bytes, self.payload);
        put(&mut bytes, CRC_AT, &crc.to_le_bytes());
        bytes.extend_from_slice(self.payload);
        bytes
    }

    /// Reads and verifies `bytes`, the whole file, which must hold `kind`.
    pub fn decode(bytes: &'a [u8], kind: Kind) -> Result<Self, FormatError> {
        let Some(payload) = bytes.get(ENVELOPE_HEADER_LEN..) else {
            return Err(FormatError::damaged(bytes.len(), "the file is cut short"));
        };
        if array(bytes, MAGIC_AT) != MAGIC {
            return Err(FormatError::damaged(MAGIC_AT, "this is not an envelope"));
        }
        if u64_at(bytes, LENGTH_AT) != payload.len() as u64 {
            return Err(FormatError::damaged(
                LENGTH_AT,
                "the file has another length than it says",
            ));
        }
        if u32_at(bytes, CRC_AT) != crc(bytes, payload) {
            return Err(FormatError::damaged(CRC_AT, "the file's checksum is wrong"));
        }
        let version = u32_at(bytes, VERSION_AT);
        if version != VERSION {
            return Err(FormatError::Version { found: version, supported: VERSION });
        }
        if u32_at(bytes, ZERO_AT) != 0 {
            return Err(FormatError::damaged(ZERO_AT, "the reserved bytes are not zero"));
        }
        if array(bytes, KIND_AT) != kind.0 {
            return Err(FormatError::damaged(KIND_AT, "the file holds another kind of data"));
        }
        Ok(Self { version: u32_at(bytes, PAYLOAD_VERSION_AT), payload })
    }
}

fn crc(bytes: &[u8], payload: &[u8]) -> u32 {
    let covered: [u8; CRC_AT] = array(bytes, 0);
    Checksum::new().with(&covered).with(payload).get()
}

/// Replaces the file `name` atomically and durably.
///
/// ```
/// use varve_io::{Disk, Envelope, Kind, load, replace};
/// # fn main() -> varve_io::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary directory");
/// let storage = Disk::open(dir.path())?;
/// let kind = Kind(*b"EXAMPLE\0");
/// assert_eq!(load(&storage, "manifest", kind)?, None);
/// replace(&storage, "manifest", kind, &Envelope { version: 3, payload: b"runs: 1 2 3" })?;
/// let found = load(&storage, "manifest", kind)?.expect("replaced above");
/// assert_eq!((found.version, &found.payload[..]), (3, &b"runs: 1 2 3"[..]));
/// # Ok(())
/// # }
/// ```
pub fn replace(
    storage: &dyn Storage,
    name: &str,
    kind: Kind,
    envelope: &Envelope<&[u8]>,
) -> Result<()> {
    let len = envelope.payload.len() as u64;
    if len > ENVELOPE_MAX {
        return Err(Error::TooLarge { path: storage.path().join(name), len, limit: ENVELOPE_MAX });
    }
    let bytes = envelope.encode(kind);
    debug_assert!(Envelope::decode(&bytes, kind).is_ok(), "what is written can be read");
    let temporary = temporary_name(name);
    let file = storage.open(&temporary, Access::Replace, Caching::Buffered)?;
    file.write_at(FileOffset::ZERO, &bytes)?;
    file.sync()?;
    storage.rename(&temporary, name)?;
    storage.sync_dir()
}

/// The temporary name under which new content of the file `name` is written.
fn temporary_name(name: &str) -> String {
    format!("{name}.tmp")
}

/// Whether `file` is the file `name` or what an interrupted [`replace`] of it left.
#[must_use]
pub fn is_envelope(name: &str, file: &str) -> bool {
    file == name || file == temporary_name(name)
}

/// Reads the file `name`; `None` when it does not exist.
pub fn load(storage: &dyn Storage, name: &str, kind: Kind) -> Result<Option<Envelope<Vec<u8>>>> {
    let file = match storage.open(name, Access::Read, Caching::Buffered) {
        Err(Error::NotFound { .. }) => return Ok(None),
        opened => opened?,
    };
    let len = file.size()?;
    let limit = ENVELOPE_MAX + ENVELOPE_HEADER_LEN as u64;
    let size = usize::try_from(len).ok().filter(|_| len <= limit);
    let Some(size) = size else {
        return Err(Error::TooLarge { path: file.path().to_path_buf(), len, limit });
    };
    let mut bytes = vec![0; size];
    file.read_at(FileOffset::ZERO, &mut bytes)?;
    let found = Envelope::decode(&bytes, kind);
    let found = found.map_err(|error| error.in_file(file.path(), FileOffset::ZERO))?;
    Ok(Some(Envelope { version: found.version, payload: found.payload.to_vec() }))
}

#[cfg(test)]
mod tests;
