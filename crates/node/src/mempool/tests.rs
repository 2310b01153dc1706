//! The mempool against a small world: a chain in memory, records in memory, and a plain model.

mod arrivals;
mod blocks;
mod conduit;
mod crash;
mod model;
mod queries;
mod random;
mod size;
mod world;
