//! Live transactions, after Teranode: one record a transaction, from creation to pruning.

#![forbid(unsafe_code)]
#![allow(dead_code)]
pub mod embedded;
