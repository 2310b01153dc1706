//! Transactions that wait for a block.
//!
//! The durable half is a store of records (`varve_records`): unmined transactions, and the outputs
//! of confirmed ones that they spend, imported when first spent. On top of it, in memory, the graph
//! of the unconfirmed, who spends what, the order of arrival and of fee rates, and the rows by
//! which scripts and pushed items find them.
//!
//! ```text
//!  arrivals ─► admission ─┐                        ┌─► readers hold a Version
//!  blocks ───► blocks ────┼─► Draft ─► Ledger ─────┤
//!  expiry ───► eviction ──┘   next     records     └─► events ─► unlock
//!                             version  (locked)
//! ```
//!
//! One writer makes [`Version`]s out of one another: persistent maps, so a version costs what
//! changed, readers never wait, and a step that fails is dropped. The node publishes a version
//! together with the tip that it belongs to.
//!
//! | file | is |
//! |---|---|
//! | `pool`, `blocks`, `restart` | the writer: arrivals and expiry, moves of the tip, reload |
//! | `admission`, `rules`, `policy`, `reject`, `trial` | whether a transaction may come in |
//! | `draft`, `ledger` | a step on its way; what it means for the records |
//! | `version`, `entry`, `rows`, `cow_map` | one moment, and what it is made of |
//! | `query`, `histogram`, `estimate`, `fee_rate` | what can be asked |
//! | `eviction`, `orphanage`, `order` | who leaves, who waits, who comes first |
//! | `chain`, `event`, `feed` | what it is given, tells, and how it follows a node's mempool |
//!
//! Why it is so, what it costs and how the node drives it: `docs/adr/0021-mempool.md`.

mod admission;
mod blocks;
mod chain;
mod cow_map;
mod draft;
mod entry;
mod estimate;
mod event;
mod eviction;
mod fee_rate;
mod feed;
mod histogram;
mod ledger;
mod order;
mod orphanage;
mod policy;
mod pool;
mod query;
mod reject;
mod restart;
mod rows;
mod rules;
#[cfg(test)]
mod tests;
mod trial;
mod version;

pub use chain::{Chain, ChainBlock, ChainChange, ChainError, Moment, Tip};
pub use entry::Entry;
pub use event::{Event, Removal, Sink};
pub use fee_rate::{FeeRate, Sum};
pub use feed::{Feed, FeedActions, FeedChange, FeedEvent, Listing};
pub use histogram::FeeBin;
pub use policy::{Judge, Policy};
pub use pool::{Mempool, MempoolParts, Verdict};
pub use query::{HistoryItem, PushRow, ScriptDelta, ScriptMove, SpentBy, Totals, UnspentOutput};
pub use reject::{MempoolError, Reject, ReplaceError};
pub use restart::Reloaded;
pub use rows::Side;
pub use rules::LooseVerifier;
pub use trial::Acceptance;
pub use version::Version;
