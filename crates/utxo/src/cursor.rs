//! Goes through a run's entries in order.
//!
//! The pages are streamed past the page cache, so the memory is that of the stream and of one
//! spilled coin. Between leaves lie the pages of spilled coins; the directory tells which are
//! leaves. Entries that are not in order are damage, and so is a page that does not decode.

use std::sync::Arc;

use varve_io::PageNumber;
use varve_types::Outpoint;

use crate::directory::LeafNumber;
use crate::packed::PackedCoin;
use crate::page::Body;
use crate::page_stream::PageStream;
use crate::run::{Record, Run};
use crate::run_error::RunError;
use crate::sequence::Sequence;

/// Something that gives entries in order, one at a time.
pub trait Source {
    /// The entry it stands at; `None` at the end.
    fn head(&self) -> Option<Record<'_>>;

    /// Moves on to the next entry. After an error the source must not be used any more.
    fn advance(&mut self) -> Result<(), RunError>;
}

/// A place among the entries of a run.
#[derive(Debug)]
pub struct Cursor {
    run: Arc<Run>,
    stream: PageStream,
    /// The leaf after the one it stands in.
    next_leaf: LeafNumber,
    page: PageNumber,
    payload: Vec<u8>,
    /// The place in the leaf of the next entry.
    index: usize,
    head: Option<Head>,
    /// The packed coin of the entry it stands at.
    coin: Vec<u8>,
}

/// The entry it stands at, without its coin.
#[derive(Clone, Copy, Debug)]
struct Head {
    outpoint: Outpoint,
    birth: Sequence,
    delete: bool,
}

impl Cursor {
    /// Stands at the first entry; so many pages are read ahead.
    pub(crate) fn new(run: Arc<Run>, ahead: u64) -> Result<Self, RunError> {
        let stream = run.data_stream(ahead);
        let mut cursor = Self {
            run,
            stream,
            next_leaf: LeafNumber(0),
            page: PageNumber(0),
            payload: Vec::new(),
            index: 0,
            head: None,
            coin: Vec::new(),
        };
        if cursor.next_page()? {
            cursor.advance()?;
        }
        Ok(cursor)
    }

    /// Goes to the next leaf, past spilled coins. False at the end.
    fn next_page(&mut self) -> Result<bool, RunError> {
        let wanted = self.run.directory().page(self.next_leaf);
        while let Some((page, payload)) = self.stream.next()? {
            if page == wanted {
                self.page = page;
                self.payload.clear();
                self.payload.extend_from_slice(payload);
                self.next_leaf.0 += 1;
                self.index = 0;
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Source for Cursor {
    fn head(&self) -> Option<Record<'_>> {
        let Head { outpoint, birth, delete } = self.head?;
        let coin = (!delete).then(|| PackedCoin::new(&self.coin));
        Some(Record { outpoint, birth, coin })
    }

    fn advance(&mut self) -> Result<(), RunError> {
        let mut leaf = self.run.leaf(self.page, &self.payload)?;
        while self.index >= leaf.len() {
            if !self.next_page()? {
                self.head = None;
                return Ok(());
            }
            leaf = self.run.leaf(self.page, &self.payload)?;
        }
        let entry = leaf.entry(self.index).map_err(|error| self.run.in_page(self.page, error))?;
        self.coin.clear();
        match entry.body {
            Body::Deleted => {}
            Body::Packed(coin) => self.coin.extend_from_slice(coin.as_bytes()),
            Body::Spilled(spill) => self.run.read_spill(self.page, spill, &mut self.coin)?,
        }
        let delete = entry.body == Body::Deleted;
        let (outpoint, birth) = (entry.outpoint, entry.birth);
        let before = self.head.map(|head| (head.outpoint, head.birth));
        if before.is_some_and(|before| before >= (outpoint, birth)) {
            return Err(self.run.damage(self.page, 0, "the entries are out of order"));
        }
        self.head = Some(Head { outpoint, birth, delete });
        self.index += 1;
        Ok(())
    }
}
