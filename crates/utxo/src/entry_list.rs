//! Entries that own their scripts, and the bytes of an entry in undo records and window files.
//!
//! ```text
//! add      │ txid 32 │ VARINT vout·2 + 1 │ VARINT height·2 + coinbase │ VARINT distance │ output │
//! delete   │ txid 32 │ VARINT vout·2     │ VARINT birth │
//! ```
//!
//! `distance` is birth − height, zigzag (0, −1, 1, −2 … become 0, 1, 2, 3 …): a byte until many
//! blocks have been reorganised. `output` and VARINT are Core's (`varve_types::compress`,
//! `varint`).

use varve_runs::Sequence;
use varve_types::{
    Amount, Coin, DecodeError, DecodeErrorKind, Height, Outpoint, Reader, Txid, compress, varint,
};

use crate::entry::Entry;

/// The shortest entry: a delete with one byte each for `vout` and birth.
pub(crate) const ENTRY_MIN: u64 = 32 + 1 + 1;

/// Bytes that are not an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EntryError {
    /// They do not decode.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A number decodes, but is not what it stands for.
    #[error("at byte {offset}: expected {what}, found a number that is too large")]
    OutOfRange {
        /// What the number stands for.
        what: &'static str,
        /// Where it is.
        offset: usize,
    },
}

/// Entries and their scripts in two allocations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryList {
    items: Vec<Item>,
    scripts: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Item {
    outpoint: Outpoint,
    birth: Sequence,
    height: Height,
    value: Amount,
    kind: Kind,
    /// Where the script ends; it begins where the one before ends.
    script_end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Delete,
    Add { coinbase: bool },
}

impl EntryList {
    /// No entries.
    #[must_use]
    pub const fn new() -> Self {
        Self { items: Vec::new(), scripts: Vec::new() }
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is none.
    #[cfg(feature = "test-suite")]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Forgets all, keeping the memory.
    pub fn clear(&mut self) {
        self.items.clear();
        self.scripts.clear();
    }

    /// Adds an entry at the end.
    pub fn push(&mut self, entry: &Entry<'_>) {
        let Entry { outpoint, birth, coin } = *entry;
        let (height, value, kind) = match coin {
            None => (Height::GENESIS, Amount::ZERO, Kind::Delete),
            Some(coin) => {
                self.scripts.extend_from_slice(coin.script);
                (coin.height, coin.value, Kind::Add { coinbase: coin.coinbase })
            }
        };
        let script_end = self.scripts.len();
        self.items.push(Item { outpoint, birth, height, value, kind, script_end });
    }

    /// The entries, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = Entry<'_>> + Clone {
        let mut start = 0;
        self.items.iter().map(move |item| {
            let script = self.scripts.get(start..item.script_end).unwrap_or_default();
            start = item.script_end;
            let Item { outpoint, birth, height, value, kind, .. } = *item;
            let coin = match kind {
                Kind::Delete => None,
                Kind::Add { coinbase } => Some(Coin { height, coinbase, value, script }),
            };
            Entry { outpoint, birth, coin }
        })
    }

    /// Decodes one entry and adds it at the end.
    pub fn read(&mut self, reader: &mut Reader<'_>) -> Result<(), EntryError> {
        let txid = Txid::from_bytes(*reader.array("a txid")?);
        let (vout, is_add) = read_flagged(reader, "an output's index")?;
        let outpoint = Outpoint::new(txid, vout);
        if !is_add {
            let birth = Sequence::new(read_u32(reader, "a birth")?);
            self.push(&Entry::delete(outpoint, birth));
            return Ok(());
        }
        let (height, coinbase) = read_flagged(reader, "a height")?;
        let offset = reader.offset();
        let birth = i64::from(height).checked_add(unzigzag(varint::read(reader, "a birth")?));
        let birth = birth.and_then(|birth| u32::try_from(birth).ok());
        let birth = birth.ok_or(EntryError::OutOfRange { what: "a birth", offset })?;
        let value = compress::read_output(reader, &mut self.scripts)?;
        self.items.push(Item {
            outpoint,
            birth: Sequence::new(birth),
            height: Height::new(height),
            value,
            kind: Kind::Add { coinbase },
            script_end: self.scripts.len(),
        });
        Ok(())
    }

    /// Decodes `count` entries, unless the bytes that are left cannot hold as many.
    pub(crate) fn read_many(
        &mut self,
        count: u64,
        reader: &mut Reader<'_>,
    ) -> Result<(), EntryError> {
        self.items.reserve(plausible(reader, count, ENTRY_MIN, "entries")?);
        (0..count).try_for_each(|_| self.read(reader))
    }
}

impl<'a> Extend<Entry<'a>> for EntryList {
    fn extend<I: IntoIterator<Item = Entry<'a>>>(&mut self, entries: I) {
        entries.into_iter().for_each(|entry| self.push(&entry));
    }
}

impl<'a> FromIterator<Entry<'a>> for EntryList {
    fn from_iter<I: IntoIterator<Item = Entry<'a>>>(entries: I) -> Self {
        let mut list = Self::new();
        list.extend(entries);
        list
    }
}

/// Appends the bytes of an entry.
pub(crate) fn write_entry(entry: &Entry<'_>, out: &mut Vec<u8>) {
    let Entry { outpoint, birth, coin } = entry;
    out.extend_from_slice(outpoint.txid.as_bytes());
    varint::write(u64::from(outpoint.vout) << 1 | u64::from(coin.is_some()), out);
    let Some(coin) = coin else { return varint::write(u64::from(birth.to_u32()), out) };
    varint::write(coin.code(), out);
    let distance = i64::from(birth.to_u32()) - i64::from(coin.height.to_u32());
    varint::write(zigzag(distance), out);
    compress::write_output(coin.value, coin.script, out);
}

/// `count` as a length, if the rest of `reader` can hold that many items of at least `least` bytes.
pub(crate) fn plausible(
    reader: &Reader<'_>,
    count: u64,
    least: u64,
    what: &'static str,
) -> Result<usize, DecodeError> {
    let left = reader.rest().len() as u64;
    let count_fits = usize::try_from(count).ok().filter(|_| count <= left / least);
    count_fits.ok_or_else(|| reader.error(DecodeErrorKind::CountTooLarge { what, count }))
}

/// A VARINT of 32 bits.
pub(crate) fn read_u32(reader: &mut Reader<'_>, what: &'static str) -> Result<u32, EntryError> {
    let offset = reader.offset();
    let number = varint::read(reader, what)?;
    u32::try_from(number).map_err(|_| EntryError::OutOfRange { what, offset })
}

/// A VARINT of 32 bits and, lowest, a flag.
fn read_flagged(reader: &mut Reader<'_>, what: &'static str) -> Result<(u32, bool), EntryError> {
    let offset = reader.offset();
    let number = varint::read(reader, what)?;
    let upper = u32::try_from(number >> 1).map_err(|_| EntryError::OutOfRange { what, offset })?;
    Ok((upper, number & 1 == 1))
}

const fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

const fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

#[cfg(test)]
#[cfg(not(loom))]
pub(crate) mod tests;
