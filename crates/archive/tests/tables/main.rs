//! The parts of the archive, each against a plain model: primitives, search tables, script history.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::cast_possible_truncation, reason = "numbers of tests are small")]

mod history;
mod primitive;
mod search;
