//! The engine as a whole, beside the memory engine.

mod clean;
mod cold;
mod cost;
mod crash;
mod damage;
mod faults;
mod flying;
mod gate;
mod random;
mod short;
mod size;
mod threads;
mod twin;
