//! Byte formats shared with Teranode: what a record consists of can be exchanged with its nodes.
//!
//! `docs/format/records-exchange.md` draws every format. How an engine lays records out on disk is
//! its own affair.

pub use crate::inpoints::TxInpoints;
pub use crate::meta::{Meta, MetaFlags};
pub use crate::utxo_wrapper::{
    UtxoWrapper, WrappedOutput, WrappedOutputs, WrapperHead, write_wrapper,
};
