//! The history table against a brute-force model of the chain: by chance, through reorganisations,
//! with power cuts, on failing and rotten disks; and its figures.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::cast_possible_truncation, reason = "numbers of tests are small")]

mod busy;
mod crash;
mod life;
mod measure;
mod rig;
