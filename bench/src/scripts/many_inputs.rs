//! A chain with a block that is one transaction of many inputs, each with its signature.
//!
//! ```text
//! 1 ‥ 100   a coinbase each, to a script that anyone can satisfy
//! 101       a transaction that spends the first of them, with one output for each input to come
//! 102       the transaction that spends all of these
//! 103       a coinbase
//! ```
//!
//! Block 102 is timed with the one above it, so that it is not the tip when it is checked. Every
//! input has its own keys, so that a cache of parsed keys does not help.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::Result;
use bitcoin::absolute::LockTime;
use bitcoin::block::{Header, Version as BlockVersion};
use bitcoin::consensus::serialize;
use bitcoin::hashes::Hash as _;
use bitcoin::opcodes::all::{OP_CHECKMULTISIG, OP_PUSHNUM_1};
use bitcoin::secp256k1::{All, Keypair, Message, Secp256k1, SecretKey};
use bitcoin::sighash::{EcdsaSighashType, Prevouts, SighashCache, TapSighashType};
use bitcoin::transaction::Version;
use bitcoin::{
    Amount, Block, BlockHash, CompactTarget, CompressedPublicKey, Network, OutPoint, PublicKey,
    ScriptBuf, Sequence, TapTweakHash, Target, Transaction, TxIn, TxMerkleNode, TxOut, Witness,
    constants,
};

/// The height below the large transaction.
pub(super) const BELOW: u32 = 101;
/// The height of the tip.
pub(super) const TOP: u32 = 103;
const VALUE: Amount = Amount::from_sat(10_000);
/// Every second hash is good.
const BITS: u32 = 0x207f_ffff;
/// After the genesis block, ten minutes a block.
const TIME: u32 = 1_600_000_000;

/// What kind of outputs is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Wpkh,
    /// A taproot output by its key.
    Taproot,
    /// 2 of 3 in a witness script.
    Wsh,
    ShWpkh,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Wpkh, Self::Taproot, Self::Wsh, Self::ShWpkh];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Wpkh => "p2wpkh",
            Self::Taproot => "p2tr",
            Self::Wsh => "p2wsh-2-of-3",
            Self::ShWpkh => "p2sh-p2wpkh",
        }
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Inputs that fit into a block of 4 million weight units.
    pub(super) const fn inputs(self) -> u32 {
        match self {
            Self::Wpkh | Self::Taproot => 14_700,
            Self::Wsh => 9_400,
            Self::ShWpkh => 10_900,
        }
    }
}

/// Writes the chain as a block file into a folder.
pub(super) fn write(folder: &Path, kind: Kind) -> Result<()> {
    fs::create_dir_all(folder)?;
    let mut out = BufWriter::new(File::create(folder.join("blk00000.dat"))?);
    let mut put = |block: &Block| -> Result<BlockHash> {
        let bytes = serialize(block);
        out.write_all(&Network::Regtest.magic().to_bytes())?;
        out.write_all(&u32::try_from(bytes.len())?.to_le_bytes())?;
        out.write_all(&bytes)?;
        Ok(block.block_hash())
    };
    let mut tip = put(&constants::genesis_block(Network::Regtest))?;
    let mut first = None;
    let signer = Signer::new(kind);
    let mut fan = None;
    for height in 1..=TOP {
        let txs = match height {
            101 => vec![signer.fan(first.unwrap_or_default())],
            102 => fan.iter().map(|fan| signer.large(fan)).collect(),
            _ => Vec::new(),
        };
        let block = mine(height, tip, txs);
        tip = put(&block)?;
        first =
            first.or_else(|| block.txdata.first().map(|tx| OutPoint::new(tx.compute_txid(), 0)));
        fan = block.txdata.get(1).cloned().or(fan);
    }
    Ok(out.flush()?)
}

/// A block above `previous`, with a witness commitment.
fn mine(height: u32, previous: BlockHash, txs: Vec<Transaction>) -> Block {
    let anyone = || ScriptBuf::builder().push_opcode(OP_PUSHNUM_1).into_script();
    let coinbase = Transaction {
        version: Version::TWO,
        lock_time: LockTime::ZERO,
        input: vec![TxIn {
            script_sig: ScriptBuf::builder().push_int(height.into()).push_int(0).into_script(),
            sequence: Sequence::MAX,
            witness: Witness::from_slice(&[[0_u8; 32]]),
            ..TxIn::default()
        }],
        output: vec![TxOut { value: Amount::from_int_btc(50), script_pubkey: anyone() }],
    };
    let header = Header {
        version: BlockVersion::from_consensus(0x2000_0000),
        prev_blockhash: previous,
        merkle_root: TxMerkleNode::all_zeros(),
        time: TIME + height * 600,
        bits: CompactTarget::from_consensus(BITS),
        nonce: 0,
    };
    let mut block = Block { header, txdata: [vec![coinbase], txs].concat() };
    let root = block.witness_root().expect("there is a coinbase");
    let commitment = Block::compute_witness_commitment(&root, &[0; 32]);
    let script = [&[0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed][..], commitment.as_byte_array()].concat();
    let output = TxOut { value: Amount::ZERO, script_pubkey: ScriptBuf::from_bytes(script) };
    block.txdata.iter_mut().take(1).for_each(|coinbase| coinbase.output.push(output.clone()));
    block.header.merkle_root = block.compute_merkle_root().expect("there is a coinbase");
    let target = Target::from_compact(CompactTarget::from_consensus(BITS));
    while block.header.validate_pow(target).is_err() {
        block.header.nonce += 1;
    }
    block
}

/// Makes the keys of each input, and signs with them.
struct Signer {
    kind: Kind,
    secp: Secp256k1<All>,
}

/// The keys of one input. All kinds but [`Kind::Wsh`] take the first alone.
type Keys = [Keypair; 3];

impl Signer {
    fn new(kind: Kind) -> Self {
        Self { kind, secp: Secp256k1::new() }
    }

    fn keys(&self, number: usize) -> Keys {
        [1, 2, 3].map(|byte| {
            let mut secret = [byte; 32];
            secret[24..].copy_from_slice(&(number as u64).to_be_bytes());
            let secret = SecretKey::from_slice(&secret).expect("below the group order");
            Keypair::from_secret_key(&self.secp, &secret)
        })
    }

    /// A transaction that pays to all inputs of the large one.
    fn fan(&self, spent: OutPoint) -> Transaction {
        let output =
            |number| TxOut { value: VALUE, script_pubkey: self.script(&self.keys(number)) };
        Transaction {
            version: Version::TWO,
            lock_time: LockTime::ZERO,
            input: vec![TxIn { previous_output: spent, ..TxIn::default() }],
            output: (0..self.kind.inputs() as usize).map(output).collect(),
        }
    }

    /// The transaction that spends all outputs of `fan`.
    fn large(&self, fan: &Transaction) -> Transaction {
        let txid = fan.compute_txid();
        let input = |vout| TxIn { previous_output: OutPoint::new(txid, vout), ..TxIn::default() };
        let script_pubkey = ScriptBuf::builder().push_opcode(OP_PUSHNUM_1).into_script();
        let mut tx = Transaction {
            version: Version::TWO,
            lock_time: LockTime::ZERO,
            input: (0..self.kind.inputs()).map(input).collect(),
            output: vec![TxOut { value: VALUE, script_pubkey }],
        };
        let unsigned = tx.clone();
        let mut cache = SighashCache::new(&unsigned);
        for (number, input) in tx.input.iter_mut().enumerate() {
            let signed = self.answer(&mut cache, number, &fan.output);
            (input.script_sig, input.witness) = signed.expect("the signed input exists");
        }
        tx
    }

    fn script(&self, keys: &Keys) -> ScriptBuf {
        match self.kind {
            Kind::Wpkh => wpkh(keys),
            Kind::ShWpkh => ScriptBuf::new_p2sh(&wpkh(keys).script_hash()),
            Kind::Wsh => ScriptBuf::new_p2wsh(&multisig(keys).wscript_hash()),
            Kind::Taproot => ScriptBuf::new_p2tr(&self.secp, keys[0].x_only_public_key().0, None),
        }
    }

    fn ecdsa(&self, key: &Keypair, digest: [u8; 32]) -> Vec<u8> {
        let message = Message::from_digest(digest);
        let signature = self.secp.sign_ecdsa(&message, &key.secret_key());
        [&signature.serialize_der()[..], &[1]].concat()
    }

    /// The signature script and the witness of an input.
    fn answer(
        &self,
        cache: &mut SighashCache<&Transaction>,
        number: usize,
        spent: &[TxOut],
    ) -> Result<(ScriptBuf, Witness)> {
        let sighash = EcdsaSighashType::All;
        let keys = self.keys(number);
        let [first, second, _] = &keys;
        Ok(match self.kind {
            Kind::Wpkh | Kind::ShWpkh => {
                let script = wpkh(&keys);
                let digest = cache.p2wpkh_signature_hash(number, &script, VALUE, sighash)?;
                let signature = self.ecdsa(first, digest.to_byte_array());
                let items = [signature, public(&keys).to_bytes().to_vec()];
                let push = <&bitcoin::script::PushBytes>::try_from(script.as_bytes())?;
                let script_sig = match self.kind {
                    Kind::ShWpkh => ScriptBuf::builder().push_slice(push).into_script(),
                    _ => ScriptBuf::new(),
                };
                (script_sig, Witness::from_slice(&items))
            }
            Kind::Wsh => {
                let script = multisig(&keys);
                let digest = cache.p2wsh_signature_hash(number, &script, VALUE, sighash)?;
                let sign = |key| self.ecdsa(key, digest.to_byte_array());
                let items = [vec![], sign(first), sign(second), script.into_bytes()];
                (ScriptBuf::new(), Witness::from_slice(&items))
            }
            Kind::Taproot => {
                let sighash = TapSighashType::Default;
                let prevouts = Prevouts::All(spent);
                let digest = cache.taproot_key_spend_signature_hash(number, &prevouts, sighash)?;
                let tweak = TapTweakHash::from_key_and_tweak(first.x_only_public_key().0, None);
                let tweaked = first.add_xonly_tweak(&self.secp, &tweak.to_scalar())?;
                let message = Message::from_digest(digest.to_byte_array());
                let signature = self.secp.sign_schnorr_no_aux_rand(&message, &tweaked);
                (ScriptBuf::new(), Witness::from_slice(&[signature.as_ref()]))
            }
        })
    }
}

fn public(keys: &Keys) -> CompressedPublicKey {
    CompressedPublicKey(keys[0].public_key())
}

fn wpkh(keys: &Keys) -> ScriptBuf {
    ScriptBuf::new_p2wpkh(&public(keys).wpubkey_hash())
}

fn multisig(keys: &Keys) -> ScriptBuf {
    let push = |builder: bitcoin::script::Builder, key: &Keypair| {
        builder.push_key(&PublicKey::new(key.public_key()))
    };
    let builder = keys.iter().fold(ScriptBuf::builder().push_int(2), push);
    builder.push_int(3).push_opcode(OP_CHECKMULTISIG).into_script()
}
