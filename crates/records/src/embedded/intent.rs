//! A conflict intent, as it lies in the log.
//!
//! ```text
//!  │ kind u8 │ height u32 │ block hash 32 │ created at u64 │ txids VARINT │ txid 32 │ … │
//! ```

use varve_types::{BlockHash, DecodeError, DecodeErrorKind, Height, Reader, Txid, varint};

use super::number::read_count;
use crate::intent::{Intent, IntentKind};

/// Appends an intent.
pub(crate) fn encode(intent: &Intent, out: &mut Vec<u8>) {
    out.push(intent.kind as u8);
    out.extend_from_slice(&intent.height.to_u32().to_le_bytes());
    out.extend_from_slice(intent.block.as_bytes());
    out.extend_from_slice(&intent.created_at.to_le_bytes());
    varint::write(intent.txids.len() as u64, out);
    intent.txids.iter().for_each(|txid| out.extend_from_slice(txid.as_bytes()));
}

/// The intent in a payload.
pub(crate) fn decode(payload: &[u8]) -> Result<Intent, DecodeError> {
    let mut reader = Reader::new(payload);
    let kind = match reader.u8("the kind of an intent")? {
        1 => IntentKind::ResolveConflicts,
        other => {
            let what = "a kind of intent";
            return Err(reader.error(DecodeErrorKind::CountTooLarge { what, count: other.into() }));
        }
    };
    let height = Height::new(reader.u32("the height of an intent")?);
    let block = BlockHash::from_bytes(*reader.array("the block of an intent")?);
    let created_at = reader.u64("the time of an intent")?;
    let count = read_count(&mut reader, 32, "transactions of an intent")?;
    let mut txids = Vec::with_capacity(count);
    for _ in 0..count {
        txids.push(Txid::from_bytes(*reader.array("a transaction of an intent")?));
    }
    reader.end()?;
    Ok(Intent { kind, height, block, txids, created_at })
}
