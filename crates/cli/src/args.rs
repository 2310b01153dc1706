//! What can be typed. Every command, flag and default is here and nowhere else.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use varve_sim::Profile;

/// A chain database: history, unspent outputs, live transactions and search in one store.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
pub(crate) struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,

    /// Print one JSON object on standard output and nothing else
    #[arg(long, global = true)]
    pub json: bool,
}

/// The commands that exist today.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Simulate a chain, read it back, check it against the expected answers, and sum it up
    #[command(after_help = "\
Examples:
  varve demo
  varve demo --blocks 500 --keep chain")]
    Demo(Demo),

    /// Write a simulated chain: block files and the answers expected of a database that reads them
    #[command(after_help = "\
Examples:
  varve sim --out chain --blocks 500 --seed 7
  varve sim --out chain --blocks 500 --seed 7 --reorgs 6 --xor
  varve sim --out signed --blocks 150 --signed 100     # a real bitcoind takes it with -reindex
  varve sim --out big --blocks 120 --profile bsv")]
    Sim(Sim),
}

/// Arguments of `varve demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct Demo {
    /// Blocks above genesis
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub blocks: u32,

    /// Seed of the chain
    #[arg(long, value_name = "S", default_value_t = 7)]
    pub seed: u64,

    /// Keep the chain in this folder instead of a temporary one
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
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

    /// What the chain looks like: mainnet (3,300 transactions a block), dense (small transactions,
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
