//! With everything signed, every signature verifies over the digest that the `bitcoin` crate
//! computes; with a share signed, that share does. (Whether whole scripts pass is checked by a real
//! node, in `bitcoind.rs`.)

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where it fails")]

use std::collections::HashMap;

use bitcoin::consensus::deserialize;
use bitcoin::hashes::{Hash as _, sha256d};
use bitcoin::secp256k1::{Message, PublicKey, Secp256k1, VerifyOnly, XOnlyPublicKey};
use bitcoin::sighash::{EcdsaSighashType, Prevouts, SighashCache, TapSighashType};
use bitcoin::taproot::{LeafVersion, TapLeafHash};
use bitcoin::{Block, OutPoint, Script, ScriptBuf, Transaction, TxOut};
use varve_sim::{Chain, Config, Profile};

struct Verifier {
    secp: Secp256k1<VerifyOnly>,
    outputs: HashMap<OutPoint, TxOut>,
    bsv: bool,
    good: u32,
    bad: u32,
}

/// The signatures that verify and those that do not.
fn verify(config: &Config) -> (u32, u32) {
    let mut verifier = Verifier {
        secp: Secp256k1::verification_only(),
        outputs: HashMap::new(),
        bsv: config.profile == Profile::Bsv,
        good: 0,
        bad: 0,
    };
    for generated in Chain::new(config).unwrap() {
        let block: Block = deserialize(&generated.bytes).unwrap();
        for transaction in &block.txdata {
            let txid = transaction.compute_txid();
            for (vout, output) in (0..).zip(&transaction.output) {
                verifier.outputs.insert(OutPoint { txid, vout }, output.clone());
            }
            if !transaction.is_coinbase() {
                verifier.transaction(transaction);
            }
        }
    }
    (verifier.good, verifier.bad)
}

impl Verifier {
    fn transaction(&mut self, transaction: &Transaction) {
        let spent: Vec<TxOut> = transaction
            .input
            .iter()
            .map(|input| self.outputs[&input.previous_output].clone())
            .collect();
        for (index, output) in spent.iter().enumerate() {
            let script = &output.script_pubkey;
            let results = if script.is_p2tr() {
                vec![self.taproot(transaction, index, &spent)]
            } else {
                self.ecdsa(transaction, index, output)
            };
            for result in results {
                if result { self.good += 1 } else { self.bad += 1 }
            }
        }
    }

    fn taproot(&self, transaction: &Transaction, index: usize, spent: &[TxOut]) -> bool {
        let witness = transaction.input[index].witness.to_vec();
        let mut cache = SighashCache::new(transaction);
        let prevouts = Prevouts::All(spent);
        let (digest, key) = if witness.len() == 1 {
            let program = &spent[index].script_pubkey.as_bytes()[2..];
            let all = TapSighashType::Default;
            (cache.taproot_key_spend_signature_hash(index, &prevouts, all).unwrap(), program)
        } else {
            let leaf =
                TapLeafHash::from_script(Script::from_bytes(&witness[1]), LeafVersion::TapScript);
            let all = TapSighashType::Default;
            let digest = cache.taproot_script_spend_signature_hash(index, &prevouts, leaf, all);
            (digest.unwrap(), &witness[1][1..33])
        };
        let signature = bitcoin::secp256k1::schnorr::Signature::from_slice(&witness[0]).unwrap();
        let message = Message::from_digest(digest.to_byte_array());
        let key = XOnlyPublicKey::from_slice(key);
        key.is_ok_and(|key| self.secp.verify_schnorr(&signature, &message, &key).is_ok())
    }

    /// The results of every signature of an input that is not taproot.
    fn ecdsa(&self, transaction: &Transaction, index: usize, spent: &TxOut) -> Vec<bool> {
        let input = &transaction.input[index];
        let pushes: Vec<Vec<u8>> = input
            .script_sig
            .instructions()
            .filter_map(|instruction| Some(instruction.unwrap().push_bytes()?.as_bytes().to_vec()))
            .collect();
        let items = if input.witness.is_empty() { pushes } else { input.witness.to_vec() };
        let is_signature = |item: &&Vec<u8>| item.first() == Some(&0x30) && item.len() > 60;
        let signatures: Vec<&Vec<u8>> = items.iter().filter(is_signature).collect();
        let last = items.last().cloned().unwrap_or_default();
        let spent_script = &spent.script_pubkey;
        let (code, keys) = if spent_script.is_p2pkh() || last.len() == 33 {
            let key = bitcoin::PublicKey::from_slice(&last);
            let Ok(key) = key else { return vec![false; signatures.len()] };
            (ScriptBuf::new_p2pkh(&key.pubkey_hash()), vec![last])
        } else if spent_script.is_p2sh() || spent_script.is_p2wsh() {
            (ScriptBuf::from_bytes(last.clone()), keys_of(&last))
        } else {
            (spent_script.clone(), keys_of(spent_script.as_bytes()))
        };
        let digest = self.digest(transaction, index, spent, &code);
        let check = |(signature, key): (&&Vec<u8>, &Vec<u8>)| {
            let (der, _sighash) = signature.split_at(signature.len() - 1);
            let signature = bitcoin::secp256k1::ecdsa::Signature::from_der(der).unwrap();
            let message = Message::from_digest(digest);
            PublicKey::from_slice(key)
                .is_ok_and(|key| self.secp.verify_ecdsa(&message, &signature, &key).is_ok())
        };
        signatures.iter().zip(&keys).map(check).collect()
    }

    fn digest(&self, tx: &Transaction, index: usize, spent: &TxOut, code: &Script) -> [u8; 32] {
        let mut cache = SighashCache::new(tx);
        let all = EcdsaSighashType::All;
        if self.bsv {
            // FORKID signs BIP143's digest with another type at its end.
            let mut data = Vec::new();
            cache
                .segwit_v0_encode_signing_data_to(&mut data, index, code, spent.value, all)
                .unwrap();
            let length = data.len();
            data[length - 4] = 0x41;
            sha256d::Hash::hash(&data).to_byte_array()
        } else if tx.input[index].witness.is_empty() {
            cache.legacy_signature_hash(index, code, all.to_u32()).unwrap().to_byte_array()
        } else {
            cache.p2wsh_signature_hash(index, code, spent.value, all).unwrap().to_byte_array()
        }
    }
}

/// The keys that a script pushes.
fn keys_of(script: &[u8]) -> Vec<Vec<u8>> {
    Script::from_bytes(script)
        .instructions()
        .filter_map(|instruction| Some(instruction.ok()?.push_bytes()?.as_bytes().to_vec()))
        .filter(|push| push.len() == 33)
        .collect()
}

fn config(profile: Profile, signed_percent: u32) -> Config {
    Config { signed_percent, transactions: Some(60), ..Config::new(profile, 125, 5) }
}

#[test]
fn all_signatures_of_a_signed_chain_verify() {
    for profile in [Profile::Mainnet, Profile::Bsv] {
        let (good, bad) = verify(&config(profile, 100));
        assert!(good > 1_500, "{profile:?} {good}");
        assert_eq!(bad, 0, "{profile:?}");
    }
}

#[test]
fn the_asked_share_of_signatures_verifies() {
    let (good, bad) = verify(&config(Profile::Mainnet, 30));
    let percent = good * 100 / (good + bad);
    assert!((27..=33).contains(&percent), "{percent}");
    let (good, bad) = verify(&config(Profile::Mainnet, 0));
    assert!(good == 0 && bad > 1_500);
}

#[test]
fn dummies_are_as_large_as_signatures() {
    // The mean length of P2WPKH signatures, in hundredths of a byte.
    let mean = |signed| -> usize {
        let (mut count, mut bytes) = (0, 0);
        for generated in Chain::new(&config(Profile::Dense, signed)).unwrap() {
            let block: Block = deserialize(&generated.bytes).unwrap();
            for input in block.txdata.iter().flat_map(|transaction| &transaction.input) {
                if input.witness.len() == 2 {
                    count += 1;
                    bytes += input.witness[0].len();
                }
            }
        }
        bytes * 100 / count
    };
    let (signed, dummies) = (mean(100), mean(0));
    assert!(signed.abs_diff(dummies) <= 10, "{signed} signed, {dummies} dummies");
}
