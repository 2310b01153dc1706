//! Headers of peers that nobody vouches for: which of them are stored.
//!
//! A stored header takes 200 bytes permanently, and at the difficulty of the first blocks a peer
//! makes millions in an hour. So headers go into the tree only as part of a branch whose work
//! reaches
//!
//! ```text
//! max(the known work of the network's chain, the work of the tip − 144 blocks like the tip)
//! ```
//!
//! 1. Headers that link to nothing known are *strays*: those between are asked for.
//! 2. When the known header that they follow and their own work reach the threshold, they are taken
//!    at once.
//! 3. Otherwise, a full message may be the beginning of a branch that gets there: a [`HeaderSync`]
//!    hears it to its end, in two passes, and gives out what is proven.
//! 4. A message that is not full ends a branch: below the threshold it is ignored.
//! 5. A giver may send full messages of known headers, as many as the tree has and some more, and
//!    then must come to something new or to an end. One that sends the same again and again is
//!    blamed, since it would never end.

use std::collections::HashMap;

use varve_consensus::{Ancestors as _, Work, check_work, median_time_past};
use varve_types::{BlockHash, Header};

use crate::header_sync::{HeaderSync, Limits, Start, Step};
use crate::header_tree::{HeaderId, HeaderTree, InsertError};
use crate::source::p2p::wire::MAX_HEADERS;
use crate::source::{Giver, HeaderBytes};

/// A branch may lag behind the tip by the work of this many blocks like the tip: a day's.
const NEAR: u32 = 144;
/// Full messages without news beside those that it takes to send all known headers.
const REPEATS: usize = 10;

/// The branches that are being heard.
#[derive(Default)]
pub(crate) struct Vetting {
    syncs: HashMap<Giver, HeaderSync>,
    /// How many there have been: each gets its own key.
    count: u64,
    /// Full messages without news, in a row.
    repeats: HashMap<Giver, usize>,
}

/// Why a giver is blamed that never comes to an end.
const REPEATED: &str = "sends the same headers again and again";

/// What headers are judged by.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) tree: &'a HeaderTree,
    /// The tip of the confirmed chain.
    pub(crate) tip: HeaderId,
    pub(crate) now: u32,
}

/// What to do with a message of headers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Vetted {
    /// The headers to be stored, parents first.
    pub(crate) taken: Vec<HeaderBytes>,
    pub(crate) next: Next,
}

/// What the giver is asked next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It has no more, or its answer is still to come.
    Wait,
    /// Ask for what is above the last header that was taken.
    Above,
    /// Ask for what is above this locator.
    Ask(Vec<BlockHash>),
    /// The headers link to nothing: ask for those between.
    Stray,
    /// The branch has too little work and is ignored. Whether that is less than the network's chain
    /// is known to have.
    TooLittle { below_known: bool },
    /// A header breaks the rules.
    Refuse(InsertError),
    /// The giver does what no node does.
    Blame(String),
}

impl Vetting {
    /// Judges headers, each above the one before.
    pub(crate) fn vet(
        &mut self,
        known: Known<'_>,
        giver: Giver,
        headers: Vec<HeaderBytes>,
    ) -> Vetted {
        let Some(sync) = self.syncs.get_mut(&giver) else {
            return self.begin(known, giver, headers);
        };
        let step = sync.take(known.tree.params(), &headers, headers.len() >= MAX_HEADERS);
        self.after(known, giver, step, headers)
    }

    /// Judges headers of a giver whose branch is not being heard.
    fn begin(&mut self, known: Known<'_>, giver: Giver, headers: Vec<HeaderBytes>) -> Vetted {
        let Known { tree, now, .. } = known;
        let is_full = headers.len() >= MAX_HEADERS;
        let required = known.threshold();
        let weighed = match weigh(tree, &headers) {
            Ok(weighed) => weighed,
            Err(next) => return Vetted { taken: Vec::new(), next },
        };
        let Weighed { above, found, work } = weighed;
        if is_full && found == headers.len() && self.repeats_itself(tree, giver) {
            return Vetted { taken: Vec::new(), next: Next::Blame(REPEATED.to_owned()) };
        }
        // What is known is stored already, and what follows an invalid block is refused.
        if found == headers.len() || work >= required || tree.invalid(above).is_some() {
            if found < headers.len() || !is_full {
                self.repeats.remove(&giver);
            }
            return Vetted { taken: headers, next: if is_full { Next::Above } else { Next::Wait } };
        }
        if !is_full {
            return self.after(known, giver, Step::TooLittle, headers);
        }
        self.count += 1;
        let key = tree.secret(self.count);
        let mut sync = HeaderSync::new(start(tree, above), required, now, key, Limits::default());
        let unknown = headers.get(found..).unwrap_or_default();
        let step = sync.take(tree.params(), unknown, is_full);
        self.syncs.insert(giver, sync);
        self.after(known, giver, step, headers)
    }

    /// A giver is gone, or is not heard any further.
    pub(crate) fn forget(&mut self, giver: Giver) {
        self.syncs.remove(&giver);
        self.repeats.remove(&giver);
    }

    /// The givers of whom something is kept here.
    pub(crate) fn givers(&self) -> Vec<Giver> {
        self.syncs.keys().chain(self.repeats.keys()).copied().collect()
    }

    /// Counts a full message without news.
    fn repeats_itself(&mut self, tree: &HeaderTree, giver: Giver) -> bool {
        let repeats = self.repeats.entry(giver).or_default();
        *repeats += 1;
        *repeats > tree.len() / MAX_HEADERS + REPEATS
    }

    /// What follows from a step of a sync.
    fn after(
        &mut self,
        known: Known<'_>,
        giver: Giver,
        step: Step,
        headers: Vec<HeaderBytes>,
    ) -> Vetted {
        let is_full = headers.len() >= MAX_HEADERS;
        if !matches!(step, Step::Ask { .. } | Step::Ignored) {
            self.syncs.remove(&giver);
        }
        let nothing = |next| Vetted { taken: Vec::new(), next };
        match step {
            Step::Ask { released, locator } => Vetted { taken: released, next: Next::Ask(locator) },
            Step::Done { released } => {
                Vetted { taken: released, next: if is_full { Next::Above } else { Next::Wait } }
            }
            Step::Ignored => nothing(Next::Wait),
            Step::Restarted if self.repeats_itself(known.tree, giver) => {
                nothing(Next::Blame(REPEATED.to_owned()))
            }
            Step::Restarted => self.begin(known, giver, headers),
            Step::TooLittle => {
                self.repeats.remove(&giver);
                let below_known = known.threshold() == known.tree.params().minimum_work;
                nothing(Next::TooLittle { below_known })
            }
            Step::Offence(reason) => nothing(Next::Blame(reason)),
        }
    }
}

impl Known<'_> {
    /// The work that a branch must have for its headers to be stored.
    fn threshold(&self) -> Work {
        let Self { tree, tip, .. } = *self;
        let work = tree.work(tip);
        let below = tree.parent(tip).map_or(Work::ZERO, |parent| tree.work(parent));
        work.minus(work.minus(below).times(NEAR)).max(tree.params().minimum_work)
    }
}

struct Weighed {
    /// The highest known header that the others follow.
    above: HeaderId,
    /// How many of the headers are known themselves.
    found: usize,
    /// The work of the branch up to its last header.
    work: Work,
}

/// Weighs headers that show their work.
fn weigh(tree: &HeaderTree, headers: &[HeaderBytes]) -> Result<Weighed, Next> {
    let Some(first) = headers.first() else { return Err(Next::Wait) };
    let known = |header: &HeaderBytes| tree.find(&Header::new(header).hash());
    let found: Vec<HeaderId> = headers.iter().map_while(known).collect();
    let below = || tree.find(&Header::new(first).previous());
    let above = found.last().copied().or_else(below).ok_or(Next::Stray)?;
    let mut work = tree.work(above);
    for header in headers.iter().skip(found.len()) {
        let header = Header::new(header);
        check_work(tree.params(), header)
            .map_err(|source| Next::Refuse(InsertError::Refused { hash: header.hash(), source }))?;
        work = work.plus(Work::of_bits(header.bits()));
    }
    Ok(Weighed { above, found: found.len(), work })
}

/// A known header as the start of a branch.
fn start(tree: &HeaderTree, id: HeaderId) -> Start {
    let (branch, height) = (tree.branch(id), tree.height(id));
    let header = branch.ancestor(height).expect("it is on its own branch");
    Start {
        hash: header.hash,
        height,
        bits: header.bits,
        work: tree.work(id),
        median_time: median_time_past(&branch, height).expect("all headers below are there"),
        locator: tree.locator(id),
    }
}

#[cfg(test)]
mod tests {
    use varve_consensus::Params;
    use varve_types::Network;

    use super::*;
    use crate::fixture::{NOW, chain_above, genesis, hash_of};

    const A: Giver = Giver(1);

    fn tree(known_work: u32) -> HeaderTree {
        let mut params = Params::new(Network::Regtest);
        params.minimum_work = Work::of(params.pow.limit).times(known_work);
        HeaderTree::new(params, [7; 16])
    }

    fn vet(vetting: &mut Vetting, tree: &HeaderTree, headers: &[HeaderBytes]) -> Vetted {
        let known = Known { tree, tip: HeaderId::GENESIS, now: NOW };
        vetting.vet(known, A, headers.to_vec())
    }

    #[test]
    fn headers_are_taken_when_their_branch_has_the_work_and_ignored_when_it_ends_before() {
        let (tree, chain) = (tree(31), chain_above(&genesis(), 30, 1));
        let mut vetting = Vetting::default();
        let next = Next::TooLittle { below_known: true };
        assert_eq!(vet(&mut vetting, &tree, &chain[..29]), Vetted { taken: vec![], next });
        let taken = chain.clone();
        assert_eq!(vet(&mut vetting, &tree, &chain), Vetted { taken, next: Next::Wait });
        assert_eq!(vet(&mut vetting, &tree, &chain[1..]).next, Next::Stray);
        assert!(vetting.syncs.is_empty());
    }

    #[test]
    fn a_full_message_below_the_threshold_is_heard_twice() {
        let (tree, chain) = (tree(4001), chain_above(&genesis(), 4500, 1));
        let mut vetting = Vetting::default();
        let (mut all, mut locator, mut messages) = (Vec::new(), tree.locator(HeaderId::GENESIS), 0);
        loop {
            let at = chain.iter().position(|header| hash_of(header) == locator[0]);
            let from = at.map_or(0, |at| at + 1);
            let batch = &chain[from..chain.len().min(from + MAX_HEADERS)];
            let Vetted { taken, next } = vet(&mut vetting, &tree, batch);
            all.extend(taken);
            messages += 1;
            match next {
                Next::Ask(next) => locator = next,
                next => break assert_eq!(next, Next::Above),
            }
            assert!(all.is_empty(), "nothing before the work is reached twice");
        }
        assert_eq!((messages, all.len()), (4, 4000));
        assert!(vetting.syncs.is_empty());
    }

    #[test]
    fn near_the_tip_a_branch_may_have_a_little_less_work() {
        let mut tree = tree(0);
        let ids: Vec<_> = chain_above(&genesis(), 300, 1)
            .iter()
            .map(|header| tree.insert(Header::new(header), NOW).unwrap())
            .collect();
        let other = chain_above(&genesis(), 300, 2);
        let mut vetting = Vetting::default();
        let at_tip = Known { tree: &tree, tip: ids[299], now: NOW };
        let mut next = |count: usize| vetting.vet(at_tip, A, other[..count].to_vec());
        assert_eq!(next(155).next, Next::TooLittle { below_known: false });
        assert_eq!((next(156).next, next(156).taken.len()), (Next::Wait, 156));
        assert_eq!(next(0).next, Next::Wait);
        // A peer that is behind, or that begins far below, has headers that are known.
        let known = chain_above(&genesis(), 5, 1);
        let vetted = vetting.vet(at_tip, A, known.clone());
        assert_eq!(vetted, Vetted { taken: known, next: Next::Wait });
    }

    #[test]
    fn a_full_message_of_known_headers_is_followed() {
        let (mut tree, chain) = (tree(0), chain_above(&genesis(), 2500, 1));
        let ids: Vec<_> =
            chain.iter().map(|header| tree.insert(Header::new(header), NOW).unwrap()).collect();
        let mut vetting = Vetting::default();
        let at_tip = Known { tree: &tree, tip: ids[2499], now: NOW };
        let vetted = vetting.vet(at_tip, A, chain[..2000].to_vec());
        assert_eq!((vetted.taken.len(), vetted.next), (2000, Next::Above));
    }

    /// A branch that ends with a full message: the answer to the next question is empty.
    #[test]
    fn an_empty_answer_ends_a_branch() {
        let (tree, chain) = (tree(5000), chain_above(&genesis(), 4000, 1));
        let mut vetting = Vetting::default();
        for full in chain.chunks(MAX_HEADERS) {
            assert!(matches!(vet(&mut vetting, &tree, full).next, Next::Ask(_)));
        }
        let next = Next::TooLittle { below_known: true };
        assert_eq!(vet(&mut vetting, &tree, &[]), Vetted { taken: vec![], next });
        assert_eq!(vetting.givers(), []);
        assert_eq!(vet(&mut vetting, &tree, &[]).next, Next::Wait);
    }

    /// A node whose branch is known is asked about it now and then: each talk comes to an end.
    #[test]
    fn a_message_that_is_not_full_ends_the_row() {
        let chain = chain_above(&genesis(), 2001, 1);
        let mut tree = tree(0);
        chain.iter().for_each(|header| drop(tree.insert(Header::new(header), NOW)));
        let mut vetting = Vetting::default();
        for _ in 0..100 {
            assert_eq!(vet(&mut vetting, &tree, &chain[..2000]).next, Next::Above);
            assert_eq!(vet(&mut vetting, &tree, &chain[2000..]).next, Next::Wait);
        }
    }

    /// The same message whatever it is asked, of headers that are known or that never get on.
    #[test]
    fn who_sends_the_same_again_and_again_is_blamed() {
        let chain = chain_above(&genesis(), 2000, 1);
        let mut known = tree(0);
        chain.iter().for_each(|header| drop(known.insert(Header::new(header), NOW)));
        for tree in [known, tree(5000)] {
            let mut vetting = Vetting::default();
            let blamed = (0..100)
                .position(|_| matches!(vet(&mut vetting, &tree, &chain).next, Next::Blame(_)));
            assert!(blamed.is_some_and(|messages| messages < 20), "{blamed:?}");
            assert!(vetting.syncs.is_empty());
            vetting.forget(A);
            assert_eq!(vetting.givers(), []);
        }
    }
}
