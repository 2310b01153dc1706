//! Walks a run's rows in order.
//!
//! The pages are streamed past the page cache, so the memory is that of the stream and of one leaf.
//! Between leaves lie the pages that they spilled; the directory says which pages are leaves. Rows
//! out of order are damage, and so is a page that does not decode.

use std::sync::Arc;

use varve_io::PageNumber;

use crate::codec::{Codec, LeafWalk as _};
use crate::directory::LeafNumber;
use crate::leaf_place::LeafPlace;
use crate::page_stream::PageStream;
use crate::run::Run;
use crate::run_error::RunError;

/// A stream of rows in order.
pub trait Source<C: Codec> {
    /// The current row; `None` at the end.
    fn head(&self) -> Option<C::Row<'_>>;

    /// Advances to the next row. After an error the source must not be used again.
    fn advance(&mut self) -> Result<(), C::Error>;
}

/// A position among the rows of a run.
#[derive(Debug)]
pub struct Cursor<C: Codec> {
    run: Arc<Run<C>>,
    stream: PageStream,
    /// The leaf after the current one.
    next_leaf: LeafNumber,
    page: PageNumber,
    walk: C::Walk,
    /// The order of the current row; `None` before the first and after the last.
    order: Option<C::Order>,
}

impl<C: Codec> Cursor<C> {
    /// A cursor at the first row; `ahead` pages are read ahead.
    pub(crate) fn new(run: Arc<Run<C>>, ahead: u64) -> Result<Self, C::Error> {
        Self::at_leaf(run, LeafNumber(0), ahead)
    }

    /// A cursor at the first row whose key is not below `key`.
    pub(crate) fn from(run: Arc<Run<C>>, key: &C::Key, ahead: u64) -> Result<Self, C::Error> {
        let leaf = run.directory().first_leaf(key);
        let mut cursor = Self::at_leaf(run, leaf, ahead)?;
        while cursor.head().is_some_and(|row| C::key(&row) < *key) {
            cursor.advance()?;
        }
        Ok(cursor)
    }

    fn at_leaf(run: Arc<Run<C>>, next_leaf: LeafNumber, ahead: u64) -> Result<Self, C::Error> {
        let stream = run.data_stream(next_leaf, ahead);
        let page = PageNumber(0);
        let mut cursor =
            Self { run, stream, next_leaf, page, walk: C::Walk::default(), order: None };
        if cursor.next_page()? {
            cursor.advance()?;
        }
        Ok(cursor)
    }

    /// Enters the next leaf, past spilled pages. False at the end.
    fn next_page(&mut self) -> Result<bool, C::Error> {
        let wanted = self.run.directory().page(self.next_leaf);
        while let Some((page, payload)) = self.stream.next().map_err(RunError::from)? {
            if page == wanted {
                self.page = page;
                self.next_leaf.0 += 1;
                self.walk.enter(payload, LeafPlace::new(&self.run, page))?;
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl<C: Codec> Source<C> for Cursor<C> {
    #[inline]
    fn head(&self) -> Option<C::Row<'_>> {
        self.order.and_then(|_| self.walk.row())
    }

    fn advance(&mut self) -> Result<(), C::Error> {
        while !self.walk.next(LeafPlace::new(&self.run, self.page))? {
            if !self.next_page()? {
                self.order = None;
                return Ok(());
            }
        }
        let order = self.walk.row().as_ref().map(C::order);
        if order.is_none() || self.order >= order {
            return Err(self.run.damage(self.page, 0, "the rows are out of order"));
        }
        self.order = order;
        Ok(())
    }
}
