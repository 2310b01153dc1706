//! Unconfirmed transactions beside a chain that moves: tip and mempool of every snapshot belong
//! together, whatever happens.
//!
//! | module | what |
//! |---|---|
//! | `stage` | a node in one thread whose source acts when there is nothing left to do |
//! | `model` | blocks and transactions in plain lists, and what the mempool must be |
//! | `random` | blocks, branches, arrivals and restarts against the model; power cuts |
//! | `desk` | transactions that other threads hand in |
//! | `hostile` | peers that flood |

mod desk;
mod hostile;
mod model;
mod random;
mod stage;
