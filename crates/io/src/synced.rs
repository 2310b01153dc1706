//! Torn or damaged: what a frame that does not verify means.
//!
//! A crash may tear what was written and not synced; it was never acknowledged, and it is cut off.
//! What was synced has been acknowledged: when it does not verify, the file is damaged, and cutting
//! it off would lose data silently. Three things prove that a position was synced:
//!
//! - the owner's checkpoint names a later one as durable;
//! - a later file exists, because a file is begun only after the one before it was synced;
//! - a sound frame after it says so. Every frame may carry the position that was *durable* when it
//!   was written. Where each append is synced before the next, that is the frame's own position,
//!   and need not be stored.
//!
//! Only frames after the last sync that any of these proves can be torn ones.

use crate::offset::GlobalOffset;

/// Whether the bytes at `at`, which do not verify, had been synced. All before `durable` is known
/// to be; `claims` are the durable positions that sound frames after `at` carry.
pub fn was_synced(
    at: GlobalOffset,
    durable: GlobalOffset,
    claims: impl IntoIterator<Item = GlobalOffset>,
) -> bool {
    at < durable || claims.into_iter().any(|durable| at < durable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_durable_position_proves_that_bytes_were_synced() {
        let at = GlobalOffset::new;
        assert!(was_synced(at(7), at(8), []));
        assert!(!was_synced(at(8), at(8), []), "the first byte after what is durable");
        assert!(was_synced(at(8), at(0), [at(3), at(9)]));
        assert!(!was_synced(at(8), at(0), [at(3), at(8)]));
    }
}
