//! Electrum's status of a script, extended as the history grows.
//!
//! The status is the SHA-256 of one entry for each transaction that pays the script or spends from
//! it, in this order:
//!
//! 1. confirmed transactions in chain order: `txid:height:`
//! 2. unconfirmed ones whose inputs are all confirmed, by txid: `txid:0:`
//! 3. the other unconfirmed ones, by txid: `txid:-1:`
//!
//! Txids are written, and sorted, in their displayed form. A script without transactions has no
//! status.
//!
//! Confirmed entries are appended once, in chain order, so a hash state over them is extended block
//! by block and saved: the history of a script with millions of transactions is never read again.
//! Unconfirmed entries are hashed on top of a copy of that state whenever a status is requested.
//! After a reorganisation the state is rebuilt, or taken from a copy that was saved at the fork.

use std::fmt::Write as _;

use varve_sha256::Midstate;

use crate::hash::{ScriptStatus, Txid};
use crate::height::Height;

/// The hash state over the confirmed history of a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryHash(Midstate);

/// A transaction of the script that is in no block yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unconfirmed {
    /// The transaction.
    pub txid: Txid,
    /// Whether it spends an output of a transaction that is itself unconfirmed.
    pub spends_unconfirmed: bool,
}

impl HistoryHash {
    /// The length of the saved form.
    pub const LEN: usize = Midstate::LEN;

    /// The state of a script without transactions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the next confirmed transaction. Calls are in chain order: by height, then by
    /// position in the block.
    pub fn confirm(&mut self, txid: &Txid, height: Height) {
        self.push(txid, i64::from(height.to_u32()));
    }

    /// The status with these unconfirmed transactions, given in any order; `None` when there is no
    /// transaction at all.
    #[must_use]
    pub fn status(&self, unconfirmed: &[Unconfirmed]) -> Option<ScriptStatus> {
        let mut sorted = unconfirmed.to_vec();
        sorted.sort_unstable_by(|left, right| {
            let shown = |entry: &Unconfirmed| entry.txid.to_bytes().into_iter().rev();
            let order = left.spends_unconfirmed.cmp(&right.spends_unconfirmed);
            order.then_with(|| shown(left).cmp(shown(right)))
        });
        let mut whole = *self;
        for entry in &sorted {
            whole.push(&entry.txid, if entry.spends_unconfirmed { -1 } else { 0 });
        }
        (whole.0.length() > 0).then(|| ScriptStatus::from_bytes(whole.0.digest()))
    }

    /// The saved form.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        self.0.to_bytes()
    }

    /// Restores a saved form.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        Self(Midstate::from_bytes(bytes))
    }

    fn push(&mut self, txid: &Txid, height: i64) {
        let mut entry = String::with_capacity(64 + 1 + 10 + 1);
        write!(entry, "{txid}:{height}:").expect("a string takes any text");
        self.0.extend(entry.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Electrum protocol's chapter on the status.
    const CONFIRMED: [(&str, u32); 3] = [
        ("a6c9c361bd0bc536d6a22648efbf8f9b200e425ef6c3a7a9669dc444c532a347", 2472),
        ("9c42f84b2fcdaff676ba25d9d4941741cc0d1a01cce0c23fdc4c0b2afa38431c", 2473),
        ("770f2d4371b3fabb902dd9a103e2dd005fcd3971181078fca4a2a1d6ff127b30", 2473),
    ];
    const UNCONFIRMED: [(&str, bool); 3] = [
        ("80b19848aed792565ab7c5a79b7c2a00fbf985741579396ebe0ab6098e607311", false),
        ("e02a1dadfa83b996b24175df807b271ea5d02937ef5b35c195fac1e1bdc3198f", false),
        ("bb4c8ab438c13b89ca80d1d5bee25b0b6b7f55673f4d801998ba97db161d9e85", true),
    ];
    const STATUS: &str = "78e96c6562cafa71c115503b9411fdfdc595a45031e2ab76ff75162fe1b0590d";

    fn unconfirmed() -> Vec<Unconfirmed> {
        let entry = |(txid, spends_unconfirmed): (&str, bool)| Unconfirmed {
            txid: txid.parse().unwrap(),
            spends_unconfirmed,
        };
        UNCONFIRMED.into_iter().map(entry).collect()
    }

    #[test]
    fn the_published_example_in_any_order_of_the_mempool() {
        let mut history = HistoryHash::new();
        for (txid, height) in CONFIRMED {
            // Saved and restored after every transaction.
            history = HistoryHash::from_bytes(&history.to_bytes());
            history.confirm(&txid.parse().unwrap(), Height::new(height));
        }
        let mut entries = unconfirmed();
        for _ in 0..entries.len() {
            entries.rotate_left(1);
            assert_eq!(history.status(&entries).unwrap().to_string(), STATUS);
            entries.reverse();
            assert_eq!(history.status(&entries).unwrap().to_string(), STATUS);
        }
        assert_ne!(history.status(&[]).unwrap().to_string(), STATUS);
    }

    #[test]
    fn no_transaction_no_status() {
        assert_eq!(HistoryHash::new().status(&[]), None);
        assert!(HistoryHash::new().status(&unconfirmed()).is_some());
    }

    /// A long history equals the hash of the text written out.
    #[test]
    fn a_long_history_is_the_hash_of_its_text() {
        let (mut history, mut text) = (HistoryHash::new(), String::new());
        for number in 0..500_u32 {
            let txid = Txid::from_bytes(crate::sha256d(&number.to_le_bytes()));
            let height = number * number * 7;
            history.confirm(&txid, Height::new(height));
            write!(text, "{txid}:{height}:").unwrap();
            let expected = ScriptStatus::from_bytes(varve_sha256::digest(text.as_bytes()));
            assert_eq!(history.status(&[]), Some(expected));
        }
    }
}
