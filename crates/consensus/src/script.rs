//! Script checks: which flags a block's scripts are checked with, and the check in parallel.
//!
//! The flags switch on the rules that came with upgrades. P2SH, WITNESS and TAPROOT apply to all
//! blocks, even older ones, except for three that would fail; the others apply by height.
//!
//! [`ScriptChecks`] holds the checks of a block for callers that have threads; [`check_scripts`]
//! starts threads for one block.

mod checks;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::ops::BitOr;
use std::thread::Builder;

use varve_types::{Height, Network, Outpoint, Txid};

use crate::block_at::BlockAt;
use crate::params::Params;
use crate::verifier::{ScriptVerifier, VerifyError};
use crate::view::{CheckError, PrevoutError, UnspentOutputsView};
pub use checks::ScriptChecks;

/// Which rules scripts are checked with. The bits are those of Core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ScriptFlags(u32);

impl ScriptFlags {
    /// No upgrade rules.
    pub const NONE: Self = Self(0);
    /// Pay to script hash (BIP16).
    pub const P2SH: Self = Self(1);
    /// Strict DER signatures (BIP66).
    pub const DERSIG: Self = Self(1 << 2);
    /// The extra element that `OP_CHECKMULTISIG` takes is empty (BIP147).
    pub const NULLDUMMY: Self = Self(1 << 4);
    /// `OP_CHECKLOCKTIMEVERIFY` (BIP65).
    pub const CHECKLOCKTIMEVERIFY: Self = Self(1 << 9);
    /// `OP_CHECKSEQUENCEVERIFY` (BIP112).
    pub const CHECKSEQUENCEVERIFY: Self = Self(1 << 10);
    /// Segregated witness (BIP141, BIP143).
    pub const WITNESS: Self = Self(1 << 11);
    /// Taproot (BIP341, BIP342).
    pub const TAPROOT: Self = Self(1 << 17);

    /// The bits, as Core numbers them.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether all flags of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags that the scripts in a block are checked with.
    #[must_use]
    pub fn of(params: &Params, block: &BlockAt<'_>) -> Self {
        let exception = params.script_exceptions.iter().find(|(hash, _)| *hash == block.hash());
        let always = exception.map_or(Self::ALWAYS, |(_, flags)| *flags);
        always | Self::upgrades(params, block.height())
    }

    /// The flags for the scripts of a transaction that a block at this height may contain.
    /// Exceptions exist only for known blocks.
    #[must_use]
    pub fn at(params: &Params, height: Height) -> Self {
        Self::ALWAYS | Self::upgrades(params, height)
    }

    /// What applies to all blocks but the exceptions.
    const ALWAYS: Self = Self(Self::P2SH.0 | Self::WITNESS.0 | Self::TAPROOT.0);

    /// What came with upgrades up to this height.
    fn upgrades(params: &Params, height: Height) -> Self {
        let heights = &params.heights;
        let upgrades = [
            (heights.bip66, Self::DERSIG),
            (heights.bip65, Self::CHECKLOCKTIMEVERIFY),
            (heights.csv, Self::CHECKSEQUENCEVERIFY),
            (heights.segwit, Self::NULLDUMMY),
        ];
        let reached = upgrades.iter().filter(|(from, _)| height >= *from);
        reached.fold(Self::NONE, |flags, (_, flag)| flags | *flag)
    }
}

impl BitOr for ScriptFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Why the scripts of a block are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// There is no verifier for this chain. No verdict.
    #[error(
        "scripts cannot be checked on {network}: its signatures (FORKID) are unknown to Bitcoin \
         Core's verifier; check spends only"
    )]
    Unsupported {
        /// The chain.
        network: Network,
    },
    /// A prevout does not exist unspent.
    #[error(transparent)]
    Prevout(#[from] PrevoutError),
    /// A script fails, or the verifier could not check it, which is no verdict.
    #[error("input {vin} of {txid} does not satisfy the script of {outpoint}: {error}")]
    Failed {
        /// The spending transaction.
        txid: Txid,
        /// The input.
        vin: usize,
        /// The output that it spends.
        outpoint: Outpoint,
        /// What the verifier says.
        error: VerifyError,
    },
}

impl ScriptError {
    /// The reason as Core gives it, or `None` when the scripts could not be checked.
    #[must_use]
    pub fn reject_reason(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Unsupported { .. } | Self::Failed { error: VerifyError::Refused(_), .. } => None,
            Self::Prevout(error) => error.reject_reason(),
            Self::Failed { .. } => Some(Cow::Borrowed("block-script-verify-flag-failed")),
        }
    }
}

/// Checks the scripts of all spends of a block with this many threads, or as many of them as the
/// system allows.
pub fn check_scripts<V: UnspentOutputsView, S: ScriptVerifier>(
    params: &Params,
    block: &BlockAt<'_>,
    view: &V,
    verifier: &S,
    threads: NonZeroUsize,
) -> Result<(), CheckError<ScriptError, V::Error>> {
    let checks = ScriptChecks::new(params, block, view, verifier)?;
    let helpers = threads.get().min(checks.chunks()).saturating_sub(1);
    std::thread::scope(|scope| {
        for _ in 0..helpers {
            // Fewer threads are slower, but correct.
            if Builder::new().spawn_scoped(scope, || checks.run(|| true)).is_err() {
                break;
            }
        }
        checks.run(|| true);
    });
    checks.verdict(block).map_err(CheckError::Invalid)
}
