//! Rot: a flipped bit anywhere is an error or changes no answer.

use std::sync::Arc;

use varve_io::faulty::FaultyStorage;
use varve_io::{Access, Caching, FileOffset, Storage as _};

use super::rig::{Owner, TINY};

#[test]
fn no_flipped_bit_changes_an_answer() {
    let storage = Arc::new(FaultyStorage::new(1));
    let mut owner = Owner::new(21, false);
    let mut table = owner.open(storage.clone(), TINY).unwrap();
    let mut settled = 0;
    for _ in 0..30 {
        owner.make_block();
        owner.catch_up(&mut table).unwrap();
        owner.settle(&mut table, &mut settled).unwrap();
    }
    owner.saved = owner.blocks.len();
    table.rest().unwrap();
    drop(table);
    let mut noticed = 0;
    for name in storage.list().unwrap() {
        let file = storage.open(&name, Access::Read, Caching::Buffered).unwrap();
        let len = file.size().unwrap();
        // Every byte of the manifest; of pages, those of the beginning and some of the rest.
        let step = |at: u64| if len < 1_000 || at % 4096 < 64 { 1 } else { 61 };
        let mut at = 0;
        while at < len {
            let storage = Arc::new(storage.reopen());
            assert!(storage.flip_bit(&name, FileOffset::new(at), (at % 8) as u8));
            let checked = owner.open(storage, TINY).and_then(|table| {
                owner.check(&table.reader())?;
                table.verify()
            });
            noticed += usize::from(checked.is_err());
            if let Err(error) = checked {
                assert!(error.is_damage() || error.to_string().contains(&name), "{error}");
            }
            at += step(at);
        }
    }
    assert!(noticed > 1_000, "{noticed}");
}
