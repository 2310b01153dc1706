//! Rows as bytes. All numbers are little-endian.
//!
//! ```text
//! header   0        4        8        12       16       48     52     56      60       92
//!          │ parent │ height │ median │ version│ merkle │ time │ bits │ nonce │ work   │
//!          │ u32    │ u32    │ u32    │ i32    │ root 32│ u32  │ u32  │ u32   │ 32     │
//! block    0          8        12       16     20          24       28        32
//!          │ first tx │ tx     │ number │ size │ base size│ inputs│ outputs │ groups …
//!          │ u64      │ count 4│ u32    │ u32  │ u32      │ u32   │ u32     │ u64 each
//! filter   │ length of the filter u32 │ filter header 32 │ filter │
//! tx state │ flags u32 │ height u32 │ median u32 │ connected u8 │ fee u64 │ sigops u32 │
//! mark     │ network u8 │ indexes u8 │ sequence u64 │ base u32 │
//! ```
//!
//! A header row of all ones is none: the parent of genesis, no base. The groups of a block are
//! positions in `tx_len`, one for every [`GROUP`] transactions.

use varve_consensus::Work;
use varve_types::pushdata::PushdataRule;
use varve_types::{BlockHash, Height, MerkleRoot, Network};

use super::lengths::GROUP;
use crate::backend::{BackendError, Indexes, Mark, Result};
use crate::link::{HeaderLink, TxLink};
use crate::primitive::{Measure, Row};
use crate::row::{BlockRow, BlockState, FilterRow, HeaderRow, TxState};
use crate::source::BlockNumber;

/// The value of a header row.
pub(super) const HEADER: usize = 4 * size_of::<u32>() + 32 + 3 * size_of::<u32>() + 32;
/// A block row, without its groups.
pub(super) const BLOCK: usize = size_of::<u64>() + 6 * size_of::<u32>();
/// What a block row says first: its transactions.
const BLOCK_TXS: usize = size_of::<u64>() + size_of::<u32>();
/// The value of a transaction's state.
pub(super) const TX_STATE: usize = 3 * size_of::<u32>() + 1 + size_of::<u64>() + size_of::<u32>();
/// What stands before a filter.
pub(super) const FILTER_FRONT: usize = size_of::<u32>() + 32;
const MARK: usize = 1 + 1 + size_of::<u64>() + size_of::<u32>();

const _: () = assert!(Row::<32, HEADER>::LEN == 128);
const _: () = assert!(BLOCK == 32);
const _: () = assert!(Row::<8, TX_STATE>::LEN == 37);
const _: () = assert!(MARK == 14);

/// No header row; no base.
const NONE: u32 = u32::MAX;

/// Bits of the indexes in a mark: pushdata by one of two rules, and filters.
const DOCUMENTED: u8 = 1;
const FILTERS: u8 = 2;
const CONDUIT: u8 = 4;

/// Transactions that one group of a block row covers.
#[derive(Debug)]
pub(super) struct BlockMeasure;

impl Measure for BlockMeasure {
    const PREFIX: usize = BLOCK_TXS;

    fn len(mut prefix: &[u8]) -> usize {
        let _first = u64::from_le_bytes(take(&mut prefix));
        let count = u32::from_le_bytes(take(&mut prefix));
        BLOCK + count.div_ceil(GROUP) as usize * size_of::<u64>()
    }
}

/// The length of a filter that begins with these bytes.
pub(super) fn filter_len(mut front: &[u8]) -> usize {
    let len = u32::from_le_bytes(take(&mut front));
    FILTER_FRONT + len as usize
}

/// The next bytes of a row, zeroes behind its end. Rows are of a known length, so there are none.
fn take<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
    let Some((taken, rest)) = bytes.split_first_chunk() else { return [0; N] };
    *bytes = rest;
    *taken
}

/// Puts fields one after another into an array that they fill.
fn pack<const N: usize>(fields: &[&[u8]]) -> [u8; N] {
    let mut bytes = [0; N];
    let mut rest = bytes.as_mut_slice();
    for field in fields {
        let (place, after) = rest.split_at_mut(field.len());
        place.copy_from_slice(field);
        rest = after;
    }
    debug_assert!(rest.is_empty(), "the fields fill the row");
    bytes
}

pub(super) fn encode_header(row: &HeaderRow) -> Row<32, HEADER> {
    let value = pack(&[
        &row.parent.map_or(NONE, HeaderLink::to_u32).to_le_bytes(),
        &row.height.to_u32().to_le_bytes(),
        &row.median_time.to_le_bytes(),
        &row.version.to_le_bytes(),
        row.merkle_root.as_bytes(),
        &row.time.to_le_bytes(),
        &row.bits.to_le_bytes(),
        &row.nonce.to_le_bytes(),
        &row.work.to_le_bytes(),
    ]);
    Row { key: row.hash.to_bytes(), value }
}

pub(super) fn decode_header(row: &Row<32, HEADER>) -> HeaderRow {
    let bytes = &mut row.value.as_slice();
    let parent = u32::from_le_bytes(take(bytes));
    HeaderRow {
        hash: BlockHash::from_bytes(row.key),
        parent: (parent != NONE).then_some(HeaderLink::new(parent)),
        height: Height::new(u32::from_le_bytes(take(bytes))),
        median_time: u32::from_le_bytes(take(bytes)),
        version: i32::from_le_bytes(take(bytes)),
        merkle_root: MerkleRoot::from_bytes(take(bytes)),
        time: u32::from_le_bytes(take(bytes)),
        bits: u32::from_le_bytes(take(bytes)),
        nonce: u32::from_le_bytes(take(bytes)),
        work: Work::from_le_bytes(&take(bytes)),
    }
}

pub(super) fn encode_block(row: &BlockRow) -> [u8; BLOCK] {
    pack(&[
        &row.first_tx.to_u64().to_le_bytes(),
        &row.tx_count.to_le_bytes(),
        &row.number.get().to_le_bytes(),
        &row.size.to_le_bytes(),
        &row.base_size.to_le_bytes(),
        &row.inputs.to_le_bytes(),
        &row.outputs.to_le_bytes(),
    ])
}

pub(super) fn decode_block(bytes: &[u8]) -> Option<BlockRow> {
    let bytes = &mut bytes.first_chunk::<BLOCK>()?.as_slice();
    Some(BlockRow {
        first_tx: TxLink::new(u64::from_le_bytes(take(bytes))),
        tx_count: u32::from_le_bytes(take(bytes)),
        number: BlockNumber::new(u32::from_le_bytes(take(bytes))),
        size: u32::from_le_bytes(take(bytes)),
        base_size: u32::from_le_bytes(take(bytes)),
        inputs: u32::from_le_bytes(take(bytes)),
        outputs: u32::from_le_bytes(take(bytes)),
    })
}

/// The key of a transaction's state.
pub(super) const fn tx_key(link: TxLink) -> [u8; 8] {
    link.to_u64().to_le_bytes()
}

pub(super) fn encode_tx_state(state: &TxState) -> [u8; TX_STATE] {
    pack(&[
        &state.flags.to_le_bytes(),
        &state.height.to_u32().to_le_bytes(),
        &state.median_time.to_le_bytes(),
        &[u8::from(state.connected)],
        &state.fee.to_le_bytes(),
        &state.sigops.to_le_bytes(),
    ])
}

pub(super) fn decode_tx_state(value: &[u8; TX_STATE]) -> TxState {
    let bytes = &mut value.as_slice();
    TxState {
        flags: u32::from_le_bytes(take(bytes)),
        height: Height::new(u32::from_le_bytes(take(bytes))),
        median_time: u32::from_le_bytes(take(bytes)),
        connected: take::<1>(bytes) != [0],
        fee: u64::from_le_bytes(take(bytes)),
        sigops: u32::from_le_bytes(take(bytes)),
    }
}

pub(super) fn encode_filter(row: &FilterRow) -> Result<Vec<u8>> {
    let len = u32::try_from(row.body.len());
    let len = len.map_err(|_| BackendError::Fault("a filter of 4 GiB".into()))?;
    let mut bytes = Vec::with_capacity(FILTER_FRONT + row.body.len());
    bytes.extend_from_slice(&len.to_le_bytes());
    bytes.extend_from_slice(&row.header);
    bytes.extend_from_slice(&row.body);
    Ok(bytes)
}

pub(super) fn decode_filter(bytes: &[u8]) -> Option<FilterRow> {
    let (front, body) = bytes.split_first_chunk::<FILTER_FRONT>()?;
    let (_, header) = front.split_first_chunk::<4>()?;
    Some(FilterRow { header: *header.first_chunk()?, body: body.to_vec() })
}

/// A header row out of an array's cell.
pub(super) fn header_link(cell: u64) -> Result<HeaderLink> {
    let number = u32::try_from(cell);
    number.map(HeaderLink::new).map_err(|_| BackendError::Fault("a height without a block".into()))
}

pub(super) fn decode_state(cell: u64) -> Result<BlockState> {
    let state = u8::try_from(cell).ok().and_then(BlockState::from_code);
    state.ok_or_else(|| BackendError::Fault(format!("no block state has code {cell}").into()))
}

pub(super) fn encode_mark(mark: &Mark) -> [u8; MARK] {
    let network = Network::ALL.iter().position(|network| *network == mark.network);
    let network = network.and_then(|place| u8::try_from(place).ok());
    let Indexes { pushdata, filters } = mark.indexes;
    let pushdata = match pushdata {
        None => 0,
        Some(PushdataRule::Documented) => DOCUMENTED,
        Some(PushdataRule::Conduit) => CONDUIT,
    };
    let indexes = pushdata | if filters { FILTERS } else { 0 };
    pack(&[
        &[network.expect("every network is in the list"), indexes],
        &mark.sequence.to_le_bytes(),
        &mark.base.map_or(NONE, Height::to_u32).to_le_bytes(),
    ])
}

/// The mark in a manifest; `None` in that of a store that was never saved.
pub(super) fn decode_mark(bytes: &[u8]) -> Result<Option<Mark>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let damaged = || BackendError::Fault("the manifest's mark does not decode".into());
    let mut bytes = <&[u8; MARK]>::try_from(bytes).map_err(|_| damaged())?.as_slice();
    let [network, indexes] = take(&mut bytes);
    let network = *Network::ALL.get(usize::from(network)).ok_or_else(damaged)?;
    let pushdata = match indexes & !FILTERS {
        0 => None,
        DOCUMENTED => Some(PushdataRule::Documented),
        CONDUIT => Some(PushdataRule::Conduit),
        _ => return Err(damaged()),
    };
    let indexes = Indexes { pushdata, filters: indexes & FILTERS != 0 };
    let sequence = u64::from_le_bytes(take(&mut bytes));
    let base = u32::from_le_bytes(take(&mut bytes));
    let base = (base != NONE).then_some(Height::new(base));
    Ok(Some(Mark { network, indexes, sequence, base }))
}
