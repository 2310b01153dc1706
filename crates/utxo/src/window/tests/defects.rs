//! Defects of Hornet's original that concern the young ages, each as a test that it does not occur
//! here. Statements about the original are from its source or from running it.

use std::num::NonZeroUsize;

use varve_runs::Sequence;
use varve_types::{Height, Outpoint};

use super::model::{Model, OwnCoin, outpoint};
use crate::entry::Entry;
use crate::window::{Lookup, Step, StepError, WindowConfig};

const SMALL: WindowConfig = WindowConfig { shards: 4, pane_steps: 8 };

fn numbers(range: std::ops::Range<u64>) -> Vec<Outpoint> {
    range.map(outpoint).collect()
}

/// A reorganisation dropped the last blocks but not the offset at which the next output goes, so
/// later ids no longer matched the bytes, and a fetch returned another block's output. Here an
/// entry holds its own coin, whatever was connected and disconnected in between.
#[test]
fn defect_01_a_rewind_does_not_shift_coins() {
    let mut model = Model::new(SMALL);
    for block in 0..6 {
        model.connect(&[], &numbers(block * 10..block * 10 + 10)).unwrap();
    }
    (0..4).for_each(|_| model.disconnect());
    for block in 2..8 {
        // Another branch: some of the same outputs, and others, at other places in the blocks.
        model.connect(&[], &numbers(block * 10 + 3..block * 10 + 9)).unwrap();
    }
    model.moment().check((0..100).map(outpoint));
}

/// After a reorganisation the merge watermark stayed where it was and nothing was ever merged
/// again: after a rewind of 4 blocks and a refill to height 600, age 0 held 540 runs. Here panes
/// are sealed by the number of steps and leave in their order.
#[test]
fn defect_02_a_rewind_does_not_stall_the_flush() {
    let mut model = Model::new(SMALL);
    for block in 0..600 {
        model.connect(&[], &[outpoint(block)]).unwrap();
        if block == 300 {
            (0..4).for_each(|_| model.disconnect());
        }
        if model.window.panes().filter(|pane| pane.sealed).count() > 1 {
            model.flush = model.window.begin_flush();
            model.flush_ready = model.flush.is_some();
        }
    }
    assert!(model.window.panes().count() <= 3, "{:?}", model.window);
    assert_eq!(model.runs(), 604 / 8 - 1, "a run for every eight steps that left the window");
    model.moment().check((0..600).map(outpoint));
}

/// Erasing entries from tiles of 8,192 left the size wrong: 10,000 expected, 18,192 found. Here
/// nothing is erased, and what lives is counted.
#[test]
fn defect_03_erase_keeps_the_size() {
    let mut model = Model::new(WindowConfig { shards: 1, pane_steps: 8 });
    model.connect(&[], &numbers(0..20_000)).unwrap();
    model.connect(&numbers(5_000..15_000), &[]).unwrap();
    let living = |model: &Model| model.window.panes().map(|pane| pane.living).sum::<usize>();
    assert_eq!(living(&model), 10_000);
    assert_eq!(model.window.version().entries().count(), 10_000);
    model.disconnect();
    assert_eq!(living(&model), 20_000);
    assert_eq!(model.window.version().entries().count(), 20_000);
}

/// A coin made and spent by the same block was refused, because the query asked for coins "before
/// this height". Here such a coin is in neither list of the step: it is never in the set, while the
/// block's other coins are.
#[test]
fn defect_04_a_block_may_spend_its_own_coins() {
    let mut model = Model::new(SMALL);
    model.connect(&[], &numbers(0..3)).unwrap();
    let before = model.moment();
    // Outputs 3 to 9 are made; 5, 6 and 7 are spent by later transactions of the block.
    let kept: Vec<Outpoint> = [3, 4, 8, 9].map(outpoint).to_vec();
    model.connect(&numbers(1..2), &kept).unwrap();
    for own in numbers(5..8) {
        assert_eq!(model.moment().find(&own), None);
    }
    model.moment().check((0..12).map(outpoint));
    before.check((0..12).map(outpoint));
    model.disconnect();
    assert_eq!(model.set, *before.set);
}

/// A coin spent by two transactions of one block went unnoticed. Here the step is refused, whether
/// the coin is in the window or in a run, and names the coin.
#[test]
fn defect_05_a_coin_spent_twice_in_a_block_is_refused() {
    let mut model = Model::new(SMALL);
    model.connect(&[], &numbers(0..4)).unwrap();
    let spend = |model: &Model, number| model.moment().spend(&outpoint(number));
    let attempt = |model: &mut Model, spends: &[_]| {
        let sequence = model.sequence.next().unwrap();
        let height = Height::GENESIS;
        let step = Step { sequence, height, spends, replaces: None };
        model.window.apply_entries(&step, &[], NonZeroUsize::MIN).map(|_| ())
    };
    let twice = [spend(&model, 1), spend(&model, 2), spend(&model, 1)];
    let refused = Err(StepError::SpentTwice { outpoint: outpoint(1) });
    assert_eq!(attempt(&mut model, &twice), refused);
    model.window.seal();
    model.flush = model.window.begin_flush();
    model.flush_ready = true;
    model.connect(&[], &[]).unwrap();
    let twice = [spend(&model, 1), spend(&model, 2), spend(&model, 1)];
    assert!(twice.iter().all(|spend| spend.location.is_none()), "the coins are in a run");
    assert_eq!(attempt(&mut model, &twice), refused);
    model.moment().check((0..4).map(outpoint));
    model.connect(&numbers(1..2), &[]).unwrap();
    model.moment().check((0..4).map(outpoint));
}

/// Offsets were reserved before the tail was filled, so a flusher could write out of order, and a
/// failure in between left a hole. Here a step that is refused halfway leaves nothing: no deaths,
/// coins, slots or counts.
#[test]
fn defect_06_a_refused_step_leaves_no_trace() {
    let mut model = Model::new(WindowConfig { shards: 8, pane_steps: 8 });
    model.connect(&[], &numbers(0..5_000)).unwrap();
    let before = model.moment();
    let counted = |model: &Model| model.window.panes().map(|pane| pane.living).sum::<usize>();
    let sequence = model.sequence.next().unwrap();
    let coins: Vec<_> = numbers(5_000..9_000);
    let coins: Vec<_> = coins.iter().map(|o| (*o, OwnCoin::of(o, sequence))).collect();
    let mut adds: Vec<_> = coins.iter().map(|(o, c)| Entry::add(*o, sequence, c.coin())).collect();
    // The last entry: everything else has been staged by then.
    adds.push(Entry::add(outpoint(4_999), sequence, coins[0].1.coin()));
    let spends: Vec<_> = numbers(0..3_000).iter().map(|o| before.spend(o)).collect();
    let height = Height::GENESIS;
    let step = Step { sequence, height, spends: &spends, replaces: None };
    for workers in [1, 2, 8] {
        let workers = NonZeroUsize::new(workers).unwrap();
        let error = model.window.apply_entries(&step, &adds, workers).unwrap_err();
        assert_eq!(error, StepError::Exists { outpoint: outpoint(4_999) });
        assert_eq!(counted(&model), 5_000);
        model.moment().check((0..9_100).step_by(7).map(outpoint));
    }
    // Without it the same step succeeds, with the next sequence: the refused one is not reused.
    let sequence = sequence.next().unwrap();
    let step = Step { sequence, ..step };
    model.window.apply_entries(&step, &adds[..4_000], NonZeroUsize::MIN).unwrap();
    assert_eq!(counted(&model), 5_000 - 3_000 + 4_000);
    before.check((0..9_100).step_by(7).map(outpoint));
}

/// The flusher changed the tail while readers used it. Here a reader holds its version: its pane is
/// flushed, replaced and freed, blocks are connected and disconnected, and it sees what it saw.
#[test]
fn defect_08_a_flush_does_not_disturb_readers() {
    let mut model = Model::new(SMALL);
    model.connect(&[], &numbers(0..50)).unwrap();
    model.connect(&numbers(0..10), &numbers(50..60)).unwrap();
    let held = model.moment();
    let mut lent = Vec::new();
    held.window.lookup(&numbers(10..60), &mut lent);
    model.window.seal();
    model.flush = model.window.begin_flush();
    model.connect(&numbers(20..30), &[]).unwrap();
    model.flush_ready = true;
    model.connect(&numbers(30..40), &numbers(60..70)).unwrap();
    assert_eq!(model.window.panes().count(), 1, "the first pane has left");
    model.disconnect();
    held.check((0..80).map(outpoint));
    for (key, found) in numbers(10..60).iter().zip(lent) {
        let Lookup::Found(found) = found else { panic!("{key} was there") };
        assert_eq!(OwnCoin::from(found.coin), held.set[key].1, "slices stay good as well");
    }
    model.moment().check((0..80).map(outpoint));
}

/// Mistakes of a caller are errors and do no damage.
#[test]
fn wrong_steps_are_refused() {
    let mut model = Model::new(SMALL);
    model.connect(&[], &numbers(0..4)).unwrap();
    let moment = model.moment();
    let spend = moment.spend(&outpoint(0));
    let next = model.sequence.next().unwrap();
    let step = Step { sequence: next, height: Height::GENESIS, spends: &[spend], replaces: None };
    let mut apply =
        |step: &Step<'_>| model.window.apply_entries(step, &[], NonZeroUsize::MIN).unwrap_err();
    let at = Sequence::new(1);
    let order = |sequence| StepError::Order { sequence, at };
    assert_eq!(apply(&Step { sequence: at, ..step }), order(at));
    assert_eq!(apply(&Step { sequence: Sequence::MAX, ..step }), order(Sequence::MAX));
    let elsewhere = [crate::window::Spend { outpoint: outpoint(1), ..spend }];
    let error = apply(&Step { spends: &elsewhere, ..step });
    assert_eq!(error, StepError::NotThere { outpoint: outpoint(1) });
    let pane = model.window.panes().next().unwrap().id;
    let mut apply =
        |step: &Step<'_>| model.window.apply_entries(step, &[], NonZeroUsize::MIN).map(|_| ());
    assert_eq!(apply(&Step { replaces: Some(pane), ..step }), Err(StepError::NoFlush));
    assert_eq!(apply(&step), Ok(()));
    let again = Step { sequence: next.next().unwrap(), ..step };
    assert_eq!(apply(&again), Err(StepError::Spent { outpoint: outpoint(0), at: next }));
}

/// A refused step leaves nothing, also when the table had to grow for it: later steps find the
/// coins that it had ended.
#[test]
fn a_refused_step_that_made_the_table_grow_loses_nothing() {
    let mut model = Model::new(SMALL);
    model.connect(&[], &numbers(0..20)).unwrap();
    let sequence = model.sequence.next().unwrap();
    let coins = (100..700).chain([19]).map(outpoint).map(|o| (o, OwnCoin::of(&o, sequence)));
    let coins: Vec<_> = coins.collect();
    let adds: Vec<_> = coins.iter().map(|(o, c)| Entry::add(*o, sequence, c.coin())).collect();
    let before = model.moment();
    let spends: Vec<_> = numbers(0..10).iter().map(|o| before.spend(o)).collect();
    let height = Height::GENESIS;
    let step = Step { sequence, height, spends: &spends, replaces: None };
    let refused = model.window.apply_entries(&step, &adds, NonZeroUsize::MIN).unwrap_err();
    assert_eq!(refused, StepError::Exists { outpoint: outpoint(19) });
    model.connect(&[outpoint(15)], &[outpoint(900)]).unwrap();
    model.moment().check((0..1000).map(outpoint));
    model.connect(&numbers(0..10), &[]).unwrap();
    model.moment().check((0..1000).map(outpoint));
}
