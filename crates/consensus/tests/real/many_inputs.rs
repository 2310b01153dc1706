//! A transaction as large as a block: 14,700 inputs of P2WPKH, each with its signature.
//!
//! The verifier used to parse and hash the whole transaction for each input, which took minutes.
//! Now it is prepared once, whatever the number of inputs and threads; so preparations are
//! counted, not seconds.

use std::num::NonZeroUsize;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use bitcoin::hashes::Hash as _;
use bitcoin::secp256k1::{All, Message, Secp256k1, SecretKey};
use bitcoin::sighash::{EcdsaSighashType, SighashCache};
use varve_consensus::contract::draft::{BlockDraft, TxDraft};
use varve_consensus::{
    BlockAt, CheckError, CoreTx, CoreVerifier, MemorySet, OwnedCoin, Params, ScriptError,
    ScriptVerifier, SpendingTx, VerifyError, check_scripts,
};
use varve_types::{Amount, Height, Network, Outpoint, Txid};

use crate::load;

/// As many as fit into a block's weight.
const INPUTS: u32 = 14_700;
const VALUE: u64 = 10_000;
/// 2^48 bytes.
const STACK: &str = "281474976710656";

/// Core's verifier, which counts the transactions that it prepares.
#[derive(Default)]
struct Counting {
    prepared: AtomicUsize,
}

impl ScriptVerifier for Counting {
    type Prepared = CoreTx;

    fn prepare(&self, tx: &SpendingTx<'_>) -> Result<CoreTx, VerifyError> {
        self.prepared.fetch_add(1, Ordering::Relaxed);
        CoreVerifier.prepare(tx)
    }
}

struct Keys {
    secp: Secp256k1<All>,
    secret: SecretKey,
}

impl Keys {
    fn new() -> Self {
        Self { secp: Secp256k1::new(), secret: SecretKey::from_slice(&[7; 32]).unwrap() }
    }

    fn public(&self) -> bitcoin::CompressedPublicKey {
        bitcoin::CompressedPublicKey(self.secret.public_key(&self.secp))
    }

    fn script(&self) -> bitcoin::ScriptBuf {
        bitcoin::ScriptBuf::new_p2wpkh(&self.public().wpubkey_hash())
    }
}

/// A block with a small transaction and one with `inputs` inputs, and the set below it.
fn block_and_set(inputs: u32) -> (BlockDraft, MemorySet) {
    let keys = Keys::new();
    let mut set = MemorySet::new(Network::Regtest);
    let outpoints: Vec<_> =
        (0..=inputs).map(|vout| Outpoint::new(Txid::from_bytes([5; 32]), vout)).collect();
    for outpoint in &outpoints {
        let script = keys.script().into_bytes();
        let value = Amount::from_sat(VALUE);
        set.insert(*outpoint, OwnedCoin { height: Height::new(1), coinbase: false, value, script });
    }
    let (first, others) = outpoints.split_first().unwrap();
    let mut small = TxDraft::spending(&[*first], 1);
    let mut large = TxDraft::spending(others, 1);
    sign(&mut small, &keys);
    sign(&mut large, &keys);
    (BlockDraft::new(vec![TxDraft::coinbase(Height::new(2), 0), small, large]), set)
}

fn sign(draft: &mut TxDraft, keys: &Keys) {
    let tx: bitcoin::Transaction = bitcoin::consensus::deserialize(&draft.bytes()).unwrap();
    let mut cache = SighashCache::new(&tx);
    for (number, input) in draft.inputs.iter_mut().enumerate() {
        let (script, value) = (keys.script(), bitcoin::Amount::from_sat(VALUE));
        let sighash = EcdsaSighashType::All;
        let digest = cache.p2wpkh_signature_hash(number, &script, value, sighash).unwrap();
        let message = Message::from_digest(digest.to_byte_array());
        let signature = keys.secp.sign_ecdsa(&message, &keys.secret).serialize_der();
        input.script.clear();
        input.witness = vec![[&signature[..], &[1]].concat(), keys.public().to_bytes().to_vec()];
    }
}

/// The input that fails first, if any, and the transactions that were prepared.
fn check(block: &[u8], set: &MemorySet, threads: usize) -> (Option<(Txid, usize)>, usize) {
    let block = load::parse(block);
    let block = BlockAt::new(Height::new(2), &block);
    let (verifier, params) = (Counting::default(), Params::new(Network::Regtest));
    let threads = NonZeroUsize::new(threads).unwrap();
    let failed = match check_scripts(&params, &block, set, &verifier, threads) {
        Ok(()) => None,
        Err(CheckError::Invalid(ScriptError::Failed { txid, vin, .. })) => Some((txid, vin)),
        Err(other) => panic!("{other:?}"),
    };
    (failed, verifier.prepared.into_inner())
}

#[test]
fn a_transaction_of_14700_inputs_is_prepared_once() {
    let (mut draft, mut set) = block_and_set(INPUTS);
    let good = draft.bytes();
    for threads in [1, 2, 5] {
        assert_eq!(check(&good, &set, threads), (None, 2), "{threads} threads");
    }
    // Damaged signatures do not change the txid.
    let txid = load::parse(&good).txids()[2];
    for broken in [14_699, 12_000, 9_001] {
        draft.txs[2].inputs[broken].witness[0][9] ^= 1;
        for threads in [1, 2, 5] {
            let found = check(&draft.bytes(), &set, threads);
            assert_eq!(found, (Some((txid, broken)), 2), "{threads} threads");
        }
    }
    // The spent output is signed too: its amount and its script.
    let outpoint = draft.txs[2].inputs[300].outpoint;
    let coin = |value: u64, script: &[u8]| OwnedCoin {
        height: Height::new(1),
        coinbase: false,
        value: Amount::from_sat(value),
        script: script.to_vec(),
    };
    let script = [&[0, 20][..], &[9; 20]].concat();
    for other in [coin(VALUE + 1, Keys::new().script().as_bytes()), coin(VALUE, &script)] {
        set.insert(outpoint, other);
        assert_eq!(check(&good, &set, 2), (Some((txid, 300)), 2));
    }
}

/// If the system refuses threads, the caller checks alone. The child's threads would have stacks
/// larger than the address space.
#[test]
fn threads_that_the_system_refuses_are_done_without() {
    if std::env::var_os("RUST_MIN_STACK").is_some_and(|size| size == STACK) {
        assert!(std::thread::Builder::new().spawn(|| {}).is_err(), "threads are refused");
        let (draft, set) = block_and_set(100);
        assert_eq!(check(&draft.bytes(), &set, 5), (None, 2));
        return;
    }
    let name = "many_inputs::threads_that_the_system_refuses_are_done_without";
    let mut child = Command::new(std::env::current_exe().unwrap());
    let child = child.args(["--exact", name, "--test-threads=1"]).env("RUST_MIN_STACK", STACK);
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
