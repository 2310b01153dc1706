//! The class of an output script, and the address that wallets show for it.

use bitcoin::consensus::Params;
use bitcoin::{Address, Script};
use varve::Network;
use varve::types::script::Class;

/// The address of a script, if it has one. BSV has no witness programs, so the old kinds alone have
/// addresses there.
pub(crate) fn address(script: &[u8], network: Network) -> Option<String> {
    let params = match network {
        Network::Mainnet | Network::Bsv => Params::MAINNET,
        Network::Testnet3 => Params::TESTNET3,
        Network::Testnet4 => Params::TESTNET4,
        Network::Signet => Params::SIGNET,
        Network::Regtest | Network::BsvRegtest => Params::REGTEST,
    };
    let is_old = matches!(Class::of(script), Class::P2pkh | Class::P2sh);
    if network.is_bsv() && !is_old {
        return None;
    }
    Address::from_script(Script::from_bytes(script), params).ok().map(|address| address.to_string())
}

/// The class of a script, and its address if it has one.
pub(crate) fn described(script: &[u8], network: Network) -> String {
    let class = Class::of(script);
    match address(script, network) {
        Some(address) => format!("{class} {address}"),
        None => class.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use hex_conservative::FromHex as _;

    use super::*;

    fn shown(script: &str, network: Network) -> Option<String> {
        address(&Vec::from_hex(script).unwrap(), network)
    }

    /// Scripts and addresses as Core and the BIPs pair them.
    #[test]
    fn addresses_of_every_kind_and_network() {
        let p2pkh = "76a91462e907b15cbf27d5425399ebf6f0fb50ebb88f1888ac";
        let p2wpkh = "0014751e76e8199196d454941c45d1b3a323f1433bd6";
        for (script, network, expected) in [
            (p2pkh, Network::Mainnet, Some("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa")),
            (p2pkh, Network::Bsv, Some("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa")),
            (p2pkh, Network::BsvRegtest, Some("mpXwg4jMtRhuSpVq4xS3HFHmCmWp9NyGKt")),
            (p2wpkh, Network::Mainnet, Some("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4")),
            (p2wpkh, Network::Signet, Some("tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx")),
            (p2wpkh, Network::Testnet4, Some("tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx")),
            (p2wpkh, Network::Regtest, Some("bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080")),
            (p2wpkh, Network::Bsv, None),
            (
                "512079be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
                Network::Mainnet,
                Some("bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0"),
            ),
            ("51024e73", Network::Mainnet, Some("bc1pfeessrawgf")),
            ("6a0102", Network::Mainnet, None),
            ("", Network::Mainnet, None),
        ] {
            assert_eq!(shown(script, network).as_deref(), expected, "{script} on {network}");
        }
    }
}
