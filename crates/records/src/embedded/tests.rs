//! The engine as a whole, beside the memory engine.

mod budget;
mod clean;
// With weak hashes an operation reads every record that shares its hash: too many to stop at.
#[cfg(not(feature = "weak-hash"))]
mod cold;
mod cost;
mod crash;
mod damage;
mod faults;
mod flying;
#[cfg(not(feature = "weak-hash"))]
mod gate;
#[cfg(not(feature = "weak-hash"))]
mod moved;
mod random;
mod runs;
mod short;
mod size;
mod threads;
mod twin;
