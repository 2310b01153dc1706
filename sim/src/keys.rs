//! The pool of keys that sign.
//!
//! A few thousand secret keys derived from the seed, and what is computed from them (public keys,
//! taproot tweaks, redeem scripts), each worked out once, when it is first needed, and kept.
//! Signing is deterministic: RFC 6979 for ECDSA, no auxiliary randomness for Schnorr.

use std::sync::OnceLock;

use bitcoin::hashes::{Hash as _, hash160, sha256};
use bitcoin::secp256k1::{All, Keypair, Message, Secp256k1, SecretKey, XOnlyPublicKey};
use bitcoin::taproot::{LeafVersion, TapLeafHash, TapNodeHash, TapTweakHash};

use crate::profile::{Span, Table};
use crate::rng::{Rng, secret};
use crate::script::{Script, push_data, push_len};

/// How many keys there are, as a power of two: `POOL = 2^LEVELS - 1` ranks of [`Rng::rank`].
pub(crate) const LEVELS: u32 = 11;
const POOL: u32 = (1 << LEVELS) - 1;

/// The keys of one chain.
pub(crate) struct Keys {
    seed: u64,
    secp: Secp256k1<All>,
    inscription: &'static [Span],
    slots: Vec<Slot>,
}

#[derive(Default)]
struct Slot {
    key: OnceLock<Key>,
    scripts: OnceLock<Scripts>,
    taproot: OnceLock<Taproot>,
    inscription: OnceLock<Inscription>,
}

/// One key pair.
pub(crate) struct Key {
    secret: SecretKey,
    pub(crate) public: [u8; 33],
    /// HASH160 of the public key.
    pub(crate) hash: [u8; 20],
}

/// Scripts that are paid to by their hash.
pub(crate) struct Scripts {
    /// HASH160 of the key's P2WPKH script.
    pub(crate) nested_wpkh: [u8; 20],
    /// 2 of this key and its next two.
    pub(crate) multisig: Vec<u8>,
    pub(crate) multisig_sh: [u8; 20],
    pub(crate) multisig_wsh: [u8; 32],
}

/// A key tweaked for the key path alone.
pub(crate) struct Taproot {
    keypair: Keypair,
    pub(crate) output: [u8; 32],
}

/// A taproot output with one leaf: a signature check and an inscription.
pub(crate) struct Inscription {
    pub(crate) output: [u8; 32],
    pub(crate) leaf: Vec<u8>,
    pub(crate) leaf_hash: [u8; 32],
    pub(crate) control: [u8; 33],
}

impl Keys {
    pub(crate) fn new(seed: u64, table: &Table) -> Self {
        Self {
            seed,
            secp: Secp256k1::new(),
            inscription: table.inscription,
            slots: (0..POOL).map(|_| Slot::default()).collect(),
        }
    }

    pub(crate) const fn seed(&self) -> u64 {
        self.seed
    }

    /// The key with this index; indexes go round the pool.
    pub(crate) fn key(&self, index: u32) -> &Key {
        self.slot(index).key.get_or_init(|| {
            let bytes = secret(self.seed, "key", index % POOL);
            let secret = SecretKey::from_slice(&bytes).expect("SHA-256 never hits the group order");
            let public = secret.public_key(&self.secp).serialize();
            Key { secret, public, hash: hash160::Hash::hash(&public).to_byte_array() }
        })
    }

    pub(crate) fn scripts(&self, index: u32) -> &Scripts {
        self.slot(index).scripts.get_or_init(|| {
            let mut wpkh = vec![0x00, 20];
            wpkh.extend_from_slice(&self.key(index).hash);
            let mut multisig = vec![0x52];
            for offset in 0..3 {
                push_data(&self.key(index + offset).public, &mut multisig);
            }
            multisig.extend_from_slice(&[0x53, 0xae]);
            Scripts {
                nested_wpkh: hash160::Hash::hash(&wpkh).to_byte_array(),
                multisig_sh: hash160::Hash::hash(&multisig).to_byte_array(),
                multisig_wsh: sha256::Hash::hash(&multisig).to_byte_array(),
                multisig,
            }
        })
    }

    pub(crate) fn taproot(&self, index: u32) -> &Taproot {
        self.slot(index).taproot.get_or_init(|| {
            let (keypair, internal) = self.internal(index);
            let tweak = TapTweakHash::from_key_and_tweak(internal, None).to_scalar();
            let keypair = keypair
                .add_xonly_tweak(&self.secp, &tweak)
                .expect("a hash is never the negation of a key");
            Taproot { output: keypair.x_only_public_key().0.serialize(), keypair }
        })
    }

    pub(crate) fn inscription(&self, index: u32) -> &Inscription {
        self.slot(index).inscription.get_or_init(|| {
            let (keypair, internal) = self.internal(index);
            let leaf = self.leaf(&internal.serialize());
            let script = bitcoin::Script::from_bytes(&leaf);
            let leaf_hash = TapLeafHash::from_script(script, LeafVersion::TapScript);
            let root = TapNodeHash::from(leaf_hash);
            let tweak = TapTweakHash::from_key_and_tweak(internal, Some(root)).to_scalar();
            let (output, parity) = keypair
                .add_xonly_tweak(&self.secp, &tweak)
                .expect("a hash is never the negation of a key")
                .x_only_public_key();
            let mut control = [0xc0 | parity.to_u8(); 33];
            let (_, key) = control.split_at_mut(1);
            key.copy_from_slice(&internal.serialize());
            Inscription {
                output: output.serialize(),
                leaf_hash: leaf_hash.to_byte_array(),
                leaf,
                control,
            }
        })
    }

    /// The length of the leaf that spends an inscription's script.
    pub(crate) fn leaf_len(&self, script: Script) -> usize {
        match script.key() {
            Some(index) => self.inscription(index).leaf.len(),
            None => self.leaf(&script.program(self.seed)).len(),
        }
    }

    /// Appends a DER signature and its sighash byte.
    pub(crate) fn sign_ecdsa(&self, index: u32, digest: [u8; 32], sighash: u8, out: &mut Vec<u8>) {
        let message = Message::from_digest(digest);
        let signature = self.secp.sign_ecdsa(&message, &self.key(index).secret);
        out.extend_from_slice(&signature.serialize_der());
        out.push(sighash);
    }

    /// Appends the 64-byte Schnorr signature of the tweaked key (key path).
    pub(crate) fn sign_taproot(&self, index: u32, digest: [u8; 32], out: &mut Vec<u8>) {
        self.sign_schnorr(&self.taproot(index).keypair, digest, out);
    }

    /// Appends the 64-byte Schnorr signature of the plain key (script path).
    pub(crate) fn sign_leaf(&self, index: u32, digest: [u8; 32], out: &mut Vec<u8>) {
        self.sign_schnorr(&self.internal(index).0, digest, out);
    }

    fn sign_schnorr(&self, keypair: &Keypair, digest: [u8; 32], out: &mut Vec<u8>) {
        let message = Message::from_digest(digest);
        let signature = self.secp.sign_schnorr_no_aux_rand(&message, keypair);
        out.extend_from_slice(signature.as_ref());
    }

    fn internal(&self, index: u32) -> (Keypair, XOnlyPublicKey) {
        let keypair = Keypair::from_secret_key(&self.secp, &self.key(index).secret);
        (keypair, keypair.x_only_public_key().0)
    }

    fn slot(&self, index: u32) -> &Slot {
        self.slots.get((index % POOL) as usize).expect("the index is taken modulo the pool")
    }

    /// `<key> OP_CHECKSIG OP_0 OP_IF "ord" 1 "text/plain" 0 <content, in pushes of 520> OP_ENDIF`,
    /// with a content that follows from the key.
    pub(crate) fn leaf(&self, key: &[u8; 32]) -> Vec<u8> {
        let mut rng = Rng::keyed(*key);
        let mut left = rng.span(self.inscription) as usize;
        let mut leaf = Vec::with_capacity(left + 70 + left / 520 * 3);
        push_data(key, &mut leaf);
        leaf.extend_from_slice(&[0xac, 0x00, 0x63]);
        push_data(b"ord", &mut leaf);
        leaf.extend_from_slice(&[0x01, 0x01]);
        push_data(b"text/plain", &mut leaf);
        leaf.push(0x00);
        while left > 0 {
            let len = left.min(520);
            push_len(len, &mut leaf);
            rng.fill(len, &mut leaf);
            left -= len;
        }
        leaf.push(0x68);
        leaf
    }
}
