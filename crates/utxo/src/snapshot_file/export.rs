//! Writes a snapshot: one walk over a version, one transaction at a time.
//!
//! The header, which precedes the coins, contains their number. A separate walk to count them would
//! double the work. Instead the number is computed: the manifest has the adds and deletes of every
//! run, and the window is in memory (`Version::coin_count`). The walk then confirms it.
//!
//! Coins go from page to file as they are packed. Memory: the walk's, and one transaction's coins.

use std::io::Write;

use varve_runs::Source as _;
use varve_types::{Network, compact_size};

use super::{SnapshotError, SnapshotHeader, TxCoins, core_order};
use crate::codec::Record;
use crate::error::Error;
use crate::run_error::RunError;
use crate::statistics::PROGRESS_INTERVAL;
use crate::version::Version;

impl Version {
    /// Writes the set as Core's `dumptxoutset` does, and returns the number of coins. `progress`
    /// gets the number of coins done and the total. `out` is written one transaction at a time and
    /// flushed at the end: pass a buffered writer.
    pub fn export(
        &self,
        network: Network,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<u64, Error> {
        let (_, base) = self.tip().ok_or(SnapshotError::NoBlock)?;
        let expected = self.coin_count();
        let header = SnapshotHeader { magic: network.wire_magic(), base, coins: expected };
        out.write_all(&header.encode()).map_err(SnapshotError::Write)?;
        let found = self.export_coins(out, &mut |done| progress(done, expected))?;
        if found != expected {
            return Err(SnapshotError::Count { expected, found }.into());
        }
        out.flush().map_err(SnapshotError::Write)?;
        progress(found, expected);
        Ok(found)
    }

    fn export_coins(
        &self,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64, Error> {
        let mut records = self.records()?;
        let mut tx: Option<TxCoins> = None;
        let (mut done, mut reported) = (0_u64, 0);
        let mut bytes = Vec::new();
        while let Some(Record { outpoint, birth, coin }) = records.head() {
            let coin = coin.ok_or(RunError::Count { outpoint, birth, count: -1 })?;
            let tx = tx.get_or_insert_with(|| TxCoins::new(outpoint.txid));
            if tx.txid != outpoint.txid {
                write_tx(tx, &mut bytes, out)?;
                tx.restart(outpoint.txid);
                if done - reported >= PROGRESS_INTERVAL {
                    reported = done;
                    progress(done);
                }
            }
            let start = tx.packed.len();
            tx.packed.extend_from_slice(coin.as_bytes());
            tx.coins.push((outpoint.vout, start..tx.packed.len()));
            done += 1;
            records.advance()?;
        }
        if let Some(mut tx) = tx {
            write_tx(&mut tx, &mut bytes, out)?;
        }
        Ok(done)
    }
}

/// Writes the coins of one transaction, in the order of Core's keys.
fn write_tx(
    tx: &mut TxCoins,
    bytes: &mut Vec<u8>,
    out: &mut dyn Write,
) -> Result<(), SnapshotError> {
    tx.coins.sort_unstable_by(|(left, _), (right, _)| core_order(*left, *right));
    bytes.clear();
    bytes.extend_from_slice(tx.txid.as_bytes());
    compact_size::write(tx.coins.len() as u64, bytes);
    for (vout, coin) in &tx.coins {
        compact_size::write(u64::from(*vout), bytes);
        bytes.extend_from_slice(tx.packed(coin));
    }
    out.write_all(bytes).map_err(SnapshotError::Write)
}
