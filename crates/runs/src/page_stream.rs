//! Pages of a file one after the other, read ahead past the page cache.
//!
//! A merge reads gigabytes once; through the page cache they would evict what lookups need. So a
//! stream reads some pages ahead with its own [`BatchReader`] and hands them out in order. Every
//! page is verified. Its memory is that of the pages read ahead.

use std::ops::Range;
use std::sync::Arc;

use varve_io::{AlignedBuffer, BatchReader, PAGE_LEN, PageFile, PageNumber, Result};

/// The pages that are usually in flight or waiting to be taken.
pub(crate) const AHEAD: u64 = 128;

/// Reads pages in order.
#[derive(Debug)]
pub(crate) struct PageStream {
    file: Arc<PageFile>,
    reader: BatchReader,
    /// The next page to hand out.
    next: u64,
    /// The next page to request. Those from `next` up to here are in flight or in the window.
    wanted: u64,
    end: u64,
    /// How many pages are read ahead.
    ahead: u64,
    /// The page with number n, once read, is in place n mod `ahead`; it stays there after it was
    /// handed out until its place is reused.
    window: Vec<Option<AlignedBuffer>>,
}

impl PageStream {
    /// The pages of `range`, `ahead` of them at a time. New reads are started when half of them
    /// have been taken: two system calls for `ahead` pages.
    pub(crate) fn new(file: Arc<PageFile>, range: Range<u64>, ahead: u64) -> Self {
        let Range { start: next, end } = range;
        let depth = u16::try_from(ahead.min(end.saturating_sub(next)));
        let reader = BatchReader::new(depth.unwrap_or(u16::MAX));
        let mut window = Vec::new();
        window.resize_with(usize::try_from(ahead).unwrap_or_default(), || None);
        Self { file, reader, next, wanted: next, end, ahead, window }
    }

    /// The payload of the next page and its number; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<(PageNumber, &[u8])>> {
        if self.next >= self.end {
            return Ok(None);
        }
        if self.wanted - self.next <= self.ahead / 2 && self.wanted < self.end {
            self.ask()?;
        }
        let number = PageNumber(self.next);
        while self.window.get(self.place(number.0)).is_some_and(Option::is_none) {
            let done = self.reader.next().expect("the page was requested and has not arrived");
            assert!((self.next..self.wanted).contains(&done.tag), "only awaited pages are read");
            let place = self.place(done.tag);
            if let Some(free) = self.window.get_mut(place) {
                *free = Some(done.result?);
            }
        }
        self.next += 1;
        let page = self.window.get(self.place(number.0)).and_then(Option::as_ref);
        let payload = self.file.verify(number, page.expect("waited for above"))?;
        Ok(Some((number, payload)))
    }

    /// Starts reads into all places whose pages have been handed out.
    fn ask(&mut self) -> Result<()> {
        let until = (self.next + self.ahead).min(self.end);
        let mut requests = Vec::new();
        for number in self.wanted..until {
            let place = self.place(number);
            let used = self.window.get_mut(place).and_then(Option::take);
            let buffer = used.unwrap_or_else(|| AlignedBuffer::zeroed(PAGE_LEN));
            requests.push(self.file.request(PageNumber(number), number, buffer)?);
        }
        self.wanted = until;
        self.reader.submit(requests);
        Ok(())
    }

    /// The place of a page in the window.
    fn place(&self, page: u64) -> usize {
        usize::try_from(page % self.ahead).unwrap_or_default()
    }
}
