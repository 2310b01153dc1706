//! The state of one output, as an answer to a wallet or a validator.
//!
//! ```text
//! │ status u64le │ lock time u32le │ spending data 36, or nothing │       12 or 48
//! ```
//!
//! Several states may hold at once; the one furthest down is told:
//!
//! ```text
//! unspent (0), spent (1)  ─►  immature (2)  ─►  frozen (5)  ─►  conflicting (6)  ─►  locked (7)
//! no record, no slot: not found (3)
//! ```
//!
//! A frozen output names the placeholder as its spender, and as the input its own number.

use varve_types::{DecodeError, Height, Reader};

use crate::engine::SlotView;
use crate::slot::SlotState;
use crate::spending_data::{PLACEHOLDER, SpendingData};

/// The state of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u64)]
pub enum Status {
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

impl Status {
    /// All of them, by number.
    const ALL: [Self; 8] = [
        Self::Ok,
        Self::Spent,
        Self::Immature,
        Self::NotFound,
        Self::AlreadyExists,
        Self::Frozen,
        Self::Conflicting,
        Self::Locked,
    ];

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
    pub status: Status,
    /// The lock time of its transaction.
    pub lock_time: u32,
    /// Who spent it.
    pub spending: Option<SpendingData>,
}

/// Bytes that are not an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpendResponseError {
    /// Neither 12 nor 48 bytes.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A status that has no meaning.
    #[error("status {0} is unknown: expected 0 to 7")]
    UnknownStatus(u64),
}

impl SpendResponse {
    /// The state of output `vout` at this height of the store.
    #[must_use]
    pub fn of(view: Option<&SlotView>, vout: u32, height: Height) -> Self {
        let missing = Self { status: Status::NotFound, lock_time: 0, spending: None };
        let Some((view, slot)) = view.and_then(|view| Some((view, view.slot?))) else {
            return missing;
        };
        let (mut status, mut spending) = match slot.state() {
            SlotState::Unspent => (Status::Ok, None),
            SlotState::Spent(by) => (Status::Spent, Some(by)),
            SlotState::Frozen => (Status::Frozen, Some(SpendingData::new(PLACEHOLDER, vout))),
        };
        let rests = [view.spendable_in, view.spending_height].into_iter().flatten();
        if status != Status::Frozen && rests.max().is_some_and(|from| from > height) {
            status = Status::Immature;
        }
        let window = view.window.is_some_and(|window| window.is_active(height));
        if window && spending.is_none() {
            status = Status::Frozen;
            spending = Some(SpendingData::new(PLACEHOLDER, vout));
        }
        if view.conflicting {
            status = Status::Conflicting;
        }
        if view.locked {
            status = Status::Locked;
        }
        Self { status, lock_time: view.lock_time, spending }
    }

    /// The 12 or 48 bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = (self.status as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(&self.lock_time.to_le_bytes());
        if let Some(data) = self.spending {
            bytes.extend_from_slice(&data.to_bytes());
        }
        bytes
    }

    /// Decodes an answer.
    pub fn decode(bytes: &[u8]) -> Result<Self, SpendResponseError> {
        let mut reader = Reader::new(bytes);
        let number = reader.u64("a status")?;
        let lock_time = reader.u32("a lock time")?;
        let spending = match reader.rest().is_empty() {
            true => None,
            false => Some(SpendingData::from_bytes(reader.array("spending data")?)),
        };
        reader.end()?;
        let status = usize::try_from(number).ok().and_then(|number| Status::ALL.get(number));
        let status = *status.ok_or(SpendResponseError::UnknownStatus(number))?;
        Ok(Self { status, lock_time, spending })
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

    fn status(view: &SlotView) -> (Status, Option<SpendingData>) {
        let response = SpendResponse::of(Some(view), 3, Height::new(100));
        (response.status, response.spending)
    }

    #[test]
    fn the_state_furthest_down_is_told() {
        let frozen = Some(SpendingData::new(PLACEHOLDER, 3));
        let mut view = view();
        assert_eq!(status(&view), (Status::Ok, None));
        view.slot = spent(BY);
        assert_eq!(status(&view), (Status::Spent, Some(BY)));
        view.spendable_in = Some(Height::new(101));
        assert_eq!(status(&view), (Status::Immature, Some(BY)));
        view.slot = spent(SpendingData::FROZEN);
        assert_eq!(status(&view), (Status::Frozen, frozen));
        view.conflicting = true;
        assert_eq!(status(&view), (Status::Conflicting, frozen));
        view.locked = true;
        assert_eq!(status(&view), (Status::Locked, frozen));
        view.slot = None;
        assert_eq!(status(&view), (Status::NotFound, None));
    }

    #[test]
    fn a_coinbase_is_mature_at_its_height() {
        let at = |height| SlotView { spending_height: Some(Height::new(height)), ..view() };
        assert_eq!(status(&at(101)).0, Status::Immature);
        assert_eq!(status(&at(100)).0, Status::Ok);
        let rested = SlotView { spendable_in: Some(Height::new(99)), ..at(101) };
        assert_eq!(status(&rested).0, Status::Immature, "the later height counts");
    }

    #[test]
    fn a_window_freezes_what_is_unspent() {
        let window = Some(FreezeWindow::from_interval(100, Some(101), false));
        assert_eq!(status(&SlotView { window, ..view() }).0, Status::Frozen);
        let spent = SlotView { window, slot: spent(BY), ..view() };
        assert_eq!(status(&spent), (Status::Spent, Some(BY)));
        let window = Some(FreezeWindow::from_interval(99, Some(100), false));
        assert_eq!(status(&SlotView { window, ..view() }).0, Status::Ok);
    }

    #[test]
    fn twelve_or_forty_eight_bytes() {
        for spending in [None, Some(BY)] {
            let response = SpendResponse { status: Status::Locked, lock_time: 5, spending };
            let bytes = response.to_bytes();
            assert_eq!(bytes.len(), if spending.is_some() { 48 } else { 12 });
            assert_eq!(SpendResponse::decode(&bytes), Ok(response));
        }
        for len in [0, 11, 13, 47, 49] {
            assert!(SpendResponse::decode(&vec![0; len]).is_err(), "{len} bytes");
        }
        let unknown = SpendResponse::decode(&[8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(unknown, Err(SpendResponseError::UnknownStatus(8)));
    }
}
