//! What is kept of a record beside its slots and its transaction.

use varve_types::{Amount, Height, Txid};

use crate::fields::Fields;
use crate::key::BatchSize;
use crate::record::{Alerts, BlockId, BlockRef, Children, PartCounts, Record};

/// The counts of the parts of a record: one for nearly all, which lies in place.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Parts {
    master: PartCounts,
    children: Vec<PartCounts>,
}

impl Parts {
    /// Takes the counts of all parts, the master's first.
    pub(crate) fn collect<E>(
        mut parts: impl Iterator<Item = Result<PartCounts, E>>,
    ) -> Result<Self, E> {
        let master = parts.next().transpose()?.unwrap_or_default();
        Ok(Self { master, children: parts.collect::<Result<_, E>>()? })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &PartCounts> {
        std::iter::once(&self.master).chain(&self.children)
    }

    fn get_mut(&mut self, part: usize) -> Option<&mut PartCounts> {
        match part.checked_sub(1) {
            None => Some(&mut self.master),
            Some(child) => self.children.get_mut(child),
        }
    }
}

/// The small part of a record: every operation on it looks here, and most change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) version: u32,
    pub(crate) lock_time: u32,
    pub(crate) fee: Amount,
    pub(crate) size: u64,
    pub(crate) extended_size: u64,
    pub(crate) is_coinbase: bool,
    pub(crate) spending_height: Option<Height>,
    pub(crate) created_at: u64,
    pub(crate) external: bool,
    pub(crate) locked: bool,
    pub(crate) conflicting: bool,
    pub(crate) creating: bool,
    pub(crate) unmined_since: Option<Height>,
    pub(crate) preserve_until: Option<Height>,
    pub(crate) delete_at: Option<Height>,
    pub(crate) blocks: Vec<BlockRef>,
    pub(crate) total_utxos: u32,
    pub(crate) frozen_utxos: u32,
    pub(crate) batch: BatchSize,
    /// The counts of each part of `batch` slots.
    pub(crate) parts: Parts,
    /// How often outputs were reassigned: reassignments are kept with their slots, and this is
    /// the order in which they came.
    pub(crate) reassignments: u32,
    pub(crate) conflicting_children: Vec<Txid>,
}

impl Head {
    /// Whether every slot is spent.
    pub(crate) fn is_all_spent(&self) -> bool {
        self.parts.iter().all(|part| part.spent == part.utxos)
    }

    pub(crate) fn block_ids(&self) -> Vec<BlockId> {
        self.blocks.iter().map(|block| block.id).collect()
    }

    /// The counts of the part that has the slot of this output.
    pub(crate) fn counts_mut(&mut self, vout: u32) -> &mut PartCounts {
        let part = self.batch.place(vout).part as usize;
        self.parts.get_mut(part).expect("every slot is counted in its part")
    }

    /// The record with this head and nothing else.
    pub(crate) fn to_record(&self, txid: Txid) -> Record {
        Record {
            txid,
            version: self.version,
            lock_time: self.lock_time,
            fee: self.fee,
            size: self.size,
            extended_size: self.extended_size,
            is_coinbase: self.is_coinbase,
            spending_height: self.spending_height,
            created_at: self.created_at,
            external: self.external,
            locked: self.locked,
            conflicting: self.conflicting,
            creating: self.creating,
            unmined_since: self.unmined_since,
            preserve_until: self.preserve_until,
            delete_at: self.delete_at,
            blocks: self.blocks.clone(),
            total_utxos: self.total_utxos,
            frozen_utxos: self.frozen_utxos,
            batch: self.batch,
            parts: self.parts.iter().copied().collect(),
            fields: Fields::HEAD,
            body: None,
            inputs: Vec::new(),
            utxos: Vec::new(),
            alerts: Alerts::default(),
            children: Children::default(),
        }
    }
}
