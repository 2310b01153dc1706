//! The tip that the store follows, as one value.
//!
//! Height and median time belong together: a lock time that is judged by the height of one block
//! and the time of another may be judged wrongly. So they are read and written in one step.

use std::sync::RwLock;

use varve_types::Height;

/// The tip of the chain that the caller follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockState {
    /// Its height; 0 until it is set.
    pub height: Height,
    /// Its median time past, in seconds; 0 until it is set.
    pub median_time: u32,
}

/// A height of zero, which stands for "not known".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("height 0 cannot be set: give the height of the tip")]
pub struct ZeroHeightError;

/// The block state, shared by all who use the store.
#[derive(Debug, Default)]
pub(crate) struct SharedBlockState(RwLock<BlockState>);

impl SharedBlockState {
    /// Both values of one moment.
    #[must_use]
    pub(crate) fn get(&self) -> BlockState {
        *self.0.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Sets both.
    pub(crate) fn set(&self, state: BlockState) -> Result<(), ZeroHeightError> {
        self.change(state.height, |old| *old = state)
    }

    /// Sets the height alone.
    pub(crate) fn set_height(&self, height: Height) -> Result<(), ZeroHeightError> {
        self.change(height, |old| old.height = height)
    }

    /// Sets the median time alone.
    pub(crate) fn set_median_time(&self, median_time: u32) {
        let mut state = self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        state.median_time = median_time;
    }

    fn change(
        &self,
        height: Height,
        set: impl FnOnce(&mut BlockState),
    ) -> Result<(), ZeroHeightError> {
        if height == Height::GENESIS {
            return Err(ZeroHeightError);
        }
        set(&mut self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_values_change_together_and_never_to_height_zero() {
        let shared = SharedBlockState::default();
        let state = BlockState { height: Height::new(5), median_time: 9 };
        shared.set(state).unwrap();
        assert_eq!(shared.get(), state);
        assert_eq!(shared.set(BlockState::default()), Err(ZeroHeightError));
        assert_eq!(shared.set_height(Height::GENESIS), Err(ZeroHeightError));
        shared.set_height(Height::new(6)).unwrap();
        shared.set_median_time(10);
        assert_eq!(shared.get(), BlockState { height: Height::new(6), median_time: 10 });
    }
}
