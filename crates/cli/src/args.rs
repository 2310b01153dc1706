//! The command line: every command, flag and default.

mod index;
mod proof;
pub(crate) mod records;
mod simulate;

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use varve::{
    AssumeValid, BlockHash, BlockId, Height, IndexSet, Network, Outpoint, PeerAddress, Prune,
    RpcUrl, SetHash, Txid,
};

pub(crate) use self::index::Indexes;
pub(crate) use self::proof::{Proof, ProofFormat};
pub(crate) use self::simulate::{Demo, Sim};

/// A chain database: history, unspent outputs, live transactions and search in one store.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
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

    /// Print one JSON object on standard output and nothing else
    #[arg(long, global = true)]
    pub json: bool,

    /// Memory of the whole process, page cache aside: bytes, or with K, M, G
    #[arg(long, global = true, value_name = "SIZE", default_value = "2G", value_parser = memory)]
    pub memory: u64,
}

/// The commands that are built.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Simulate a chain, sync it, check it against the expected answers, and print a summary
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

    /// Look up, count, export or import the unspent outputs of a data directory
    #[command(subcommand)]
    Utxo(Utxo),

    /// Look up, freeze, lock, prune and fill the records of live transactions
    Records(records::Records),
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

/// Arguments of `varve sync`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("source").required(true))]
pub(crate) struct Sync {
    /// A folder of blk*.dat files, a folder with `blocks/` in it, one block file, a named pipe, or
    /// `-` for standard input
    #[arg(long, value_name = "PATH", group = "source")]
    pub from: Option<PathBuf>,

    /// A node to fetch from; may be given more than once
    #[arg(long = "peer", value_name = "HOST:PORT", group = "source")]
    pub peers: Vec<PeerAddress>,

    /// The REST or RPC interface of a node: http://user:password@host:port
    #[arg(long, value_name = "URL", group = "source")]
    pub rpc: Option<RpcUrl>,

    /// Do not go above this height
    #[arg(long, value_name = "HEIGHT", value_parser = height)]
    pub stop_height: Option<Height>,

    /// What is checked of each block besides its form
    ///
    /// [default: scripts with --peer; spends with --from and --rpc, whose node has checked them]
    #[arg(long, value_enum)]
    pub verify: Option<VerifyKind>,

    /// Skip the scripts of this block and of those below it, once it is on the best chain and two
    /// weeks old; 0 checks all
    ///
    /// [default: with --peer a block that is built in for each network, else 0]
    #[arg(long, value_name = "HASH|0", value_parser = assume_valid)]
    pub assume_valid: Option<AssumeValid>,

    /// Keep running and take new blocks as they come
    #[arg(long)]
    pub follow: bool,

    /// Keep about SIZE bytes of the youngest blocks, and always the last 4,096; `off` keeps all
    ///
    /// [default: unchanged; off in a new folder]
    #[arg(long, value_name = "SIZE|off", value_parser = prune)]
    pub prune: Option<Prune>,

    /// The optional indexes: `none`, `all`, or some of filter,script,stats
    ///
    /// [default: unchanged; none in a new folder]
    #[arg(long, value_name = "LIST")]
    pub index: Option<IndexSet>,
}

/// How much of a block is checked.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum VerifyKind {
    /// That it may spend what it spends
    Spends,
    /// All scripts as well
    Scripts,
}

impl From<VerifyKind> for varve::Verify {
    fn from(kind: VerifyKind) -> Self {
        match kind {
            VerifyKind::Spends => Self::Spends,
            VerifyKind::Scripts => Self::Scripts,
        }
    }
}

/// The most transactions on a page.
const LIMIT_MAX: usize = 10_000;

fn limit(text: &str) -> Result<usize, String> {
    let limit = text.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
    limit.ok_or_else(|| format!("write a number from 1 to {LIMIT_MAX}"))
}

fn height(text: &str) -> Result<Height, std::num::ParseIntError> {
    text.parse().map(Height::new)
}

fn assume_valid(text: &str) -> Result<AssumeValid, String> {
    match text.parse() {
        _ if text == "0" => Ok(AssumeValid::Off),
        Ok(BlockHash::ZERO) => Ok(AssumeValid::Off),
        Ok(hash) => Ok(AssumeValid::Block(hash)),
        Err(_) => Err("write a block hash of 64 digits, or 0 to check all scripts".to_owned()),
    }
}

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

/// A number of bytes: `4096`, `512M`, `2G`, `2GiB`.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let unit = text.get(digits.len()..).unwrap_or_default().to_ascii_lowercase();
    let shift = match unit.trim_end_matches("ib").trim_end_matches('b') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err("write a number of bytes, or one with K, M or G: 512M".to_owned()),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    number.ok_or_else(|| "write a number of bytes, or one with K, M or G: 512M".to_owned())
}

/// A budget of memory, which is not zero.
fn memory(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err("write a size above 0, such as 512M, or leave it out".into()),
        bytes => Ok(bytes),
    }
}

/// How much of the blocks to keep.
fn prune(text: &str) -> Result<Prune, String> {
    match text {
        "off" => Ok(Prune::Off),
        _ => size(text).map(Prune::To),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let sizes = ["0", "4096", "3k", "512M", "2G", "2GiB", "1gb", "1T"].map(size);
        let bytes = [0, 4096, 3 << 10, 512 << 20, 2 << 30, 2 << 30, 1 << 30, 1 << 40];
        assert_eq!(sizes, bytes.map(Ok));
        for wrong in ["", "M", "1.5G", "-1", "99999999999G", "1X", "1 G"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn assumed_blocks() {
        let hash: BlockHash = "1f".repeat(32).parse().unwrap();
        assert_eq!(assume_valid(&"1f".repeat(32)), Ok(AssumeValid::Block(hash)));
        assert_eq!(assume_valid("0"), Ok(AssumeValid::Off));
        assert_eq!(assume_valid(&"0".repeat(64)), Ok(AssumeValid::Off));
        for wrong in ["", "00", "1", "off", &"f".repeat(63)] {
            assert!(assume_valid(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory as _;
        Args::command().debug_assert();
    }
}
