//! The set of a later block, out of an earlier set and the files of the blocks between.
//!
//! 1. Blocks are taken in their order. Of each block first the deletions count, then the
//!    additions: a deletion takes away an addition that is there, an addition takes away a
//!    deletion that is there, and what finds no partner is kept.
//! 2. The new set is the old one without the deletions, then the additions in the order in which
//!    their transactions came, the outputs of a transaction by their number.
//!
//! So what is created and spent within the range never reaches a set, and memory is what the range
//! adds and spends of the old set.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{Read, Write};

use varve_types::{Amount, Outpoint, TxOut, Txid};

use super::{AdditionsReader, DeletionsReader, SetReader, SetWriter, UtxoFileError};
use crate::utxo_wrapper::{UtxoWrapper, WrappedOutput, WrapperHead, write_wrapper};

/// What a range of blocks adds and deletes.
#[derive(Debug, Default)]
pub struct Consolidator {
    /// What is added, by the order of arrival.
    added: BTreeMap<u64, AddedTx>,
    /// Where the transactions are in it.
    places: HashMap<Txid, u64>,
    deleted: BTreeSet<Outpoint>,
    arrivals: u64,
}

#[derive(Debug)]
struct AddedTx {
    head: WrapperHead,
    outputs: BTreeMap<u32, (Amount, Vec<u8>)>,
}

impl Consolidator {
    /// A range without blocks.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next block.
    pub fn push_block<D: Read, A: Read>(
        &mut self,
        mut deletions: DeletionsReader<D>,
        mut additions: AdditionsReader<A>,
    ) -> Result<(), UtxoFileError> {
        while let Some(outpoint) = deletions.next_outpoint()? {
            self.delete(outpoint);
        }
        while let Some(wrapper) = additions.next_wrapper()? {
            self.add(&wrapper);
        }
        Ok(())
    }

    /// An output is spent.
    pub fn delete(&mut self, outpoint: Outpoint) {
        if !self.take_added(&outpoint) {
            self.deleted.insert(outpoint);
        }
    }

    /// Outputs are created.
    pub fn add(&mut self, wrapper: &UtxoWrapper<'_>) {
        for WrappedOutput { index, output } in wrapper.outputs() {
            if !self.deleted.remove(&Outpoint::new(wrapper.txid, index)) {
                let tx = self.added_tx(wrapper);
                tx.outputs.insert(index, (output.value, output.script.to_vec()));
            }
        }
    }

    /// Writes the new set: the old one, if there is one, with the changes of the range.
    pub fn finish<R: Read, W: Write>(
        &self,
        old: Option<&mut SetReader<R>>,
        new: &mut SetWriter<W>,
    ) -> Result<(), UtxoFileError> {
        let mut bytes = Vec::new();
        if let Some(old) = old {
            while let Some(wrapper) = old.next_wrapper()? {
                let txid = wrapper.txid;
                let lives = |output: &WrappedOutput<'_>| {
                    !self.deleted.contains(&Outpoint::new(txid, output.index))
                };
                let left: Vec<_> = wrapper.outputs().filter(lives).collect();
                let head = head_of(&wrapper);
                bytes.clear();
                write_wrapper(&head, left.into_iter(), &mut bytes);
                new.push(&bytes)?;
            }
        }
        for tx in self.added.values() {
            let outputs = tx.outputs.iter().map(|(index, (value, script))| WrappedOutput {
                index: *index,
                output: TxOut { value: *value, script },
            });
            bytes.clear();
            write_wrapper(&tx.head, outputs, &mut bytes);
            new.push(&bytes)?;
        }
        Ok(())
    }

    fn added_tx(&mut self, wrapper: &UtxoWrapper<'_>) -> &mut AddedTx {
        let arrivals = &mut self.arrivals;
        let place = *self.places.entry(wrapper.txid).or_insert_with(|| {
            *arrivals += 1;
            *arrivals
        });
        let empty = || AddedTx { head: head_of(wrapper), outputs: BTreeMap::new() };
        self.added.entry(place).or_insert_with(empty)
    }

    /// Takes an addition away; false when there is none.
    fn take_added(&mut self, outpoint: &Outpoint) -> bool {
        let Some(place) = self.places.get(&outpoint.txid).copied() else { return false };
        let Some(tx) = self.added.get_mut(&place) else { return false };
        let found = tx.outputs.remove(&outpoint.vout).is_some();
        if tx.outputs.is_empty() {
            self.added.remove(&place);
            self.places.remove(&outpoint.txid);
        }
        found
    }
}

fn head_of(wrapper: &UtxoWrapper<'_>) -> WrapperHead {
    WrapperHead { txid: wrapper.txid, height: wrapper.height, coinbase: wrapper.coinbase }
}
