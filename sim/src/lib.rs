//! The chain simulator.

#![forbid(unsafe_code)]
