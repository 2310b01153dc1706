//! The servers' crate: the one library crate that knows JSON.
//!
//! Today it has the JSON answers of the command ([`json`]), which the servers (Electrum, Esplora
//! REST, Conduit REST, the explorer) will share; the servers themselves are to come.
//!
//! Must not know: file formats, any engine below the library `varve`. Layer 4.

#![forbid(unsafe_code)]

pub mod json;
