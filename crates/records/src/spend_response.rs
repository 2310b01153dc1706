//! The state of one output, as an answer to a wallet or a validator.
//!
//! ```text
//! │ status u64le │ lock time u32le │ spending data 36, or nothing │       12 or 48
//! ```
//!
//! Several states may hold at once; the answer is the last that applies:
//!
//! ```text
//! unspent (0), spent (1)  ─►  immature (2)  ─►  frozen (5)  ─►  conflicting (6)  ─►  locked (7)
//! no record, no slot: not found (3)
//! ```
//!
//! A frozen output names the placeholder as its spender, and as the input its own number.

use varve_types::Height;

use crate::engine::SlotView;
use crate::slot::SlotState;
use crate::spending_data::{PLACEHOLDER, SpendingData};

/// The state of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u64)]
pub enum SpendStatus {
    /// It can be spent.
    Ok = 0,
    /// It is spent.
    Spent = 1,
    /// It cannot be spent yet: a young coinbase, or reassigned not long ago.
    Immature = 2,
    /// There is no such output.
    NotFound = 3,
    /// There is a record already.
    AlreadyExists = 4,
    /// It is frozen.
    Frozen = 5,
    /// Its transaction lost a double spend.
    Conflicting = 6,
    /// Its transaction is locked.
    Locked = 7,
}

impl SpendStatus {
    /// The name, in capitals.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Spent => "SPENT",
            Self::Immature => "IMMATURE",
            Self::NotFound => "NOT_FOUND",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::Frozen => "FROZEN",
            Self::Conflicting => "CONFLICTING",
            Self::Locked => "LOCKED",
        }
    }
}

/// The answer to "who spent this output?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpendResponse {
    /// The state of the output.
    pub status: SpendStatus,
    /// The lock time of its transaction.
    pub lock_time: u32,
    /// Who spent it.
    pub spending: Option<SpendingData>,
}

impl SpendResponse {
    /// The state of output `vout` at this height of the store.
    #[must_use]
    pub fn of(view: Option<&SlotView>, vout: u32, height: Height) -> Self {
        let missing = Self { status: SpendStatus::NotFound, lock_time: 0, spending: None };
        let Some((view, slot)) = view.and_then(|view| Some((view, view.slot?))) else {
            return missing;
        };
        let (mut status, mut spending) = match slot.state() {
            SlotState::Unspent => (SpendStatus::Ok, None),
            SlotState::Spent(by) => (SpendStatus::Spent, Some(by)),
            SlotState::Frozen => (SpendStatus::Frozen, Some(SpendingData::new(PLACEHOLDER, vout))),
        };
        let rests = [view.spendable_in, view.spending_height].into_iter().flatten();
        if status != SpendStatus::Frozen && rests.max().is_some_and(|from| from > height) {
            status = SpendStatus::Immature;
        }
        let window = view.window.is_some_and(|window| window.is_active(height));
        if window && spending.is_none() {
            status = SpendStatus::Frozen;
            spending = Some(SpendingData::new(PLACEHOLDER, vout));
        }
        if view.conflicting {
            status = SpendStatus::Conflicting;
        }
        if view.locked {
            status = SpendStatus::Locked;
        }
        Self { status, lock_time: view.lock_time, spending }
    }

    /// The bytes drawn above.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = (self.status as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(&self.lock_time.to_le_bytes());
        if let Some(data) = self.spending {
            bytes.extend_from_slice(&data.to_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use varve_types::Txid;

    use super::*;
    use crate::freeze_window::FreezeWindow;
    use crate::slot::Slot;
    use crate::utxo_hash::UtxoHash;

    const BY: SpendingData = SpendingData::new(Txid::ZERO, 4);

    fn view() -> SlotView {
        SlotView {
            slot: Some(Slot::unspent(UtxoHash::from_bytes([1; 32]))),
            spendable_in: None,
            window: None,
            spending_height: None,
            lock_time: 9,
            conflicting: false,
            locked: false,
            creating: false,
            blocks: Vec::new(),
        }
    }

    fn spent(by: SpendingData) -> Option<Slot> {
        view().slot.map(|slot| Slot { spending: Some(by), ..slot })
    }

    fn status(view: &SlotView) -> (SpendStatus, Option<SpendingData>) {
        let response = SpendResponse::of(Some(view), 3, Height::new(100));
        (response.status, response.spending)
    }

    #[test]
    fn the_last_state_that_applies_is_reported() {
        let frozen = Some(SpendingData::new(PLACEHOLDER, 3));
        let mut view = view();
        assert_eq!(status(&view), (SpendStatus::Ok, None));
        view.slot = spent(BY);
        assert_eq!(status(&view), (SpendStatus::Spent, Some(BY)));
        view.spendable_in = Some(Height::new(101));
        assert_eq!(status(&view), (SpendStatus::Immature, Some(BY)));
        view.slot = spent(SpendingData::FROZEN);
        assert_eq!(status(&view), (SpendStatus::Frozen, frozen));
        view.conflicting = true;
        assert_eq!(status(&view), (SpendStatus::Conflicting, frozen));
        view.locked = true;
        assert_eq!(status(&view), (SpendStatus::Locked, frozen));
        view.slot = None;
        assert_eq!(status(&view), (SpendStatus::NotFound, None));
    }

    #[test]
    fn a_coinbase_is_mature_at_its_height() {
        let at = |height| SlotView { spending_height: Some(Height::new(height)), ..view() };
        assert_eq!(status(&at(101)).0, SpendStatus::Immature);
        assert_eq!(status(&at(100)).0, SpendStatus::Ok);
        let rested = SlotView { spendable_in: Some(Height::new(99)), ..at(101) };
        assert_eq!(status(&rested).0, SpendStatus::Immature, "the later height counts");
    }

    #[test]
    fn a_window_freezes_what_is_unspent() {
        let window = Some(FreezeWindow::from_interval(100, Some(101), false));
        assert_eq!(status(&SlotView { window, ..view() }).0, SpendStatus::Frozen);
        let spent = SlotView { window, slot: spent(BY), ..view() };
        assert_eq!(status(&spent), (SpendStatus::Spent, Some(BY)));
        let window = Some(FreezeWindow::from_interval(99, Some(100), false));
        assert_eq!(status(&SlotView { window, ..view() }).0, SpendStatus::Ok);
    }

    #[test]
    fn an_answer_has_twelve_or_forty_eight_bytes() {
        let mut answer =
            SpendResponse { status: SpendStatus::Locked, lock_time: 5, spending: None };
        let head = [7, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0];
        assert_eq!(answer.to_bytes(), head);
        answer.spending = Some(BY);
        let expected = [&head[..], &[0; 32], &[4, 0, 0, 0]].concat();
        assert_eq!(answer.to_bytes(), expected);
    }
}
