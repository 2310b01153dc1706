//! A transaction as Core's `getrawtransaction` prints it, which Electrum's `transaction.get` with
//! `verbose` and REST clients of Core expect.

use hex_conservative::DisplayHex as _;
use serde::{Serialize, Serializer};
use varve::types::script::opcode::{OP_16, OP_RETURN};
use varve::types::script::{Class, Instructions};
use varve::types::{Tx, TxIn, TxOut, Witness, address};
use varve::{Amount, BlockHeader, Network, Tip};

use super::{asm, hex};

/// A transaction with its decoded parts.
#[derive(Debug, Serialize)]
pub struct VerboseTx<'a> {
    txid: String,
    hash: String,
    version: u32,
    size: usize,
    vsize: usize,
    weight: usize,
    locktime: u32,
    vin: Vec<Input<'a>>,
    vout: Vec<Output<'a>>,
    #[serde(serialize_with = "hex")]
    hex: &'a [u8],
    #[serde(flatten)]
    place: Option<Place>,
}

/// Where a confirmed transaction is.
#[derive(Debug, Serialize)]
struct Place {
    blockhash: String,
    confirmations: u32,
    time: u32,
    blocktime: u32,
}

#[derive(Debug, Serialize)]
struct Input<'a> {
    #[serde(flatten)]
    source: Source<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    txinwitness: Vec<String>,
    sequence: u32,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Source<'a> {
    Coinbase {
        #[serde(serialize_with = "hex")]
        coinbase: &'a [u8],
    },
    Output {
        txid: String,
        vout: u32,
        #[serde(rename = "scriptSig")]
        script: InputScript<'a>,
    },
}

#[derive(Debug, Serialize)]
struct InputScript<'a> {
    asm: String,
    #[serde(serialize_with = "hex")]
    hex: &'a [u8],
}

#[derive(Debug, Serialize)]
struct Output<'a> {
    #[serde(serialize_with = "coins")]
    value: Amount,
    n: usize,
    #[serde(rename = "scriptPubKey")]
    script: OutputScript<'a>,
}

#[derive(Debug, Serialize)]
struct OutputScript<'a> {
    asm: String,
    #[serde(serialize_with = "hex")]
    hex: &'a [u8],
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(rename = "type")]
    kind: &'static str,
}

impl<'a> VerboseTx<'a> {
    /// A transaction, with its block when the confirmed chain has it.
    #[must_use]
    pub fn new(tx: &Tx<'a>, network: Network, block: Option<(&BlockHeader, Tip)>) -> Self {
        let weight = 3 * tx.base_len() + tx.bytes().len();
        let is_coinbase = tx.is_coinbase();
        let inputs = tx.inputs().zip(tx.witnesses());
        Self {
            txid: tx.txid().to_string(),
            hash: tx.wtxid().to_string(),
            version: tx.version(),
            size: tx.bytes().len(),
            vsize: weight.div_ceil(4),
            weight,
            locktime: tx.lock_time(),
            vin: inputs.map(|(input, witness)| Input::new(&input, &witness, is_coinbase)).collect(),
            vout: tx.outputs().enumerate().map(|place| Output::new(place, network)).collect(),
            hex: tx.bytes(),
            place: block.map(|(block, tip)| Place {
                blockhash: block.hash.to_string(),
                confirmations: tip.height.since(block.height).map_or(0, |above| above + 1),
                time: block.time,
                blocktime: block.time,
            }),
        }
    }
}

impl<'a> Input<'a> {
    fn new(input: &TxIn<'a>, witness: &Witness<'a>, is_coinbase: bool) -> Self {
        let source = if is_coinbase {
            Source::Coinbase { coinbase: input.script }
        } else {
            Source::Output {
                txid: input.outpoint.txid.to_string(),
                vout: input.outpoint.vout,
                script: InputScript { asm: asm::of_input(input.script), hex: input.script },
            }
        };
        let txinwitness = witness.items().map(|item| item.to_lower_hex_string()).collect();
        Self { source, txinwitness, sequence: input.sequence }
    }
}

impl<'a> Output<'a> {
    fn new((n, output): (usize, TxOut<'a>), network: Network) -> Self {
        let TxOut { value, script } = output;
        let class = Class::of(script);
        let address = address::encode(script, network);
        let script = OutputScript {
            asm: asm::of_output(script),
            hex: script,
            address,
            kind: kind(class, script),
        };
        Self { value, n, script }
    }
}

/// Core's word for a class.
fn kind(class: Class, script: &[u8]) -> &'static str {
    match class {
        Class::P2pk => "pubkey",
        Class::P2pkh => "pubkeyhash",
        Class::P2sh => "scripthash",
        Class::P2wpkh => "witness_v0_keyhash",
        Class::P2wsh => "witness_v0_scripthash",
        Class::P2tr => "witness_v1_taproot",
        Class::P2a => "anchor",
        Class::OtherWitness => "witness_unknown",
        Class::Multisig => "multisig",
        Class::OpReturn if pushes_alone(script) => "nulldata",
        Class::OpReturn | Class::Nonstandard => "nonstandard",
    }
}

/// Whether nothing but pushes follows `OP_RETURN`.
fn pushes_alone(script: &[u8]) -> bool {
    let rest = script.strip_prefix(&[OP_RETURN]).unwrap_or(script);
    Instructions::new(rest).all(|step| step.is_ok_and(|step| step.opcode <= OP_16))
}

/// An amount in coins, with eight decimals, as a number.
fn coins<S: Serializer>(amount: &Amount, serializer: S) -> Result<S::Ok, S::Error> {
    let text = serde_json::value::RawValue::from_string(amount.to_string());
    text.map_err(serde::ser::Error::custom)?.serialize(serializer)
}
