//! What users type: hashes, outpoints and the names of networks.

use std::fmt::Display;
use std::str::FromStr;
use varve_types::{BlockHash, Network, Outpoint, Txid};

/// What parses is shown as a text that parses to the same.
pub(super) fn text(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    shown_and_back::<Txid>(text);
    shown_and_back::<Outpoint>(text);
    shown_and_back::<Network>(text);
    let theirs = text.parse::<bitcoin::BlockHash>().map(|hash| hash.to_string());
    let ours = text.parse::<BlockHash>().map(|hash| hash.to_string());
    assert_eq!(ours.ok(), theirs.ok());
    // They know more ways to write the number, and fewer: what both take is the same.
    if let (Ok(ours), Ok(theirs)) = (text.parse::<Outpoint>(), text.parse::<bitcoin::OutPoint>()) {
        assert_eq!(ours.to_string(), theirs.to_string());
    }
}

fn shown_and_back<T: FromStr + Display + PartialEq>(text: &str) {
    if let Ok(value) = text.parse::<T>() {
        let again = value.to_string().parse::<T>().ok();
        assert!(again == Some(value), "{text:?}");
    }
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let hash = "4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b";
    let mut seeds = vec![hash.into(), hash.to_uppercase().into(), format!("{hash}:7").into()];
    seeds.extend(["mainnet", "signet", "bsv-regtest"].map(Vec::from));
    seeds
}
