//! The durable engine: an own log and an index in memory.

mod checkpoint;
mod entry;
mod group;
mod index;
mod key;
mod log;
