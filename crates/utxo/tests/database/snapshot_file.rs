//! Core's snapshot file: Core's own, random sets, a wide transaction, and invalid files.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::Arc;

use bitcoin_hashes::{Hash as _, sha256};
use hex_conservative::FromHex as _;
use proptest::prelude::*;
use varve_consensus::contract::draft::{BlockDraft, OutputDraft, TxDraft};
use varve_consensus::{BlockAt, OwnedCoin};
use varve_io::Storage as _;
use varve_io::faulty::{Crash, Fault, FaultRule, FaultyStorage, Operation, When};
use varve_testdata::Random;
use varve_types::{
    Amount, Block, BlockHash, Height, Network, Outpoint, Txid, compact_size, compress, varint,
};
use varve_utxo::{Database, Error, SetHash, SnapshotError, Version};

use crate::statistics::{compare_with_core, core31, statistics, sum};
use crate::twin::{State, Twin, small, state};

const BASE: BlockHash = BlockHash::from_bytes([0xba; 32]);
const HEIGHT: Height = Height::new(600);

/// The file of a set, written the plain way.
fn encode(state: &State, base: BlockHash) -> Vec<u8> {
    let mut bytes = b"utxo\xff\x02\x00\xfa\xbf\xb5\xda".to_vec();
    bytes.extend_from_slice(base.as_bytes());
    bytes.extend_from_slice(&(state.len() as u64).to_le_bytes());
    let mut txs: BTreeMap<Txid, BTreeMap<Vec<u8>, (u32, &OwnedCoin)>> = BTreeMap::new();
    for (outpoint, coin) in state {
        let mut key = Vec::new();
        varint::write(u64::from(outpoint.vout), &mut key);
        txs.entry(outpoint.txid).or_default().insert(key, (outpoint.vout, coin));
    }
    for (txid, coins) in txs {
        bytes.extend_from_slice(txid.as_bytes());
        compact_size::write(coins.len() as u64, &mut bytes);
        for (vout, coin) in coins.into_values() {
            compact_size::write(u64::from(vout), &mut bytes);
            varint::write(coin.as_coin().code(), &mut bytes);
            compress::write_output(coin.value, &coin.script, &mut bytes);
        }
    }
    bytes
}

fn export(version: &Version) -> Vec<u8> {
    let (mut bytes, mut reported) = (Vec::new(), Vec::new());
    let coins = version
        .export(Network::Regtest, &mut bytes, &mut |done, of| reported.push((done, of)))
        .unwrap();
    assert_eq!(reported.last(), Some(&(coins, coins)));
    bytes
}

fn open(storage: &Arc<FaultyStorage>) -> Database {
    Database::open(storage.clone(), small()).unwrap()
}

fn new_database() -> Database {
    open(&Arc::new(FaultyStorage::new(1)))
}

fn import(database: &mut Database, bytes: &[u8]) -> Result<(Height, BlockHash), Error> {
    database.import(bytes, HEIGHT, &mut |_, _| {})
}

fn snapshot_error(result: Result<(Height, BlockHash), Error>) -> SnapshotError {
    match result.unwrap_err() {
        Error::Snapshot(error) => error,
        other => panic!("{other}"),
    }
}

/// A small set of every kind of coin, in the file's form.
fn small_file() -> (State, Vec<u8>) {
    let state: State = (0..12_u8).map(|number| coin_of(number, u64::from(number) << 20)).collect();
    let bytes = encode(&state, BASE);
    (state, bytes)
}

/// A coin by its number: two of a transaction, all forms of scripts.
fn coin_of(number: u8, value: u64) -> (Outpoint, OwnedCoin) {
    let key = "0479be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798\
               483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8";
    let key = Vec::from_hex(key).unwrap();
    let script = match number % 6 {
        0 => [&[0x76, 0xa9, 20][..], &[number; 20], &[0x88, 0xac]].concat(),
        1 => [&[0xa9, 20][..], &[number; 20], &[0x87]].concat(),
        2 => [&[33, 3][..], &[number; 32], &[0xac]].concat(),
        3 => [&[65][..], &key, &[0xac]].concat(),
        // Not on the curve, so it is stored as it is.
        4 => [&[65][..], &key[..64], &[number, 0xac]].concat(),
        _ => vec![0x51; usize::from(number)],
    };
    let outpoint = Outpoint::new(Txid::from_bytes([number / 2; 32]), u32::from(number % 2));
    let (height, coinbase) = (Height::new(u32::from(number)), number.is_multiple_of(3));
    (outpoint, OwnedCoin { height, coinbase, value: Amount::from_sat(value), script })
}

#[test]
fn the_file_that_core_wrote() {
    let Some((database, expected)) = core31(small()) else { return };
    let Some(path) = varve_testdata::data("regtest-core31/snapshot.dat") else { return };
    let file = std::fs::read(path).unwrap();
    let exported = export(&database.snapshot());
    assert!(exported == file, "byte for byte");
    let hash = sha256::Hash::hash(&exported).to_string();
    assert_eq!(hash, expected["snapshot_sha256"]);

    let storage = Arc::new(FaultyStorage::new(1));
    let mut imported = open(&storage);
    assert_eq!(import(&mut imported, &file).unwrap(), database.tip().unwrap());
    assert_eq!(state(&imported.snapshot()), state(&database.snapshot()));
    compare_with_core(&imported.snapshot(), &expected);
    assert!(export(&imported.snapshot()) == file, "and again");
    drop(imported);
    let reopened = open(&storage);
    compare_with_core(&reopened.snapshot(), &expected);
}

#[test]
fn twenty_thousand_outputs() {
    let mut tx = TxDraft::coinbase(Height::new(1), 0);
    tx.outputs = (0..20_000_u32)
        .map(|vout| OutputDraft { value: u64::from(vout), script: vec![0x51; vout as usize % 40] })
        .collect();
    let mut twin = Twin::new(1, small());
    let previous = twin.tip_hash();
    twin.append(&BlockDraft { previous, ..BlockDraft::new(vec![tx]) }.bytes()).unwrap();
    let version = twin.database().snapshot();
    let all = state(&version);
    assert_eq!(all.len(), 20_000);
    let file = export(&version);
    assert!(file == encode(&all, version.tip().unwrap().1), "the order of Core's keys");
    let mut imported = new_database();
    imported.import(&file[..], Height::new(1), &mut |_, _| {}).unwrap();
    assert_eq!(state(&imported.snapshot()), all);
    assert!(export(&imported.snapshot()) == file);
    let hash = SetHash::HashSerialized3;
    assert_eq!(statistics(&imported.snapshot(), hash), sum(&version, &all, hash));
}

/// The set grows above the base block, and rewinds to it but no further.
#[test]
fn life_goes_on_above_the_base() {
    for seed in 0..6 {
        let mut twin = Twin::new(seed, small());
        let mut chance = Random::new(seed);
        for _ in 0..20 {
            twin.append_draft(&mut chance).unwrap();
        }
        let (height, base) = twin.database().tip().unwrap();
        let file = export(&twin.database().snapshot());
        let storage = Arc::new(FaultyStorage::new(seed));
        let mut imported = open(&storage);
        imported.import(&file[..], height, &mut |_, _| {}).unwrap();
        let below = state(&imported.snapshot());
        assert_eq!(below, state(&twin.database().snapshot()));
        imported.flush().unwrap();
        drop(imported);
        let mut imported = open(&storage);
        assert_eq!(state(&imported.snapshot()), below);
        for _ in 0..20 {
            let at = Height::new(twin.height());
            twin.append_draft(&mut chance).unwrap();
            let block = Block::parse(&twin.chain.last().unwrap().0, Network::Regtest.format());
            imported.append(&BlockAt::new(at, &block.unwrap())).unwrap();
        }
        assert_eq!(state(&imported.snapshot()), state(&twin.database().snapshot()));
        imported.flush().unwrap();
        drop(imported);
        let mut imported = open(&storage);
        let error = imported.rewind_to(Height::GENESIS).unwrap_err();
        assert!(matches!(error, Error::RewindTooDeep { .. }), "{error}");
        assert_eq!(imported.tip(), Some((height, base)));
        assert_eq!(state(&imported.snapshot()), below);
        assert!(export(&imported.snapshot()) == file, "after going up and down");
    }
}

#[test]
fn every_truncation_is_refused_and_changes_nothing() {
    let (all, file) = small_file();
    let storage = Arc::new(FaultyStorage::new(1));
    let mut database = open(&storage);
    let before = storage.list().unwrap();
    for end in 0..file.len() {
        let error = snapshot_error(import(&mut database, &file[..end]));
        assert!(matches!(error, SnapshotError::Truncated { .. }), "{end}: {error}");
        assert_eq!((database.tip(), database.snapshot().coin_count()), (None, 0));
        assert_eq!(storage.list().unwrap(), before, "no file is left");
    }
    drop(database);
    let mut database = open(&storage);
    import(&mut database, &file).unwrap();
    assert_eq!(state(&database.snapshot()), all);
}

#[test]
fn every_flipped_byte_is_refused_or_seen() {
    let (_, file) = small_file();
    let mut original = new_database();
    import(&mut original, &file).unwrap();
    let original = statistics(&original.snapshot(), SetHash::HashSerialized3);
    let (mut refused, mut seen) = (0, 0);
    for (place, mask) in
        (0..file.len()).flat_map(|place| [(place, 1), (place, 0x80), (place, 0xff)])
    {
        let mut flipped = file.clone();
        flipped[place] ^= mask;
        let mut database = new_database();
        match import(&mut database, &flipped) {
            Ok(_) => {
                let found = statistics(&database.snapshot(), SetHash::HashSerialized3);
                assert_ne!(found, original, "byte {place} ^ {mask:02x}");
                if place < 51 {
                    assert!((11..43).contains(&place), "byte {place} of the header");
                    assert_ne!(found.tip, original.tip);
                }
                seen += 1;
            }
            Err(error) => {
                assert_eq!((database.tip(), database.snapshot().coin_count()), (None, 0));
                assert!(matches!(error, Error::Snapshot(_) | Error::Run(_)), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 100 && seen > 100, "{refused} refused, {seen} seen");
}

#[test]
fn wrong_files_are_refused_with_the_reason() {
    let (all, file) = small_file();
    let mut database = new_database();
    let mut refuse = |bytes: &[u8]| snapshot_error(import(&mut database, bytes)).to_string();
    assert!(refuse(b"a letter, not a snapshot").contains("not a snapshot"));
    let changed = |place: usize, byte: u8| {
        let mut bytes = file.clone();
        bytes[place] = byte;
        bytes
    };
    assert!(refuse(&changed(5, 1)).contains("version 1"));
    assert!(refuse(&changed(7, 0xf9)).contains("magic f9bfb5da, not of regtest"));
    assert!(refuse(&changed(43, 13)).contains("ends within a txid"));
    assert!(refuse(&changed(43, 11)).contains("more coins than the header says"));
    assert!(refuse(&changed(43, 10)).contains("more bytes follow"));
    assert!(refuse(&[&file[..], &[0]].concat()).contains("more bytes follow"));
    assert!(refuse(&changed(51 + 32, 0)).contains("has no coins"));
    // The first transaction repeated at the end, and the coins of one in reverse order.
    let (first, rest): (State, State) = all.into_iter().partition(|(key, _)| key.txid < txid(1));
    let (first, rest) = (encode(&first, BASE), encode(&rest, BASE));
    let twice = [&file[..43], &[14, 0, 0, 0, 0, 0, 0, 0], &file[51..], &first[51..]].concat();
    assert!(refuse(&twice).contains("transactions are out of order"));
    let turned = [&file[..51], &rest[51..], &first[51..]].concat();
    assert!(refuse(&turned).contains("transactions are out of order"));
    // One transaction in two parts, each with a coin.
    let part = |number| encode(&State::from([coin_of(number, 1)]), BASE)[51..].to_vec();
    let parts = [&file[..43], &[2, 0, 0, 0, 0, 0, 0, 0], &part(0)[..], &part(1)[..]].concat();
    assert!(refuse(&parts).contains("transactions are out of order"));
    let again = changed(51 + 33, 1);
    assert!(refuse(&again).contains("coins of a transaction are out of order"));
    assert!(database.tip().is_none());

    let low = database.import(&file[..], Height::new(3), &mut |_, _| {}).unwrap_err();
    assert!(low.to_string().contains("above the base block at 3"), "{low}");
    let high = database.import(&file[..], Height::new(u32::MAX), &mut |_, _| {}).unwrap_err();
    assert!(high.to_string().contains("is not the height of a block"), "{high}");
    import(&mut database, &file).unwrap();
    let error = snapshot_error(import(&mut database, &file));
    assert!(matches!(error, SnapshotError::NotNew), "{error}");
    let empty = new_database().snapshot();
    let error = empty.export(Network::Regtest, &mut Vec::new(), &mut |_, _| {}).unwrap_err();
    assert!(matches!(error, Error::Snapshot(SnapshotError::NoBlock)), "{error}");
}

fn txid(byte: u8) -> Txid {
    Txid::from_bytes([byte; 32])
}

#[test]
fn a_power_cut_leaves_nothing_or_everything() {
    let (all, file) = small_file();
    let storage = Arc::new(FaultyStorage::new(1));
    let mut database = open(&storage);
    let start = storage.operations();
    import(&mut database, &file).unwrap();
    let end = storage.operations();
    for operation in start..=end {
        for crash in [Crash::LoseAll, Crash::KeepAll, Crash::Seed(operation as u64)] {
            let left = Arc::new(storage.crash(operation, crash));
            let mut database = open(&left);
            match database.tip() {
                None => {
                    assert!(operation < end, "what was imported is durable");
                    import(&mut database, &file).unwrap();
                }
                Some(tip) => assert_eq!(tip, (HEIGHT, BASE)),
            }
            assert_eq!(state(&database.snapshot()), all, "after {operation}, {crash:?}");
        }
    }
}

/// Whatever call fails, the set stays new, and accepts the file once the disk works again.
#[test]
fn a_failing_disk_leaves_a_new_set() {
    let (all, file) = small_file();
    let calls =
        [Operation::Open, Operation::Write, Operation::Sync, Operation::SyncDir, Operation::Rename];
    let mut failures = 0;
    for (operation, nth) in calls.into_iter().flat_map(|call| (0..8).map(move |nth| (call, nth))) {
        let storage = Arc::new(FaultyStorage::new(1));
        let mut database = open(&storage);
        storage.inject(FaultRule::new(operation, When::Nth(nth), Fault::Io));
        let failed = import(&mut database, &file);
        storage.clear_faults();
        let Err(error) = failed else {
            assert_eq!(state(&database.snapshot()), all, "{operation:?} {nth} was not called");
            continue;
        };
        failures += 1;
        assert!(error.to_string().contains("cannot"), "{operation:?} {nth}: {error}");
        assert_eq!((database.tip(), database.snapshot().coin_count()), (None, 0));
        drop(database);
        let mut database = Database::open(Arc::new(storage.reopen()), small()).unwrap();
        // A manifest that was renamed before the folder could be synced may be there, whole.
        if database.tip().is_none() {
            import(&mut database, &file).unwrap();
        }
        assert_eq!(state(&database.snapshot()), all, "{operation:?} {nth}");
    }
    assert!(failures >= 6, "{failures}");
}

/// So does a disk that is full, and nothing is left on it.
#[test]
fn a_full_disk_leaves_a_new_set() {
    let all: State = (0..=255).map(|number| coin_of(number, 1)).collect();
    let file = encode(&all, BASE);
    let storage = Arc::new(FaultyStorage::new(1));
    let mut database = open(&storage);
    let before = storage.list().unwrap();
    storage.set_capacity(Some(24_000));
    let error = import(&mut database, &file).unwrap_err();
    assert!(error.to_string().contains("the disk is full"), "{error}");
    assert_eq!(storage.list().unwrap(), before, "no file is left");
    storage.set_capacity(None);
    import(&mut database, &file).unwrap();
    assert_eq!(state(&database.snapshot()), all);
}

/// A reader that fails halfway.
#[test]
fn a_file_that_cannot_be_read_to_the_end() {
    struct Broken<'a>(&'a [u8]);
    impl std::io::Read for Broken<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            match std::io::Read::read(&mut self.0, into)? {
                0 => Err(std::io::Error::other("the cable was pulled")),
                read => Ok(read),
            }
        }
    }
    let (_, file) = small_file();
    let mut database = new_database();
    let half = Broken(&file[..file.len() / 2]);
    let error = database.import(half, HEIGHT, &mut |_, _| {}).unwrap_err();
    assert!(error.to_string().contains("the cable was pulled"), "{error}");
    assert_eq!((database.tip(), database.snapshot().coin_count()), (None, 0));
    import(&mut database, &file).unwrap();
}

/// The length of a script is not trusted: no coin has one of more than 10,000 bytes, and a longer
/// one is refused before it is read.
#[test]
fn a_script_that_no_coin_has_is_refused_unread() {
    let (_, file) = small_file();
    let mut start = file[..51 + 32].to_vec();
    start.extend([1, 0, 2, 1]); // one coin: vout 0, height 1, an amount
    varint::write((1 << 40) + 6, &mut start);
    let (start, mut rest) = (&start[..], std::io::repeat(7).take(1 << 26));
    let input = start.chain(rest.by_ref());
    let error = new_database().import(input, HEIGHT, &mut |_, _| {}).unwrap_err();
    assert!(error.to_string().contains("longer than any that can be spent"), "{error}");
    assert!(rest.limit() > 1 << 25, "{} bytes are left", rest.limit());
}

#[test]
fn a_set_without_coins() {
    let file = encode(&State::new(), BASE);
    let mut database = new_database();
    import(&mut database, &file).unwrap();
    assert!(state(&database.snapshot()).is_empty());
    assert_eq!(export(&database.snapshot()), file);
}

fn coins() -> impl Strategy<Value = State> {
    let vout = prop_oneof![0..4_u32, 120..300_u32, 16_500..16_530_u32, any::<u32>()];
    let script = prop::collection::vec(any::<u8>(), 0..40);
    let value = 0..=Amount::MAX_MONEY.to_sat();
    let coin = (any::<u8>(), value, 0..=HEIGHT.to_u32(), prop::option::of(script));
    let coins = prop::collection::vec((0..8_u8, vout, coin), 0..60);
    coins.prop_map(|coins| {
        let coins = coins.into_iter().map(|(tx, vout, (kind, value, height, script))| {
            let (_, mut coin) = coin_of(kind, value);
            coin.height = Height::new(height);
            coin.script = script.unwrap_or(coin.script);
            (Outpoint::new(txid(tx), vout), coin)
        });
        coins.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn sets_by_chance_round_trip(all in coins()) {
        let file = encode(&all, BASE);
        let mut database = new_database();
        import(&mut database, &file).unwrap();
        let version = database.snapshot();
        prop_assert_eq!(&state(&version), &all);
        prop_assert_eq!(version.coin_count(), all.len() as u64);
        prop_assert!(export(&version) == file);
        let hash = SetHash::HashSerialized3;
        prop_assert_eq!(statistics(&version, hash), sum(&version, &all, hash));
    }

    #[test]
    fn hostile_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let (_, mut file) = small_file();
        file.truncate(51);
        file.extend(bytes);
        let mut database = new_database();
        prop_assert!(import(&mut database, &file).is_err());
    }
}
