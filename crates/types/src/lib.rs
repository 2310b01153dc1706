//! Chain types.

#![forbid(unsafe_code)]
