//! The arguments of `varve demo` and `varve sim`.

use std::path::PathBuf;

use varve_sim::Profile;

/// Arguments of `varve demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct Demo {
    /// Blocks above genesis
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub blocks: u32,

    /// Seed of the chain
    #[arg(long, value_name = "S", default_value_t = 7)]
    pub seed: u64,

    /// Keep the chain in this folder, and the database in its subfolder `data`
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,

    /// Mine a few blocks, ask the servers for them, print a summary and end; so it is without a
    /// terminal
    #[arg(long)]
    pub once: bool,

    /// Seconds between blocks
    #[arg(long, value_name = "SECONDS", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=600))]
    pub interval: u32,

    /// Where REST and the explorer are served [default: 127.0.0.1:3000, or any free port]
    #[arg(long, value_name = "HOST:PORT")]
    pub http: Option<String>,

    /// Where the Electrum protocol is served [default: 127.0.0.1:50001, or any free port]
    #[arg(long, value_name = "HOST:PORT")]
    pub electrum: Option<String>,
}

/// Arguments of `varve sim`.
#[derive(Debug, clap::Args)]
pub(crate) struct Sim {
    /// Folder to write to; it must not hold a chain yet
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,

    /// Blocks above genesis on the best chain
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub blocks: u32,

    /// Seed: the same seed gives the same bytes on every machine
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,

    /// The kind of chain: mainnet (3,300 transactions a block), dense (small transactions,
    /// many coins), bsv (large transactions, big data outputs)
    #[arg(long, default_value = "mainnet")]
    pub profile: Profile,

    /// Percent of inputs that carry real signatures; the rest are dummies of real size
    #[arg(long, value_name = "PERCENT", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(0..=100))]
    pub signed: u32,

    /// Stale branches up to DEPTH blocks deep, with moved and double-spent transactions
    #[arg(long, value_name = "DEPTH", num_args = 0..=1, default_missing_value = "6",
          value_parser = clap::value_parser!(u32).range(1..=99))]
    pub reorgs: Option<u32>,

    /// Mask the block files with a key, as Bitcoin Core does since version 28
    #[arg(long)]
    pub xor: bool,
}
