//! The storage seam from outside, as one program: each module below is linked once, together.
//!
//! | file | what is tested |
//! |---|---|
//! | `batch_reader.rs` | batches of reads against the bytes written, by ring and by `pread` |
//! | `bit_rot.rs` | a flipped bit anywhere is an error or harmless, never other data |
//! | `crash_faults.rs` | crashes and failed calls at every operation of a segmented log |
//! | `crash_logs.rs` | crashes of logs under random operations, against a model |
//! | `missing_sync.rs` | the test storage finds every sync that a program leaves out |
//! | `process.rs` | what takes a second process: a lock, a file cut under its map, a sandbox |

mod batch_reader;
mod bit_rot;
mod crash_faults;
mod crash_logs;
mod missing_sync;
mod process;
