//! What a batch changed, in the rows that an engine writes.

use varve_types::{Outpoint, Txid};

use super::set::{Fresh, Held, IntentChange, Set};
use crate::embedded::chunk::{self, CHUNK, chunks};
use crate::embedded::intent;
use crate::embedded::state::State;
use crate::intent::IntentId;
use crate::record::Body;

/// The rows to write, each list in the order of the txids.
#[derive(Debug, Default)]
pub(crate) struct Changes<'a> {
    /// Records that go, with bodies and chunks.
    pub(crate) removed: Vec<Txid>,
    /// New states.
    pub(crate) created: Vec<(Txid, &'a State)>,
    /// The bodies of the new records: what they spend, and their transactions.
    pub(crate) bodies: Vec<(Txid, &'a [Outpoint], &'a Body)>,
    /// Changed states.
    pub(crate) updated: Vec<(Txid, &'a State)>,
    /// Changed chunks.
    pub(crate) chunks: Vec<ChunkRow>,
    /// Intents that go.
    pub(crate) completed: Vec<IntentId>,
    /// Intents that come, unless they are there.
    pub(crate) begun: Vec<(IntentId, Vec<u8>)>,
}

/// A chunk, encoded.
#[derive(Debug)]
pub(crate) struct ChunkRow {
    pub(crate) txid: Txid,
    pub(crate) number: u32,
    pub(crate) bytes: Vec<u8>,
}

impl Set {
    /// Everything that was changed but the chunks of new records: those are
    /// [`Set::new_chunks`].
    pub(crate) fn changes(&self) -> Changes<'_> {
        let mut changes = Changes::default();
        for (txid, held) in &self.held {
            if held.removed {
                changes.removed.push(*txid);
            }
            let Some(state) = &held.state else { continue };
            if let Some(Fresh { body, .. }) = &held.fresh {
                changes.created.push((*txid, state));
                let inputs = held.inputs.as_deref().unwrap_or_default();
                changes.bodies.push((*txid, inputs, body));
                continue;
            }
            if held.changed {
                changes.updated.push((*txid, state));
            }
            let changed = held.chunks.iter().filter(|(_, held)| held.changed);
            changes.chunks.extend(changed.map(|(number, held)| {
                let mut bytes = Vec::new();
                held.chunk.encode(&mut bytes);
                ChunkRow { txid: *txid, number: *number, bytes }
            }));
        }
        for (id, change) in &self.intents {
            match change {
                IntentChange::Complete => changes.completed.push(*id),
                IntentChange::Begin { intent, again } => {
                    changes.completed.extend(again.then_some(*id));
                    let mut bytes = Vec::new();
                    intent::encode(intent, &mut bytes);
                    changes.begun.push((*id, bytes));
                }
            }
        }
        changes
    }

    /// The chunks of new records, one after the other: there may be very many.
    pub(crate) fn new_chunks(&self) -> impl Iterator<Item = ChunkRow> {
        let fresh = self.held.iter().filter_map(|(txid, held)| {
            let fresh = held.fresh.as_ref().filter(|_| held.state.is_some())?;
            Some((*txid, held, fresh))
        });
        fresh.flat_map(|(txid, held, fresh)| {
            (1..chunks(held.outputs())).map(move |number| ChunkRow {
                txid,
                number,
                bytes: new_chunk(held, fresh, number),
            })
        })
    }

    /// Whether nothing has to be written.
    pub(crate) fn is_unchanged(&self) -> bool {
        let touched = |held: &Held| {
            let chunk = held.chunks.values().any(|chunk| chunk.changed);
            held.removed || held.changed || held.fresh.is_some() || chunk
        };
        self.intents.is_empty() && !self.held.values().any(touched)
    }
}

fn new_chunk(held: &Held, fresh: &Fresh, number: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(4 + CHUNK as usize * 68);
    match held.chunks.get(&number) {
        Some(held) => held.chunk.encode(&mut bytes),
        None => chunk::encode_new(fresh.hashes(number), fresh.spending, &mut bytes),
    }
    bytes
}
