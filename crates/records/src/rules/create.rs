//! A new record.

use std::convert::Infallible;

use varve_types::Txid;

use super::{Head, Parts, Rules, Working, above, not_zero};
use crate::operation::NewRecord;
use crate::outcome::Effect;
use crate::record::{Body, PartCounts};
use crate::utxo_hash::UtxoHash;

impl<W: Working> Rules<'_, W> {
    /// The head of a new record. One that lost a double spend is scheduled from the beginning.
    pub(super) fn new_head(&self, txid: &Txid, new: &NewRecord) -> Head {
        debug_assert!(new.utxos.len() <= u32::MAX as usize, "outputs of {txid} are counted");
        let parts = counts(new);
        let slots = parts.iter().map(|part| part.utxos).sum();
        Head {
            version: new.version,
            lock_time: new.lock_time,
            fee: new.fee,
            size: new.size,
            extended_size: new.extended_size,
            is_coinbase: new.is_coinbase,
            spending_height: new.spending_height,
            created_at: new.created_at,
            external: matches!(new.body, Body::External),
            locked: new.locked,
            conflicting: new.conflicting,
            creating: new.creating,
            unmined_since: new.blocks.is_empty().then_some(not_zero(new.height)),
            preserve_until: None,
            delete_at: self.schedules(new).then(|| above(new.height, self.context.retention)),
            blocks: new.blocks.clone(),
            total_utxos: u32::try_from(new.utxos.len()).expect("fewer than 2^32 outputs"),
            frozen_utxos: if new.frozen { slots } else { 0 },
            batch: new.batch,
            parts,
            reassignments: 0,
            conflicting_children: Vec::new(),
        }
    }

    /// Tells the owner of the blob that a record began scheduled.
    pub(super) fn schedule_new(&mut self, txid: Txid, new: &NewRecord) {
        if self.schedules(new) && matches!(new.body, Body::External) {
            let height = above(new.height, self.context.retention);
            self.effects.push(Effect::DeleteAt { txid, height });
        }
    }

    const fn schedules(&self, new: &NewRecord) -> bool {
        new.conflicting && self.context.retention > 0
    }
}

/// The slots in each part; there is always one part.
fn counts(new: &NewRecord) -> Parts {
    let count = |slots: &[Option<UtxoHash>]| {
        let utxos = u32::try_from(slots.iter().flatten().count()).expect("at most a batch");
        Ok::<_, Infallible>(PartCounts { utxos, spent: 0 })
    };
    let parts = new.utxos.chunks(new.batch.get() as usize).map(count);
    Parts::collect(parts).unwrap_or_else(|never| match never {})
}
