//! The talk with one peer about headers: what it is asked, and whether it keeps up.
//!
//! A node answers `getheaders` with the headers above the first hash of the locator that it has, up
//! to 2,000; a full message means that there may be more. It also announces new headers unasked.
//! So a message is an *answer* when it is empty or when its first header follows a hash of the
//! locator that was sent; everything else is an announcement, and does not stop the clock.
//!
//! ```text
//! fresh ─► asked ─► answered ─► idle ─► (announcement, or more) ─► asked …
//!            │
//!            ├─ 2 s, or on the whole less than 4,000 headers a second, or 500 answers in a row: it
//!            │  is no longer *brisk*, and the next peer is asked beside it
//!            ├─ 30 s without an answer: it is given up
//!            └─ on the whole less than 200 headers a second for more than a minute, not counting
//!               answers that come within 5 s: it is given up
//! ```
//!
//! Announcements are cheap to make up. After [`IN_VAIN`] answers without a new header a peer is
//! asked about its announcements once in [`REST`], and a sync does not wait for it.

use std::time::Duration;

use varve_types::{BlockHash, Header};

use super::wire::MAX_HEADERS;
use crate::source::HeaderBytes;

/// How long one answer may take before the next peer is asked too.
const BRISK: Duration = Duration::from_secs(2);
/// How long a talk that is slow on the whole keeps others from theirs.
const TURN: Duration = Duration::from_secs(10);
/// Answers of one talk after which others get theirs, however quick it is: a million headers.
const TURN_ANSWERS: u32 = 500;
/// Answers without a new header after which announcements are asked about more slowly.
const IN_VAIN: u32 = 10;
/// The pause between two questions about such announcements.
const REST: Duration = Duration::from_secs(1);
/// Answers without a new header after which nobody waits for the end: twenty million headers.
const ENDLESS: u32 = 10_000;
/// How long one answer may take at all.
const ANSWER: Duration = Duration::from_secs(30);
/// Answers within this time never count as slow.
const GRACE: Duration = Duration::from_secs(5);
/// How far a peer may fall behind the slowest pace.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time that a header earns at the pace of a turn, and at the slowest pace.
const TURN_HEADER: Duration = Duration::from_micros(250);
const SLOWEST_HEADER: Duration = Duration::from_millis(5);

/// The talk with one peer.
pub(super) struct Talk {
    /// It may have headers that it was not asked for.
    is_fresh: bool,
    /// The locator to be sent next.
    next: Option<Vec<BlockHash>>,
    question: Option<Question>,
    /// The number of the last turn that it was given; turns are counted over all peers.
    turn: u64,
    /// Answers of this turn, the headers in them, and the time that was waited for them.
    answers: u32,
    headers: u32,
    waited: Duration,
    /// Answers since one brought a new header.
    in_vain: u32,
    /// Time until announcements are asked about again.
    rest: Duration,
    /// Headers in all answers, and the time that was waited for those that did not come soon.
    received: u32,
    late: Duration,
}

struct Question {
    locator: Vec<BlockHash>,
    waited: Duration,
}

/// Why a talk is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Silent,
    Slow,
}

impl Talk {
    pub(super) const fn new() -> Self {
        Self {
            is_fresh: true,
            next: None,
            question: None,
            turn: 0,
            answers: 0,
            headers: 0,
            waited: Duration::ZERO,
            in_vain: 0,
            rest: Duration::ZERO,
            received: 0,
            late: Duration::ZERO,
        }
    }

    /// The turn that this peer was last given; the one with the lowest is next.
    pub(super) const fn turn(&self) -> u64 {
        self.turn
    }

    /// Whether it can be given a turn.
    pub(super) const fn is_due(&self) -> bool {
        self.is_fresh && !self.is_busy() && self.rest.is_zero()
    }

    /// Gives the peer a turn: it is asked for the headers above this locator.
    pub(super) fn begin(&mut self, turn: u64, locator: Vec<BlockHash>) {
        self.turn = turn;
        if self.in_vain >= IN_VAIN {
            self.rest = REST;
        }
        self.ask(locator);
    }

    /// It announced something. Whether the announcement is worth waiting for.
    pub(super) const fn announced(&mut self) -> bool {
        self.is_fresh = true;
        self.in_vain < IN_VAIN
    }

    /// Headers that it sent were new.
    pub(super) const fn brought_news(&mut self) {
        (self.in_vain, self.rest) = (0, Duration::ZERO);
    }

    /// Whether an answer is owed, or a question is to be sent.
    pub(super) const fn is_busy(&self) -> bool {
        self.next.is_some() || self.question.is_some()
    }

    /// Whether it may have headers that are not here yet, and is worth waiting for.
    pub(super) const fn is_unfinished(&self) -> bool {
        (self.is_fresh && self.in_vain < IN_VAIN) || (self.is_busy() && self.in_vain < ENDLESS)
    }

    /// Whether it answers so well that nobody else need be asked meanwhile.
    pub(super) fn is_brisk(&self) -> bool {
        let asked = self.question.as_ref().map_or(Duration::ZERO, |question| question.waited);
        let over = self.answers >= TURN_ANSWERS
            || asked >= BRISK
            || self.waited + asked >= TURN + TURN_HEADER * self.headers;
        self.is_busy() && !over
    }

    /// Asks for the headers above this locator, as soon as no answer is owed.
    pub(super) fn ask(&mut self, locator: Vec<BlockHash>) {
        self.is_fresh = false;
        self.next = Some(locator);
    }

    /// The question to send now.
    pub(super) fn take_question(&mut self) -> Option<Vec<BlockHash>> {
        if self.question.is_some() {
            return None;
        }
        let locator = self.next.take()?;
        self.question = Some(Question { locator: locator.clone(), waited: Duration::ZERO });
        Some(locator)
    }

    /// Headers came. Whether they are an answer.
    pub(super) fn heard(&mut self, headers: &[HeaderBytes]) -> bool {
        let below = headers.first().map(|first| Header::new(first).previous());
        let is_answer =
            |question: &mut Question| below.is_none_or(|below| question.locator.contains(&below));
        let answered = self.question.take_if(is_answer);
        if let Some(Question { waited, .. }) = &answered {
            self.waited += *waited;
            self.late += waited.saturating_sub(GRACE);
            let count = u32::try_from(headers.len()).unwrap_or(u32::MAX);
            self.answers += 1;
            self.headers = self.headers.saturating_add(count);
            self.received = self.received.saturating_add(count);
            self.in_vain = self.in_vain.saturating_add(1);
        }
        if !self.is_busy() && headers.len() < MAX_HEADERS {
            // It has no more, so its turn is over.
            (self.answers, self.headers, self.waited) = (0, 0, Duration::ZERO);
        }
        answered.is_some()
    }

    /// Counts time. Whether an answer takes too long.
    pub(super) fn waited(&mut self, time: Duration) -> Option<Fault> {
        self.rest = self.rest.saturating_sub(time);
        let question = self.question.as_mut()?;
        question.waited += time;
        let late = self.late + question.waited.saturating_sub(GRACE);
        if question.waited >= ANSWER {
            return Some(Fault::Silent);
        }
        (late >= PATIENCE + SLOWEST_HEADER * self.received).then_some(Fault::Slow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{chain_above, genesis, hash_of};

    const SECOND: Duration = Duration::from_secs(1);

    fn asked() -> (Talk, Vec<HeaderBytes>) {
        let mut talk = Talk::new();
        talk.ask(vec![hash_of(&genesis())]);
        assert!(
            talk.is_brisk() && talk.take_question().is_some() && talk.take_question().is_none()
        );
        (talk, chain_above(&genesis(), 20, 1))
    }

    #[test]
    fn an_announcement_is_no_answer() {
        let (mut talk, headers) = asked();
        talk.heard(&headers[19..]);
        assert!(talk.is_busy(), "it follows nothing that was asked about");
        talk.heard(&headers[..5]);
        assert!(!talk.is_unfinished());
        talk.ask(vec![hash_of(&headers[4])]);
        talk.take_question().unwrap();
        talk.heard(&[]);
        assert!(!talk.is_busy(), "nothing is an answer too");
    }

    #[test]
    fn a_slow_answer_lets_others_begin_and_none_at_all_ends_it() {
        let (mut talk, _) = asked();
        assert_eq!(talk.waited(SECOND), None);
        assert!(talk.is_brisk());
        assert_eq!(talk.waited(SECOND), None);
        assert!(!talk.is_brisk() && talk.is_busy());
        let fault = (0..28).map(|_| talk.waited(SECOND)).collect::<Vec<_>>();
        assert_eq!((fault[26], fault[27]), (None, Some(Fault::Silent)));
    }

    /// One header after 29 seconds, again and again.
    #[test]
    fn drops_are_given_up() {
        let (mut talk, headers) = asked();
        let mut seconds = 0;
        let fault = 'drip: loop {
            for header in headers.chunks(1) {
                for _ in 0..29 {
                    seconds += 1;
                    if let Some(fault) = talk.waited(SECOND) {
                        break 'drip fault;
                    }
                }
                talk.heard(header);
                talk.ask(vec![hash_of(&header[0])]);
                talk.take_question().unwrap();
            }
        };
        assert_eq!(fault, Fault::Slow);
        assert!((60..120).contains(&seconds), "{seconds}");
    }

    /// Full messages, each in good time: at last the others are asked too.
    #[test]
    fn an_endless_talk_does_not_keep_others_from_theirs() {
        let (mut talk, _) = asked();
        let full = vec![chain_above(&genesis(), 1, 1)[0]; MAX_HEADERS];
        let messages = (0..).find(|_| {
            talk.heard(&full);
            talk.ask(vec![hash_of(&genesis())]);
            talk.take_question().unwrap();
            !talk.is_brisk()
        });
        assert_eq!(messages, Some(499));
        talk.heard(&full[..1]);
        talk.ask(vec![hash_of(&genesis())]);
        assert!(talk.is_brisk(), "a new talk");
    }

    /// An announcement before each answer, and never a new header.
    #[test]
    fn announcements_in_vain_are_asked_about_slowly_and_nobody_waits_for_them() {
        let mut talk = Talk::new();
        for turn in 1..=10 {
            assert!(talk.is_due() && talk.is_unfinished());
            talk.begin(turn, vec![hash_of(&genesis())]);
            assert!(talk.take_question().is_some() && talk.announced());
            assert!(talk.heard(&[]));
            assert!(!talk.heard(&[]), "nobody asked");
        }
        assert!(talk.is_due() && !talk.is_unfinished() && !talk.announced());
        talk.begin(11, vec![hash_of(&genesis())]);
        assert!(talk.take_question().is_some() && talk.is_unfinished(), "it owes an answer");
        talk.heard(&[]);
        talk.announced();
        assert!(!talk.is_due() && !talk.is_unfinished());
        assert_eq!(talk.waited(SECOND), None);
        assert!(talk.is_due() && talk.turn() == 11);
        talk.brought_news();
        assert!(talk.is_unfinished() && talk.announced());
    }

    /// Announcements that are asked about for years, each answered within seconds.
    #[test]
    fn quick_answers_do_not_add_up() {
        let (mut talk, headers) = asked();
        for _ in 0..1000 {
            assert_eq!(talk.waited(SECOND), None);
            talk.heard(&headers[..1]);
            talk.ask(vec![hash_of(&genesis())]);
            assert!(talk.take_question().is_some() && talk.is_brisk());
        }
    }
}
