//! The command line: every command, flag and default.

mod index;
mod limits;
mod proof;
pub(crate) mod records;
mod serve;
mod simulate;
mod sync;
mod utxo;
mod value;

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use clap_complete::Shell;
use varve::{BlockHash, BlockId, Height, Network, Node, Outpoint, Txid};

pub(crate) use self::index::Indexes;
pub(crate) use self::proof::{Proof, ProofFormat};
pub(crate) use self::serve::{LogFormat, LogLevel, LogOptions, Serve};
pub(crate) use self::simulate::{Demo, Sim};
pub(crate) use self::sync::{ChainOptions, Sync};
pub(crate) use self::utxo::Utxo;
use self::value::{height, limit, memory};

/// A chain database: history, unspent outputs, live transactions and search in one store.
#[derive(Debug, Parser)]
#[command(name = "varve", version, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub command: Command,

    #[command(flatten)]
    pub global: Global,
}

/// Options that are accepted after any command.
#[derive(Debug, clap::Args)]
pub(crate) struct Global {
    /// The chain: mainnet, testnet3, testnet4, signet, regtest, bsv or bsv-regtest
    #[arg(long, global = true, value_name = "NETWORK", default_value = "mainnet")]
    pub network: Network,

    /// The folder of the database [default: ~/.varve/NETWORK]
    #[arg(long, global = true, value_name = "DIR")]
    pub datadir: Option<PathBuf>,

    /// A file of options in TOML [default: varve.toml in the folder of the database]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Print one JSON object on standard output and nothing else
    #[arg(long, global = true)]
    pub json: bool,

    /// Memory of the whole process, page cache aside: bytes, or with K, M, G
    #[arg(long, global = true, value_name = "SIZE", default_value = "2G", value_parser = memory)]
    pub memory: u64,

    /// The node that this process holds, when the command runs for another process.
    #[arg(skip)]
    pub held: Option<Node>,

    /// Where relative paths start, when the command runs for another process.
    #[arg(skip)]
    pub directory: Option<PathBuf>,
}

/// The commands that are built.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Simulate a chain, sync it, check it, serve it and mine on: the place to start
    #[command(after_help = "\
Examples:
  varve demo                          # until Ctrl-C; open the address that it prints
  varve demo --once                   # ends by itself, as it does without a terminal
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

    /// Take blocks from a node's files, another node or a pipe, check them and store them
    #[command(after_help = "\
Examples:
  varve sync --from ~/.bitcoin
  varve sync --from chain --network regtest --datadir data --verify scripts
  cat blk*.dat | varve sync --from -
  varve sync --peer 127.0.0.1:8333 --follow
  varve sync --rpc http://user:password@127.0.0.1:8332 --stop-height 800000
  varve sync --from ~/.bitcoin --prune 50GB
  varve sync --from ~/.bitcoin --index filter,stats")]
    Sync(Sync),

    /// Sync, follow and serve a chain: wallets, explorers and programs ask over the network
    #[command(after_help = "\
Examples:
  varve serve --rpc http://user:password@127.0.0.1:8332
  varve serve --from ~/.bitcoin --http 0.0.0.0:3000
  varve serve --network regtest --datadir data               # what is there, without a source
  varve serve --electrum-tls 0.0.0.0:50002 --cert cert.pem --key key.pem --peer 127.0.0.1

Every option may also be in a configuration file (`http = \"127.0.0.1:3000\"`) or in the environment
(VARVE_HTTP). A flag goes first, then the environment, then the file.")]
    Serve(Box<Serve>),

    /// Show which chain is stored, how far it goes, and what the stores hold
    #[command(after_help = "\
Examples:
  varve status
  varve status --network regtest --datadir data --json")]
    Status,

    /// Read every store, check every checksum, and compare the stores with one another
    #[command(after_help = "\
Examples:
  varve verify
  varve verify --network regtest --datadir data --json")]
    Verify,

    /// Rebuild everything that derives from blocks
    #[command(after_help = "\
Examples:
  varve repair
  varve repair --network regtest --datadir data")]
    Repair,

    /// Mark a block as invalid: the chain leaves it, and no sync follows it until it is
    /// reconsidered
    #[command(after_help = "\
Examples:
  varve invalidate 00000000000000000000ccebd6d74d9194d8dcdc1d177c478e094bfad51ba5ac
  varve invalidate HASH --network regtest --datadir data --json")]
    Invalidate {
        /// The block
        #[arg(value_name = "HASH")]
        block: BlockHash,
    },

    /// Remove the invalid marks of a block, its ancestors and its descendants, and check them again
    #[command(after_help = "\
Examples:
  varve reconsider 00000000000000000000ccebd6d74d9194d8dcdc1d177c478e094bfad51ba5ac
  varve reconsider HASH --network regtest --datadir data --json")]
    Reconsider {
        /// The block
        #[arg(value_name = "HASH")]
        block: BlockHash,
    },

    /// Show a transaction: what it spends and pays, its fee, and the blocks that hold it
    #[command(after_help = "\
Examples:
  varve tx 0e3e2357e806b6cdb1f70b54c3a3a17b6714ee1f0e68bebb44a74b1efd512098
  varve tx TXID --network regtest --datadir data --json      # with its bytes")]
    Tx {
        /// The transaction
        txid: Txid,
    },

    /// Show a block
    #[command(after_help = "\
Examples:
  varve block 0
  varve block 000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f
  varve block 124 --network regtest --datadir data --json")]
    Block {
        /// Its hash, or a height of the confirmed chain
        #[arg(value_name = "HASH|HEIGHT")]
        block: BlockId,
    },

    /// Show which input of the confirmed chain spends an output
    #[command(after_help = "\
Examples:
  varve spender 0437cd7f8525ceed2324359c2d0ba26006d92d856a9c20fa0241106ee5a597c9:0
  varve spender TXID:VOUT --network regtest --datadir data --json")]
    Spender {
        /// The output: its transaction and number
        #[arg(value_name = "TXID:VOUT")]
        outpoint: Outpoint,
    },

    /// Prove that a transaction is in a block, on whatever branch
    #[command(after_help = "\
Examples:
  varve proof 0e3e2357e806b6cdb1f70b54c3a3a17b6714ee1f0e68bebb44a74b1efd512098 --json
  varve proof TXID --format tsc                     # with the binary form
  varve proof TXID --format tsc --target header --full-tx --datadir data --json")]
    Proof(Proof),

    /// List, add and drop the optional indexes
    #[command(subcommand)]
    Index(Indexes),

    /// Compress old blocks and merge search tables, to save space
    #[command(after_help = "\
Examples:
  varve compact
  varve compact --network regtest --datadir data --json

Every file of blocks but the newest is compressed. Interrupt it at any time, and run it again.")]
    Compact,

    /// Show the balance, history and unspent outputs of an address or a script
    #[command(after_help = "\
Examples:
  varve address 1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa
  varve address SCRIPTHASH --at 700000 --limit 500 --json
  varve address SCRIPTHASH --cursor CURSOR --json            # the next page

The folder must keep the index `script`: varve sync --index script")]
    Address(Address),

    /// Show the unconfirmed transactions: counts, fees, rates and those that pay best
    #[command(after_help = "\
Examples:
  varve mempool
  varve mempool --network regtest --datadir data --json

A sync with --follow takes them from --peer or --rpc once it has caught up, and leaves them in the \
folder.")]
    Mempool,

    /// Look up, count, export or import the unspent outputs of a data directory
    #[command(subcommand)]
    Utxo(Utxo),

    /// Look up, freeze, lock, prune and fill the records of live transactions
    Records(records::Records),

    /// Print a script that completes commands and options in a shell
    #[command(after_help = "\
Examples:
  varve completions bash > /etc/bash_completion.d/varve
  varve completions zsh > ~/.zfunc/_varve")]
    Completions {
        /// The shell
        shell: Shell,
    },

    /// Print the manual page, or write one for each command into a folder
    #[command(after_help = "\
Examples:
  varve man | man -l -
  varve man --out /usr/local/share/man/man1")]
    Man {
        /// Folder for the pages of all commands
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

/// What a command needs of the folder, which decides whether the process that holds the folder can
/// run it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Another folder, or this one alone: it does not run beside another process.
    Alone,
    /// Snapshots.
    Snapshots,
    /// The writers, which a sync has for as long as it runs.
    Writers,
}

impl Command {
    /// What the command needs of the folder.
    pub(crate) const fn needs(&self) -> Needs {
        match self {
            Self::Demo(_)
            | Self::Sim(_)
            | Self::Sync(_)
            | Self::Serve(_)
            | Self::Repair
            | Self::Index(Indexes::Add { .. } | Indexes::Drop { .. })
            | Self::Utxo(Utxo::Import { .. })
            | Self::Records(_)
            | Self::Completions { .. }
            | Self::Man { .. } => Needs::Alone,
            Self::Status
            | Self::Mempool
            | Self::Tx { .. }
            | Self::Block { .. }
            | Self::Spender { .. }
            | Self::Proof(_)
            | Self::Index(Indexes::List)
            | Self::Address(_)
            | Self::Utxo(Utxo::Get { .. } | Utxo::Stats { at: None, .. } | Utxo::Export { .. }) => {
                Needs::Snapshots
            }
            Self::Verify
            | Self::Compact
            | Self::Invalidate { .. }
            | Self::Reconsider { .. }
            | Self::Utxo(Utxo::Stats { at: Some(_), .. }) => Needs::Writers,
        }
    }
}

/// Arguments of `varve address`.
#[derive(Debug, clap::Args)]
pub(crate) struct Address {
    /// An address of the network, or a script hash as Electrum writes it
    #[arg(value_name = "ADDR|SCRIPTHASH")]
    pub script: String,

    /// As of this height of the confirmed chain
    #[arg(long, value_name = "HEIGHT", value_parser = height)]
    pub at: Option<Height>,

    /// Where the page begins: the cursor of the page before
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<u64>,

    /// Transactions on a page
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = limit)]
    pub limit: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory as _;
        Args::command().debug_assert();
    }
}
