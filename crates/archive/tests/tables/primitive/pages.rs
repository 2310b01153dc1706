//! Arrays of many pages, two in one store: they grow, change and are cut between checkpoints; the
//! disk is full at every write of a page in turn, and the power goes at every operation.

use std::sync::Arc;

use varve_archive::primitive::{
    Array, Error, Geometry, Heads, Manifest, ManifestFile, Table, TableConfig,
};
use varve_io::faulty::{Crash, Fault, FaultRule, FaultyStorage, Operation, When};
use varve_io::{Kind, Storage, StoreId};

const KIND: Kind = Kind(*b"TESTKIND");
const ROUNDS: u64 = 5;

fn open(storage: &Arc<FaultyStorage>) -> Result<(Manifest, [Array; 2]), Error> {
    let shared: Arc<dyn Storage> = storage.clone();
    let found = Manifest::load(shared.as_ref(), "manifest", KIND)?;
    let manifest = found.unwrap_or_else(|| Manifest::new(StoreId([5; 16]), [5; 16]));
    let array = |name: &str| {
        let config = TableConfig {
            name: name.to_owned(),
            kind: KIND,
            store: manifest.store,
            segment_len: 1,
            geometry: Geometry { buckets: 1, load: 1 },
        };
        Array::open(Arc::clone(&shared), &config, manifest.mark(name))
    };
    let arrays = [array("one")?, array("two")?];
    Ok((manifest, arrays))
}

/// Pushes 700 values, which is more than a page, and changes one of an old page; the third round
/// cuts more than it pushed.
fn live(array: &mut Array, model: &mut Vec<u64>, round: u64) -> Result<(), Error> {
    for number in 0..700 {
        array.push(round * 1000 + number)?;
        model.push(round * 1000 + number);
    }
    if round == 3 {
        array.truncate(1000);
        model.truncate(1000);
    }
    array.set(round * 100, round)?;
    model[usize::try_from(round * 100).unwrap()] = round;
    Ok(())
}

fn check(arrays: &[Array; 2], model: &[u64]) -> Result<(), Error> {
    for array in arrays {
        assert_eq!(array.reader().len(), model.len() as u64);
        for (index, value) in (0..).zip(model) {
            assert_eq!(array.reader().get(index)?, *value, "index {index}");
        }
    }
    Ok(())
}

/// Lives all rounds, each with a checkpoint that is tried again when the disk is full. Returns the
/// model of every round.
fn rounds(storage: &Arc<FaultyStorage>) -> Vec<Vec<u64>> {
    let (mut manifest, mut arrays) = open(storage).unwrap();
    let (mut model, mut models) = (Vec::new(), vec![Vec::new()]);
    for round in 0..ROUNDS {
        let mut again = model.clone();
        live(&mut arrays[0], &mut model, round).unwrap();
        live(&mut arrays[1], &mut again, round).unwrap();
        models.push(model.clone());
        let number = (round + 1).to_le_bytes();
        let mut checkpoint = || {
            let [one, two] = &mut arrays;
            let tables: &mut [&mut dyn Table] = &mut [one, two];
            let place = ManifestFile { storage: storage.as_ref(), name: "manifest", kind: KIND };
            manifest.checkpoint(place, tables, Heads::Save, &number)
        };
        if let Err(error) = checkpoint() {
            assert!(error.is_disk_full(), "{error}");
            if round % 2 == 0 {
                checkpoint().unwrap();
            }
        }
        check(&arrays, &model).unwrap();
    }
    models
}

#[test]
fn a_full_disk_and_a_crash_anywhere_leave_a_checkpoint() {
    let clean = Arc::new(FaultyStorage::new(1));
    rounds(&clean);
    for nth in 0..14 {
        let storage = Arc::new(FaultyStorage::new(1));
        let rule = FaultRule::new(Operation::Write, When::Nth(nth), Fault::NoSpace);
        storage.inject(FaultRule { path_contains: ".head".to_owned(), ..rule });
        let models = rounds(&storage);
        for n in 0..=storage.operations() {
            for crash in Crash::ways(24) {
                let (manifest, arrays) = open(&Arc::new(storage.crash(n, crash)))
                    .unwrap_or_else(|error| panic!("write {nth}, operation {n}: {error}"));
                let number = manifest.owner.first_chunk().map_or(0, |n| u64::from_le_bytes(*n));
                check(&arrays, &models[usize::try_from(number).unwrap()])
                    .unwrap_or_else(|error| panic!("write {nth}, operation {n}: {error}"));
            }
        }
    }
}

/// The cost of a checkpoint is that of the pages that have changed.
#[test]
fn a_checkpoint_writes_the_pages_that_have_changed() {
    let storage = Arc::new(FaultyStorage::new(1));
    let (mut manifest, [mut array, _]) = open(&storage).unwrap();
    for number in 0..510 * 50 {
        array.push(number).unwrap();
    }
    let mut checkpoint = |array: &mut Array| {
        let before = storage.operations();
        let place = ManifestFile { storage: storage.as_ref(), name: "manifest", kind: KIND };
        manifest.checkpoint(place, &mut [array], Heads::Save, b"").unwrap();
        storage.operations() - before
    };
    checkpoint(&mut array);
    let nothing = checkpoint(&mut array);
    array.set(3, 7).unwrap();
    let one = checkpoint(&mut array);
    for page in 0..10 {
        array.set(page * 510, 7).unwrap();
    }
    let ten = checkpoint(&mut array);
    assert!(nothing < one && one < ten, "{nothing}, {one}, {ten} operations");
    assert_eq!(ten - one, 9, "one write in place for each page; the redo file is one write");
}
