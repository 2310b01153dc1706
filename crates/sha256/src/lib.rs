//! SHA-256 of many messages at once.
