//! The library as an embedding program sees it.

mod chain;
mod folders;
mod reads;
mod sets;
mod syncs;
