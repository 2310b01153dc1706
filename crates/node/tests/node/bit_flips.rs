//! A flipped bit in any file of a folder: a clear error, or nothing is wrong; and what repair does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use varve_io::faulty::{Crash, FaultyStorage};
use varve_io::{Access, Caching, FileOffset, Storage as _};
use varve_node::{Error, IndexSet, Options, Organizer, SettingsChange};
use varve_types::{Block, Height, Network};
use varve_utxo::{Parameters, UndoConfig};

use crate::crash::{blocks, eager_options, hash_of};
use crate::miner::{Mined, bytes_of};
use crate::rig::{Dice, lives, pipe, sync, sync_options};

/// The folders of the stores, and the root.
const FOLDERS: [&str; 6] = ["", "commit/", "blocks/", "archive/", "utxo/", "stats/"];
/// Flips of each run: of chance, in addition to some in every file.
const SHORT: usize = 60;

/// Everything that can be asked, in one value.
type Answers = BTreeMap<String, Vec<u8>>;

/// A node with every kind of file: runs, undo, filters, scripts, figures, several files of blocks.
fn options() -> Options {
    let indexes: IndexSet = "filter,script,stats".parse().unwrap();
    let settings = SettingsChange { indexes: Some(indexes), ..SettingsChange::default() };
    let undo = UndoConfig { blocks: 4_096, segment_size: 2_000, cache: 0 };
    let parameters =
        Parameters { window: 2, flush_interval: 2, fan_in: 2, ..Parameters::default() };
    Options { settings, undo, parameters, block_segment: 2_000, ..eager_options() }
}

fn chain() -> Vec<Vec<u8>> {
    [blocks(), bytes_of(&Mined::genesis().chain(7, 14))].concat()
}

/// Asks everything, twice: as it is, and after a reorganisation that undo records are needed for.
fn ask(storage: Arc<FaultyStorage>) -> Result<Answers, Error> {
    let mut node = Organizer::open(storage, options())?;
    let mut answers = read(&node)?;
    let branch: Vec<Vec<u8>> =
        bytes_of(&Mined::genesis().chain(7, 10)).into_iter().chain(bytes_of(&fork())).collect();
    sync(&mut node, &mut pipe(Network::Regtest, &branch), &sync_options())?;
    let after = read(&node)?;
    answers.extend(after.into_iter().map(|(name, answer)| (format!("after {name}"), answer)));
    Ok(answers)
}

/// A branch above block 10 of the long chain, which overtakes it.
fn fork() -> Vec<Mined> {
    Mined::genesis().chain(7, 10)[9].chain(8, 6)
}

fn read(node: &Organizer) -> Result<Answers, Error> {
    let mut answers = Answers::new();
    let snapshot = node.snapshot();
    let view = snapshot.view();
    answers.insert("tip".to_owned(), snapshot.tip.1.as_bytes().to_vec());
    let coins = snapshot.utxo.coin_count();
    answers.insert("coins".to_owned(), coins.to_le_bytes().to_vec());
    for height in 0..=snapshot.tip.0.to_u32() {
        let Some(link) = view.to_confirmed(Height::new(height)) else { continue };
        let bytes = view.raw_block(link)?.map(|bytes| bytes.to_vec()).unwrap_or_default();
        let block = Block::parse(&bytes, Network::Regtest.format())
            .map_err(|source| Error::Undecodable { hash: snapshot.tip.1, source })?;
        for txid in block.txids() {
            let place = view.to_tx(txid)?;
            let raw = place.map(|place| view.raw_tx(place.link)).transpose()?.flatten();
            answers.insert(format!("tx {txid}"), raw.map(|raw| raw.to_vec()).unwrap_or_default());
        }
        for point in view.block_points(link)?.unwrap_or_default() {
            let spender = view.confirmed_spender(point)?.map(|spender| view.txid(&spender.tx));
            let spender = spender.transpose()?;
            let spender = spender.map(|txid| txid.as_bytes().to_vec());
            answers.insert(format!("spender {point}"), spender.unwrap_or_default());
        }
        let filter = view.filter(link)?.map(|row| row.header.to_vec());
        answers.insert(format!("filter {height}"), filter.unwrap_or_default());
        let figures = node.stats_at(Height::new(height), &mut |_, _| {})?;
        answers.insert(format!("stats {height}"), figures.muhash().to_vec());
        answers.insert(format!("block {height}"), bytes);
    }
    // A walk through all coins, and every checksum.
    answers.insert("set".to_owned(), set_of(node)?);
    node.verify(&mut |_, _| {})?;
    Ok(answers)
}

fn set_of(node: &Organizer) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    node.snapshot().utxo.export(Network::Regtest, &mut bytes, &mut |_, _| {})?;
    Ok(bytes)
}

/// Every file with its length.
fn files(storage: &FaultyStorage) -> Vec<(String, u64)> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        let root = storage.reopen();
        let inner = match folder.trim_end_matches('/') {
            "" => Arc::new(root) as Arc<dyn varve_io::Storage>,
            name => root.directory(name).unwrap(),
        };
        for name in inner.list().unwrap().into_iter().filter(|name| name != "lock") {
            let file = inner.open(&name, Access::Read, Caching::Buffered).unwrap();
            files.push((format!("{folder}{name}"), file.size().unwrap()));
        }
    }
    files
}

/// What a repair must give: everything, unless blocks, commits or the identity are hit.
fn check_repaired(storage: Arc<FaultyStorage>, name: &str, clean: &Answers) {
    let derived =
        !["blocks/blocks-", "commit/", "node", "settings"].iter().any(|p| name.starts_with(p));
    let repaired = Organizer::repair(storage.clone(), options(), &mut |_, _| {});
    let mut node = match repaired {
        Ok(node) => node,
        Err(error) if !derived => {
            names(&error, name);
            return;
        }
        Err(error) => panic!("{name}: not repaired: {error}"),
    };
    // Commits that were given up are made again from the stored blocks.
    let refused = sync(&mut node, &mut pipe(Network::Regtest, &chain()), &sync_options());
    match refused.and_then(|_| read(&node)) {
        Ok(found) => {
            for (question, answer) in &found {
                assert_eq!(Some(answer), clean.get(question), "{name}: {question}");
            }
        }
        Err(error) => {
            assert!(!derived, "{name}: {error}");
            names(&error, name);
        }
    }
}

/// The message says which file.
fn names(error: &Error, name: &str) {
    let file = name.rsplit('/').next().unwrap();
    assert!(error.to_string().contains(file), "{name} is not named: {error}");
}

#[test]
fn every_flip_is_an_error_or_harmless_and_repair_mends_what_derives() {
    let storage = Arc::new(FaultyStorage::new(9));
    let mut node = Organizer::open(storage.clone(), options()).unwrap();
    let all = chain();
    for end in [5, 12, all.len()] {
        sync(&mut node, &mut pipe(Network::Regtest, &all[..end]), &sync_options()).unwrap();
    }
    assert!(hash_of(&node.snapshot()) != [0; 32]);
    drop(node);
    let copy = || Arc::new(storage.crash(storage.operations(), Crash::KeepAll));
    let clean = ask(copy()).unwrap();
    let files = files(&storage);
    for kind in ["commit/commits", "blocks/index", "archive/tx", "utxo/undo", "stats/stats"] {
        assert!(files.iter().any(|(name, _)| name.starts_with(kind)), "{kind}: {files:?}");
    }
    let mut dice = Dice(1);
    let mut flips: Vec<(usize, u64)> = Vec::new();
    for (index, (_, size)) in files.iter().enumerate() {
        flips.extend((*size > 0).then_some((index, size / 2)));
    }
    for _ in 0..lives().unwrap_or(SHORT) {
        let index = dice.below(files.len());
        let size = usize::try_from(files[index].1).unwrap();
        if size > 0 {
            flips.push((index, dice.below(size) as u64));
        }
    }
    let (mut errors, mut harmless) = (0, 0);
    for (index, at) in flips {
        let name = &files[index].0;
        let damaged = copy();
        assert!(damaged.flip_bit(name, FileOffset::new(at), u8::try_from(at % 8).unwrap()));
        let untouched = Arc::new(damaged.crash(damaged.operations(), Crash::KeepAll));
        match ask(damaged) {
            Ok(found) => {
                for (question, answer) in &found {
                    assert_eq!(Some(answer), clean.get(question), "{name} at {at}: {question}");
                }
                assert_eq!(found.len(), clean.len(), "{name} at {at}");
                harmless += 1;
            }
            Err(error) => {
                names(&error, name);
                errors += 1;
                check_repaired(untouched, name, &clean);
            }
        }
    }
    assert!(errors > 50, "{errors} errors, {harmless} harmless flips");
}

/// The bytes of a file that are flipped: its head, its end, and some of every part between.
fn samples(size: u64) -> Vec<u64> {
    let step = (size / 61).max(1);
    // At another place of each part, so that no field of a row is always missed.
    let middle = (0..size.div_ceil(step)).map(|part| part * step + part * 7 % step);
    let all: BTreeSet<u64> = (0..size.min(72))
        .chain(size.saturating_sub(24)..size)
        .chain(middle.map(|at| at.min(size - 1)))
        .collect();
    all.into_iter().collect()
}

/// Every file of a folder at rest, at its head, at its end and between: opening or `verify` says
/// what is wrong, and names the file. None of them is passed as whole.
#[test]
fn verify_finds_every_flip_of_a_folder_at_rest() {
    let storage = Arc::new(FaultyStorage::new(9));
    let mut node = Organizer::open(storage.clone(), options()).unwrap();
    let all = chain();
    for end in [5, 12, all.len()] {
        sync(&mut node, &mut pipe(Network::Regtest, &all[..end]), &sync_options()).unwrap();
    }
    drop(node);
    let copy = || Arc::new(storage.crash(storage.operations(), Crash::KeepAll));
    let verify = |storage: Arc<FaultyStorage>| -> Result<(), Error> {
        Organizer::open(storage, options())?.verify(&mut |_, _| {}).map(drop)
    };
    verify(copy()).unwrap();
    let (mut missed, mut flips) = (BTreeMap::<String, Vec<u64>>::new(), 0);
    for (name, size) in files(&storage) {
        for at in samples(size) {
            let damaged = copy();
            assert!(damaged.flip_bit(&name, FileOffset::new(at), u8::try_from(at % 8).unwrap()));
            flips += 1;
            match verify(damaged) {
                Err(error) => names(&error, &name),
                Ok(()) => missed.entry(name.clone()).or_default().push(at),
            }
        }
    }
    assert!(missed.is_empty(), "of {flips} flips these were missed: {missed:?}");
    assert!(flips > 3_000, "{flips}");
}

/// The last commit is damaged and not yet covered by a durable position; but the archive has
/// followed it, so it was acknowledged.
#[test]
fn a_lost_commit_that_the_archive_has_followed_is_told() {
    let storage = Arc::new(FaultyStorage::new(9));
    let mut node = Organizer::open(storage.clone(), eager_options()).unwrap();
    let (all, name) = (chain(), "commit/commits-000000000000");
    sync(&mut node, &mut pipe(Network::Regtest, &all), &sync_options()).unwrap();
    drop(node);
    let mut told = 0;
    for n in (0..=storage.operations()).rev().take(80) {
        let cut = Arc::new(storage.crash(n, Crash::KeepAll));
        let size = files(&cut).into_iter().find(|(found, _)| found == name).unwrap().1;
        assert!(cut.flip_bit(name, FileOffset::new(size - 3), 4));
        let opened = Organizer::open(cut, eager_options());
        told += usize::from(opened.is_err_and(|error| error.to_string().contains("has followed")));
    }
    assert!(told > 0);
}
