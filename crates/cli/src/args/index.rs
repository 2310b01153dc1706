//! Arguments of `varve index`.

use clap::Subcommand;
use varve::{IndexSet, PushdataRule};

/// Commands on the optional indexes.
#[derive(Debug, Subcommand)]
pub(crate) enum Indexes {
    /// Show every index, whether it is kept, and how far it goes
    #[command(after_help = "\
Examples:
  varve index list
  varve index list --network regtest --datadir data --json")]
    List,

    /// Keep these indexes from now on, and build them
    #[command(after_help = "\
Examples:
  varve index add filter
  varve index add filter,stats --datadir data
  varve index add pushdata --pushdata-rule conduit")]
    Add {
        /// Names with commas between them
        #[arg(value_name = "NAMES")]
        names: IndexSet,

        /// Which pushed items the index `pushdata` has: `documented` or `conduit`
        ///
        /// [default: unchanged; documented in a new folder]
        #[arg(long, value_name = "RULE")]
        pushdata_rule: Option<PushdataRule>,
    },

    /// Remove these indexes and what they hold
    #[command(after_help = "\
Examples:
  varve index drop stats
  varve index drop filter,stats --datadir data")]
    Drop {
        /// Names with commas between them
        #[arg(value_name = "NAMES")]
        names: IndexSet,
    },
}
