//! Decisions over sizes, and a simulation of the writing they cost.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the simulation counts coins in fractions, and rounds them down"
)]

use super::*;
use crate::fixture::span;

fn run(pages: u64, adds: u64, deletes: u64) -> RunInfo {
    RunInfo { number: RunNumber(1), span: span(1, 2), adds, deletes, pages, digest: 0 }
}

fn runs(pages: &[u64]) -> Vec<RunInfo> {
    pages.iter().map(|pages| run(*pages, pages * 60, 0)).collect()
}

#[test]
fn alike_neighbours_are_merged_youngest_first() {
    let policy = Policy::default();
    let chosen = |pages: &[u64]| choose(&runs(pages), &policy);
    assert_eq!(chosen(&[]), Choice::Nothing);
    assert_eq!(chosen(&[10, 10, 10]), Choice::Nothing);
    assert_eq!(chosen(&[10, 12, 19, 11]), Choice::Merge(0..4));
    assert_eq!(chosen(&[10, 12, 21, 11]), Choice::Nothing, "one is more than twice another");
    assert_eq!(chosen(&[10, 40, 41, 42, 43, 900]), Choice::Merge(1..5));
    assert_eq!(chosen(&[10, 10, 10, 10, 40, 40, 40, 40]), Choice::Merge(0..4));
}

#[test]
fn a_dying_oldest_run_takes_everything_with_it() {
    let policy = Policy::default();
    let third = [run(5, 100, 200), run(9, 100, 134), run(1000, 1000, 0)];
    assert_eq!(choose(&third, &policy), Choice::Merge(0..3));
    let less = [run(5, 100, 200), run(9, 100, 133), run(1000, 1000, 0)];
    assert_eq!(choose(&less, &policy), Choice::Nothing);
    assert_eq!(choose(&[run(5, 0, 0)], &policy), Choice::Nothing, "it is alone");
}

#[test]
fn too_many_runs_are_merged_where_it_costs_least() {
    let policy = Policy { fan_in: 4, max_probed: 3 };
    let pages = [10, 100, 1000, 20_000, 400_000];
    assert_eq!(choose(&runs(&pages), &policy), Choice::Merge(0..3));
    assert_eq!(choose(&runs(&[1000, 20, 300, 20_000]), &policy), Choice::Merge(1..3));
}

#[test]
fn choosing_ends() {
    for fan_in in [2, 3, 4, 8] {
        for max_probed in [1, 4, 12] {
            let policy = Policy { fan_in, max_probed };
            let mut pages: Vec<u64> = Vec::new();
            for flush in 0..300 {
                pages.insert(0, 40 + flush * 7 % 11);
                while let Choice::Merge(range) = choose(&runs(&pages), &policy) {
                    assert!(range.len() >= 2, "every merge makes fewer runs");
                    let merged = pages[range.clone()].iter().sum();
                    pages.splice(range, [merged]);
                }
                assert!(pages.len() <= max_probed.max(1), "{pages:?}");
            }
        }
    }
}

/// A hundred thousand blocks on top of 170 million coins, by counts alone: the set must write at
/// most one byte for every byte of block data, and never probe more runs than allowed.
///
/// The chain makes 7,500 outputs a block of 1.5 MB. A coin outlives n blocks with the chance (1 +
/// n/1.4)^-0.3: a quarter outlives 144 blocks, a fifteenth 10,000, as on mainnet.
#[test]
fn a_hundred_thousand_blocks_write_less_than_they_are() {
    // With coins as old as mainnet's the oldest run is never a third dead; with young ones it is.
    for (age, rewrites) in [(300_000.0, 0..1), (10_000.0, 1..4)] {
        let figures = simulate((256, age), &Policy::default());
        println!("{figures:?}");
        assert!(figures.written_per_block_byte <= 1.0, "{figures:?}");
        assert!(figures.most_runs <= 12, "{figures:?}");
        assert!(rewrites.contains(&figures.oldest_rewrites), "{figures:?}");
    }
    let default = simulate((256, 300_000.0), &Policy::default());
    let small_flushes = simulate((64, 300_000.0), &Policy { fan_in: 8, max_probed: 12 });
    assert!(
        small_flushes.written_per_block_byte > 1.5 * default.written_per_block_byte,
        "what the default is chosen over: {small_flushes:?}"
    );
}

#[derive(Debug)]
struct Figures {
    written_per_block_byte: f64,
    most_runs: usize,
    oldest_rewrites: usize,
}

/// A run in the simulation: its coins by the flush that made them, its deletes by their coins'
/// flush.
#[derive(Clone, Default)]
struct Model {
    adds: Vec<(usize, f64)>,
    deletes: Vec<(usize, f64)>,
}

impl Model {
    fn info(&self) -> RunInfo {
        let sum = |counts: &[(usize, f64)]| counts.iter().map(|(_, count)| count).sum::<f64>();
        let (adds, deletes) = (sum(&self.adds), sum(&self.deletes));
        run(((adds * 60.0 + deletes * 39.0) / 4096.0) as u64 + 1, adds as u64, deletes as u64)
    }

    /// Merges runs: deletes cancel coins of the flushes that take part.
    fn merge(runs: &[Self]) -> Self {
        let mut merged = Self::default();
        for run in runs {
            merged.adds.extend(&run.adds);
        }
        merged.adds.sort_unstable_by_key(|(flush, _)| *flush);
        for (flush, count) in runs.iter().flat_map(|run| &run.deletes) {
            match merged.adds.binary_search_by_key(flush, |(flush, _)| *flush) {
                Ok(index) => merged.adds[index].1 -= count,
                Err(_) => merged.deletes.push((*flush, *count)),
            }
        }
        merged
    }
}

/// Flushes of so many blocks, over coins that are so many blocks old at the start.
fn simulate((flush_interval, oldest): (u32, f64), policy: &Policy) -> Figures {
    const OUTPUTS: f64 = 7_500.0;
    const BLOCK_BYTES: f64 = 1_500_000.0;
    let interval = f64::from(flush_interval);
    let outlive = |blocks: f64| (1.0 + blocks / 1.4).powf(-0.3);
    let flushes = (100_000.0 / interval) as usize;
    // Flush 0 stands for everything before: 170 million coins.
    let mut living = vec![170e6];
    let mut runs = vec![Model { adds: vec![(0, 170e6)], deletes: Vec::new() }];
    let (mut pages, mut most_runs, mut oldest_rewrites) = (0, 0, 0);
    for flush in 1..=flushes {
        // What died since the last flush of the coins that every earlier flush wrote.
        let mut deletes = Vec::new();
        for (made, alive) in living.iter_mut().enumerate() {
            let ago = (flush - made) as f64 * interval;
            let age = if made == 0 { oldest + ago } else { 144.0 + ago };
            let died = *alive * (1.0 - outlive(age) / outlive(age - interval));
            *alive -= died;
            deletes.push((made, died));
        }
        let survivors = OUTPUTS * interval * outlive(144.0 + interval / 2.0);
        living.push(survivors);
        let young = Model { adds: vec![(flush, survivors)], deletes };
        pages += young.info().pages;
        runs.insert(0, young);
        let infos = |runs: &[Model]| runs.iter().map(Model::info).collect::<Vec<_>>();
        while let Choice::Merge(range) = choose(&infos(&runs), policy) {
            oldest_rewrites += usize::from(range.end == runs.len());
            let merged = Model::merge(&runs[range.clone()]);
            pages += merged.info().pages;
            runs.splice(range, [merged]);
        }
        most_runs = most_runs.max(runs.len());
    }
    let written_per_block_byte = pages as f64 * 4096.0 / (flushes as f64 * interval * BLOCK_BYTES);
    Figures { written_per_block_byte, most_runs, oldest_rewrites }
}
