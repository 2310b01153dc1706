//! Makes a leaf of the first rows of a list: as many as fit.

use super::{
    ANY_SUMS, COUNTED, FUNDED_ONCE, HALF_LEN, HEADER_LEN, NO_SUMS, OUTPUTS_SHIFT, PRINT_LEN,
    SIGNED, SPENT_ONCE, TXS_SHIFT,
};
use crate::history::row::{Body, Row};
use crate::history::sums::Sums;
use crate::history::varint::{self, zigzag};

/// Flags and two counts at most.
const GROUP_HEAD: usize = 1 + 2 * 3;

/// Appends a leaf of the first of `rows` to `out`, of at most `limit` bytes; returns how many rows
/// it has. The rows are in order; links count from zero.
pub(in crate::history) fn encode(rows: &[Row], limit: usize, out: &mut Vec<u8>) -> usize {
    debug_assert!(rows.is_sorted_by(|a, b| a.key < b.key), "rows come in order");
    let start = out.len();
    let first = rows.first().map_or(0, |row| row.key.identity.fingerprint());
    let width = width(rows);
    out.resize(start + HEADER_LEN, 0);
    let (mut taken, mut groups, mut last) = (0, 0_u16, first);
    for group in rows.chunk_by(|a, b| a.key.identity == b.key.identity) {
        let Some(head) = group.first() else { break };
        let identity = head.key.identity;
        let gap = identity.fingerprint() - last;
        let used = out.len() - start + varint::len(gap) + HALF_LEN;
        let room = limit.saturating_sub(used);
        let fits = fit(group, width, (room, limit / 4));
        // A small group goes to the next leaf whole.
        let is_cut = fits.rows < group.len();
        if fits.rows == 0 || is_cut && groups > 0 && fits.is_small || groups == u16::MAX {
            break;
        }
        varint::push(gap, out);
        push_fixed(identity.check(), HALF_LEN, out);
        push_group(group.get(..fits.rows).unwrap_or_default(), width, out);
        (taken, groups, last) = (taken + fits.rows, groups + 1, identity.fingerprint());
        if is_cut {
            break;
        }
    }
    debug_assert!(out.len() - start <= limit && taken > 0, "a leaf has room for any row");
    let mut header = Vec::with_capacity(HEADER_LEN);
    push_fixed(first, HALF_LEN, &mut header);
    header.extend_from_slice(&groups.to_le_bytes());
    header.push(u8::try_from(width).unwrap_or(u8::MAX));
    if let Some(place) = out.get_mut(start..start + HEADER_LEN) {
        place.copy_from_slice(&header);
    }
    taken
}

/// The bytes that hold every link of a transaction.
fn width(rows: &[Row]) -> usize {
    let links = rows.iter().filter(|row| row.key.place.is_tx()).map(|row| row.key.place.low());
    let bits = u64::BITS - links.max().unwrap_or(0).leading_zeros();
    bits.div_ceil(8).max(1) as usize
}

/// How much of a group fits.
struct Fit {
    rows: usize,
    /// The whole group has at most a quarter of a leaf.
    is_small: bool,
}

fn fit(group: &[Row], width: usize, (room, small): (usize, usize)) -> Fit {
    let (mut state, mut len, mut removed) = (State::default(), GROUP_HEAD, false);
    let (mut rows, mut whole) = (0, GROUP_HEAD);
    for (index, row) in group.iter().enumerate() {
        len += state.take(row).len(width);
        removed |= row.weight() < 0;
        whole = len + if removed { (index + 1).div_ceil(8) } else { 0 };
        if whole <= room {
            rows = index + 1;
        } else if whole > small {
            break;
        }
    }
    Fit { rows, is_small: whole <= small }
}

/// What the next row of a group is coded against.
#[derive(Default)]
struct State {
    /// The first transaction, and the last.
    first: Option<u64>,
    last: u64,
    /// The output before: its height, and the last link of one.
    height: u32,
    link: Option<u64>,
}

/// The numbers by which a row is coded.
enum Coded {
    Sums(Sums),
    First(u64),
    Distance(u64),
    Output { above: u32, print: u64, added: Option<(i64, u32)> },
}

impl State {
    fn take(&mut self, row: &Row) -> Coded {
        let place = row.key.place;
        match row.body {
            Body::Sums(sums) => Coded::Sums(sums),
            Body::Tx(_) => {
                let link = place.low();
                let last = std::mem::replace(&mut self.last, link);
                if self.first.is_none() {
                    self.first = Some(link);
                    return Coded::First(link);
                }
                Coded::Distance(link - last)
            }
            Body::Output(added) => {
                let above = place.height() - self.height;
                self.height = place.height();
                let added = added.map(|(link, number)| {
                    let link = link.to_u64();
                    let last = self.link.replace(link).or(self.first).unwrap_or(0);
                    (link.wrapping_sub(last).cast_signed(), number)
                });
                Coded::Output { above, print: place.low(), added }
            }
        }
    }
}

impl Coded {
    fn len(&self, width: usize) -> usize {
        match *self {
            Self::Sums(sums) => match form(&sums) {
                ANY_SUMS => numbers(&sums).into_iter().map(|sum| varint::len(zigzag(sum))).sum(),
                _ => varint::len(sums.received),
            },
            Self::First(_) => width,
            Self::Distance(above) => varint::len(above),
            Self::Output { above, added, .. } => {
                let added = added.map_or(0, |(link, number)| {
                    varint::len(zigzag(link)) + varint::len(u64::from(number))
                });
                varint::len(u64::from(above)) + PRINT_LEN + added
            }
        }
    }

    fn push(&self, width: usize, out: &mut Vec<u8>) {
        match *self {
            // They stand before the signs.
            Self::Sums(_) => {}
            Self::First(link) => push_fixed(link, width, out),
            Self::Distance(above) => varint::push(above, out),
            Self::Output { above, print, added } => {
                varint::push(u64::from(above), out);
                push_fixed(print, PRINT_LEN, out);
                if let Some((link, number)) = added {
                    varint::push(zigzag(link), out);
                    varint::push(u64::from(number), out);
                }
            }
        }
    }
}

fn push_group(group: &[Row], width: usize, out: &mut Vec<u8>) {
    let sums = match group.first().map(|row| row.body) {
        Some(Body::Sums(sums)) => Some(sums),
        _ => None,
    };
    let rows = group.get(usize::from(sums.is_some())..).unwrap_or_default();
    let txs = rows.partition_point(|row| row.key.place.is_tx());
    let outputs = rows.len() - txs;
    let code = |count: usize| u8::try_from(count).unwrap_or(COUNTED).min(COUNTED);
    let form = sums.as_ref().map_or(NO_SUMS, form);
    let removed = rows.iter().any(|row| row.weight() < 0);
    let sign = if removed { SIGNED } else { 0 };
    out.push(form | code(txs) << TXS_SHIFT | code(outputs) << OUTPUTS_SHIFT | sign);
    for count in [txs, outputs] {
        if code(count) == COUNTED {
            varint::push(count as u64, out);
        }
    }
    match sums {
        Some(sums) if form == ANY_SUMS => {
            numbers(&sums).into_iter().for_each(|sum| varint::push(zigzag(sum), out));
        }
        Some(sums) => varint::push(sums.received, out),
        None => {}
    }
    if removed {
        for rows in rows.chunks(8) {
            let bits = (0..).zip(rows).map(|(bit, row)| u8::from(row.weight() < 0) << bit);
            out.push(bits.fold(0, |byte, bit: u8| byte | bit));
        }
    }
    let mut state = State::default();
    rows.iter().for_each(|row| state.take(row).push(width, out));
}

/// The shortest form of sums.
fn form(sums: &Sums) -> u8 {
    let value = sums.received;
    let once = Sums { funded: 1, txs: 1, received: value, ..Sums::default() };
    match *sums {
        sums if sums == once => FUNDED_ONCE,
        sums if sums == (Sums { spent: 1, txs: 2, sent: value, ..once }) => SPENT_ONCE,
        _ => ANY_SUMS,
    }
}

fn numbers(sums: &Sums) -> [i64; 5] {
    let Sums { funded, spent, txs, received, .. } = *sums;
    [funded, spent, txs, received.cast_signed(), sums.balance().cast_signed()]
}

/// Appends the low `width` bytes of a number.
fn push_fixed(value: u64, width: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(value.to_le_bytes().get(..width).unwrap_or_default());
}
