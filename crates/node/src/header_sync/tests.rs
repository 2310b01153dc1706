//! Both passes, with headers of regtest and small limits.

use varve_types::Network;

use super::*;
use crate::fixture::{NOW, chain_above, genesis, hash_of};

const LIMITS: Limits = Limits { period: 7, buffer: 50 };
const BATCH: usize = 20;

fn params() -> Params {
    Params::new(Network::Regtest)
}

/// The work of `count` headers above genesis, with genesis.
fn work_of(count: u32) -> Work {
    Work::of_bits(0x207f_ffff).times(count + 1)
}

fn start() -> Start {
    let genesis = genesis();
    let header = Header::new(&genesis);
    let hash = header.hash();
    Start {
        hash,
        height: Height::GENESIS,
        bits: header.bits(),
        work: work_of(0),
        median_time: header.time(),
        locator: vec![hash],
    }
}

fn sync(required: u32) -> HeaderSync {
    HeaderSync::new(start(), work_of(required), NOW, [9; 16], LIMITS)
}

/// Serves a chain as a node does until the sync is over. Gives what was released, and the end.
fn serve(
    sync: &mut HeaderSync,
    chain: impl Fn(bool) -> Vec<HeaderBytes>,
) -> (Vec<HeaderBytes>, Step) {
    let (mut all, mut locator) = (Vec::new(), vec![start().hash]);
    loop {
        let chain = chain(sync.second.is_some());
        let from = chain.iter().position(|header| hash_of(header) == locator[0]);
        let rest = &chain[from.map_or(0, |at| at + 1)..];
        let batch = &rest[..rest.len().min(BATCH)];
        match sync.take(&params(), batch, batch.len() == BATCH) {
            Step::Ask { released, locator: next } => {
                all.extend(released);
                locator = next;
            }
            Step::Done { released } => {
                all.extend(released);
                return (all, Step::Done { released: Vec::new() });
            }
            end => return (all, end),
        }
        assert!(sync.second.as_ref().is_none_or(|second| {
            second.buffer.len() <= LIMITS.buffer && sync.bits.len <= 1000 / 7 + 1
        }));
    }
}

#[test]
fn a_branch_with_enough_work_comes_out_whole_after_two_passes() {
    let chain = chain_above(&genesis(), 500, 1);
    for required in [1, 19, 20, 21, 55, 333, 500] {
        let (released, end) = serve(&mut sync(required), |_| chain.clone());
        assert_eq!(end, Step::Done { released: Vec::new() }, "{required}");
        // The pass ends with the message in which the work was reached.
        let count = (required as usize).next_multiple_of(BATCH);
        assert!(released == chain[..count], "{required}: {} headers", released.len());
    }
}

#[test]
fn a_branch_with_too_little_work_leaves_nothing() {
    let chain = chain_above(&genesis(), 499, 1);
    assert_eq!(serve(&mut sync(500), |_| chain.clone()), (Vec::new(), Step::TooLittle));
    let chain = chain_above(&genesis(), 480, 1);
    assert_eq!(serve(&mut sync(500), |_| chain.clone()), (Vec::new(), Step::TooLittle));
}

/// Wherever the second story leaves the first, it is seen before a header of it is released.
#[test]
fn another_branch_in_the_second_pass_is_an_offence_and_is_not_released() {
    let chain = chain_above(&genesis(), 500, 1);
    for at in [0, 1, 30, 100, 300] {
        let mut other = chain[..at].to_vec();
        let parent = other.last().copied().unwrap_or_else(genesis);
        other.extend(chain_above(&parent, 700, 2));
        let story = |second| if second { other.clone() } else { chain.clone() };
        let (released, end) = serve(&mut sync(500), story);
        assert!(matches!(&end, Step::Offence(reason) if reason.contains("second")), "{end:?}");
        assert!(released.len() <= at && released == chain[..released.len()], "from {at}");
    }
    let story = |second| if second { chain[..200].to_vec() } else { chain.clone() };
    let (released, end) = serve(&mut sync(500), story);
    assert_eq!(end, Step::TooLittle, "it does not send them again");
    assert!(released.len() <= 200);
}

#[test]
fn a_header_is_released_when_enough_others_follow_it() {
    let chain = chain_above(&genesis(), 500, 1);
    let mut sync = sync(500);
    let mut released = 0;
    for (number, batch) in chain.chunks(BATCH).chain(chain.chunks(BATCH)).enumerate() {
        let step = sync.take(&params(), batch, true);
        let (Step::Ask { released: new, .. } | Step::Done { released: new }) = step else {
            panic!("{step:?}");
        };
        released += new.len();
        let passed = (number * BATCH + BATCH).saturating_sub(500);
        let expected = if passed == 500 { 500 } else { passed.saturating_sub(LIMITS.buffer) };
        assert_eq!(released, expected, "after {passed} of the second pass");
    }
}

#[test]
fn headers_without_work_or_out_of_order_are_offences() {
    let chain = chain_above(&genesis(), 40, 1);
    let mut broken = chain.clone();
    while Header::new(&broken[7]).hash().as_bytes()[31] < 0x80 {
        broken[7][76] = broken[7][76].wrapping_add(1);
    }
    assert!(matches!(sync(500).take(&params(), &broken[..8], true), Step::Offence(_)));
    let mut gap = chain.clone();
    gap.remove(5);
    assert!(matches!(sync(500).take(&params(), &gap, true), Step::Offence(_)));
}

#[test]
fn an_announcement_is_ignored_and_a_fall_back_restarts() {
    let chain = chain_above(&genesis(), 100, 1);
    let mut sync = sync(60);
    let locator = vec![hash_of(&chain[19]), start().hash];
    let ask = Step::Ask { released: Vec::new(), locator };
    assert_eq!(sync.take(&params(), &chain[..20], true), ask);
    assert_eq!(sync.take(&params(), &chain[99..], false), Step::Ignored);
    assert!(matches!(sync.take(&params(), &chain[20..40], true), Step::Ask { .. }));
    assert_eq!(sync.take(&params(), &chain[..20], true), Step::Restarted);
}

/// The bits that are kept are bounded by the time since the start, whatever the peer sends.
#[test]
fn no_branch_is_longer_than_time_allows() {
    let chain = chain_above(&genesis(), 200, 1);
    let now = start().median_time.saturating_sub(MAX_FUTURE_SECONDS) + 10;
    let mut start = start();
    start.median_time = now.saturating_add(MAX_FUTURE_SECONDS);
    let limit = HEADERS_PER_SECOND * u64::from(MAX_FUTURE_SECONDS);
    let mut sync = HeaderSync::new(start, work_of(500), now, [9; 16], LIMITS);
    assert_eq!(sync.longest, limit);
    sync.longest = 100;
    for batch in chain[..100].chunks(BATCH) {
        assert!(matches!(sync.take(&params(), batch, true), Step::Ask { .. }));
    }
    assert_eq!(sync.take(&params(), &chain[100..120], true), Step::TooLittle);
    assert!(sync.bits.len <= 100 / 7 + 1);
}
