//! One module for each command.

pub(crate) mod address;
pub(crate) mod block;
pub(crate) mod compact;
pub(crate) mod demo;
pub(crate) mod index;
pub(crate) mod maintain;
pub(crate) mod proof;
pub(crate) mod records;
pub(crate) mod sim;
pub(crate) mod spender;
pub(crate) mod status;
pub(crate) mod sync;
pub(crate) mod tx;
pub(crate) mod utxo;
pub(crate) mod verdict;
