//! The contract of [`Backend`], as tests for whoever implements it.
//!
//! A back end wraps the place where it keeps its files in [`Disk`] and calls [`check`] from a
//! test. The cases are small and can be followed on paper: `rows` appends and finds, `saved` closes
//! and opens again. [`random`] then walks at random beside the plain maps of [`MemoryBackend`],
//! reopening now and then.

pub mod random;
mod rows;
mod sample;
mod saved;

use crate::backend::memory::{MemoryBackend, MemoryDisk};
use crate::backend::{Backend, Match, Unindexed};
use crate::link::HeaderLink;

pub use sample::{TestBlock, block, header, mark, push, txid};

/// Where a back end keeps what survives it.
pub trait Disk {
    /// The back end.
    type Backend: Backend;

    /// Opens it as its last checkpoint left it. The one opened before is gone.
    fn open(&self) -> Self::Backend;
}

impl Disk for MemoryDisk {
    type Backend = MemoryBackend;

    fn open(&self) -> MemoryBackend {
        MemoryBackend::open(self.clone())
    }
}

/// Runs every case, each on a new and empty disk.
///
/// # Panics
///
/// When the back end does not keep the contract.
pub fn check<D: Disk>(new: impl Fn() -> D) {
    rows::headers_are_found_by_hash_and_link(&mut new().open());
    rows::a_block_gets_consecutive_rows(&mut new().open());
    rows::places_of_many_transactions(&new());
    rows::every_row_of_a_txid_is_a_candidate(&mut new().open());
    rows::every_spender_is_a_candidate(&mut new().open());
    rows::every_push_is_a_candidate(&mut new().open());
    saved::chains_are_cut_and_pushed(&new());
    saved::states_are_replaced(&new());
    saved::filters_are_kept(&new());
    rows::a_reader_sees_what_comes_later(&mut new().open());
    saved::opening_gives_the_last_checkpoint(&new());
    saved::a_block_after_reopening_does_not_disturb(&new());
    saved::after_a_rest_nothing_is_asked_for(&new());
    for seed in 0..8 {
        random::walk(&new(), seed);
    }
}

/// Opens a store again, and gives it the rows it asks for, which are those of these blocks. Where a
/// header has several, the last counts.
pub fn open_again<D: Disk>(disk: &D, blocks: &[TestBlock]) -> D::Backend {
    let mut backend = disk.open();
    let mut before = None;
    loop {
        let Unindexed { next, count } = backend.unindexed(2).expect("it can tell");
        assert!(before.is_none_or(|before| count < before), "fewer and fewer");
        before = Some(count);
        let Some(header) = next.first() else { return backend };
        let block = blocks.iter().rev().find(|block| block.header == *header);
        let rows = block.expect("a block that was appended").rows(&backend);
        backend.index_block(rows).expect("it takes rows again");
    }
}

/// Appends `count` headers in a row.
fn append_headers<B: Backend>(backend: &mut B, count: u32) {
    let rows: Vec<_> = (0..count).map(header).collect();
    assert_eq!(backend.append_headers(&rows).expect("it takes headers"), HeaderLink::new(0));
}

fn found(search: impl FnOnce(&mut Vec<Match>) -> crate::backend::Result<()>) -> Vec<(usize, u64)> {
    let mut found = Vec::new();
    search(&mut found).expect("it can be searched");
    found.into_iter().map(|(index, link)| (index, link.to_u64())).collect()
}

/// The candidates that are among the expected rows.
fn kept(rows: Vec<(usize, u64)>, expected: &[(usize, u64)]) -> Vec<(usize, u64)> {
    rows.into_iter().filter(|row| expected.contains(row)).collect()
}
