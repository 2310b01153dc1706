//! One run while keys are resolved to its pages.

use varve_io::PageNumber;

use super::{GROUP, MAPPED, PageRead, READS_MAX};
use crate::codec::Codec;
use crate::directory::LeafNumber;
use crate::run::{Access, Run};

/// A run while keys are resolved: where its filter and its reads stand.
pub(super) struct RunPlan<'a, C: Codec> {
    pub(super) index: u32,
    run: &'a Run<C>,
    direct: bool,
    chunk: usize,
    /// The last page to be read, and the place of its buffer.
    last: Option<(PageNumber, u32)>,
}

impl<'a, C: Codec> RunPlan<'a, C> {
    pub(super) fn new(index: u32, run: &'a Run<C>) -> Self {
        let direct = run.access() == Access::Direct;
        Self { index, run, direct, chunk: 0, last: None }
    }

    /// Finds the pages that may hold a group of keys, stage by stage.
    pub(super) fn resolve(
        &mut self,
        keys: &[C::Key],
        hashes: &[u64],
        mut found: impl FnMut(u32, PageNumber, &mut Self),
    ) {
        let (filter, directory) = (self.run.filter(), self.run.directory());
        let mut may = [false; GROUP];
        let answers = may.get_mut(..keys.len()).expect("a group is not larger");
        filter.ask(&mut self.chunk, keys, hashes, answers);
        let mut bounds = [(0, 0); GROUP];
        for ((bounds, key), may) in bounds.iter_mut().zip(keys).zip(may) {
            if may {
                *bounds = directory.bounds(key);
            }
        }
        let mut leaves = [None; GROUP];
        for (((leaf, bounds), key), may) in leaves.iter_mut().zip(bounds).zip(keys).zip(may) {
            if may {
                *leaf = directory.leaf(key, bounds);
            }
        }
        for ((index, leaf), key) in (0..).zip(leaves).zip(keys) {
            let Some(leaf) = leaf else { continue };
            if !C::REPEATS {
                found(index, directory.page(leaf), self);
                continue;
            }
            for leaf in directory.leaves(key, leaf) {
                found(index, directory.page(LeafNumber(leaf)), self);
            }
        }
    }

    /// The buffer into which a page will be read, or [`MAPPED`]. Neighbouring keys share pages.
    pub(super) fn buffer(&mut self, page: PageNumber, reads: &mut Vec<PageRead>) -> u32 {
        if let Some((last, buffer)) = self.last
            && last == page
        {
            return buffer;
        }
        if !self.direct || reads.len() >= READS_MAX {
            return MAPPED;
        }
        let buffer = u32::try_from(reads.len()).expect("fewer than may be read");
        reads.push((self.index, page, None));
        self.last = Some((page, buffer));
        buffer
    }
}
