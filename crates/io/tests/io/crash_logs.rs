//! Both logs, crashed after every operation of random lives, many ways each. What was acknowledged
//! is there; what is served is what was written, in order; and the log continues from there.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "in a test a panic is the report"
)]

use std::sync::Arc;

use proptest::prelude::*;
use varve_io::faulty::{Crash, FaultyStorage};
use varve_io::{
    GlobalOffset, Kind, LogCheckpoint, MappedLog, MappedLogConfig, Segments, SegmentsConfig,
    StoreId,
};

const KIND: Kind = Kind(*b"TESTKIND");
const STORE: StoreId = StoreId([5; 16]);
const SEEDS: u64 = 16;

/// One step in the life of a log.
#[derive(Debug, Clone)]
enum Step {
    Append(Vec<u16>),
    Sync,
    /// Back to one of the frames, by a fraction of 256.
    Truncate(u8),
    Prune(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => prop::collection::vec(0_u16..900, 1..5).prop_map(Step::Append),
        3 => Just(Step::Sync),
        1 => any::<u8>().prop_map(Step::Truncate),
        1 => any::<u8>().prop_map(Step::Prune),
    ]
}

/// What a log must hold: frames in order, each different from every other ever written.
#[derive(Debug, Clone, Default)]
struct Model {
    frames: Vec<(GlobalOffset, Vec<u8>)>,
    written: u32,
}

impl Model {
    fn payload(&mut self, len: u16) -> Vec<u8> {
        self.written += 1;
        let mut payload = self.written.to_le_bytes().to_vec();
        payload.resize(4 + usize::from(len), self.written.to_le_bytes()[0]);
        payload
    }

    fn end(&self) -> GlobalOffset {
        self.frames
            .last()
            .map_or(GlobalOffset::ZERO, |(at, payload)| at.plus(16 + payload.len() as u64))
    }

    /// The position of one of the frames that pruning has left.
    fn pick(&self, start: GlobalOffset, fraction: u8) -> Option<GlobalOffset> {
        let left = self.frames.partition_point(|(at, _)| *at < start);
        let left = self.frames.get(left..)?;
        left.get(left.len() * usize::from(fraction) / 256).map(|(at, _)| *at)
    }
}

/// A moment of a log's life: after `operations`, the durable position the caller has noted, and
/// all that was appended up to it and beyond.
#[derive(Debug, Clone)]
struct Moment {
    operations: usize,
    durable: GlobalOffset,
    model: Model,
}

fn segments_config() -> SegmentsConfig {
    SegmentsConfig { prefix: "log".to_owned(), kind: KIND, store: STORE, segment_size: 1500 }
}

/// Lives the steps, noting every moment at which the caller's knowledge changes.
fn live(storage: &Arc<FaultyStorage>, steps: &[Step]) -> Vec<Moment> {
    let shared = Arc::<FaultyStorage>::clone(storage);
    let mut log = Segments::open(shared, segments_config(), GlobalOffset::ZERO).unwrap();
    let (mut model, mut durable) = (Model::default(), GlobalOffset::ZERO);
    let mut moments = Vec::new();
    for step in steps {
        match step {
            Step::Append(lengths) => {
                let payloads: Vec<Vec<u8>> =
                    lengths.iter().map(|len| model.payload(*len)).collect();
                let slices: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
                // The frames may be on disk from here on.
                let mut at = model.end().max(log.end());
                for payload in &payloads {
                    model.frames.push((at, payload.clone()));
                    at = model.end();
                }
                moments.push(Moment {
                    operations: storage.operations(),
                    durable,
                    model: model.clone(),
                });
                let places = log.append(&slices).unwrap();
                let expected = model.frames[model.frames.len() - places.len()..].iter();
                assert!(expected.map(|(at, _)| *at).eq(places));
            }
            Step::Sync => durable = log.sync().unwrap(),
            Step::Truncate(fraction) => {
                let Some(to) = model.pick(log.start(), *fraction) else { continue };
                // The caller lowers its own mark first; frames above may or may not be there.
                durable = durable.min(to);
                moments.push(Moment {
                    operations: storage.operations(),
                    durable,
                    model: model.clone(),
                });
                log.truncate(to).unwrap();
                model.frames.retain(|(at, _)| *at < to);
            }
            Step::Prune(fraction) => {
                let Some(before) = model.pick(log.start(), *fraction) else { continue };
                // Never past what is durable, as the design has it.
                log.prune(before.min(durable)).unwrap();
            }
        }
        moments.push(Moment { operations: storage.operations(), durable, model: model.clone() });
    }
    moments
}

fn check_segments(storage: &Arc<FaultyStorage>, moments: &[Moment]) {
    for n in 0..=storage.operations() {
        let known = moments.partition_point(|moment| moment.operations <= n);
        let Some(moment) = known.checked_sub(1).map(|index| &moments[index]) else { continue };
        for crash in Crash::ways(SEEDS) {
            let after = Arc::new(storage.crash(n, crash));
            let mut log = Segments::open(after.clone(), segments_config(), moment.durable)
                .unwrap_or_else(|error| panic!("operation {n}, {crash:?}: {error}"));
            assert!(log.end() >= moment.durable, "operation {n}, {crash:?}");
            let found: Vec<(GlobalOffset, Vec<u8>)> = log
                .reader()
                .frames(log.start())
                .map(|frame| frame.map(|frame| (frame.at(), frame.to_vec())))
                .collect::<Result<_, _>>()
                .unwrap_or_else(|error| panic!("operation {n}, {crash:?}: {error}"));
            let expected = moment.model.frames.iter().filter(|(at, _)| *at >= log.start());
            let expected: Vec<_> = expected.take(found.len()).cloned().collect();
            assert_eq!(found, expected, "operation {n}, {crash:?}");
            // And it continues: what is appended and synced now survives the next crash.
            let place = log.append(&[b"next"]).unwrap()[0];
            let durable = log.sync().unwrap();
            let again = Arc::new(after.crash(after.operations(), crash));
            let log = Segments::open(again, segments_config(), durable).unwrap();
            assert_eq!(log.end(), durable, "operation {n}, {crash:?}: nothing comes back");
            assert_eq!(&log.reader().frame(place).unwrap()[..], b"next");
        }
    }
}

fn mapped_config() -> MappedLogConfig {
    MappedLogConfig { prefix: "rows".to_owned(), kind: KIND, store: STORE, capacity: 5000 }
}

/// Pieces with their places, and checkpoints with the number of operations at which they were
/// given.
type Pieces = Vec<(GlobalOffset, Vec<u8>)>;

fn live_mapped(
    storage: &Arc<FaultyStorage>,
    steps: &[Step],
) -> (Pieces, Vec<(usize, LogCheckpoint)>) {
    let shared = Arc::<FaultyStorage>::clone(storage);
    let mut log = MappedLog::open(shared, mapped_config(), LogCheckpoint::NEW).unwrap();
    let (mut model, mut pieces, mut checkpoints) = (Model::default(), Vec::new(), Vec::new());
    checkpoints.push((0, LogCheckpoint::NEW));
    for step in steps {
        match step {
            Step::Append(lengths) => {
                for len in lengths {
                    let piece = model.payload(*len);
                    pieces.push((log.append(&piece).unwrap(), piece));
                }
            }
            _ => {
                let checkpoint = log.sync().unwrap();
                checkpoints.push((storage.operations(), checkpoint));
            }
        }
    }
    (pieces, checkpoints)
}

fn proptest_config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(proptest_config(64))]

    #[test]
    fn segments_keep_what_was_acknowledged(steps in prop::collection::vec(step(), 1..25)) {
        let storage = Arc::new(FaultyStorage::new(1));
        let moments = live(&storage, &steps);
        check_segments(&storage, &moments);
    }

    #[test]
    fn a_mapped_log_opens_at_its_last_checkpoint(steps in prop::collection::vec(step(), 1..25)) {
        let storage = Arc::new(FaultyStorage::new(1));
        let (pieces, checkpoints) = live_mapped(&storage, &steps);
        for n in 0..=storage.operations() {
            let known = checkpoints.partition_point(|(at, _)| *at <= n);
            let checkpoint = checkpoints[known - 1].1;
            for crash in Crash::ways(SEEDS) {
                let after = Arc::new(storage.crash(n, crash));
                let mut log = MappedLog::open(after.clone(), mapped_config(), checkpoint).unwrap();
                prop_assert_eq!(log.end(), checkpoint.end);
                let snapshot = log.reader().snapshot();
                for (at, piece) in pieces.iter().filter(|(at, _)| *at < checkpoint.end) {
                    prop_assert_eq!(snapshot.get(*at, piece.len()).unwrap(), &piece[..]);
                }
                let place = log.append(b"next").unwrap();
                let checkpoint = log.sync().unwrap();
                let again = Arc::new(after.crash(after.operations(), crash));
                let log = MappedLog::open(again, mapped_config(), checkpoint).unwrap();
                let snapshot = log.reader().snapshot();
                prop_assert_eq!(snapshot.get(place, 4).unwrap(), b"next");
            }
        }
    }
}
