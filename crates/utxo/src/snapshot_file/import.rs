//! Reads a snapshot into a run: one pass, one transaction at a time.
//!
//! 1. The header is checked before anything is written.
//! 2. Transactions must come in ascending order, the coins of one in the order of Core's keys; both
//!    strictly, so that nothing occurs twice. A file in another order was not written by Core.
//! 3. Every coin is unpacked, and must be of the base block or one below it. The run packs it
//!    again, so that an unusual encoding becomes the usual one.
//! 4. The coins of a transaction are sorted by number and pushed. Outpoints ascend, so the run is
//!    written as it is read.
//!
//! **Births.** A coin of height h is born in step h + 1, as if every block up to the base had been
//! one step. Together with the outpoint that is unique, which is all that a birth must be; later
//! steps have higher numbers; and on disk, where a birth is stored as its distance to the height,
//! it takes one byte instead of the three that a single number for all coins would take.
//!
//! Memory: the run writer's, and one transaction's coins.

use std::io::Read;

use varve_runs::Sequence;
use varve_types::script::MAX_SCRIPT_SIZE;
use varve_types::{BlockHash, Height, Network, Outpoint, Txid};

use super::input::Input;
use super::{HEADER_LEN, MAGIC, SnapshotError, SnapshotHeader, TxCoins, VERSION, core_order};
use crate::entry::Entry;
use crate::error::Error;
use crate::packed::PackedCoin;
use crate::run_writer::RunWriter;
use crate::statistics::PROGRESS_INTERVAL;

/// The longest script that the window accepts. Spendable scripts of Bitcoin are shorter.
const SCRIPT_MAX: u64 = (1 << 30) - 1;

/// A snapshot whose header has been checked.
#[derive(Debug)]
pub(crate) struct SnapshotReader<R> {
    input: Input<R>,
    header: SnapshotHeader,
    base_height: Height,
    /// The longest script that a coin has.
    script_max: u64,
}

impl<R: Read> SnapshotReader<R> {
    /// Reads the header, which must be of `network`.
    pub(crate) fn new(
        input: R,
        network: Network,
        base_height: Height,
    ) -> Result<Self, SnapshotError> {
        let mut input = Input::new(input);
        let header = read_header(&mut input, network)?;
        let script_max = if network.is_bsv() { SCRIPT_MAX } else { MAX_SCRIPT_SIZE as u64 };
        Ok(Self { input, header, base_height, script_max })
    }

    /// The base block of the snapshot.
    pub(crate) const fn base(&self) -> (Height, BlockHash) {
        (self.base_height, self.header.base)
    }

    /// The number of coins that the header claims.
    pub(crate) const fn coins(&self) -> u64 {
        self.header.coins
    }

    /// The step that stands for the base block: the last.
    pub(crate) fn sequence(&self) -> Result<Sequence, SnapshotError> {
        let sequence = birth(self.base_height).filter(|sequence| sequence.next().is_some());
        let (height, base) = self.base();
        sequence.ok_or(SnapshotError::Height { height, base })
    }

    /// Pushes all coins. An error may occur after any of them.
    pub(crate) fn copy_to(
        mut self,
        writer: &mut RunWriter,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), Error> {
        let (mut tx, mut script) = (TxCoins::new(Txid::ZERO), Vec::new());
        let (mut done, mut reported) = (0, 0);
        while done < self.coins() {
            let txid = Txid::from_bytes(self.input.array("a txid")?);
            if done > 0 && txid <= tx.txid {
                let what = "the transactions are out of order, or one is repeated";
                return Err(self.input.damaged(what).into());
            }
            tx.restart(txid);
            self.read_tx(self.coins() - done, &mut tx)?;
            done += tx.coins.len() as u64;
            self.push(&mut tx, &mut script, writer)?;
            if done - reported >= PROGRESS_INTERVAL {
                reported = done;
                progress(done, self.coins());
            }
        }
        self.input.end()?;
        progress(done, self.coins());
        Ok(())
    }

    /// Reads the coins of a transaction; at most `left` coins remain.
    fn read_tx(&mut self, left: u64, tx: &mut TxCoins) -> Result<(), SnapshotError> {
        let count = self.input.compact_size(u64::MAX, "a number of coins")?;
        if count == 0 {
            return Err(self.input.damaged("a transaction has no coins"));
        }
        if count > left {
            return Err(self.input.damaged("there are more coins than the header says"));
        }
        for _ in 0..count {
            let vout = self.input.compact_size(u64::from(u32::MAX), "an output's place")?;
            let vout = u32::try_from(vout).expect("limited to 32 bits above");
            if tx.coins.last().is_some_and(|(last, _)| core_order(*last, vout).is_ge()) {
                let what = "the coins of a transaction are out of order, or one is repeated";
                return Err(self.input.damaged(what));
            }
            let start = tx.packed.len();
            self.input.packed_coin(self.script_max, &mut tx.packed)?;
            tx.coins.push((vout, start..tx.packed.len()));
        }
        Ok(())
    }

    /// Pushes the coins of a transaction in the order of their numbers.
    fn push(
        &self,
        tx: &mut TxCoins,
        script: &mut Vec<u8>,
        writer: &mut RunWriter,
    ) -> Result<(), Error> {
        tx.coins.sort_unstable_by_key(|(vout, _)| *vout);
        for (vout, range) in &tx.coins {
            let outpoint = Outpoint::new(tx.txid, *vout);
            script.clear();
            let head = PackedCoin::new(tx.packed(range)).unpack(script);
            let at = self.input.at();
            let head = head.map_err(|error| SnapshotError::Coin { outpoint, at, error })?;
            let (height, base) = (head.height, self.base_height);
            let birth = birth(height).filter(|_| height <= base);
            let birth = birth.ok_or(SnapshotError::AboveBase { outpoint, height, base })?;
            writer.push(&Entry::add(outpoint, birth, head.with_script(script)))?;
        }
        Ok(())
    }
}

/// The step that stands for a block.
fn birth(height: Height) -> Option<Sequence> {
    height.checked_add(1).map(|step| Sequence::new(step.to_u32()))
}

pub(super) fn read_header<R: Read>(
    input: &mut Input<R>,
    network: Network,
) -> Result<SnapshotHeader, SnapshotError> {
    let what = "the header";
    if input.array(what)? != MAGIC {
        return Err(SnapshotError::Foreign);
    }
    let found = u16::from_le_bytes(input.array(what)?);
    if found != VERSION {
        return Err(SnapshotError::Version { found });
    }
    let magic = input.array(what)?;
    if magic != network.wire_magic() {
        return Err(SnapshotError::OtherNetwork { found: magic, wanted: network });
    }
    let base = BlockHash::from_bytes(input.array(what)?);
    if base == BlockHash::ZERO {
        return Err(input.damaged("the base block has no hash"));
    }
    let coins = u64::from_le_bytes(input.array(what)?);
    debug_assert_eq!(input.at(), HEADER_LEN as u64, "all of the header");
    Ok(SnapshotHeader { magic, base, coins })
}
