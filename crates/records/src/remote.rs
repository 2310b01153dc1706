//! The working set of engines behind a network.
//!
//! The rules ask for one thing after the other, and a network wants to be asked for everything at
//! once. So a batch is done in rounds:
//!
//! 1. `plan` says what the operations will look at, as far as that is known: the records that they
//!    name, their slots. The engine loads it with one request a kind.
//! 2. Some operations follow what they find: pruning looks at the parents that the inputs name and
//!    at the children that the slots name. So `plan` is asked again until it wants nothing more.
//! 3. The rules run on what was loaded. Should they ask for something that is not there, because an
//!    operation before in the batch made it needed, the operation stops before it has written
//!    anything; the engine loads it and begins the operation again.
//! 4. What the rules changed is written: [`Set::changes`].
//!
//! ```text
//!  operations ─► plan ─► Wanted ─► engine loads ─► Set ─► rules ─► outcomes
//!                 ▲                                 │         └──► Changes ─► engine writes
//!                 └──── inputs, spenders ───────────┘
//! ```
//!
//! A record is kept as in the embedded engine: a state with the first eight slots, a body, and
//! chunks of eight further slots each.

mod changes;
mod plan;
mod set;

pub(crate) use changes::Changes;
pub(crate) use set::{Missing, Set, Wanted};
