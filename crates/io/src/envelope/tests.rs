//! Small files replaced whole: every crash leaves the old one or the new one, every flip is seen.

use super::*;
use crate::faulty::{Crash, Fault, FaultRule, FaultyStorage, Operation, When};

const KIND: Kind = Kind(*b"TESTKIND");

fn put_version(storage: &FaultyStorage, version: u32) -> Result<()> {
    let payload = vec![version.to_le_bytes()[0]; 700];
    replace(storage, "m", KIND, &Envelope { version, payload: &payload })
}

#[test]
fn a_crash_at_any_moment_leaves_the_old_or_the_new() {
    let storage = FaultyStorage::new(1);
    let mut done = Vec::new();
    for version in 1..6 {
        put_version(&storage, version).unwrap();
        done.push(storage.operations());
    }
    for n in 0..=storage.operations() {
        let at_least = done.iter().filter(|at| **at <= n).count();
        for seed in 0..40 {
            let after = storage.crash(n, Crash::Seed(seed));
            let found = load(&after, "m", KIND).unwrap().map_or(0, |found| {
                assert_eq!(found.payload, vec![found.version.to_le_bytes()[0]; 700]);
                found.version as usize
            });
            assert!((at_least..=at_least + 1).contains(&found), "{found} after {n}, seed {seed}");
        }
    }
}

#[test]
fn a_replace_that_fails_leaves_the_old_one() {
    for (operation, fault) in [
        (Operation::Open, Fault::NoSpace),
        (Operation::Write, Fault::NoSpace),
        (Operation::Rename, Fault::NoSpace),
        (Operation::Sync, Fault::Io),
    ] {
        let storage = FaultyStorage::new(1);
        put_version(&storage, 1).unwrap();
        storage.inject(FaultRule::new(operation, When::Nth(0), fault));
        put_version(&storage, 2).unwrap_err();
        assert_eq!(load(&storage, "m", KIND).unwrap().unwrap().version, 1);
        let storage = storage.reopen();
        put_version(&storage, 2).unwrap();
        assert_eq!(load(&storage, "m", KIND).unwrap().unwrap().version, 2);
        assert_eq!(storage.list().unwrap(), ["m"]);
    }
}

#[test]
fn every_flipped_bit_every_cut_and_every_extension_is_noticed() {
    let bytes = Envelope { version: 9, payload: &b"some payload"[..] }.encode(KIND);
    assert_eq!(Envelope::decode(&bytes, KIND).unwrap().payload, b"some payload");
    for bit in 0..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(Envelope::decode(&bytes, KIND).is_err(), "bit {bit}");
    }
    for len in 0..bytes.len() {
        assert!(Envelope::decode(&bytes[..len], KIND).is_err(), "cut at {len}");
    }
    assert!(Envelope::decode(&[&bytes[..], &[0]].concat(), KIND).is_err());
    assert!(Envelope::decode(&bytes, Kind(*b"OTHERKND")).is_err());
}

#[test]
fn a_payload_that_is_too_long_is_refused_before_anything_is_written() {
    let storage = FaultyStorage::new(1);
    let payload = vec![0; usize::try_from(ENVELOPE_MAX).unwrap() + 1];
    let result = replace(&storage, "m", KIND, &Envelope { version: 1, payload: &payload });
    assert!(matches!(result, Err(Error::TooLarge { .. })));
    assert_eq!(storage.operations(), 0);
}
