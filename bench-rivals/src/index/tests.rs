//! All sides hold the same rows and give the same answers, while they are filled and at the end.

use super::fjall::Fjall;
use super::rocksdb::{RocksDb, Style};
use super::rows::{Kind, ROWS, Rows, probes};
use super::side::{Side, answer};
use super::varve::{Varve, flushed_early, options};

const BLOCKS: u32 = 250;

/// Digests of the answers in the middle and at the end.
fn digests<S: Side>(mut side: S) -> Vec<u64> {
    let rows = Rows::new();
    let mut digests = Vec::new();
    let mut ask = |side: &S, blocks: u32| {
        for (kind, present) in Kind::ALL.into_iter().flat_map(|kind| [(kind, true), (kind, false)])
        {
            digests.push(answer(side, kind, &probes(kind, blocks, 1_000, present)).unwrap());
        }
    };
    for number in 0..BLOCKS {
        side.append(S::prepare(rows.block(number))).unwrap();
        if number + 1 == BLOCKS / 2 {
            ask(&side, BLOCKS / 2);
        }
    }
    side.finish().unwrap();
    assert_eq!(side.rows().unwrap(), u64::from(BLOCKS) * ROWS);
    ask(&side, BLOCKS);
    digests
}

#[test]
fn all_sides_answer_alike() {
    let dir = tempfile::tempdir().unwrap();
    let folder = |name: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir(&path).unwrap();
        path
    };
    let ours = digests(Varve::open(&folder("varve"), options()).unwrap());
    assert_eq!(ours, digests(Varve::open(&folder("early"), flushed_early(20_000)).unwrap()));
    assert_eq!(ours, digests(RocksDb::open(&folder("level"), Style::Level).unwrap()));
    assert_eq!(ours, digests(RocksDb::open(&folder("universal"), Style::Universal).unwrap()));
    assert_eq!(ours, digests(Fjall::open(&folder("fjall")).unwrap()));
}
