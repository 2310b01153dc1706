//! The servers: Electrum, Esplora REST, Conduit REST, the explorer page, metrics and limits.
//!
//! The only library crate that knows JSON and HTTP; it owns the wire counterparts of the domain
//! types, which are not serialisable themselves.
//!
//! Must not know: file formats, any engine below `varve-node`. Layer 4.
//!
//! An empty room today.

#![forbid(unsafe_code)]
