//! Flipped bits: an error that names the file, or no difference at all.

use std::sync::Arc;
use varve_testdata::Random;

use varve_io::faulty::{Crash, Fault, FaultRule, Operation as Call, When};
use varve_io::{Access, Caching, FileOffset, Storage as _};

use super::twin::{Seen, Twin, see, small};
use crate::embedded::EmbeddedEngine;

/// A store that is closed, whose log is known to be durable to its end, and what is in it.
fn closed(seed: u64) -> (Twin, Seen) {
    let mut chance = Random::new(seed);
    let mut twin = Twin::new(small());
    for _ in 0..60 {
        twin.apply(&Twin::batch(&mut chance));
    }
    twin.engine().checkpoint().unwrap();
    let seen = see(twin.engine()).unwrap();
    twin.engine = None;
    (twin, seen)
}

#[test]
fn a_flipped_bit_is_an_error_or_no_difference() {
    let (twin, expected) = closed(3);
    let (mut errors, mut same) = (0, 0);
    for name in twin.storage.list().unwrap() {
        let file = twin.storage.open(&name, Access::Read, Caching::Buffered).unwrap();
        for at in (0..file.size().unwrap()).step_by(3) {
            let left = twin.storage.crash(twin.storage.operations(), Crash::KeepAll);
            assert!(left.flip_bit(&name, FileOffset::new(at), u8::try_from(at % 8).unwrap()));
            let seen = EmbeddedEngine::open(Arc::new(left), small());
            match seen.and_then(|engine| see(&engine)) {
                Ok(seen) => {
                    assert_eq!(seen, expected, "{name} at {at}");
                    same += 1;
                }
                Err(error) => {
                    assert!(error.to_string().contains(&name), "{name} at {at}: {error}");
                    errors += 1;
                }
            }
        }
    }
    assert!(errors > 1_000 && same > 0, "{errors} errors, {same} in what is no more needed");
}

/// Reads that lie or fail.
#[test]
fn a_failing_read_is_an_error_and_never_a_wrong_answer() {
    let (twin, expected) = closed(4);
    for fault in [Fault::Io, Fault::BitFlip, Fault::Short, Fault::Interrupted] {
        for nth in 0..60 {
            let left = twin.storage.crash(twin.storage.operations(), Crash::KeepAll);
            left.inject(FaultRule::new(Call::Read, When::Nth(nth), fault));
            let engine = EmbeddedEngine::open(Arc::new(left), small());
            match engine.and_then(|engine| see(&engine)) {
                Ok(seen) => assert_eq!(seen, expected, "{fault:?} {nth}"),
                Err(error) => assert!(error.to_string().contains("faulty/"), "{error}"),
            }
        }
    }
}
