//! The log stays short while the store is busy.

use varve_types::{Outpoint, Txid};

use super::size::create;
use super::threads::spend;
use super::twin::{Chance, Twin, small};
use crate::embedded::EmbeddedOptions;
use crate::engine::Engine as _;
use crate::operation::Operation;

fn name(number: u32) -> Txid {
    let mut bytes = [0x33; 32];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    Txid::from_bytes(bytes)
}

/// Records come and go, some stay for ever. Whatever moves is still right, and the log is never
/// much longer than twice what is in it.
#[test]
fn the_log_stays_short_under_load() {
    let segment_size = 200_000;
    let options = EmbeddedOptions { segment_size, checkpoint_every: 200_000, ..small() };
    let mut twin = Twin::new(options);
    let mut chance = Chance(5);
    for round in 0..600_u32 {
        let mut batch = vec![create(name(round), 1 + chance.below(20))];
        if let Some(old) = round.checked_sub(1 + chance.below(40)) {
            batch.push(spend(name(round), Outpoint::new(name(old), 0)));
            if old % 10 != 0 {
                batch.push(Operation::Delete { txid: name(old) });
            }
        }
        twin.apply(&batch);
        let sizes = twin.engine().sizes().unwrap();
        let index = 24 * sizes.keys as u64;
        let bound = 2 * sizes.live + 5 * segment_size + 4 * index;
        assert!(sizes.log < bound, "round {round}: {sizes:?}");
        if round % 150 == 149 {
            twin.reopen();
        }
    }
    let txids: Vec<_> = (0..600).map(name).collect();
    let fields = crate::fields::Fields::ALL;
    let found = twin.engine().read(&txids, fields).unwrap();
    assert!(found == twin.oracle.read(&txids, fields).unwrap());
    assert!(found.iter().flatten().count() > 60, "some stay");
}
