//! What is done with a message of headers: stored or not, and what its giver is asked next.

use varve_types::Header;

use super::super::vetting::{Known, Next, Vetted};
use super::{Intake, Report};
use crate::error::Error;
use crate::header_tree::{HeaderId, InsertError};
use crate::source::{Giver, HeaderBytes, Warning};
use crate::stores::Stores;

/// How often a source that the user vouches for may send headers in a row that link to nothing.
const STRAYS: u32 = 10;

/// What became of headers that were to be stored.
#[derive(Default)]
struct Inserted {
    /// The last one, new or known.
    last: Option<HeaderId>,
    has_new: bool,
    has_orphan: bool,
    is_refused: bool,
}

impl Intake<'_> {
    /// Takes a message of headers, and asks for what follows from it.
    pub(super) fn headers(
        &mut self,
        stores: &mut Stores,
        headers: Vec<HeaderBytes>,
        giver: Giver,
    ) -> Result<(), Error> {
        if self.source.is_trusted() {
            let inserted = self.insert(stores, &headers, giver)?;
            let stray = inserted.has_orphan && !inserted.is_refused && !inserted.has_new;
            if inserted.has_new || (stray && self.may_stray(giver)) {
                self.seek(stores)?;
            }
            return Ok(());
        }
        self.is_heard = true;
        let (tip, now) = (stores.tip, (self.options.now)());
        let Vetted { taken, next } = {
            let tree = &stores.chain.read().tree;
            self.vetting.vet(Known { tree, tip, now }, giver, headers)
        };
        let inserted = self.insert(stores, &taken, giver)?;
        if inserted.has_new {
            self.seek(stores)?;
        }
        if inserted.is_refused {
            self.vetting.forget(giver);
            return Ok(());
        }
        self.go_on(stores, giver, next, inserted.last)
    }

    /// Asks the giver for its next headers, or ends with it.
    fn go_on(
        &mut self,
        stores: &Stores,
        giver: Giver,
        next: Next,
        last: Option<HeaderId>,
    ) -> Result<(), Error> {
        match next {
            Next::Wait => Ok(()),
            Next::Ask(locator) => self.more(giver, &locator),
            Next::Above => {
                let above = last.map(|last| stores.chain.read().tree.locator(last));
                above.map_or(Ok(()), |locator| self.more(giver, &locator))
            }
            Next::Stray => {
                self.source.stray(giver);
                Ok(())
            }
            Next::TooLittle { below_known } => {
                let peer = self.source.name(giver);
                if below_known && self.low.insert(peer.clone()) {
                    (self.report)(Report::Warning(&Warning::LittleWork { peer }));
                }
                Ok(())
            }
            Next::Refuse(error) => {
                self.source.blame(giver, &error.reason());
                self.refuse(error.culprit(), &error.reason());
                Ok(())
            }
            Next::Blame(reason) => {
                self.source.blame(giver, &reason);
                Ok(())
            }
        }
    }

    /// Stores headers.
    fn insert(
        &mut self,
        stores: &mut Stores,
        headers: &[HeaderBytes],
        giver: Giver,
    ) -> Result<Inserted, Error> {
        let (now, fetches_all) = ((self.options.now)(), self.fetches_all());
        let mut inserted = Inserted::default();
        if headers.is_empty() {
            return Ok(inserted);
        }
        for header in headers {
            match stores.add_header(header, now)? {
                Ok((id, is_new)) => {
                    let tree = &stores.chain.read().tree;
                    inserted.last = Some(id);
                    inserted.has_new |= is_new;
                    self.fetch.offer(tree, giver, id);
                    if fetches_all && is_new && !tree.is_stored(id) {
                        self.fetch.add_unfetched(tree.height(id), id);
                    }
                }
                Err(InsertError::Orphan { .. }) => {
                    inserted.has_orphan = true;
                    if self.source.is_trusted() {
                        self.left_out.add_above(Header::new(header));
                    }
                }
                // The operator's own mark: nobody is to blame, and nothing is new.
                Err(InsertError::Invalid { invalid, .. }) if invalid.is_by_operator() => {
                    inserted.is_refused = true;
                }
                Err(error) => {
                    let reason = error.reason();
                    if !inserted.is_refused && error.is_blameworthy() {
                        self.source.blame(giver, &reason);
                    }
                    inserted.is_refused = true;
                    if self.source.is_trusted() || !error.is_blameworthy() {
                        let tree = &stores.chain.read().tree;
                        let (header, culprit) = (Header::new(header), error.culprit());
                        self.left_out.add_header(tree, header, culprit, &reason);
                    }
                    self.refuse(error.culprit(), &reason);
                }
            }
        }
        let links = inserted.last.is_some() && !inserted.has_orphan;
        if inserted.has_new || inserted.is_refused || links {
            self.strays.remove(&giver);
        }
        if inserted.has_new {
            stores.follow_best_header()?;
        }
        let height = {
            let tree = &stores.chain.read().tree;
            tree.height(tree.best_header())
        };
        (self.report)(Report::Headers { height });
        Ok(inserted)
    }

    /// Counts headers that link to nothing. A node that is asked for those between sends them; one
    /// that goes on without is not asked again.
    fn may_stray(&mut self, giver: Giver) -> bool {
        let strays = self.strays.entry(giver).or_default();
        *strays += 1;
        if *strays > STRAYS {
            self.source.blame(giver, "its headers link to none that are known");
        }
        *strays <= STRAYS
    }
}
