//! Pages of a file one after the other, read ahead past the page cache.
//!
//! A merge reads gigabytes once; through the page cache they would push out what lookups need. So
//! a stream keeps [`AHEAD`] pages under way by a [`BatchReader`] of its own and hands them out in
//! order. Every page is verified. Memory is [`AHEAD`] pages.

use std::ops::Range;
use std::sync::Arc;

use varve_io::{AlignedBuffer, BatchReader, PAGE_LEN, PageFile, PageNumber, Result};

/// The pages that are under way or waiting to be taken.
const AHEAD: u64 = 128;
/// New reads are started when this many pages have been taken: two system calls for [`AHEAD`]
/// pages.
const STEP: u64 = AHEAD / 2;

/// Reads pages in order.
#[derive(Debug)]
pub(crate) struct PageStream {
    file: Arc<PageFile>,
    reader: BatchReader,
    /// The next page to hand out.
    next: u64,
    /// The next page to ask for. Those from `next` up to here are under way or in the window.
    wanted: u64,
    end: u64,
    /// The page with number n, once read, is in place n mod [`AHEAD`]; it stays there after it was
    /// handed out until its place is wanted again.
    window: Vec<Option<AlignedBuffer>>,
}

impl PageStream {
    /// Bytes of memory that a stream takes.
    #[expect(clippy::cast_possible_truncation, reason = "a hundred pages")]
    pub(crate) const MEMORY: usize = AHEAD as usize * PAGE_LEN;

    /// The pages of `range`.
    pub(crate) fn new(file: Arc<PageFile>, range: Range<u64>) -> Self {
        let Range { start: next, end } = range;
        let depth = u16::try_from(AHEAD.min(end.saturating_sub(next)));
        let reader = BatchReader::new(depth.unwrap_or(u16::MAX));
        let mut window = Vec::new();
        window.resize_with(place(AHEAD - 1) + 1, || None);
        Self { file, reader, next, wanted: next, end, window }
    }

    /// The payload of the next page and its number; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<(PageNumber, &[u8])>> {
        if self.next >= self.end {
            return Ok(None);
        }
        if self.wanted - self.next <= AHEAD - STEP && self.wanted < self.end {
            self.ask()?;
        }
        let number = PageNumber(self.next);
        while self.window.get(place(number.0)).is_some_and(Option::is_none) {
            let done = self.reader.next().expect("the page was asked for and has not come");
            if let Some(free) = self.window.get_mut(place(done.tag)) {
                *free = Some(done.result?);
            }
        }
        self.next += 1;
        let page = self.window.get(place(number.0)).and_then(Option::as_ref);
        let payload = self.file.verify(number, page.expect("waited for above"))?;
        Ok(Some((number, payload)))
    }

    /// Starts reads into all places whose pages have been handed out.
    fn ask(&mut self) -> Result<()> {
        let until = (self.next + AHEAD).min(self.end);
        let mut requests = Vec::new();
        for number in self.wanted..until {
            let used = self.window.get_mut(place(number)).and_then(Option::take);
            let buffer = used.unwrap_or_else(|| AlignedBuffer::zeroed(PAGE_LEN));
            requests.push(self.file.request(PageNumber(number), number, buffer)?);
        }
        self.wanted = until;
        self.reader.submit(requests);
        Ok(())
    }
}

/// The place of a page in the window.
fn place(page: u64) -> usize {
    usize::try_from(page % AHEAD).unwrap_or_default()
}
