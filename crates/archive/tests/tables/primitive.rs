//! The structures that tables of the history are made of.

mod life;
mod pages;
mod seed_examples;
mod snapshot;
mod threads;
