//! Writing a group: every key that changed gets one entry.

use varve_io::Result;

use super::base::Base;
use super::body;
use super::chunk::encode_new;
use super::entry::{Before, ENTRY_HEAD_LEN, EntryHead, EntryKind, Marks};
use super::index::Version;
use super::intent;
use super::key::{Key, KeyHash, Part};
use super::log::{Group, LogWriter};
use super::overlay::{BodyPlace, Further, Held, HeldRecord, Overlay, Value};
use super::state::State;

/// What the index has to note for an entry.
#[derive(Debug)]
pub(super) struct Update {
    pub(super) hash: KeyHash,
    pub(super) part: Part,
    pub(super) before: Option<Before>,
    pub(super) version: Version,
}

/// Writes all that changed, durably, and returns what the index has to note.
pub(super) fn write(writer: &mut LogWriter, base: &Base, overlay: &Overlay) -> Result<Vec<Update>> {
    let mut flush = Flush { group: writer.begin()?, updates: Vec::new() };
    flush.updates.reserve(overlay.dirty());
    for (_, held) in overlay.iter().filter(|(_, held)| held.is_dirty()) {
        flush.held(held)?;
        if let Value::Record(record) = held.value()
            && let Some(further) = &record.further
        {
            flush.further(base, overlay, held.key, further)?;
        }
    }
    flush.group.finish()?;
    Ok(flush.updates)
}

struct Flush<'a> {
    group: Group<'a>,
    updates: Vec<Update>,
}

impl Flush<'_> {
    fn held(&mut self, held: &Held) -> Result<()> {
        match held.value() {
            Value::Record(record) => self.record(held, record),
            Value::Chunk(chunk) => {
                self.push(held, EntryKind::Chunk, Marks::default(), |out| chunk.encode(out))
            }
            Value::Intent(kept) => {
                let fill = |out: &mut Vec<u8>| intent::encode(kept, out);
                self.push(held, EntryKind::Intent, Marks::default(), fill)
            }
            Value::Gone if held.before.is_none() => Ok(()),
            Value::Gone => self.push(held, EntryKind::Gone, Marks::default(), |_| ()),
        }
    }

    fn record(&mut self, held: &Held, record: &HeldRecord) -> Result<()> {
        let HeldRecord { state, body, .. } = record;
        match body {
            BodyPlace::At(at) => {
                let fill = |out: &mut Vec<u8>| state.encode(Some(at.at), at.len, out);
                self.push(held, EntryKind::State, state.marks(), fill)?;
                // The entry that has the body is needed as well.
                let last = self.updates.last_mut().expect("pushed above");
                let own = last.version.weight as usize + ENTRY_HEAD_LEN;
                last.version.weight = weight(own + at.len as usize);
                Ok(())
            }
            BodyPlace::New { inputs, body } => {
                let len = body::encoded_len(inputs, body);
                self.whole(held, state, len, |out| body::encode(inputs, body, out))
            }
            BodyPlace::Moved(bytes) => {
                self.whole(held, state, bytes.len(), |out| out.extend_from_slice(bytes))
            }
        }
    }

    /// A state with its body behind it, which `fill` appends and which has `len` bytes.
    fn whole(
        &mut self,
        held: &Held,
        state: &State,
        len: usize,
        fill: impl FnOnce(&mut Vec<u8>),
    ) -> Result<()> {
        let stated = u32::try_from(len).expect("bodies are limited to less than 4 GiB");
        self.push(held, EntryKind::Whole, state.marks(), |out| {
            out.reserve(len);
            state.encode(None, stated, out);
            let start = out.len();
            fill(out);
            debug_assert_eq!(out.len() - start, len, "the length of a body is known before");
        })
    }

    /// The slots behind the first chunk of a new record, but for those that are held apart.
    fn further(
        &mut self,
        base: &Base,
        overlay: &Overlay,
        owner: Key,
        further: &Further,
    ) -> Result<()> {
        self.updates.reserve(further.chunks().len());
        for (part, hashes) in (1..).zip(further.chunks()) {
            let key = Key { part: Part::new(part), ..owner };
            let hash = base.hasher.hash(&key);
            let held = overlay.find(&key, hash);
            if held.is_some_and(|held| overlay.get(held).is_dirty()) {
                continue;
            }
            let (kind, marks) = (EntryKind::Chunk, Marks::default());
            let fill = |out: &mut Vec<u8>| encode_new(hashes, further.spending, out);
            self.entry(hash, EntryHead { kind, marks, key, before: None }, fill)?;
        }
        Ok(())
    }

    fn push(
        &mut self,
        held: &Held,
        kind: EntryKind,
        marks: Marks,
        fill: impl FnOnce(&mut Vec<u8>),
    ) -> Result<()> {
        assert!(!held.flying, "the group before was published");
        let Held { key, hash, before, .. } = *held;
        self.entry(hash, EntryHead { kind, marks, key, before }, fill)
    }

    fn entry(
        &mut self,
        hash: KeyHash,
        head: EntryHead,
        fill: impl FnOnce(&mut Vec<u8>),
    ) -> Result<()> {
        let (at, len) = self.group.push(&head, fill)?;
        let EntryHead { kind, marks, key, before } = head;
        let version = Version { at, marks, kind, weight: weight(len) };
        self.updates.push(Update { hash, part: key.part, before, version });
        Ok(())
    }
}

/// An amount of log, as the index notes it.
fn weight(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
