//! The outputs that transactions spend.
//!
//! Parents are read once, however many inputs name them, and in one batch. The bytes of an output
//! are a part of the bytes of its transaction and are not copied. External parents come through
//! the cache.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use varve_types::{Amount, Outpoint, TxOut, Txid};

use super::{Item, Result, Store, StoreError};
use crate::error::{RecordError, SlotError};
use crate::extended::Transaction;
use crate::fields::Fields;
use crate::record::{Body, Record};
use crate::utxo_wrapper::UtxoWrapper;

/// Records that are read together.
const READ_BATCH: usize = 1_000;

/// An output that is or was there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpentOutput {
    /// What it is worth.
    pub value: Amount,
    /// What spending it takes.
    pub script: Bytes,
}

impl SpentOutput {
    /// The output, borrowed.
    #[must_use]
    pub fn as_output(&self) -> TxOut<'_> {
        TxOut { value: self.value, script: &self.script }
    }
}

impl Store {
    /// The same transactions in extended form. Those that are extended stay as they are; a parent
    /// without a record is `TX_NOT_FOUND` for the transactions that need it.
    pub fn previous_outputs_decorate(&self, txs: &[Transaction]) -> Result<Vec<Item<Transaction>>> {
        let needs = |tx: &&Transaction| !tx.is_extended();
        let wanted: Vec<Outpoint> =
            txs.iter().filter(needs).flat_map(Transaction::outpoints).collect();
        let outputs = self.outputs(&wanted)?;
        let extend = |tx: &Transaction| {
            if !needs(&tx) {
                return Ok(tx.clone());
            }
            let outpoints = tx.outpoints();
            let find = |outpoint: &Outpoint| match outputs.get(outpoint) {
                Some(Ok(output)) => Ok(output.as_output()),
                Some(Err(error)) => Err(error.clone()),
                None => Err(RecordError::TxNotFound { txid: outpoint.txid }),
            };
            let spent: Vec<TxOut<'_>> = outpoints.iter().map(find).collect::<Item<_>>()?;
            let reason = "a coinbase spends nothing";
            tx.extend(&spent).ok_or(RecordError::Processing { txid: tx.txid(), reason })
        };
        Ok(txs.iter().map(extend).collect())
    }

    /// The outputs at these outpoints, spent or not.
    pub(crate) fn outputs(
        &self,
        outpoints: &[Outpoint],
    ) -> Result<HashMap<Outpoint, Item<SpentOutput>>> {
        let mut wanted: BTreeMap<Txid, Vec<u32>> = BTreeMap::new();
        for outpoint in outpoints {
            wanted.entry(outpoint.txid).or_default().push(outpoint.vout);
        }
        let wanted: Vec<(Txid, Vec<u32>)> = wanted.into_iter().collect();
        let mut found = HashMap::with_capacity(outpoints.len());
        for batch in wanted.chunks(READ_BATCH) {
            let txids: Vec<Txid> = batch.iter().map(|(txid, _)| *txid).collect();
            let records = self.engine.read(&txids, Fields::TX)?;
            for ((txid, vouts), record) in batch.iter().zip(records) {
                self.pick(*txid, vouts, record, &mut found)?;
            }
        }
        Ok(found)
    }

    /// Picks outputs of one transaction.
    fn pick(
        &self,
        txid: Txid,
        vouts: &[u32],
        record: Option<Record>,
        found: &mut HashMap<Outpoint, Item<SpentOutput>>,
    ) -> Result<()> {
        let body = match record {
            None => None,
            Some(record) if record.external => Some(self.cached(txid)?),
            Some(record) => record.body,
        };
        for vout in vouts {
            let outpoint = Outpoint::new(txid, *vout);
            let missing = match &body {
                None => RecordError::TxNotFound { txid },
                Some(_) => RecordError::Slot { outpoint, error: SlotError::UtxoNotFound },
            };
            found.insert(outpoint, Err(missing));
        }
        let mut put = |vout, bytes: &Bytes, output: &TxOut<'_>| {
            if let Some(place) = found.get_mut(&Outpoint::new(txid, vout)) {
                let script = bytes.slice_ref(output.script);
                *place = Ok(SpentOutput { value: output.value, script });
            }
        };
        match &body {
            Some(Body::Transaction(tx)) => {
                let outputs = (0_u32..).zip(tx.view().outputs());
                outputs.for_each(|(vout, output)| put(vout, tx.bytes(), &output));
            }
            Some(Body::Outputs(bytes)) => {
                let bad = |error| StoreError::BadTransaction { txid, error };
                let wrapper = UtxoWrapper::parse(bytes).map_err(bad)?;
                wrapper.outputs().for_each(|found| put(found.index, bytes, &found.output));
            }
            Some(Body::External) | None => {}
        }
        Ok(())
    }

    /// The outputs of an external transaction, from the cache or from its blob. A blob of outputs
    /// alone is not kept in the cache: it is small, and made of what is unspent.
    fn cached(&self, txid: Txid) -> Result<Body> {
        let load = || match self.read_blob(txid) {
            Ok(Body::Transaction(tx)) => Ok(tx),
            other => Err(other),
        };
        match self.cache.get(txid, (self.clock)(), load) {
            Ok(tx) => Ok(Body::Transaction(tx)),
            Err(other) => other,
        }
    }
}
