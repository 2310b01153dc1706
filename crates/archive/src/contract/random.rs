//! A random walk beside the plain maps.
//!
//! Both stores get the same headers, blocks, chains and states. Keys are few, so that most
//! searches find several rows. Now and then both are saved, or opened again, which loses what came
//! since. After every few steps each key is asked of both.

use varve_types::{Height, Outpoint};

use super::{Disk, TestBlock, block, header, mark, open_again, push, txid};
use crate::backend::memory::{MemoryBackend, MemoryDisk};
use crate::backend::{Backend, Chain, Match, Tables as _};
use crate::link::{HeaderLink, TxLink};
use crate::row::{BlockState, FilterRow, TxState};

/// Different keys of each kind.
const KEYS: u32 = 40;

/// Walks 400 steps.
///
/// # Panics
///
/// When the stores differ.
pub fn walk<D: Disk>(disk: &D, seed: u64) {
    let mut dice = Dice(seed);
    let oracle_disk = MemoryDisk::default();
    let mut backend = disk.open();
    let mut oracle = MemoryBackend::open(oracle_disk.clone());
    let mut blocks = Vec::new();
    for step in 0..400 {
        if dice.roll(40) == 0 {
            drop(backend);
            backend = open_again(disk, &blocks);
            oracle = MemoryBackend::open(oracle_disk.clone());
            assert_eq!(backend.saved().expect("saved"), oracle.saved().expect("saved"));
        } else {
            let choice = dice.roll(16);
            let seed = dice.number();
            let block = new_block(&backend, choice, &mut Dice(seed));
            let ours = change(&mut backend, choice, &block, Dice(seed));
            let theirs = change(&mut oracle, choice, &block, Dice(seed));
            assert_eq!(ours, theirs, "step {step}");
            blocks.extend(block);
        }
        if step % 16 == 0 {
            compare(&backend, &oracle);
        }
    }
    compare(&backend, &oracle);
}

/// One change; returns what the store said.
fn change<B: Backend>(
    backend: &mut B,
    choice: u32,
    block: &Option<TestBlock>,
    mut dice: Dice,
) -> String {
    let headers = backend.bounds().headers;
    let some_header = |dice: &mut Dice| HeaderLink::new(dice.roll(headers.max(1)));
    match choice {
        0..4 => {
            let rows: Vec<_> = (headers..headers + 1 + dice.roll(3)).map(header).collect();
            format!("{:?}", backend.append_headers(&rows))
        }
        4..9 => format!("{:?}", block.as_ref().map(|block| block.append(backend))),
        9 | 10 if headers > 0 => {
            let chain = if dice.roll(2) == 0 { Chain::Candidate } else { Chain::Confirmed };
            let saved = backend.saved().expect("saved");
            let len = match chain {
                Chain::Candidate => saved.candidate.len(),
                Chain::Confirmed => saved.confirmed.len(),
            };
            let len = u32::try_from(len).expect("a short chain");
            let keep = len - dice.roll(len + 1).min(5);
            let links: Vec<_> = (0..dice.roll(6)).map(|_| some_header(&mut dice)).collect();
            format!("{:?}", backend.set_chain(chain, keep, &links))
        }
        11 if headers > 0 => {
            let state = BlockState::from_code(u8::try_from(dice.roll(4)).expect("below 4"));
            let link = some_header(&mut dice);
            format!("{:?}", backend.set_block_states(&[(link, state.expect("a code"))]))
        }
        12 if backend.bounds().txs > 0 => {
            let link = TxLink::new(dice.number() % backend.bounds().txs);
            let (fee, median_time) = (dice.number(), dice.roll(9));
            let height = Height::new(dice.roll(99));
            let connected = dice.roll(2) == 0;
            let state = TxState { flags: 1, height, median_time, connected, fee, sigops: 3 };
            format!("{:?}", backend.set_tx_states(&[(link, state)]))
        }
        13 if headers > 0 => {
            let link = some_header(&mut dice);
            let byte = u8::try_from(link.to_u32() % 256).expect("below 256");
            let mut known = Vec::new();
            backend.tables().filters(&[link], &mut known).expect("filters");
            let row = FilterRow { header: [byte; 32], body: vec![byte; 1 + link.index() % 50] };
            let new = if known == [None] { vec![(link, row)] } else { Vec::new() };
            format!("{:?}", backend.set_filters(&new))
        }
        14 if dice.roll(4) == 0 => format!("{:?}", backend.rest(&mark(dice.number()))),
        14 => format!("{:?}", backend.checkpoint(&mark(dice.number()))),
        _ => String::new(),
    }
}

/// A block for a header that has none, when that is what is chosen.
fn new_block<B: Backend>(backend: &B, choice: u32, dice: &mut Dice) -> Option<TestBlock> {
    let headers = backend.bounds().headers;
    if !(4..9).contains(&choice) || headers == 0 {
        return None;
    }
    let header = dice.roll(headers);
    let mut known = Vec::new();
    backend.tables().blocks(&[HeaderLink::new(header)], &mut known).expect("blocks");
    if known != [None] {
        return None;
    }
    let count = 1 + dice.roll(5);
    let txs: Vec<_> = (0..count).map(|number| (txid(dice.roll(KEYS)), 81 + number)).collect();
    let mut puts = |kinds: u32| -> Vec<_> {
        let mut puts: Vec<_> =
            (0..dice.roll(8)).map(|_| (dice.roll(count), dice.roll(kinds))).collect();
        puts.sort_unstable();
        puts.dedup();
        puts
    };
    let spends: Vec<_> = puts(2 * KEYS)
        .into_iter()
        .map(|(position, key)| (Outpoint::new(txid(key / 2), key % 2), position))
        .collect();
    let pushes: Vec<_> =
        puts(KEYS).into_iter().map(|(position, key)| (push(key), position)).collect();
    Some(block(header, &txs, &spends, &pushes))
}

/// Asks both stores everything.
fn compare<B: Backend>(backend: &B, oracle: &MemoryBackend) {
    assert_eq!(backend.saved().expect("saved"), oracle.saved().expect("saved"));
    assert_eq!(backend.bounds(), oracle.bounds());
    let (ours, theirs) = (backend.tables(), oracle.tables());
    let bounds = backend.bounds();
    let headers: Vec<_> = (0..bounds.headers).map(HeaderLink::new).collect();
    let txs: Vec<_> = (0..bounds.txs).map(TxLink::new).collect();
    let hashes: Vec<_> = (0..bounds.headers + 2).map(|number| header(number).hash).collect();
    let txids: Vec<_> = (0..=KEYS).map(txid).collect();
    let points: Vec<_> = (0..2 * KEYS).map(|key| Outpoint::new(txid(key / 2), key % 2)).collect();
    macro_rules! same {
        ($method:ident, $keys:expr) => {
            let (ours, theirs) =
                (ask(|out| ours.$method($keys, out)), ask(|out| theirs.$method($keys, out)));
            assert_eq!(ours, theirs, stringify!($method));
        };
    }
    same!(headers, &headers);
    same!(find_headers, &hashes);
    same!(blocks, &headers);
    same!(txs, &txs);
    same!(filters, &headers);
    same!(tx_states, &txs);
    let rows = ask(|out| ours.find_txs(&txids, out));
    contains(&rows, &ask(|out| theirs.find_txs(&txids, out)));
    let spenders = ask(|out| ours.find_spenders(&points, out));
    contains(&spenders, &ask(|out| theirs.find_spenders(&points, out)));
    let from = TxLink::new(bounds.txs / 3);
    for key in (0..=KEYS).map(push) {
        let pushes = ask(|out| ours.find_pushes(key, from, usize::MAX, out));
        let pushes: Vec<_> = pushes.into_iter().map(|link| (0, link)).collect();
        let expected = ask(|out| theirs.find_pushes(key, from, usize::MAX, out));
        contains(&pushes, &expected.into_iter().map(|link| (0, link)).collect::<Vec<_>>());
    }
}

/// What a store answers.
fn ask<A>(ask: impl FnOnce(&mut Vec<A>) -> crate::backend::Result<()>) -> Vec<A> {
    let mut answers = Vec::new();
    ask(&mut answers).expect("it can be asked");
    answers
}

/// Candidates may be more than the true rows, but these are all there and in order. A transaction
/// that is a candidate for two reasons comes twice.
fn contains(candidates: &[Match], expected: &[Match]) {
    let mut kept: Vec<_> = candidates.iter().filter(|row| expected.contains(row)).collect();
    kept.dedup();
    assert_eq!(kept, expected.iter().collect::<Vec<_>>());
}

/// Random numbers of one seed (`SplitMix64`).
#[derive(Clone, Copy, Debug)]
pub struct Dice(pub u64);

impl Dice {
    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `sides`, or zero when there are none.
    pub fn roll(&mut self, sides: u32) -> u32 {
        let number = self.number() % u64::from(sides.max(1));
        u32::try_from(number).expect("below a u32")
    }
}
