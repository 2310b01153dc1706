//! The own API over a socket, compared with a plain walk over the bytes of a simulated chain.

mod blocks;
pub(crate) mod client;
mod events;
mod ledger;
mod refusals;
pub(crate) mod rig;
mod scripts;
mod searches;
mod transactions;
mod wholes;
