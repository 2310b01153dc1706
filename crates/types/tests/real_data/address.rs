//! Core's vectors of addresses.

use hex_conservative::FromHex as _;
use varve_types::{Network, address};

use crate::load;

/// Every address of Core's list is the one of its script, both ways, in either case where it may
/// be.
#[test]
fn valid_addresses_of_core() {
    let Some(path) = varve_testdata::data("vectors/core/key_io_valid.json") else { return };
    let mut checked = 0;
    for case in load::json(&path).as_array().unwrap() {
        let (text, script, meta) = (case[0].as_str().unwrap(), &case[1], &case[2]);
        if meta["isPrivkey"].as_bool().unwrap() {
            continue;
        }
        let network = match meta["chain"].as_str().unwrap() {
            "main" => Network::Mainnet,
            "test" => Network::Testnet3,
            other => other.parse().unwrap(),
        };
        let script = Vec::from_hex(script.as_str().unwrap()).unwrap();
        assert_eq!(address::encode(&script, network).as_deref(), Some(text));
        assert_eq!(address::decode(text, network).as_ref(), Ok(&script));
        if meta["tryCaseFlip"].as_bool() == Some(true) {
            assert_eq!(address::decode(&text.to_uppercase(), network), Ok(script));
        }
        checked += 1;
    }
    assert!(checked > 30, "{checked}");
}

/// Nothing on Core's list of invalid texts is an address of any network.
#[test]
fn invalid_addresses_of_core() {
    let Some(path) = varve_testdata::data("vectors/core/key_io_invalid.json") else { return };
    for case in load::json(&path).as_array().unwrap() {
        let text = case[0].as_str().unwrap();
        for network in Network::ALL {
            assert!(address::decode(text, network).is_err(), "{text} on {network}");
        }
    }
}
