//! The headers below a block, as the rules need them.
//!
//! Difficulty, median time and relative lock times look back along the branch that a block extends.
//! They look headers up by height, so the caller passes a view of *that* branch: a list for tests
//! and short chains, the header table of a node for long ones.

use varve_types::{BlockHash, Header, Height};

/// What the rules need of a header that has been accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ancestor {
    /// The hash of the block.
    pub hash: BlockHash,
    /// The time, in seconds since 1970.
    pub time: u32,
    /// The target, in compact form.
    pub bits: u32,
}

impl From<Header<'_>> for Ancestor {
    fn from(header: Header<'_>) -> Self {
        Self { hash: header.hash(), time: header.time(), bits: header.bits() }
    }
}

/// A header that a rule needs is not available. This says nothing about the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the header at height {height} is missing: load the headers of this branch from genesis on"
)]
pub struct MissingAncestorError {
    /// The height.
    pub height: Height,
}

/// The headers of one branch, by height.
pub trait Ancestors {
    /// The header at this height, or `None` when the branch does not reach it.
    fn ancestor(&self, height: Height) -> Option<Ancestor>;
}

/// A whole branch from genesis on.
impl Ancestors for [Ancestor] {
    fn ancestor(&self, height: Height) -> Option<Ancestor> {
        self.get(usize::try_from(height.to_u32()).ok()?).copied()
    }
}

impl Ancestors for Vec<Ancestor> {
    fn ancestor(&self, height: Height) -> Option<Ancestor> {
        self.as_slice().ancestor(height)
    }
}

/// The number of headers that the median time is taken over.
pub const MEDIAN_SPAN: u32 = 11;

/// The header at this height, or the error that names it.
pub(crate) fn ancestor_at<A: Ancestors + ?Sized>(
    ancestors: &A,
    height: Height,
) -> Result<Ancestor, MissingAncestorError> {
    ancestors.ancestor(height).ok_or(MissingAncestorError { height })
}

/// The median time past of the block at `height`: the median of its own time and those of the ten
/// blocks below it, or of as many as there are.
pub fn median_time_past<A: Ancestors + ?Sized>(
    ancestors: &A,
    height: Height,
) -> Result<u32, MissingAncestorError> {
    let mut times = Vec::with_capacity(MEDIAN_SPAN as usize);
    for back in 0..MEDIAN_SPAN {
        let Some(height) = height.checked_sub(back) else { break };
        times.push(ancestor_at(ancestors, height)?.time);
    }
    Ok(median_time(times).expect("the block itself at least"))
}

/// The median of the times of a header and those below it, [`MEDIAN_SPAN`] of them or as many as
/// there are: for an even number the upper one, and `None` for none.
#[must_use]
pub fn median_time(mut times: Vec<u32>) -> Option<u32> {
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_few_and_of_eleven() {
        let times = [5, 1, 9, 7, 3, 8, 2, 6, 4, 0, 10, 11, 50];
        let chain: Vec<_> = times
            .iter()
            .map(|time| Ancestor { hash: BlockHash::ZERO, time: *time, bits: 0 })
            .collect();
        let median = |height| median_time_past(&chain, Height::new(height)).unwrap();
        assert_eq!(median(0), 5);
        assert_eq!(median(1), 5, "of two the upper one");
        assert_eq!(median(2), 5);
        assert_eq!(median(3), 7);
        assert_eq!(median(10), 5);
        assert_eq!(median(12), 7);
        let missing = MissingAncestorError { height: Height::new(13) };
        assert_eq!(median_time_past(&chain, Height::new(13)), Err(missing));
    }
}
