//! Script history: what every script was paid, has spent and still holds.
//!
//! One table answers for a script, by its hash: its transactions in chain order from either end,
//! exact balance and counts without a walk, and its unspent outputs without its history.
//!
//! ```text
//!  changes of a block ─► Batch ─► HistoryTable::connect ─► panes in memory
//!     (any thread)                                           │ flush, when they are deep
//!                                                            ▼
//!                          HistoryView  ◄────────────────  runs ──┐
//!                                                            ▲    │ merge, eight at a time
//!                                                            └────┘
//! ```
//!
//! | you want | take |
//! |---|---|
//! | the rows of a block, prepared beside the writer | [`Batch`] |
//! | to connect and disconnect blocks | [`HistoryTable`] |
//! | all answers of one moment | [`HistoryReader::view`] |
//!
//! - **The table is a sum of changes** (`row`): what is spent or disconnected is a row of
//!   weight −1 that meets its counterpart in a merge or in a query. So nothing is looked up while a
//!   chain is synced, and every answer is exact after any reorganisation.
//! - **Sums lie at the front of a script's rows** in every run, so a balance costs a page a run.
//! - **Memory is bounded** by one number ([`HistoryOptions::memory`]).
//! - **No log**: the chain is the journal, and the table has its own watermark (`table`).
//!
//! `docs/adr/0019-script-history.md` has the reasons and the figures, `docs/format/history.md` the
//! bytes.

mod audit;
mod batch;
mod changes;
mod codec;
mod combine;
mod error;
mod identity;
mod leaf;
mod leaves;
mod options;
mod pane;
mod row;
mod scan;
mod sums;
mod table;
mod varint;
mod version;
mod view;

pub use audit::Audit;
pub use batch::{Batch, Negation};
pub use changes::{BlockChanges, Funded, Spent, is_indexed};
pub use error::{HistoryError, Result};
pub use identity::HistoryKeys;
pub use options::HistoryOptions;
pub use pane::Mark;
pub use sums::Sums;
pub use table::{Connected, Disconnected, HistorySize, HistoryTable};
pub use view::{HistoryPage, HistoryReader, HistoryView, Nearer, Unspent, UnspentCursor};
