//! The rules of headers.
//!
//! 1. The header follows the one below it.
//! 2. Its hash meets its target, and its target is the one that the chain requires.
//! 3. Its time is above the median of the eleven below it, and at most two hours ahead of the
//!    current time, which the caller passes in. On testnet4 the first block of a period is at most
//!    ten minutes older than the one below it (BIP94).
//! 4. Its version is not one that an upgrade has retired.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use varve_types::{BlockHash, Header, Height};

use crate::ancestors::{Ancestors, MissingAncestorError, ancestor_at, median_time_past};
use crate::params::Params;
use crate::retarget::next_bits;
use crate::work::Target;

/// How far ahead of the clock a header may be.
pub const MAX_FUTURE_SECONDS: u32 = 2 * 60 * 60;
/// How far below its parent the first block of a period may be (BIP94).
const MAX_TIMEWARP_SECONDS: u32 = 600;

/// Why a header is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// A header below is not available. No verdict.
    #[error(transparent)]
    MissingAncestor(#[from] MissingAncestorError),
    /// It does not follow the header below.
    #[error("the header at height {height} follows {previous}, but {below} is below it")]
    Unlinked {
        /// The height of the header.
        height: Height,
        /// What it says is below.
        previous: BlockHash,
        /// What is below.
        below: BlockHash,
    },
    /// The first header is not the one of this network.
    #[error("{hash} is not the genesis block of this network: choose the network of these blocks")]
    NotGenesis {
        /// Its hash.
        hash: BlockHash,
    },
    /// The hash does not meet the target, or the bits are not a target.
    #[error("the hash {hash} has not the work that its bits {bits:08x} require")]
    HighHash {
        /// The hash.
        hash: BlockHash,
        /// The bits.
        bits: u32,
    },
    /// The target is not that of the chain.
    #[error("the header has bits {bits:08x}, but the chain requires {expected:08x}")]
    WrongBits {
        /// The bits in the header.
        bits: u32,
        /// The bits that the rules require.
        expected: u32,
    },
    /// Not above the median time past.
    #[error("the time {time} is not above the median {median} of the eleven blocks below")]
    TimeTooOld {
        /// The time of the header.
        time: u32,
        /// The median.
        median: u32,
    },
    /// The first block of a period goes back in time (BIP94).
    #[error("the time {time} begins a period more than ten minutes before {parent}")]
    TimeWarp {
        /// The time of the header.
        time: u32,
        /// The time of the block below.
        parent: u32,
    },
    /// Too far ahead of the clock. It may be acceptable later: no lasting verdict.
    #[error("the time {time} is more than two hours after {now}: check the clock")]
    TimeTooNew {
        /// The time of the header.
        time: u32,
        /// The time that was passed in.
        now: u32,
    },
    /// A version that an upgrade has retired.
    #[error("the version {version:#010x} is retired at this height")]
    BadVersion {
        /// The version.
        version: i32,
    },
}

impl HeaderError {
    /// The reason as Core gives it, or `None` when the header could not be checked.
    #[must_use]
    pub fn reject_reason(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(match self {
            Self::MissingAncestor(_) => return None,
            Self::Unlinked { .. } => "prev-blk-not-found",
            Self::NotGenesis { .. } => "bad-genesis",
            Self::HighHash { .. } => "high-hash",
            Self::WrongBits { .. } => "bad-diffbits",
            Self::TimeTooOld { .. } => "time-too-old",
            Self::TimeWarp { .. } => "time-timewarp-attack",
            Self::TimeTooNew { .. } => "time-too-new",
            Self::BadVersion { version } => {
                return Some(Cow::Owned(format!("bad-version({version:#010x})")));
            }
        }))
    }
}

/// Checks a header at `height` on the branch that `ancestors` gives, at the time `now`.
pub fn check_header<A: Ancestors + ?Sized>(
    params: &Params,
    header: Header<'_>,
    height: Height,
    ancestors: &A,
    now: u32,
) -> Result<(), HeaderError> {
    check_work(params, header)?;
    let Some(parent_height) = height.checked_sub(1) else {
        let hash = header.hash();
        let known = hash == params.network.genesis_hash();
        return known.then_some(()).ok_or(HeaderError::NotGenesis { hash });
    };
    let below = ancestor_at(ancestors, parent_height)?.hash;
    if header.previous() != below {
        return Err(HeaderError::Unlinked { height, previous: header.previous(), below });
    }
    let (bits, expected) = (header.bits(), next_bits(params, height, header.time(), ancestors)?);
    if bits != expected {
        return Err(HeaderError::WrongBits { bits, expected });
    }
    check_time(params, header.time(), parent_height, ancestors, now)?;
    check_version(params, header.version(), height)
}

/// Whether the hash meets the target in the header, whatever the chain requires.
pub fn check_work(params: &Params, header: Header<'_>) -> Result<(), HeaderError> {
    let (hash, bits) = (header.hash(), header.bits());
    let target = Target::from_bits(bits).filter(|target| *target <= params.pow.limit);
    match target {
        Some(target) if target.is_met_by(&hash) => Ok(()),
        _ => Err(HeaderError::HighHash { hash, bits }),
    }
}

fn check_time<A: Ancestors + ?Sized>(
    params: &Params,
    time: u32,
    parent_height: Height,
    ancestors: &A,
    now: u32,
) -> Result<(), HeaderError> {
    let median = median_time_past(ancestors, parent_height)?;
    if time <= median {
        return Err(HeaderError::TimeTooOld { time, median });
    }
    let begins_period = parent_height.to_u32() % params.pow.interval == params.pow.interval - 1;
    if params.pow.bip94 && begins_period {
        let parent = ancestor_at(ancestors, parent_height)?.time;
        if time < parent.saturating_sub(MAX_TIMEWARP_SECONDS) {
            return Err(HeaderError::TimeWarp { time, parent });
        }
    }
    if time > now.saturating_add(MAX_FUTURE_SECONDS) {
        return Err(HeaderError::TimeTooNew { time, now });
    }
    Ok(())
}

fn check_version(params: &Params, version: i32, height: Height) -> Result<(), HeaderError> {
    let heights = &params.heights;
    let retired = (version < 2 && height >= heights.bip34)
        || (version < 3 && height >= heights.bip66)
        || (version < 4 && height >= heights.bip65);
    if retired { Err(HeaderError::BadVersion { version }) } else { Ok(()) }
}
