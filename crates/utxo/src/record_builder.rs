//! Puts entries into leaves, one after the other.
//!
//! An entry goes into the current leaf; a full leaf goes to the file, except for its end, which
//! moves to the next one (`page_builder`). A coin too large for a leaf is spilled at once, and the
//! leaf refers to it.

use varve_runs::{LeafBuilder as Builder, Pages, Sequence};
use varve_types::{Outpoint, varint};

use crate::codec::{CoinCodec, Record};
use crate::packed::PackedCoin;
use crate::page::{DELETE, SPILLED, fold};
use crate::page_builder::{BODY_MAX, CROWD_MAX, LeafBuilder};
use crate::run_error::RunError;

/// Builds the leaves of a run.
#[derive(Debug, Default)]
pub struct RecordBuilder {
    leaf: LeafBuilder,
    last: Option<Last>,
    /// Memory for a body and a page, kept from one to the next.
    body: Vec<u8>,
    payload: Vec<u8>,
}

/// The entry pushed before.
#[derive(Clone, Copy, Debug)]
struct Last {
    outpoint: Outpoint,
    birth: Sequence,
    /// How many entries of its outpoint came before it.
    before: u32,
}

impl Builder<CoinCodec> for RecordBuilder {
    fn new(_expected: u64) -> Self {
        Self::default()
    }

    fn push(
        &mut self,
        row: &Record<'_>,
        hash: u64,
        pages: &mut Pages<CoinCodec>,
    ) -> Result<(), RunError> {
        let alone = self.check_order(row)?;
        let Record { outpoint, birth, coin } = *row;
        self.body.clear();
        varint::write(u64::from(outpoint.vout), &mut self.body);
        let flags = match coin {
            None => {
                varint::write(u64::from(birth.to_u32()), &mut self.body);
                DELETE
            }
            Some(coin) => self.put_coin(row, alone, coin, pages)?,
        };
        if !self.leaf.push(outpoint, hash, flags, &self.body) {
            let stays = self.leaf.tail(&outpoint);
            let next = self.leaf.split_tail(stays);
            self.finish(pages)?;
            self.leaf = next;
            let fits = self.leaf.push(outpoint, hash, flags, &self.body);
            debug_assert!(fits, "what is carried over leaves room for the largest record");
        }
        Ok(())
    }

    fn finish(&mut self, pages: &mut Pages<CoinCodec>) -> Result<(), RunError> {
        let (Some(first), Some(last)) = (self.leaf.first(), self.leaf.last()) else {
            return Ok(());
        };
        self.leaf.encode(&mut self.payload);
        pages.leaf((first, last), &self.payload, self.leaf.hashes())
    }
}

impl RecordBuilder {
    /// Whether the entry, if it may follow the last, is the first of its outpoint.
    fn check_order(&mut self, record: &Record<'_>) -> Result<bool, RunError> {
        let Record { outpoint, birth, .. } = *record;
        let mut before = 0;
        if let Some(last) = &self.last {
            if (last.outpoint, last.birth) >= (outpoint, birth) {
                return Err(RunError::Order { outpoint, birth });
            }
            before = if last.outpoint == outpoint { last.before + 1 } else { 0 };
        }
        if before >= CROWD_MAX {
            return Err(RunError::Crowd { outpoint });
        }
        self.last = Some(Last { outpoint, birth, before });
        Ok(before == 0)
    }

    /// Appends the body of an added coin after the output index; returns its flags.
    fn put_coin(
        &mut self,
        record: &Record<'_>,
        alone: bool,
        coin: PackedCoin<'_>,
        pages: &mut Pages<CoinCodec>,
    ) -> Result<u16, RunError> {
        let amount = |_| RunError::Amount { outpoint: record.outpoint };
        let (height, _) = coin.code().map_err(amount)?;
        let bytes = coin.as_bytes();
        if alone && self.body.len() + varint::MAX_LEN + bytes.len() <= BODY_MAX {
            varint::write(fold(record.birth, height.to_u32()), &mut self.body);
            self.body.extend_from_slice(bytes);
            return Ok(0);
        }
        let first = pages.spill(bytes)?;
        varint::write(u64::from(record.birth.to_u32()), &mut self.body);
        varint::write(bytes.len() as u64, &mut self.body);
        varint::write(first.0, &mut self.body);
        Ok(SPILLED)
    }
}
