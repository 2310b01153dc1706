//! The command line of `varve records`.

use std::path::PathBuf;

use clap::Subcommand;
use varve::records::Settings;
use varve::records::conflicts::IntentId;
use varve::records::record::BatchSize;
use varve::{Network, Outpoint, Txid};

use super::value::size;

/// Arguments of `varve records`.
#[derive(Debug, clap::Args)]
pub(crate) struct Records {
    #[command(subcommand)]
    pub command: Command,

    #[command(flatten)]
    pub place: Place,
}

/// Where records are kept, and the settings of the store.
#[derive(Debug, clap::Args)]
pub(crate) struct Place {
    /// Where records are kept: `embedded:` (DATADIR/records), `embedded:PATH`, `memory:` (gone at
    /// the end) or `postgres://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME`
    #[arg(long, global = true, value_name = "URL", default_value = "embedded:")]
    pub engine: String,

    /// The height of the tip, if it has changed since the last command
    #[arg(long, global = true, value_name = "HEIGHT",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub height: Option<u32>,

    /// Blocks between the moment a record is no longer needed and its removal; 0 for never
    #[arg(long, global = true, value_name = "BLOCKS",
          default_value_t = Settings::default().retention)]
    pub retention: u32,

    /// Blocks after which an unmined transaction counts as old
    #[arg(long, global = true, value_name = "BLOCKS",
          default_value_t = Settings::default().unmined_retention)]
    pub unmined_retention: u32,

    /// Blocks for which the parents of an old unmined transaction are preserved
    #[arg(long, global = true, value_name = "BLOCKS",
          default_value_t = Settings::default().parent_preservation)]
    pub parent_preservation: u32,

    /// Outputs in one part of a record
    #[arg(long, global = true, value_name = "N", default_value = "20000", value_parser = batch)]
    pub utxo_batch_size: BatchSize,

    /// Transactions longer than this are kept in separate files
    #[arg(long, global = true, value_name = "SIZE", default_value = "1M", value_parser = size)]
    pub external_limit: u64,

    /// Keep every transaction in a separate file
    #[arg(long, global = true)]
    pub externalize_all: bool,
}

impl Place {
    /// The settings of a store of this chain.
    pub(crate) fn settings(&self, network: Network) -> Settings {
        Settings {
            retention: self.retention,
            unmined_retention: self.unmined_retention,
            parent_preservation: self.parent_preservation,
            batch: self.utxo_batch_size,
            external_limit: self.external_limit,
            externalize_all: self.externalize_all,
            ..Settings::new(network)
        }
    }
}

/// Commands on records.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the record of a transaction
    #[command(after_help = "\
Examples:
  varve records get TXID
  varve records get TXID --fields block_ids,utxos --json")]
    Get {
        /// The transaction
        txid: Txid,

        /// Fields by name, with commas between them [default: all]
        #[arg(long, value_name = "NAMES", value_delimiter = ',')]
        fields: Vec<String>,
    },

    /// Freeze unspent outputs
    #[command(after_help = "\
Examples:
  varve records freeze TXID:0 TXID:1")]
    Freeze {
        /// The outputs
        #[arg(value_name = "TXID:VOUT", required = true)]
        outputs: Vec<Outpoint>,
    },

    /// End the freeze of outputs
    #[command(after_help = "\
Examples:
  varve records unfreeze TXID:0")]
    Unfreeze {
        /// The outputs
        #[arg(value_name = "TXID:VOUT", required = true)]
        outputs: Vec<Outpoint>,
    },

    /// Bind a frozen output to another script; it can be spent after 1,000 blocks
    #[command(after_help = "\
Examples:
  varve records reassign TXID:0 --script 76a914…88ac
  varve records reassign TXID:0 --utxo-hash HASH --height 800000")]
    #[command(group = clap::ArgGroup::new("to").required(true))]
    Reassign {
        /// The output
        #[arg(value_name = "TXID:VOUT")]
        output: Outpoint,

        /// The new script, in hex; the value stays
        #[arg(long, value_name = "HEX", group = "to")]
        script: Option<String>,

        /// The hash of the output with its new script
        #[arg(long, value_name = "HASH", group = "to")]
        utxo_hash: Option<String>,
    },

    /// Lock transactions: their outputs cannot be spent
    #[command(after_help = "\
Examples:
  varve records lock TXID")]
    Lock {
        /// The transactions
        #[arg(value_name = "TXID", required = true)]
        txids: Vec<Txid>,
    },

    /// Unlock transactions
    #[command(after_help = "\
Examples:
  varve records unlock TXID")]
    Unlock {
        /// The transactions
        #[arg(value_name = "TXID", required = true)]
        txids: Vec<Txid>,
    },

    /// List the losers of double spends, or what conflicts with one transaction
    #[command(after_help = "\
Examples:
  varve records conflicts
  varve records conflicts TXID --json")]
    Conflicts {
        /// The transaction
        txid: Option<Txid>,
    },

    /// List conflict resolutions that were begun and are not finished
    #[command(after_help = "\
Examples:
  varve records intents --json")]
    Intents,

    /// Try again to finish a conflict resolution
    #[command(after_help = "\
Examples:
  varve records retry ID
  varve records retry ID --ancestor-block-ids 7,8")]
    Retry {
        /// The resolution, as `intents` shows it
        id: IntentId,

        /// Blocks below the one that asked for it, whose transactions cannot lose
        #[arg(long, value_name = "IDS", value_delimiter = ',')]
        ancestor_block_ids: Vec<u32>,
    },

    /// Abandon a conflict resolution: its locks go, and losers so far can still win later
    #[command(after_help = "\
Examples:
  varve records abandon ID")]
    Abandon {
        /// The resolution, as `intents` shows it
        id: IntentId,
    },

    /// Remove the records that are no longer needed
    #[command(after_help = "\
Examples:
  varve records prune --height 800000
  varve records prune --height 800000 --persisted-height 799900")]
    Prune {
        /// The height up to which blocks are kept elsewhere; records that are newer stay
        #[arg(long, value_name = "HEIGHT")]
        persisted_height: Option<u32>,
    },

    /// Execute the operations of a file, one JSON object a line, and print one JSON answer a line
    #[command(after_help = "\
Examples:
  varve records apply operations.jsonl
  producer | varve records apply - --network bsv --datadir data
  varve records apply - --engine memory:

A line is {\"op\": …} with its arguments, an answer {\"ok\": …} or {\"error\": …}. An answer on a
pipe comes as soon as no further line waits; what is answered is durable. docs/records-jsonl.md
lists all operations.")]
    Apply {
        /// The file, or `-` for standard input
        file: PathBuf,
    },

    /// Copy all records to another engine, and compare them
    #[command(after_help = "\
Examples:
  varve records copy --from embedded: --to postgres://varve@db/chain?schema=records
  varve records copy --from embedded:old --to embedded:new --json

The target must be empty. Stop whoever writes to either of them first: a record that changes
meanwhile makes the copy fail.")]
    Copy {
        /// Where the records are, as for --engine
        #[arg(long, value_name = "URL")]
        from: String,

        /// Where they go, as for --engine
        #[arg(long, value_name = "URL")]
        to: String,
    },

    /// Create and spend transactions, and print the rate
    #[command(after_help = "\
Examples:
  varve records bench
  varve records bench --transactions 200000 --batch 1000 --json
  varve records bench --engine postgres://varve@db/chain?schema=bench

Without --datadir it runs in a new folder below the current one, which is removed afterwards.")]
    Bench {
        /// Transactions to create; half of them spend the other half
        #[arg(long, value_name = "N", default_value_t = 100_000,
              value_parser = clap::value_parser!(u32).range(2..))]
        transactions: u32,

        /// Transactions in one batch
        #[arg(long, value_name = "N", default_value_t = 1_000,
              value_parser = clap::value_parser!(u32).range(1..))]
        batch: u32,
    },
}

fn batch(text: &str) -> Result<BatchSize, String> {
    let size = text.parse().ok().and_then(BatchSize::new);
    size.ok_or_else(|| "write a number above 0".to_owned())
}
