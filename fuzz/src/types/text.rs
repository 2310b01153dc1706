//! What users type: hashes, outpoints, addresses and the names of networks.

use std::fmt::Display;
use std::str::FromStr;
use varve_types::{BlockHash, Network, Outpoint, ScriptHash, Txid, address};

/// What parses is shown as a text that parses to the same.
pub(super) fn text(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    shown_and_back::<Txid>(text);
    shown_and_back::<Outpoint>(text);
    shown_and_back::<Network>(text);
    shown_and_back::<ScriptHash>(text);
    addresses(text);
    let theirs = text.parse::<bitcoin::BlockHash>().map(|hash| hash.to_string());
    let ours = text.parse::<BlockHash>().map(|hash| hash.to_string());
    assert_eq!(ours.ok(), theirs.ok());
    // They know more ways to write the number, and fewer: what both take is the same.
    if let (Ok(ours), Ok(theirs)) = (text.parse::<Outpoint>(), text.parse::<bitcoin::OutPoint>()) {
        assert_eq!(ours.to_string(), theirs.to_string());
    }
}

/// An address is one of a script, and mostly the only one: upper case is the other.
fn addresses(text: &str) {
    for network in Network::ALL {
        let Ok(script) = address::decode(text, network) else { continue };
        let shown = address::encode(&script, network);
        assert!(shown.is_some_and(|shown| shown == text || shown.to_uppercase() == text));
    }
    let theirs = text.parse::<bitcoin::Address<bitcoin::address::NetworkUnchecked>>();
    let theirs = theirs.ok().and_then(|them| them.require_network(bitcoin::Network::Bitcoin).ok());
    let ours = address::decode(text, Network::Mainnet).ok();
    assert_eq!(ours, theirs.map(|address| address.script_pubkey().into_bytes()));
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
    let addresses = [
        "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
        "2N5338aAPYmKM59AKpvxDB6FRAnGNXRsfBp",
        "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
        "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4",
        "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080",
        "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
    ];
    seeds.extend(addresses.map(Vec::from));
    seeds
}
