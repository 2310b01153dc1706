//! One module a command.

pub(crate) mod demo;
pub(crate) mod sim;
pub(crate) mod utxo;
