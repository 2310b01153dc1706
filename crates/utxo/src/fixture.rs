//! What the tests of runs share: a store, coins, and runs of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use varve_io::{BatchReader, Disk, Storage, StoreId};
use varve_runs::{
    Access, Buffers, PageBuffers, RunNumber, Secret, Sequence, Source, Span, StoreKey,
};
use varve_types::{Amount, Coin, Height, Outpoint, Txid};

use crate::codec::{CoinCodec, Run, Runs};
use crate::coins::Coins;
use crate::entry::Entry;
use crate::query::Query;
use crate::run_error::RunError;
use crate::run_writer::{NewRun, RunWriter};

pub(crate) const KEY: StoreKey =
    StoreKey { id: StoreId([0x11; 16]), secret: Secret::new([0x22; 16]) };

/// A directory on the disk that is removed when the test ends.
pub(crate) fn disk() -> (tempfile::TempDir, Arc<dyn Storage>) {
    let dir = tempfile::tempdir().unwrap();
    let storage = Arc::new(Disk::open(dir.path()).unwrap());
    (dir, storage)
}

/// A coin without a lifetime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) height: u32,
    pub(crate) value: u64,
    pub(crate) script: Vec<u8>,
}

impl Owned {
    pub(crate) fn coin(&self) -> Coin<'_> {
        Coin {
            height: Height::new(self.height),
            coinbase: self.height.is_multiple_of(7),
            value: Amount::from_sat(self.value),
            script: &self.script,
        }
    }
}

/// Adds and deletes by outpoint and birth.
pub(crate) type Changes = BTreeMap<(Outpoint, u32), Option<Owned>>;

/// A coin that its number determines.
pub(crate) fn owned(number: u32) -> Owned {
    let length = [25, 22, 23, 34, 34, 0, 80][number as usize % 7];
    let [first, ..] = number.to_le_bytes();
    let script = (0..length).map(|byte| first ^ byte).collect();
    Owned { height: number % 1000, value: u64::from(number) * 1013, script }
}

/// A txid spread over all values.
pub(crate) fn txid(number: u32) -> Txid {
    Txid::from_bytes(varve_types::sha256d(&number.to_le_bytes()))
}

pub(crate) fn outpoint(number: u32) -> Outpoint {
    Outpoint::new(txid(number / 3), number % 3)
}

pub(crate) fn span(first: u32, last: u32) -> Span {
    Span { first: Sequence::new(first), last: Sequence::new(last) }
}

pub(crate) fn new_run(number: u64, span: Span, entries: usize) -> NewRun {
    let (number, buffers) = (RunNumber(number), Buffers::LARGE);
    NewRun { number, span, expected: entries as u64, buffers }
}

/// Writes a run of `changes`.
pub(crate) fn write_run(
    storage: &Arc<dyn Storage>,
    number: u64,
    span: Span,
    changes: &Changes,
) -> Result<Run, RunError> {
    let mut writer = RunWriter::create(storage, KEY, &new_run(number, span, changes.len()))?;
    for ((outpoint, birth), coin) in changes {
        let (outpoint, birth) = (*outpoint, Sequence::new(*birth));
        writer.push(&match coin {
            Some(owned) => Entry::add(outpoint, birth, owned.coin()),
            None => Entry::delete(outpoint, birth),
        })?;
    }
    writer.finish()
}

/// All entries of a source.
pub(crate) fn collect(mut source: impl Source<CoinCodec>) -> Result<Changes, RunError> {
    let mut changes = Changes::new();
    while let Some(record) = source.head() {
        let coin = record.coin.map(|packed| {
            let mut script = Vec::new();
            let head = packed.unpack(&mut script).unwrap();
            Owned { height: head.height.to_u32(), value: head.value.to_sat(), script }
        });
        changes.insert((record.outpoint, record.birth.to_u32()), coin);
        source.advance()?;
    }
    Ok(changes)
}

/// Looks `keys` up by the map and by reads, which must agree.
pub(crate) fn look_up(
    runs: &Runs,
    mut keys: Vec<Outpoint>,
) -> Result<BTreeMap<Outpoint, (u32, Owned)>, RunError> {
    keys.sort_unstable();
    let mut found = Vec::new();
    for access in [Access::Mapped, Access::Direct] {
        runs.as_slice().iter().for_each(|run| run.set_access(access));
        let mut query = Query::new(runs, keys.clone());
        query.fetch(&mut BatchReader::new(64), &mut PageBuffers::default())?;
        let mut coins = Coins::unknown(keys.len());
        query.join(&mut coins, |key| key)?;
        let of_key = |(place, key): (usize, &Outpoint)| {
            let (coin, birth) = coins.get(place).zip(coins.birth(place))?;
            let script = coin.script.to_vec();
            let owned = Owned { height: coin.height.to_u32(), value: coin.value.to_sat(), script };
            Some((*key, (birth.to_u32(), owned)))
        };
        let coins = keys.iter().enumerate().filter_map(of_key);
        found.push(coins.collect::<BTreeMap<_, _>>());
    }
    let by_reads = found.pop().unwrap();
    let by_map = found.pop().unwrap();
    assert_eq!(by_map, by_reads);
    Ok(by_map)
}
