//! Which leaf is being decoded: for errors that name it, and for what it refers to.

use varve_io::{FormatError, PAGE_PAYLOAD_LEN, PageNumber};

use crate::codec::Codec;
use crate::footer::section_pages;
use crate::run::Run;

/// A leaf of a run.
#[derive(Debug)]
pub struct LeafPlace<'a, C: Codec> {
    run: &'a Run<C>,
    page: PageNumber,
}

impl<C: Codec> Clone for LeafPlace<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Codec> Copy for LeafPlace<'_, C> {}

impl<'a, C: Codec> LeafPlace<'a, C> {
    #[inline]
    pub(crate) const fn new(run: &'a Run<C>, page: PageNumber) -> Self {
        Self { run, page }
    }

    /// What a decoder found in this leaf, as an error that names file and offset.
    #[must_use]
    pub fn error(&self, error: FormatError) -> C::Error {
        self.run.in_page(self.page, error)
    }

    /// Damage at this place of the leaf.
    #[must_use]
    pub fn damage(&self, at: usize, what: &'static str) -> C::Error {
        self.error(FormatError::Damaged { at, what })
    }

    /// Appends what was [spilled](crate::Pages::spill) for this leaf: `len` bytes from page `first`
    /// on, which lies before it. Reads the map.
    pub fn read_spill(&self, first: u64, len: u64, out: &mut Vec<u8>) -> Result<(), C::Error> {
        let end = first.checked_add(section_pages(len));
        let inside = end.filter(|end| first > 0 && *end <= self.page.0);
        let Some(end) = inside else {
            return Err(self.damage(0, "what is spilled is outside the run"));
        };
        let mut left = len;
        for number in first..end {
            let payload = self.run.resident(PageNumber(number))?;
            let part = usize::try_from(left).unwrap_or(usize::MAX).min(PAGE_PAYLOAD_LEN);
            out.extend_from_slice(payload.get(..part).unwrap_or_default());
            left -= part as u64;
        }
        Ok(())
    }
}
