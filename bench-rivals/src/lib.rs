//! Benchmarks against rivals that are slow to build (RocksDB, LMDB, Bitcoin Core's kernel).
//!
//! Kept apart from `bench` so that nobody builds a C++ database for nothing; not among the default
//! members, not in CI. An empty room today: the first rivals arrive with the unspent set.

#![forbid(unsafe_code)]
