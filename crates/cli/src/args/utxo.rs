//! Arguments of `varve utxo`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use varve::{Height, Outpoint, SetHash};

use super::value::height;

/// Commands on the unspent outputs.
#[derive(Debug, Subcommand)]
pub(crate) enum Utxo {
    /// Show one unspent output
    #[command(after_help = "\
Examples:
  varve utxo get 0e3e2357e806b6cdb1f70b54c3a3a17b6714ee1f0e68bebb44a74b1efd512098:0
  varve utxo get TXID:VOUT --datadir data --json")]
    Get {
        /// The output: its transaction and number
        #[arg(value_name = "TXID:VOUT")]
        outpoint: Outpoint,
    },

    /// Count all unspent outputs and hash them, as Bitcoin Core's gettxoutsetinfo does
    #[command(after_help = "\
Examples:
  varve utxo stats
  varve utxo stats --hash muhash --json
  varve utxo stats --hash none              # counts alone: the quickest
  varve utxo stats --at 800000              # as it was at that height")]
    Stats {
        /// The hash of the whole set
        ///
        /// [default: hash_serialized_3, or muhash with --at]
        #[arg(long, value_enum)]
        hash: Option<HashKind>,

        /// The set as it was at this height of the confirmed chain
        #[arg(long, value_name = "HEIGHT", value_parser = height)]
        at: Option<Height>,
    },

    /// Write all unspent outputs to a file that Bitcoin Core's loadtxoutset takes
    #[command(after_help = "\
Examples:
  varve utxo export utxo.dat
  varve utxo export utxo.dat --network signet --datadir data
  varve utxo export - | zstd > utxo.dat.zst

The file appears under its name when it is complete. The summary goes to standard output, or to
standard error when the outputs themselves go to standard output.")]
    Export {
        /// The file to write, which must not exist; `-` for standard output
        file: PathBuf,
    },

    /// Fill an empty data directory from a file that Bitcoin Core's dumptxoutset wrote
    #[command(after_help = "\
Examples:
  varve utxo import utxo-935000.dat
  varve utxo import utxo.dat --network regtest --height 206 --datadir data

The file names its base block by hash alone. The heights and set hashes of the bases that Bitcoin
Core 31 knows are built in, and the hash is checked; for any other pass --height, and compare what
`varve utxo stats` says with a hash that you trust.")]
    Import {
        /// The file to read
        file: PathBuf,

        /// The height of the base block
        #[arg(long, value_name = "HEIGHT", value_parser = height)]
        height: Option<Height>,
    },
}

/// The hashes of a set, by the names that Core gives them.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum HashKind {
    /// Of all outputs in any order; uses all cores
    Muhash,
    /// Of all outputs in order; one core
    #[value(name = "hash_serialized_3")]
    HashSerialized3,
    /// None
    None,
}

impl From<HashKind> for SetHash {
    fn from(kind: HashKind) -> Self {
        match kind {
            HashKind::Muhash => Self::Muhash,
            HashKind::HashSerialized3 => Self::HashSerialized3,
            HashKind::None => Self::None,
        }
    }
}
