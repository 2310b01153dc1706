//! A leaf: rows of many scripts in order, those of one script together in a *group*.
//!
//! The same bytes are a page of a run and a piece of a pane in memory.
//!
//! ```text
//!  0        5        7       8
//!  ┌────────┬────────┬───────┬───────┬───────┬─────
//!  │ first  │ groups │ width │ group │ group │ …
//!  │ 5 bytes│ u16    │ u8    │       │       │
//!  └────────┴────────┴───────┴───────┴───────┴─────
//!
//!  group   │ gap varint │ check 5 │ flags u8 │ [txs varint] │ [outputs varint] │ sums │ signs │
//!          │ transactions │ outputs │
//! ```
//!
//! - `first` is the fingerprint of the first group, `gap` what one is above that of the group
//!   before; `check` is the other half of the identity.
//! - `flags`: bits 0 and 1 the form of the sums; bits 2 and 3 the transactions, 3 when their number
//!   follows; bits 4 and 5 the outputs likewise; bit 6 when some rows take back: then `signs` has a
//!   bit for each transaction and output, set for those.
//! - Sums: form 0 none, the group began in a leaf before; form 1 funded once; form 2 funded once
//!   and spent once: both by one value, a varint. Form 3 has five zigzag varints: funded, spent,
//!   transactions, received, balance.
//! - Transactions: the first link in `width` bytes, then the distances as varints.
//! - Outputs: height (the first as it is, then the distance, a varint), 8 bytes of the outpoint's
//!   hash, and unless it takes back: its link as a zigzag varint above that of the output before
//!   (at first: the first transaction of the group here), and its number as a varint.
//!
//! Links count from a *base*, zero in runs. A group spans leaves only when it is larger
//! than a quarter of a leaf, so that nearly all leaves begin with a script of their own and the
//! directory is 8 bytes a leaf.
//!
//! A script that was funded once and spent once takes 19 bytes at mainnet's size: 2 for the gap, 5,
//! 1, about 4 for the value, 4 for the first link and 3 for the second.

mod encode;

use varve_io::FormatError;

use super::identity::{HALF_BITS, Identity};
use super::row::{Body, Place, Row, Weight};
use super::sums::Sums;
use super::varint::{Reader, unzigzag};
use crate::link::TxLink;
use crate::search::LINK_BITS;

pub(super) use encode::encode;

const HALF_LEN: usize = 5;
const GROUPS_AT: usize = HALF_LEN;
const WIDTH_AT: usize = GROUPS_AT + size_of::<u16>();
const HEADER_LEN: usize = WIDTH_AT + size_of::<u8>();
const PRINT_LEN: usize = size_of::<u64>();
const _: () = assert!(HEADER_LEN == 8 && HALF_LEN * 8 == HALF_BITS as usize);

/// The most rows that a page can have: a row takes a byte or more.
pub(super) const ROWS_MAX: usize = 4096;

/// Forms of sums.
const NO_SUMS: u8 = 0;
const FUNDED_ONCE: u8 = 1;
const SPENT_ONCE: u8 = 2;
const ANY_SUMS: u8 = 3;
/// In place of a count: it follows.
const COUNTED: u8 = 3;
const TXS_SHIFT: u32 = 2;
const OUTPUTS_SHIFT: u32 = 4;
const SIGNED: u8 = 1 << 6;

/// A leaf, checked as far as its header goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf<'a> {
    payload: &'a [u8],
    first: u64,
    groups: usize,
    width: usize,
    base: u64,
}

/// Where the group of a script is in its leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Rows of the script are in the leaf before, too.
    pub(super) continues: bool,
    /// It is the last group: rows may be in the next leaf.
    pub(super) is_last: bool,
}

impl<'a> Leaf<'a> {
    /// Reads the header of a leaf whose links count from `base`.
    #[inline]
    pub(super) fn parse(payload: &'a [u8], base: u64) -> Result<Self, FormatError> {
        let mut reader = Reader::new(payload, 0);
        let first = reader.fixed(HALF_LEN)?;
        let groups = usize::try_from(reader.fixed(size_of::<u16>())?).unwrap_or(usize::MAX);
        let width = usize::from(reader.byte()?);
        if groups == 0 || !(1..=HEADER_LEN - 1).contains(&width) {
            return Err(FormatError::Damaged { at: GROUPS_AT, what: "a leaf has no groups" });
        }
        Ok(Self { payload, first, groups, width, base })
    }

    /// All rows, in order.
    pub(super) fn decode(&self, out: &mut Vec<Row>) -> Result<(), FormatError> {
        out.clear();
        let mut groups = self.groups();
        while let Some(group) = groups.next()? {
            groups.body(group, |row| out.push(row))?;
        }
        Ok(())
    }

    /// Adds the rows of one script; `None` when it is not here.
    pub(super) fn find(
        &self,
        identity: Identity,
        mut each: impl FnMut(Row),
    ) -> Result<Option<Found>, FormatError> {
        let mut groups = self.groups();
        while let Some(group) = groups.next()? {
            if group > identity {
                return Ok(None);
            }
            if group == identity {
                let continues = groups.body(group, &mut each)?;
                return Ok(Some(Found { continues, is_last: groups.left == 0 }));
            }
            groups.body(group, |_| ())?;
        }
        Ok(None)
    }

    const fn groups(&self) -> Groups<'a> {
        let reader = Reader::new(self.payload, HEADER_LEN);
        Groups { leaf: *self, reader, left: self.groups, fingerprint: self.first }
    }
}

/// The groups of a leaf from front to back: [`Groups::next`], then [`Groups::body`], and again.
#[derive(Debug)]
struct Groups<'a> {
    leaf: Leaf<'a>,
    reader: Reader<'a>,
    left: usize,
    fingerprint: u64,
}

impl Groups<'_> {
    /// Whose group is next.
    #[inline]
    fn next(&mut self) -> Result<Option<Identity>, FormatError> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        let gap = self.reader.varint()?;
        let fingerprint = self.fingerprint.checked_add(gap).filter(|sum| sum >> HALF_BITS == 0);
        self.fingerprint = fingerprint.ok_or(self.reader.damaged("a gap is too large"))?;
        let check = self.reader.fixed(HALF_LEN)?;
        Ok(Some(Identity::new(self.fingerprint, check)))
    }

    /// Its rows; true when it began in a leaf before.
    #[inline]
    fn body(&mut self, identity: Identity, mut each: impl FnMut(Row)) -> Result<bool, FormatError> {
        let flags = self.reader.byte()?;
        let (txs, outputs) =
            (self.count(flags >> TXS_SHIFT & 3)?, self.count(flags >> OUTPUTS_SHIFT & 3)?);
        if flags > SIGNED | (SIGNED - 1) || txs.saturating_add(outputs) > self.reader.left() {
            return Err(self.reader.damaged("a group has more rows than bytes"));
        }
        let form = flags & 3;
        if form != NO_SUMS {
            let sums = self.sums(form)?;
            each(Row::new(identity, Place::SUMS, Body::Sums(sums)));
        }
        let signs = if flags & SIGNED == 0 { 0 } else { (txs + outputs).div_ceil(8) };
        let signs = self.reader.take(signs)?;
        let is_removed =
            |row: usize| signs.get(row / 8).is_some_and(|byte| byte >> (row % 8) & 1 == 1);
        let (mut first, mut link) = (self.leaf.base, self.leaf.base);
        for row in 0..txs {
            let above = if row == 0 {
                self.reader.fixed(self.leaf.width)?
            } else {
                self.reader.varint()?
            };
            link = self.link(link.checked_add(above))?;
            first = if row == 0 { link } else { first };
            let weight = if is_removed(row) { Weight::Remove } else { Weight::Add };
            each(Row::new(identity, Place::tx(TxLink::new(link)), Body::Tx(weight)));
        }
        self.outputs(identity, (outputs, first), |row| is_removed(txs + row), each)?;
        Ok(form == NO_SUMS)
    }

    /// The outputs of a group; the links count from `link`.
    #[inline]
    fn outputs(
        &mut self,
        identity: Identity,
        (count, mut link): (usize, u64),
        is_removed: impl Fn(usize) -> bool,
        mut each: impl FnMut(Row),
    ) -> Result<(), FormatError> {
        let mut height = 0_u32;
        for row in 0..count {
            let above = u32::try_from(self.reader.varint()?).ok();
            let sum = above.and_then(|above| height.checked_add(above));
            height = sum.ok_or(self.reader.damaged("a height has more than 32 bits"))?;
            let place = Place::output(height, self.reader.fixed(PRINT_LEN)?);
            let mut added = None;
            if !is_removed(row) {
                let above = unzigzag(self.reader.varint()?);
                link = self.link(link.checked_add_signed(above))?;
                let number = u32::try_from(self.reader.varint()?);
                let number =
                    number.map_err(|_| self.reader.damaged("an output's number is too large"))?;
                added = Some((TxLink::new(link), number));
            }
            each(Row::new(identity, place, Body::Output(added)));
        }
        Ok(())
    }

    fn count(&mut self, code: u8) -> Result<usize, FormatError> {
        if code < COUNTED {
            return Ok(usize::from(code));
        }
        Ok(usize::try_from(self.reader.varint()?).unwrap_or(usize::MAX))
    }

    fn sums(&mut self, form: u8) -> Result<Sums, FormatError> {
        if form != ANY_SUMS {
            let value = self.reader.varint()?;
            let once = Sums { funded: 1, txs: 1, received: value, ..Sums::default() };
            let spent = Sums { spent: 1, txs: 2, sent: value, ..once };
            return Ok(if form == FUNDED_ONCE { once } else { spent });
        }
        let mut signed = || self.reader.varint().map(unzigzag);
        let (funded, spent, txs) = (signed()?, signed()?, signed()?);
        let (received, balance) = (signed()?.cast_unsigned(), signed()?.cast_unsigned());
        Ok(Sums { funded, spent, txs, received, sent: received.wrapping_sub(balance) })
    }

    #[inline]
    fn link(&self, link: Option<u64>) -> Result<u64, FormatError> {
        link.filter(|link| link >> LINK_BITS == 0).ok_or(self.reader.damaged("a link is too large"))
    }
}

#[cfg(test)]
mod tests;
