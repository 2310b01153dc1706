//! The shapes of Esplora's answers. Amounts are satoshi; hashes are shown as Bitcoin programs show
//! them, bytes are hex.

mod figures;

pub(crate) use figures::{Address, Mempool, Recent, Script, Stats, Summary, Sums, Utxo};

use std::borrow::Cow;

use hex_conservative::DisplayHex as _;
use serde::Serialize;
use utoipa::ToSchema;
use varve::types::script::{Class, Instructions};
use varve::types::{Tx as TxView, TxIn, Witness, address};
use varve::{Amount, BlockHash, BlockHeader, Network, Txid};

use super::super::api::{BlockSize, total};
use super::asm::asm;

/// A transaction.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = esplora::Tx)]
pub(crate) struct Tx {
    txid: String,
    version: u32,
    locktime: u32,
    vin: Vec<Vin>,
    vout: Vec<Vout>,
    /// Bytes, with the witness.
    size: u64,
    weight: u64,
    /// `null` where an output that it spends was pruned.
    fee: Option<u64>,
    status: Status,
}

/// An input.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = esplora::Vin)]
struct Vin {
    txid: String,
    vout: u32,
    /// The output that it spends; `null` for a coinbase, and where it was pruned.
    prevout: Option<Vout>,
    scriptsig: String,
    scriptsig_asm: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    witness: Vec<String>,
    is_coinbase: bool,
    sequence: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    inner_redeemscript_asm: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inner_witnessscript_asm: Option<String>,
}

/// An output.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = esplora::Vout)]
pub(crate) struct Vout {
    scriptpubkey: String,
    scriptpubkey_asm: String,
    scriptpubkey_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    scriptpubkey_address: Option<String>,
    value: u64,
}

/// Whether and where a transaction is confirmed.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[schema(as = esplora::Status)]
pub(crate) struct Status {
    pub(crate) confirmed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) block_height: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) block_hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) block_time: Option<u32>,
}

impl Status {
    /// Of a transaction in this block, which may be stale.
    pub(crate) fn of(block: &BlockHeader) -> Self {
        if !block.confirmed {
            return Self::default();
        }
        Self {
            confirmed: true,
            block_height: Some(block.height.to_u32()),
            block_hash: Some(shown(block.hash.to_bytes())),
            block_time: Some(block.time),
        }
    }
}

/// The output that an input spends: its value and its script.
pub(crate) type Prevout<'a> = (Amount, Cow<'a, [u8]>);

/// What a transaction is shown from.
pub(crate) struct TxParts<'a> {
    pub(crate) txid: Txid,
    pub(crate) view: TxView<'a>,
    pub(crate) size: u64,
    pub(crate) weight: u64,
    /// One for each input; `None` where it is not known.
    pub(crate) prevouts: Vec<Option<Prevout<'a>>>,
    pub(crate) status: Status,
}

impl Tx {
    pub(crate) fn new(parts: &TxParts<'_>, network: Network) -> Self {
        let TxParts { view, prevouts, .. } = parts;
        let inputs = view.inputs().zip(view.witnesses()).zip(prevouts);
        let vin = inputs.map(|((input, witness), prevout)| {
            Vin::new(&input, &witness, prevout.as_ref(), network)
        });
        Self {
            txid: shown(parts.txid.to_bytes()),
            version: view.version(),
            locktime: view.lock_time(),
            vin: vin.collect(),
            vout: view.outputs().map(|out| Vout::new(out.value, out.script, network)).collect(),
            size: parts.size,
            weight: parts.weight,
            fee: fee(view, prevouts),
            status: parts.status.clone(),
        }
    }
}

/// What a transaction pays to its miner; `None` where an output that it spends is not known.
fn fee(view: &TxView<'_>, prevouts: &[Option<Prevout<'_>>]) -> Option<u64> {
    if view.is_coinbase() {
        return Some(0);
    }
    let spent: Option<Vec<Amount>> =
        prevouts.iter().map(|prevout| prevout.as_ref().map(|(value, _)| *value)).collect();
    let paid = total(view.outputs().map(|output| output.value));
    Some(total(spent?.into_iter()).saturating_sub(paid))
}

impl Vin {
    fn new(
        input: &TxIn<'_>,
        witness: &Witness<'_>,
        prevout: Option<&Prevout<'_>>,
        network: Network,
    ) -> Self {
        let inner = prevout.map(|(_, script)| inner_scripts(script, input.script, witness));
        let (redeem, witness_script) = inner.unwrap_or_default();
        Self {
            txid: shown(input.outpoint.txid.to_bytes()),
            vout: input.outpoint.vout,
            prevout: prevout.map(|(value, script)| Vout::new(*value, script, network)),
            scriptsig: input.script.to_lower_hex_string(),
            scriptsig_asm: asm(input.script),
            witness: witness.items().map(|item| item.to_lower_hex_string()).collect(),
            is_coinbase: input.outpoint.is_null(),
            sequence: input.sequence,
            inner_redeemscript_asm: redeem.map(asm),
            inner_witnessscript_asm: witness_script.map(asm),
        }
    }
}

impl Vout {
    pub(crate) fn new(value: Amount, script: &[u8], network: Network) -> Self {
        Self {
            scriptpubkey: script.to_lower_hex_string(),
            scriptpubkey_asm: asm(script),
            scriptpubkey_type: script_type(script),
            scriptpubkey_address: address::encode(script, network),
            value: value.to_sat(),
        }
    }
}

/// Esplora's name of a kind of script.
fn script_type(script: &[u8]) -> &'static str {
    if script.is_empty() {
        return "empty";
    }
    match Class::of(script) {
        Class::P2pk => "p2pk",
        Class::P2pkh => "p2pkh",
        Class::P2sh => "p2sh",
        Class::P2wpkh => "v0_p2wpkh",
        Class::P2wsh => "v0_p2wsh",
        Class::P2tr => "v1_p2tr",
        Class::P2a => "anchor",
        Class::OpReturn => "op_return",
        Class::Multisig => "multisig",
        Class::OtherWitness | Class::Nonstandard => "unknown",
    }
}

/// The scripts that an input reveals: the redeem script of P2SH, and the witness script of P2WSH
/// or of a script path of taproot.
fn inner_scripts<'a>(
    spent: &[u8],
    script_sig: &'a [u8],
    witness: &Witness<'a>,
) -> (Option<&'a [u8]>, Option<&'a [u8]>) {
    let class = Class::of(spent);
    let last_push = || Instructions::new(script_sig).last()?.ok()?.data;
    let redeem = if class == Class::P2sh { last_push() } else { None };
    let is_nested = redeem.is_some_and(|redeem| Class::of(redeem) == Class::P2wsh);
    let witness_script = match class {
        Class::P2tr => tapscript(witness),
        Class::P2wsh => witness.items().last(),
        _ if is_nested => witness.items().last(),
        _ => None,
    };
    (redeem, witness_script)
}

/// The script of a script path (BIP341): the last item but one, once the annex is taken off.
fn tapscript<'a>(witness: &Witness<'a>) -> Option<&'a [u8]> {
    const ANNEX: u8 = 0x50;
    let has_annex = witness.len() >= 2
        && witness.items().last().is_some_and(|last| last.first() == Some(&ANNEX));
    let from_the_end = if has_annex { 3 } else { 2 };
    witness.items().nth(witness.len().checked_sub(from_the_end)?)
}

/// A block.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = esplora::Block)]
pub(crate) struct Block {
    id: String,
    height: u32,
    version: u32,
    timestamp: u32,
    tx_count: usize,
    size: usize,
    weight: usize,
    merkle_root: String,
    previousblockhash: Option<String>,
    mediantime: u32,
    nonce: u32,
    bits: u32,
    difficulty: f64,
}

impl Block {
    pub(crate) fn new(header: &BlockHeader, size: BlockSize) -> Self {
        Self {
            id: shown(header.hash.to_bytes()),
            height: header.height.to_u32(),
            version: header.version.cast_unsigned(),
            timestamp: header.time,
            tx_count: size.tx_count,
            size: size.size,
            weight: size.weight,
            merkle_root: shown(header.merkle_root.to_bytes()),
            previousblockhash: header.previous.map(|hash| shown(hash.to_bytes())),
            mediantime: header.median_time,
            nonce: header.nonce,
            bits: header.bits,
            difficulty: difficulty(header.bits),
        }
    }
}

/// How many times the easiest target of mainnet a target is, as Core computes it.
fn difficulty(bits: u32) -> f64 {
    const EASIEST_EXPONENT: i32 = 0x1d;
    let [exponent, mantissa @ ..] = bits.to_be_bytes();
    let mantissa = mantissa.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte));
    if mantissa == 0 {
        return 0.0;
    }
    let steps = EASIEST_EXPONENT - i32::from(exponent);
    f64::from(0xffff_u32) / f64::from(mantissa) * 256_f64.powi(steps)
}

/// Whether a block is in the best chain, and which one follows it there.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = esplora::BlockStatus)]
pub(crate) struct BlockStatus {
    pub(crate) in_best_chain: bool,
    pub(crate) height: Option<u32>,
    pub(crate) next_best: Option<String>,
}

/// Whether an output is spent, and by which input.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = esplora::Outspend)]
pub(crate) struct Outspend {
    pub(crate) spent: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) txid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) vin: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<Status>,
}

/// A merkle proof as Electrum's servers give it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = esplora::MerkleProof)]
pub(crate) struct MerkleProof {
    pub(crate) block_height: u32,
    /// The sibling at each level of the tree, from below.
    pub(crate) merkle: Vec<String>,
    pub(crate) pos: u64,
}

/// 32 bytes in the order in which hashes are shown: the last one first.
pub(crate) fn shown(mut bytes: [u8; 32]) -> String {
    bytes.reverse();
    bytes.to_lower_hex_string()
}

/// The hash of a block as text.
pub(crate) fn block_hash(hash: BlockHash) -> String {
    shown(hash.to_bytes())
}

/// The hash of a transaction as text.
pub(crate) fn txid(txid: Txid) -> String {
    shown(txid.to_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difficulties_as_core_shows_them() {
        assert!((difficulty(0x1d00_ffff) - 1.0).abs() < f64::EPSILON);
        assert!((difficulty(0x1b04_04cb) - 16_307.420_938_523_983).abs() < 1e-6);
        assert!((difficulty(0x207f_ffff) - 4.656_542_373_906_925e-10).abs() < 1e-20);
        assert!(difficulty(0).abs() < f64::EPSILON);
    }
}
