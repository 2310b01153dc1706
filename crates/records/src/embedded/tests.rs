//! The engine as a whole, beside the memory engine.

mod clean;
mod crash;
mod damage;
mod faults;
mod flying;
mod random;
mod size;
mod threads;
mod twin;
