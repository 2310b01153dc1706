//! Tests of the window as a whole. `model` is the store they all use: a window with runs that are
//! plain maps, beside the set that it should be.

mod defects;
mod hostile;
pub(super) mod model;
mod random;
mod stress;
mod threads;
