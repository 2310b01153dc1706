//! Consensus: the rules of a Bitcoin-family chain as pure functions.
//!
//! Home of `UnspentOutputsView` (do these prevouts exist unspent, and what do they hold), of the
//! block, header, transaction and spending rules over it, and of the `ScriptVerifier` trait.
//!
//! Must not know: files, caches, clocks, any engine. Layer 1, above `varve-types` only.
//!
//! An empty room today: the rules arrive together with the unspent set.

#![forbid(unsafe_code)]
