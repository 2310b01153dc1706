//! Looking for what is not there costs nothing, however much there is.

use std::time::{Duration, Instant};

use varve_types::{Height, Txid};

use super::size::create;
use super::twin::{Twin, small};
use crate::embedded::EmbeddedOptions;
use crate::engine::{Engine as _, Scan};
use crate::operation::Operation;
use crate::record::{BlockId, BlockRef};

const RECORDS: u32 = 60_000;

/// A record in a block.
fn mined(number: u32) -> Operation {
    let mut bytes = [0x66; 32];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    let operation = create(Txid::from_bytes(bytes), 1);
    let Operation::Unit(mut unit) = operation else { panic!("it is a unit") };
    let block = BlockRef { id: BlockId(1), height: Height::new(90), subtree: 0 };
    unit.create.as_mut().unwrap().blocks = vec![block];
    Operation::Unit(unit)
}

fn time(act: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    act();
    begun.elapsed()
}

#[test]
fn scans_and_status_cost_what_they_return() {
    let twin = Twin::new(EmbeddedOptions { segment_size: 1 << 30, ..small() });
    let engine = twin.engine();
    for first in (0..RECORDS).step_by(1_000) {
        let batch: Vec<_> = (first..first + 1_000).map(mined).collect();
        engine.apply(&twin.context, &batch).unwrap();
    }
    let everything = time(|| {
        let (mut found, mut cursor) = (0, None);
        loop {
            let page = engine.scan(Scan::All, cursor, 1_000).unwrap();
            found += page.txids.len();
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(found, RECORDS as usize);
    });
    let high = Height::new(u32::MAX);
    let scans = [
        Scan::Unmined,
        Scan::UnminedSince(high),
        Scan::DueAt(high),
        Scan::PreservedUntil(high),
        Scan::Conflicting,
    ];
    let nothing = time(|| {
        for _ in 0..2_000 {
            for scan in scans {
                assert_eq!(engine.scan(scan, None, 1_000).unwrap().txids, []);
            }
            assert_eq!(engine.intents(None, 10).unwrap(), []);
            assert_eq!(engine.status().unwrap().keys, u64::from(RECORDS));
        }
    });
    assert!(nothing < everything, "14,000 looks took {nothing:?}, one at all {everything:?}");
}
