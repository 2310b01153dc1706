//! The archive against a plain walk of the blocks: real chains, simulated ones, random
//! reorganisations, on every back end.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may panic")]

mod back_ends;
mod chains;
mod confirmable;
mod crash;
mod large;
mod limits;
mod load;
mod model;
mod noise;
mod random;
mod rig;
mod searches;
mod simulated;
mod versions;
