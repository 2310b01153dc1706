//! What all files of a store share: its id and its secret.

use varve_io::{FileId, StoreId};

use crate::footer::RunNumber;
use crate::secret::Secret;

/// What all runs of a store share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreKey {
    /// The store.
    pub id: StoreId,
    /// The key of its hashes.
    pub secret: Secret,
}

impl StoreKey {
    /// How many bytes of the store's id the id of a numbered file begins with.
    pub const IN_FILE_ID: usize = 8;

    /// The id in the pages of a numbered file: half of the store's, and the number.
    #[must_use]
    pub fn file_id(&self, number: RunNumber) -> FileId {
        let mut id = self.id.0;
        let (_, rest) = id.split_at_mut(Self::IN_FILE_ID);
        rest.copy_from_slice(&number.0.to_le_bytes());
        FileId(id)
    }
}
