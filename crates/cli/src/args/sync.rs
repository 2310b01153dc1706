//! Arguments of `varve sync`, and those that `varve serve` shares with it.

use std::path::PathBuf;

use clap::ValueEnum;
use varve::{AssumeValid, Height, IndexSet, PeerAddress, Prune, PushdataRule, RpcUrl};

use super::value::{assume_valid, height, prune};

/// Arguments of `varve sync`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("source").required(true))]
pub(crate) struct Sync {
    #[command(flatten)]
    pub chain: ChainOptions,

    /// Keep running and take new blocks as they come
    #[arg(long)]
    pub follow: bool,
}

/// Where blocks come from, what is checked of them, and what is kept.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ChainOptions {
    /// A folder of blk*.dat files, a folder with `blocks/` in it, one block file, a named pipe, or
    /// `-` for standard input
    #[arg(long, value_name = "PATH", group = "source")]
    pub from: Option<PathBuf>,

    /// A node to fetch from; may be given more than once
    #[arg(long = "peer", value_name = "HOST:PORT", group = "source")]
    pub peers: Vec<PeerAddress>,

    /// The REST or RPC interface of a node: http://user:password@host:port, or with the path of
    /// its cookie file in place of user:password
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

    /// Keep about SIZE bytes of the youngest blocks, and always the last 4,096; `off` keeps all
    ///
    /// [default: unchanged; off in a new folder]
    #[arg(long, value_name = "SIZE|off", value_parser = prune)]
    pub prune: Option<Prune>,

    /// While it follows, take no unconfirmed transactions
    #[arg(long)]
    pub no_mempool: bool,

    /// The optional indexes: `none`, `all`, or some of filter,pushdata,script,stats
    ///
    /// [default: all with `serve`; with `sync` unchanged, and none in a new folder]
    #[arg(long, value_name = "LIST")]
    pub index: Option<IndexSet>,

    /// Which pushed items the index `pushdata` has: `documented` or `conduit`
    ///
    /// [default: unchanged; documented in a new folder]
    #[arg(long, value_name = "RULE")]
    pub pushdata_rule: Option<PushdataRule>,
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
