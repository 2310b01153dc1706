//! The decoders of `varve-utxo`: what the checksums protect in runs, undo log and manifest.
//!
//! Checksums keep damage out, not mistakes and not malice: someone who can write the files can make
//! them agree. So content with valid checksums must not be trusted either.
//!
//! Content can be written in more than one way in these formats (a script can be packed in two), so
//! the claim is: what was decoded, encoded and decoded again is the same.

use varve_io::StoreId;
use varve_types::{Amount, BlockHash, Coin, Height, Network, Outpoint, Txid};
use varve_utxo::parts::{
    Body, Entry, EntryList, Leaf, Manifest, PackedCoin, Sequence, UndoRecord, UndoTx, pack,
};
use varve_utxo::{Parameters, Secret, StoreKey};

use crate::Target;

pub(crate) const TARGETS: &[Target] = &[
    Target { name: "packed_coin", run: packed_coin, seeds: |_| packed_coins() },
    Target { name: "run_leaf", run: run_leaf, seeds: |_| leaves() },
    Target { name: "undo_record", run: undo_record, seeds: |_| vec![undo().0] },
    Target { name: "set_manifest", run: set_manifest, seeds: |_| vec![manifest().encode()] },
];

fn packed_coin(bytes: &[u8]) {
    let mut script = Vec::new();
    let Ok(head) = PackedCoin::new(bytes).unpack(&mut script) else { return };
    if head.value > Amount::MAX_MONEY {
        return;
    }
    let coin = head.with_script(&script);
    let mut again = Vec::new();
    pack(&coin, &mut again);
    let mut script_again = Vec::new();
    let head_again = PackedCoin::new(&again).unpack(&mut script_again).expect("packed just now");
    assert_eq!(head_again.with_script(&script_again), coin);
    assert_eq!(PackedCoin::new(&again).code(), Ok((coin.height, coin.coinbase)));
}

fn coin(script: &[u8]) -> Coin<'_> {
    Coin { height: Height::new(700_000), coinbase: true, value: Amount::from_sat(50_000), script }
}

fn packed_coins() -> Vec<Vec<u8>> {
    let packed = |script: &[u8]| {
        let mut bytes = Vec::new();
        pack(&coin(script), &mut bytes);
        bytes
    };
    vec![packed(&[]), packed(&[0x51; 34]), packed(&[&[0xa9, 20][..], &[7; 20], &[0x87]].concat())]
}

/// Every entry is one or an error, and none reaches outside the page.
fn run_leaf(bytes: &[u8]) {
    let Ok(leaf) = Leaf::parse(bytes) else { return };
    for index in 0..leaf.len() {
        let Ok(entry) = leaf.entry(index) else { continue };
        if let Body::Packed(coin) = entry.body {
            assert!(coin.as_bytes().len() < bytes.len());
            packed_coin(coin.as_bytes());
        }
    }
    assert!(leaf.entry(leaf.len()).is_err(), "there is nothing after the last entry");
}

/// An empty leaf, and one whose slots lead to the same few bytes.
fn leaves() -> Vec<Vec<u8>> {
    let mut leaf = vec![2, 0, 60, 0, 9, 9, 0, 0, 0, 0];
    leaf.extend_from_slice(&[3; 60]);
    vec![vec![0; 4], leaf]
}

fn undo_record(bytes: &[u8]) {
    let Ok(record) = UndoRecord::decode(bytes) else { return };
    let mut again = Vec::new();
    record.encode(&mut again);
    assert_eq!(UndoRecord::decode(&again).expect("encoded just now"), record);
}

fn undo() -> (Vec<u8>, UndoRecord) {
    let outpoint = |vout| Outpoint::new(Txid::from_bytes([9; 32]), vout);
    let mut spent = EntryList::new();
    spent.push(&Entry::add(outpoint(3), Sequence::new(5), coin(&[0x51])));
    let record = UndoRecord {
        sequence: Sequence::new(6),
        height: Height::new(5),
        block: BlockHash::from_bytes([1; 32]),
        previous: BlockHash::from_bytes([2; 32]),
        spent,
        created: vec![outpoint(0), outpoint(1), outpoint(70_000)],
        txs: vec![UndoTx { txid: Txid::from_bytes([9; 32]), spends: 1, creates: 3 }],
    };
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    (bytes, record)
}

fn set_manifest(bytes: &[u8]) {
    let Ok(manifest) = Manifest::decode(bytes) else { return };
    assert_eq!(Manifest::decode(&manifest.encode()).expect("encoded just now"), manifest);
}

fn manifest() -> Manifest {
    let key = StoreKey { id: StoreId([4; 16]), secret: Secret::new([5; 16]) };
    Manifest::new(key, Network::Regtest, Parameters::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If the examples were refused, the targets would test nothing.
    #[test]
    fn the_examples_decode() {
        let mut script = Vec::new();
        assert!(packed_coins().iter().all(|b| PackedCoin::new(b).unpack(&mut script).is_ok()));
        assert!(leaves().iter().all(|bytes| Leaf::parse(bytes).is_ok()));
        let (bytes, record) = undo();
        assert_eq!(UndoRecord::decode(&bytes).unwrap(), record);
        assert_eq!(Manifest::decode(&manifest().encode()).unwrap(), manifest());
    }
}
