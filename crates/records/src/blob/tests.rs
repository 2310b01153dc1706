//! Blobs on disk, in memory, and across a power cut.

use std::sync::Arc;

use varve_io::faulty::{Crash, FaultyStorage};
use varve_io::{Disk, FileOffset, Storage};

use super::*;

fn txid(byte: u8) -> Txid {
    Txid::from_bytes([byte; 32])
}

fn on(storage: &FaultyStorage, fanout: Fanout) -> Blobs {
    let storage: Arc<dyn Storage> = Arc::new(storage.reopen());
    Blobs::new(DiskBucket::open(storage, fanout).unwrap(), fanout)
}

fn everywhere() -> Vec<Blobs> {
    vec![
        Blobs::new(ObjectBucket::memory(), Fanout::None),
        Blobs::new(ObjectBucket::memory(), Fanout::Last(2)),
        on(&FaultyStorage::new(1), Fanout::None),
        on(&FaultyStorage::new(1), Fanout::First(1)),
    ]
}

#[test]
fn the_transaction_is_found_before_its_outputs() {
    for blobs in everywhere() {
        let (whole, outputs) = (Bytes::from_static(b"whole"), Bytes::from_static(b"outputs"));
        assert!(matches!(blobs.get(txid(1)), Err(BlobError::NotFound { .. })));
        blobs.put(txid(1), BlobKind::Outputs, &outputs).unwrap();
        assert_eq!(blobs.get(txid(1)).unwrap(), (BlobKind::Outputs, outputs));
        blobs.put(txid(1), BlobKind::Tx, &whole).unwrap();
        assert_eq!(blobs.get(txid(1)).unwrap(), (BlobKind::Tx, whole));
        blobs.put(txid(2), BlobKind::Tx, &Bytes::new()).unwrap();
        assert_eq!(blobs.page(None, usize::MAX).unwrap().txids, [txid(1), txid(2)]);
        blobs.remove(txid(1)).unwrap();
        assert_eq!(
            blobs.page(None, usize::MAX).unwrap().txids,
            [txid(2)],
            "nothing is left beside it"
        );
    }
}

#[test]
fn heights_lie_beside_the_blob() {
    for blobs in everywhere() {
        let at = |height| Some(Height::new(height));
        let missing = blobs.set_delete_at(txid(1), at(5));
        assert!(matches!(missing, Err(BlobError::NotFound { .. })));
        blobs.set_delete_at(txid(1), None).unwrap();
        blobs.put(txid(1), BlobKind::Outputs, &Bytes::from_static(b"x")).unwrap();
        blobs.set_delete_at(txid(1), at(5)).unwrap();
        assert_eq!(blobs.delete_at(txid(1)).unwrap(), at(5));
        let key = blobs.name(txid(1), BlobKind::Outputs).sidecar(Sidecar::DeleteAt);
        assert_eq!(blobs.bucket.read(&key).unwrap().unwrap(), "5");
        blobs.set_preserve_until(txid(1), Height::new(9)).unwrap();
        assert_eq!(blobs.delete_at(txid(1)).unwrap(), None);
        assert_eq!(blobs.preserve_until(txid(1)).unwrap(), at(9));
        for text in ["0", "", "-1", "99999999999", "\u{fffd}"] {
            blobs.bucket.write_hint(&key, text.as_bytes()).unwrap();
            assert_eq!(blobs.delete_at(txid(1)).unwrap(), None, "{text}");
            assert!(!blobs.bucket.contains(&key).unwrap(), "it is taken away");
        }
        blobs.set_delete_at(txid(1), at(7)).unwrap();
        blobs.set_delete_at(txid(1), at(0)).unwrap();
        assert_eq!(blobs.delete_at(txid(1)).unwrap(), None, "0 takes the note away");
    }
}

#[test]
fn a_flipped_bit_is_an_error_that_names_the_blob() {
    let storage = FaultyStorage::new(1);
    let blobs = on(&storage, Fanout::First(1));
    blobs.put(txid(7), BlobKind::Tx, &Bytes::from(vec![3; 100])).unwrap();
    let name = blobs.name(txid(7), BlobKind::Tx);
    let files = [(name.key().to_owned(), 108), (name.sidecar(Sidecar::Checksum), 64)];
    for (file, len) in files {
        for at in (0..len).step_by(9) {
            assert!(storage.flip_bit(&file, FileOffset::new(at), 3));
            let error = blobs.get(txid(7)).unwrap_err();
            assert!(matches!(&error, BlobError::Damaged { name: n, .. } if n == name.key()));
            assert!(error.to_string().contains(&txid(7).to_string()), "{error}");
            assert!(storage.flip_bit(&file, FileOffset::new(at), 3));
        }
    }
    blobs.get(txid(7)).unwrap();
    blobs.bucket.remove(&name.sidecar(Sidecar::Checksum)).unwrap();
    assert!(matches!(blobs.get(txid(7)), Err(BlobError::Damaged { .. })));
}

#[test]
fn a_blob_that_was_put_survives_a_power_cut_and_a_cut_one_is_gone_or_whole() {
    let storage = FaultyStorage::new(5);
    let blobs = on(&storage, Fanout::None);
    let data = Bytes::from(vec![9; 10_000]);
    blobs.put(txid(1), BlobKind::Tx, &data).unwrap();
    let put = storage.operations();
    blobs.put(txid(2), BlobKind::Tx, &data).unwrap();
    for n in put..=storage.operations() {
        for seed in 0..4 {
            let left = on(&storage.crash(n, Crash::Seed(seed)), Fanout::None);
            assert_eq!(left.get(txid(1)).unwrap().1, data);
            match left.get(txid(2)) {
                Ok((_, found)) => assert_eq!(found, data),
                Err(error) => {
                    assert!(n < storage.operations(), "{error}");
                    assert!(matches!(error, BlobError::NotFound { .. }), "{error}");
                }
            }
        }
    }
}

#[test]
fn an_upload_that_fails_leaves_what_was_there() {
    for blobs in everywhere() {
        let old = Bytes::from_static(b"old");
        blobs.put(txid(1), BlobKind::Tx, &old).unwrap();
        let pieces = [Ok(Bytes::from_static(b"new")), Err(BlobError::NotFound { txid: txid(9) })];
        blobs.put_pieces(txid(1), BlobKind::Tx, pieces.into_iter()).unwrap_err();
        assert_eq!(blobs.get(txid(1)).unwrap().1, old);
        assert_eq!(blobs.page(None, usize::MAX).unwrap().txids, [txid(1)]);
    }
}

/// A gigabyte goes through in pieces of a megabyte; nothing here holds more than one of them.
#[test]
fn a_large_blob_streams_to_a_real_disk() {
    let dir = tempfile::tempdir().unwrap();
    let storage: Arc<dyn Storage> = Arc::new(Disk::open(dir.path()).unwrap());
    let blobs = Blobs::new(DiskBucket::open(storage, Fanout::None).unwrap(), Fanout::None);
    let piece = Bytes::from(vec![0x5a; CHUNK]);
    let pieces = std::iter::repeat_n(piece, 64).map(Ok);
    blobs.put_pieces(txid(4), BlobKind::Tx, pieces).unwrap();
    assert_eq!(blobs.get(txid(4)).unwrap().1.len(), 64 * CHUNK);
}

#[test]
fn who_holds_a_txid_is_alone_with_it() {
    let blobs = Blobs::new(ObjectBucket::memory(), Fanout::None);
    let inside = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for order in [[1, 2], [2, 1], [2, 3], [1, 3]] {
            let (blobs, inside) = (&blobs, &inside);
            scope.spawn(move || {
                for _ in 0..200 {
                    let held = blobs.hold(&order.map(txid));
                    let count = inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    assert!(count == 0, "any two of the four share a txid");
                    inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                    drop(held);
                }
            });
        }
    });
}
