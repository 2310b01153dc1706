//! What all benchmarks share: a clock that knows when others disturbed it, figures that a child
//! reports to its parent, bars, and profiles.
//!
//! `bench` and `bench-rivals` are two programs, so that nobody builds a C++ database to measure
//! something else. A benchmark starts its own program again for each side, as a child that does one
//! thing by the [`clock`] and reports [`figures`]; it ends with one line a bar ([`ratio`]). Where a
//! bar is missed, a [`profile`] shows what the time went to.

#![forbid(unsafe_code)]

pub mod clock;
pub mod figures;
pub mod profile;
pub mod ratio;
