//! What only the inside can arrange: runs that are late, threads that are held up.

mod late;
mod threads;
