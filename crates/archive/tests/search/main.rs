//! Search tables against a plain set of rows: by chance, with power cuts, on failing and rotten
//! disks, and while threads read.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::cast_possible_truncation, reason = "numbers of tests are small")]

mod crash;
mod cursor;
mod damage;
mod life;
mod measure;
mod rig;
mod threads;
