//! The rivals, each tuned as an expert would.

pub(crate) mod coin_cache;
pub(crate) mod fjall;
pub(crate) mod inline_coin;
pub(crate) mod lmdb;
pub(crate) mod map;
pub(crate) mod rocksdb;
