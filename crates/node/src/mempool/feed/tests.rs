//! The feed against a node's stream, with gaps.

use varve_types::{BlockHash, Txid};

use super::{Feed, FeedActions, FeedChange, FeedEvent, Listing};
use crate::commit_log::CommitSequence;
use crate::mempool::chain::Tip;
use crate::mempool::version::Version;

const TIP: BlockHash = BlockHash::from_bytes([7; 32]);

fn txid(number: u8) -> Txid {
    Txid::from_bytes([number; 32])
}

fn added(counter: u32, number: u8, sequence: u64) -> FeedEvent {
    FeedEvent { counter, what: FeedChange::Added { txid: txid(number), sequence } }
}

fn removed(counter: u32, number: u8, sequence: u64) -> FeedEvent {
    FeedEvent { counter, what: FeedChange::Removed { txid: txid(number), sequence } }
}

fn empty() -> Version {
    let sequence = CommitSequence(1);
    Version::new(Tip { height: 5.into(), hash: TIP, sequence }, None)
}

fn list() -> FeedActions {
    FeedActions { list: true, ..FeedActions::default() }
}

fn fetch(number: u8) -> FeedActions {
    FeedActions { fetch: vec![txid(number)], ..FeedActions::default() }
}

#[test]
fn a_listing_takes_the_place_of_the_events_before_it() {
    let mut feed = Feed::new();
    assert_eq!(feed.event(added(0, 1, 10)), list());
    assert_eq!(feed.event(removed(1, 1, 11)), list());
    assert_eq!(feed.event(added(2, 2, 12)), list());
    // The listing was made between the last two events.
    let listing = Listing { txids: vec![txid(3)], sequence: 12, tip: Some(TIP) };
    let actions = feed.listing(&listing, &empty());
    assert_eq!(actions.fetch, [txid(2), txid(3)]);
    assert!(feed.is_following() && !actions.list);
    assert_eq!(feed.event(added(3, 4, 13)), fetch(4));
    let dropped = FeedActions { drop: vec![txid(4)], ..FeedActions::default() };
    assert_eq!(feed.event(removed(4, 4, 14)), dropped);
}

#[test]
fn a_gap_in_the_counter_asks_for_a_listing() {
    let mut feed = Feed::new();
    feed.listing(&Listing { txids: vec![], sequence: 5, tip: Some(TIP) }, &empty());
    assert_eq!(feed.event(added(u32::MAX, 1, 5)), fetch(1));
    assert_eq!(feed.event(added(0, 2, 6)), fetch(2), "the counter wraps");
    assert_eq!(feed.event(added(2, 3, 8)), list());
    assert!(!feed.is_following());
    assert_eq!(feed.event(added(3, 4, 9)), list());
    let listing = Listing { txids: vec![txid(1)], sequence: 9, tip: Some(TIP) };
    assert_eq!(feed.listing(&listing, &empty()).fetch, [txid(1), txid(4)]);
}

#[test]
fn blocks_take_sequences_without_a_message() {
    let mut feed = Feed::new();
    feed.listing(&Listing { txids: vec![], sequence: 5, tip: Some(TIP) }, &empty());
    let block = FeedEvent { counter: 1, what: FeedChange::Block(TIP) };
    assert_eq!(feed.event(block), FeedActions::default());
    assert_eq!(feed.event(added(2, 1, 50)), fetch(1));
    assert_eq!(feed.event(added(3, 2, 50)), list(), "the same number twice is a restart");
}

#[test]
fn a_removal_kept_from_before_the_listing_takes_back_what_it_lists() {
    let mut feed = Feed::new();
    feed.event(removed(0, 1, 20));
    let listing = Listing { txids: vec![txid(1), txid(2)], sequence: 20, tip: Some(TIP) };
    assert_eq!(feed.listing(&listing, &empty()).fetch, [txid(2)]);
}
