//! Payloads survive their bytes, and any bytes at all decode or are refused.

use bytes::Bytes;
use proptest::prelude::*;
use varve_types::{BlockHash, Outpoint};

use super::*;
use crate::embedded::{body, intent};
use crate::freeze_window::FreezeWindow;
use crate::intent::{Intent, IntentKind};
use crate::record::{Body, Reassignment};
use crate::slot::Slot;
use crate::spending_data::SpendingData;
use crate::utxo_hash::UtxoHash;

pub(in crate::embedded) fn sample() -> State {
    let hash = |byte| UtxoHash::from_bytes([byte; 32]);
    let txid = |byte| Txid::from_bytes([byte; 32]);
    let spent = Slot { hash: hash(2), spending: Some(SpendingData::new(txid(3), 4)) };
    let mut first =
        Chunk { slots: vec![Some(Slot::unspent(hash(1))), None, Some(spent)], notes: None };
    let (from, until) = (Height::new(1), Height::new(u32::MAX));
    let height = Height::new(9);
    let notes = first.notes_mut();
    notes.resting.push((0, height));
    notes.windows.push((2, FreezeWindow { from, until, policy_expires: true }));
    let reassignment = Reassignment { vout: 0, from: hash(8), to: hash(1), height };
    notes.reassignments.push((7, reassignment));
    notes.pruned.push(txid(5));
    let block = BlockRef { id: BlockId(5), height, subtree: 1 << 20 };
    let part = |(utxos, spent)| Ok::<_, DecodeError>(PartCounts { utxos, spent });
    let head = Head {
        version: 2,
        lock_time: u32::MAX,
        fee: Amount::from_sat(u64::MAX),
        size: 1 << 33,
        extended_size: 250,
        is_coinbase: true,
        spending_height: Some(Height::new(109)),
        created_at: 1_700_000_000_000,
        external: false,
        locked: true,
        conflicting: false,
        creating: true,
        unmined_since: Some(height),
        preserve_until: None,
        delete_at: Some(Height::new(u32::MAX)),
        blocks: vec![block],
        total_utxos: 3,
        frozen_utxos: 0,
        batch: BatchSize::new(2).unwrap(),
        parts: Parts::collect([(2, 0), (1, 1)].map(part).into_iter()).unwrap(),
        reassignments: 8,
        conflicting_children: vec![txid(6), txid(7)],
    };
    State { head, first }
}

#[test]
fn a_state_survives_with_its_body_here_or_elsewhere() {
    let at = GlobalOffset::new(640);
    let mut bytes = Vec::new();
    sample().encode(Some(GlobalOffset::ZERO), 77, &mut bytes);
    let elsewhere = BodyAt { at: GlobalOffset::ZERO, len: 77 };
    assert_eq!(State::decode(&bytes, at), Ok((sample(), elsewhere, &[][..])));
    bytes.clear();
    sample().encode(None, 4, &mut bytes);
    bytes.extend_from_slice(b"body");
    let here = BodyAt { at, len: 4 };
    assert_eq!(State::decode(&bytes, at), Ok((sample(), here, &b"body"[..])));
    for len in 0..bytes.len() {
        assert!(State::decode(&bytes[..len], at).is_err(), "cut at {len}");
    }
    assert_eq!(sample().marks().expiry, u32::MAX);
    assert_eq!(sample().marks().unmined, 9);
}

#[test]
fn bodies_and_intents_survive() {
    let txid = Txid::from_bytes([1; 32]);
    let inputs = [Outpoint::new(txid, 7), Outpoint::new(Txid::ZERO, u32::MAX)];
    for kept in [Body::External, Body::Outputs(Bytes::from_static(b"outputs"))] {
        let mut bytes = Vec::new();
        body::encode(&inputs, &kept, &mut bytes);
        assert_eq!(body::decode(&bytes, txid), Ok((inputs.to_vec(), kept)));
        assert_eq!(body::inputs(&bytes), Ok(inputs.to_vec()));
    }
    let kept = Intent {
        kind: IntentKind::ResolveConflicts,
        height: Height::new(5),
        block: BlockHash::from_bytes([1; 32]),
        txids: vec![txid, Txid::ZERO],
        created_at: 7,
    };
    let mut bytes = Vec::new();
    intent::encode(&kept, &mut bytes);
    assert_eq!(intent::decode(&bytes), Ok(kept));
    (0..bytes.len()).for_each(|len| assert!(intent::decode(&bytes[..len]).is_err()));
}

proptest! {
    /// Checksums keep such bytes away; a decoder must stand them all the same.
    #[test]
    fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = State::decode(&bytes, GlobalOffset::ZERO);
        let _ = body::decode(&bytes, Txid::ZERO);
        let _ = intent::decode(&bytes);
        let _ = Chunk::read(&mut Reader::new(&bytes));
    }

    #[test]
    fn no_flipped_byte_is_too_strange(at in 0_usize..400, value: u8) {
        let mut bytes = Vec::new();
        sample().encode(None, 0, &mut bytes);
        if let Some(byte) = bytes.get_mut(at) {
            *byte = value;
        }
        let _ = State::decode(&bytes, GlobalOffset::ZERO);
    }
}
