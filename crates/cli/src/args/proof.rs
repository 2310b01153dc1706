//! Arguments of `varve proof`.

use clap::ValueEnum;
use varve::Txid;

/// Arguments of `varve proof`.
#[derive(Debug, clap::Args)]
pub(crate) struct Proof {
    /// The transaction
    pub txid: Txid,

    /// The form of the proof
    #[arg(long, value_enum, default_value_t)]
    pub format: ProofFormat,

    /// How a TSC proof names the block [default: hash]
    #[arg(long, value_enum)]
    pub target: Option<ProofTarget>,

    /// Put the whole transaction into a TSC proof, not its txid
    #[arg(long)]
    pub full_tx: bool,
}

/// The forms of a proof.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProofFormat {
    /// As Electrum's servers answer
    #[default]
    Electrum,
    /// The standard format of the TSC (TS 2020.010-31)
    Tsc,
}

/// What names the block in a TSC proof.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ProofTarget {
    /// Its hash
    Hash,
    /// The bytes of its header
    Header,
    /// Its merkle root
    Merkleroot,
}

impl From<ProofTarget> for varve::ProofTarget {
    fn from(target: ProofTarget) -> Self {
        match target {
            ProofTarget::Hash => Self::Hash,
            ProofTarget::Header => Self::Header,
            ProofTarget::Merkleroot => Self::MerkleRoot,
        }
    }
}
