//! The class of an output script, and the address that wallets show for it.

use varve::Network;
use varve::types::address;
use varve::types::script::Class;

/// The class of a script, and its address if it has one.
pub(crate) fn described(script: &[u8], network: Network) -> String {
    let class = Class::of(script);
    match address::encode(script, network) {
        Some(address) => format!("{class} {address}"),
        None => class.to_string(),
    }
}
