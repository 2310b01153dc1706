//! Whole files of `varve-utxo`: runs, window files and Core's snapshots.
//!
//! The bytes of an input are the payloads of the pages of a file, which gets right checksums:
//! footer, directory and filter of a run, and the stream of a window, are decoded as read from a
//! disk. Whatever they say, opening and reading ends with an answer or an error.

use std::num::NonZeroUsize;
use std::sync::Arc;

use varve_io::faulty::FaultyStorage;
use varve_io::{
    Access, BatchReader, Caching, FileId, FileOffset, Kind, PAGE_LEN, PAGE_PAYLOAD_LEN,
    PageFileWriter, Storage, StoreId,
};
use varve_types::{Amount, Coin, Height, Network, Outpoint, Txid};
use varve_utxo::parts::{
    Buffers, Entry, NewRun, OutpointHasher, PageBuffers, Query, Run, RunInfo, RunNumber, RunWriter,
    Runs, Sequence, Source as _, Span, Step, Window, WindowConfig, WindowFile, unknown_coins,
};
use varve_utxo::{Database, Options, Secret, StoreKey, Version};

use crate::Target;

pub(crate) const TARGETS: &[Target] = &[
    Target { name: "run_file", run: run_file, seeds: |_| runs() },
    Target { name: "window_file", run: window_file, seeds: |_| windows() },
    Target { name: "snapshot", run: snapshot, seeds: |_| snapshots() },
];

const KEY: StoreKey = StoreKey { id: StoreId([4; 16]), secret: Secret::new([5; 16]) };
const WINDOW_ID: FileId = FileId(*b"a fuzzed window.");
const WINDOW_NAME: &str = "fuzzed.window";

fn storage() -> Arc<dyn Storage> {
    Arc::new(FaultyStorage::new(1))
}

fn outpoint(number: u32) -> Outpoint {
    let mut txid = [0; 32];
    let bytes = (number / 3).wrapping_mul(0x9e37_79b9).to_be_bytes();
    txid.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    Outpoint::new(Txid::from_bytes(txid), number % 3)
}

fn coin(script: &[u8]) -> Coin<'_> {
    Coin { height: Height::new(7), coinbase: false, value: Amount::from_sat(50_000), script }
}

/// Writes a page file of these payloads; gives the number of its pages.
fn write_pages(storage: &dyn Storage, name: &str, kind: [u8; 8], id: FileId, bytes: &[u8]) -> u64 {
    let mut writer =
        PageFileWriter::create(storage, name, Kind(kind), id).expect("a file in memory is made");
    for payload in bytes.chunks(PAGE_PAYLOAD_LEN) {
        writer.push(payload).expect("a payload fits its page");
    }
    writer.finish().expect("a file in memory is synced").pages()
}

/// The payloads of a file's pages, that of the header page left out.
fn read_payloads(storage: &dyn Storage, name: &str) -> Vec<u8> {
    let file = storage.open(name, Access::Read, Caching::Buffered).expect("it was written");
    let size = usize::try_from(file.size().expect("it is in memory")).expect("it is small");
    let mut bytes = vec![0; size];
    file.read_at(FileOffset::new(0), &mut bytes).expect("it is in memory");
    let pages = bytes.chunks(PAGE_LEN).skip(1);
    pages.flat_map(|page| page.split_at(PAGE_PAYLOAD_LEN).0).copied().collect()
}

/// What the manifest would have to say for the footer to be accepted.
fn info(bytes: &[u8]) -> Option<RunInfo> {
    let start = bytes.len().checked_sub(1)? / PAGE_PAYLOAD_LEN * PAGE_PAYLOAD_LEN;
    let footer = bytes.get(start..)?;
    let u32_at = |at| Some(u32::from_le_bytes(*footer.get(at..)?.first_chunk()?));
    let u64_at = |at| Some(u64::from_le_bytes(*footer.get(at..)?.first_chunk()?));
    Some(RunInfo {
        number: RunNumber(u64_at(32)?),
        span: Span { first: Sequence::new(u32_at(40)?), last: Sequence::new(u32_at(44)?) },
        adds: u64_at(48)?,
        deletes: u64_at(56)?,
        pages: 0,
        digest: u32_at(96)?,
    })
}

/// The id in the pages of a run: the front of the store's id, and the number.
fn run_id(number: RunNumber) -> FileId {
    let mut id = KEY.id.0;
    id.iter_mut().skip(8).zip(number.0.to_le_bytes()).for_each(|(to, from)| *to = from);
    FileId(id)
}

fn run_file(bytes: &[u8]) {
    let Some(info) = info(bytes) else { return };
    let storage = storage();
    let (name, id) = (info.number.file_name(), run_id(info.number));
    let pages = write_pages(&*storage, &name, *b"UTXORUN\0", id, bytes);
    let info = RunInfo { pages, ..info };
    let Ok(run) = Run::open(&*storage, &KEY, &info) else { return };
    assert_eq!(run.info(), info);
    let run = Arc::new(run);
    let mut seen = Vec::new();
    let walked = run.cursor().and_then(|mut cursor| {
        while let Some(record) = cursor.head() {
            seen.push(record.outpoint);
            cursor.advance()?;
        }
        Ok(())
    });
    assert!(walked.is_err() || seen.is_sorted(), "what is read in order is in order");
    let runs = Runs::empty(KEY).with_replaced(0..0, Some(run));
    seen.extend((0..40).map(outpoint));
    seen.sort_unstable();
    seen.dedup();
    let mut query = Query::new(&runs, seen);
    let fetched = query.fetch(&mut BatchReader::new(4), &mut PageBuffers::default());
    if fetched.is_ok() {
        // An answer or an error; the coins of a forged run do not matter.
        let _ = query.join(&mut unknown_coins(query.keys().len()), |place| place);
    }
}

fn runs() -> Vec<Vec<u8>> {
    let run = |coins: u32, script: &[u8]| {
        let storage = storage();
        let span = Span { first: Sequence::new(1), last: Sequence::new(9) };
        let (number, buffers) = (RunNumber(3), Buffers::LARGE);
        let new = NewRun { number, span, expected: u64::from(coins), buffers };
        let mut writer = RunWriter::create(&storage, KEY, &new).expect("a file in memory is made");
        let mut keys: Vec<Outpoint> = (0..coins).map(outpoint).collect();
        keys.sort_unstable();
        for (number, key) in keys.iter().enumerate() {
            let birth = Sequence::new(5);
            let entry = match number % 5 {
                4 => Entry::delete(*key, birth),
                _ => Entry::add(*key, birth, coin(script)),
            };
            writer.push(&entry).expect("keys are in order");
        }
        writer.finish().expect("a file in memory is synced");
        read_payloads(&*storage, &RunNumber(3).file_name())
    };
    vec![run(3, &[0x51]), run(200, &[0x51; 30]), run(4, &[0x52; 5_000])]
}

fn load(storage: &dyn Storage, pages: u64) -> Option<Window> {
    let file = WindowFile { name: WINDOW_NAME.to_owned(), id: WINDOW_ID, pages };
    let config = WindowConfig { shards: 2, pane_steps: 4 };
    let made = (config, OutpointHasher::new(&[7; 16]));
    Window::load(storage, &file, made.0, made.1, NonZeroUsize::MIN).ok()
}

fn window_file(bytes: &[u8]) {
    let storage = storage();
    let pages = write_pages(&*storage, WINDOW_NAME, *b"UTXOWIN1", WINDOW_ID, bytes);
    let Some(window) = load(&*storage, pages) else { return };
    let again = self::storage();
    let saved = window.save(&*again, WINDOW_NAME, WINDOW_ID).expect("a file in memory is made");
    let reloaded = load(&*again, saved.pages).expect("saved just now");
    let count = |window: &Window| window.version().entries().count();
    assert_eq!(count(&window), count(&reloaded));
    assert_eq!(window.version().sequence(), reloaded.version().sequence());
}

fn windows() -> Vec<Vec<u8>> {
    let window = |steps: u32| {
        let config = WindowConfig { shards: 2, pane_steps: 4 };
        let mut window = Window::new(config, OutpointHasher::new(&[7; 16]), Sequence::ZERO);
        for number in 1..=steps {
            let sequence = Sequence::new(number);
            let adds: Vec<_> = (0..5)
                .map(|place| Entry::add(outpoint(number * 9 + place), sequence, coin(&[0x51; 9])))
                .collect();
            let height = Height::new(number);
            let step = Step { sequence, height, spends: &[], replaces: None };
            window.apply_entries(&step, &adds, NonZeroUsize::MIN).expect("new coins can be made");
        }
        let storage = storage();
        window.save(&*storage, WINDOW_NAME, WINDOW_ID).expect("a file in memory is made");
        read_payloads(&*storage, WINDOW_NAME)
    };
    vec![window(1), window(11)]
}

fn import(bytes: &[u8]) -> Option<Arc<Version>> {
    let options = Options::new(Network::Regtest, KEY);
    let mut set = Database::open(storage(), options).expect("an empty set is made");
    match set.import(bytes, Height::new(600), &mut |_, _| {}) {
        Ok(_) => Some(set.snapshot()),
        Err(_) => {
            assert_eq!((set.tip(), set.snapshot().coin_count()), (None, 0));
            None
        }
    }
}

fn export(version: &Version) -> Vec<u8> {
    let mut bytes = Vec::new();
    version
        .export(Network::Regtest, &mut bytes, &mut |_, _| {})
        .expect("what was imported can be exported");
    bytes
}

/// What was taken is written in Core's own form, and taken again.
fn snapshot(bytes: &[u8]) {
    let Some(version) = import(bytes) else { return };
    let file = export(&version);
    let again = import(&file).expect("written just now");
    assert_eq!(again.coin_count(), version.coin_count());
    assert!(export(&again) == file);
}

fn snapshots() -> Vec<Vec<u8>> {
    let header = |coins: u64| {
        let mut bytes = b"utxo\xff\x02\x00\xfa\xbf\xb5\xda".to_vec();
        bytes.extend_from_slice(&[9; 32]);
        bytes.extend_from_slice(&coins.to_le_bytes());
        bytes
    };
    let mut two = header(2);
    two.extend_from_slice(&[3; 32]);
    // Two coins: number, height and coinbase, amount, script.
    two.extend_from_slice(&[2, 0, 9, 50, 8, 0x51, 0x51]);
    two.extend_from_slice(&[7, 12, 1, 7, 0x51]);
    vec![header(0), two]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If the examples were refused, the targets would test nothing.
    #[test]
    fn the_examples_are_taken() {
        for bytes in runs() {
            let storage = storage();
            let info = info(&bytes).unwrap();
            let (name, id) = (info.number.file_name(), run_id(info.number));
            let pages = write_pages(&*storage, &name, *b"UTXORUN\0", id, &bytes);
            Run::open(&*storage, &KEY, &RunInfo { pages, ..info }).unwrap();
        }
        for bytes in windows() {
            let storage = storage();
            let pages = write_pages(&*storage, WINDOW_NAME, *b"UTXOWIN1", WINDOW_ID, &bytes);
            assert!(load(&*storage, pages).unwrap().version().entries().count() > 0);
        }
        assert!(snapshots().iter().all(|bytes| import(bytes).is_some()));
    }
}
