//! Reading records, with their transactions wherever those are.

use std::sync::atomic::Ordering;

use varve_types::Txid;

use super::{Item, Result, Store, StoreError};
use crate::blob::{BlobError, BlobKind};
use crate::engine::SlotView;
use crate::error::{RecordError, SlotError};
use crate::extended::Transaction;
use crate::fields::Fields;
use crate::operation::SlotRef;
use crate::record::{Body, Record};
use crate::spend_response::SpendResponse;

/// Whether a store can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Whether it answers.
    pub healthy: bool,
    /// How it is, in a sentence.
    pub text: String,
}

impl Health {
    /// The status that an HTTP server gives for it.
    #[must_use]
    pub const fn http_status(&self) -> u16 {
        if self.healthy { 200 } else { 503 }
    }
}

impl Store {
    /// A record with the fields asked for. The transaction comes from its blob when it is there.
    pub fn get(&self, txid: Txid, fields: Fields) -> Result<Record> {
        let item = self.batch_decorate(&[txid], fields)?.pop();
        Ok(item.expect("one txid, one answer")?)
    }

    /// A record without its transaction.
    pub fn get_meta(&self, txid: Txid) -> Result<Record> {
        self.get(txid, Fields::META)
    }

    /// Records in the order of the txids; one that is not there does not disturb the others.
    pub fn batch_decorate(&self, txids: &[Txid], fields: Fields) -> Result<Vec<Item<Record>>> {
        let records = self.engine.read(txids, fields)?;
        let complete = |(txid, record): (&Txid, Option<Record>)| {
            let Some(record) = record else {
                return Ok(Err(RecordError::TxNotFound { txid: *txid }));
            };
            self.with_body(record)
        };
        txids.iter().zip(records).map(complete).collect()
    }

    /// Who spent an output, and whether it can be spent at the height of the tip.
    ///
    /// Of several states that hold, the last in this order is reported: unspent or spent, immature
    /// (a young coinbase, or reassigned not long ago), frozen, conflicting, locked. An output that
    /// is not there is a state too, and no error; a wrong hash is an error.
    pub fn get_spend(&self, slot: &SlotRef) -> Result<SpendResponse> {
        let answer = self.get_spends(std::slice::from_ref(slot))?.pop();
        Ok(answer.expect("one slot, one answer")?)
    }

    /// The same for many outputs.
    pub fn get_spends(&self, slots: &[SlotRef]) -> Result<Vec<Item<SpendResponse>>> {
        let height = self.block_state().height;
        let outpoints: Vec<_> = slots.iter().map(|slot| slot.outpoint).collect();
        let views = self.engine.slots(&outpoints)?;
        let answer = |(slot, view): (&SlotRef, &Option<SlotView>)| {
            let found = view.as_ref().and_then(|view| view.slot);
            if found.is_some_and(|found| found.hash != slot.hash) {
                let (outpoint, error) = (slot.outpoint, SlotError::HashMismatch);
                return Err(RecordError::Slot { outpoint, error });
            }
            Ok(SpendResponse::of(view.as_ref(), slot.outpoint.vout, height))
        };
        Ok(slots.iter().zip(&views).map(answer).collect())
    }

    /// Whether the engine answers, and the blobs. It costs the same however much they hold.
    #[must_use]
    pub fn health(&self) -> Health {
        let blobs = || self.blobs.contains(Txid::ZERO).map(drop).map_err(StoreError::from);
        let status = self.engine.status().map_err(StoreError::from);
        let status = match status.and_then(|status| blobs().map(|()| status)) {
            Ok(status) => status,
            Err(error) => return Health { healthy: false, text: error.to_string() },
        };
        let mut text = "ok".to_owned();
        if let Some(trouble) = status.trouble {
            text += &format!("; the log could not be cleaned and grows: {trouble}");
        }
        if let Some(limit) = status.memory_limit.filter(|limit| status.memory > limit / 8 * 7) {
            let memory = status.memory;
            text += &format!(
                "; the index takes {memory} of the {limit} bytes of memory it may: prune, or give \
                 the records more memory"
            );
        }
        if status.intents > 0 {
            let intents = status.intents;
            text += &format!("; unfinished conflict resolutions: {intents}");
        }
        let lost = self.lost_hints.load(Ordering::Relaxed);
        if lost > 0 {
            text += &format!("; {lost} notes beside blobs were lost; pruning makes up for them");
        }
        if let Some(trouble) = &self.cleaning().trouble {
            text += &format!("; blobs without a record could not be removed: {trouble}");
        }
        Health { healthy: true, text }
    }

    /// Reads the transaction of an external record, when it was asked for.
    fn with_body(&self, mut record: Record) -> Result<Item<Record>> {
        if !record.external || !record.fields.contains(Fields::TX) {
            return Ok(Ok(record));
        }
        let txid = record.txid;
        match self.read_blob(txid) {
            Ok(body) => {
                record.body = Some(body);
                Ok(Ok(record))
            }
            // It may have been pruned between the two reads.
            Err(StoreError::Blob(BlobError::NotFound { .. })) if !self.has_record(txid)? => {
                Ok(Err(RecordError::TxNotFound { txid }))
            }
            Err(error) => Err(error),
        }
    }

    /// The transaction in a blob, or its outputs.
    pub(super) fn read_blob(&self, txid: Txid) -> Result<Body> {
        let (kind, bytes) = self.blobs.get(txid)?;
        match kind {
            BlobKind::Outputs => Ok(Body::Outputs(bytes)),
            BlobKind::Tx => {
                let parsed = Transaction::parse_with_txid(bytes, self.settings.format, txid);
                let bad = |error| StoreError::BadTransaction { txid, error };
                Ok(Body::Transaction(parsed.map_err(bad)?))
            }
        }
    }

    fn has_record(&self, txid: Txid) -> Result<bool> {
        Ok(self.engine.read(&[txid], Fields::HEAD)?.into_iter().flatten().next().is_some())
    }
}
