//! Feed.
