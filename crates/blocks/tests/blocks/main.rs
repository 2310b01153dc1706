//! The block store from outside: real blocks, and readers beside a writer.

mod real_blocks;
mod threads;
