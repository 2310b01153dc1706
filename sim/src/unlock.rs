//! What unlocks a coin: the input's script and witness, signed or a dummy of the same size.
//!
//! | kind | script | witness |
//! |---|---|---|
//! | P2WPKH | – | signature, key |
//! | P2TR | – | 64-byte signature |
//! | inscription | – | 64-byte signature, leaf, control block |
//! | P2PKH | signature, key | – |
//! | P2SH-P2WPKH | the P2WPKH script | signature, key |
//! | P2SH 2 of 3 | `OP_0`, two signatures, redeem script | – |
//! | P2WSH 2 of 3 | – | empty, two signatures, witness script |
//! | P2A | – | – |
//! | P2PK | signature | – |
//! | bare 1 of 2 | `OP_0`, signature | – |
//!
//! The script is part of what the txid hashes, so it is made when the transaction is built. The
//! witness is not, and is made later, by many threads, each transaction's dummies from a stream
//! keyed by its txid.

use varve_types::compact_size;

use crate::coins::Coin;
use crate::keys::Keys;
use crate::rng::Rng;
use crate::script::{Kind, push_data};
use crate::sighash::{ALL, ALL_FORKID, Sighash};

/// One input to unlock.
pub(crate) struct Unlock<'a> {
    pub(crate) keys: &'a Keys,
    pub(crate) coin: &'a Coin,
    pub(crate) index: usize,
    /// Signatures are BSV's.
    pub(crate) bsv: bool,
}

impl Unlock<'_> {
    /// Appends the input's script, without its length.
    pub(crate) fn script(&self, sighash: &mut Sighash<'_>, rng: &mut Rng, out: &mut Vec<u8>) {
        match self.coin.script.kind() {
            Kind::P2pkh => {
                push_short(out, |out| self.legacy_signature(0, sighash, rng, out));
                push_short(out, |out| self.public_key(rng, out));
            }
            Kind::P2pk => push_short(out, |out| self.legacy_signature(0, sighash, rng, out)),
            Kind::Multisig => {
                out.push(0);
                push_short(out, |out| self.legacy_signature(0, sighash, rng, out));
            }
            Kind::P2shMultisig => {
                out.push(0);
                for offset in 0..2 {
                    push_short(out, |out| self.legacy_signature(offset, sighash, rng, out));
                }
                push_data(&self.multisig(rng), out);
            }
            Kind::P2shWpkh => {
                out.extend_from_slice(&[22, 0x00, 20]);
                match self.coin.script.key() {
                    Some(key) => out.extend_from_slice(&self.keys.key(key).hash),
                    None => rng.fill(20, out),
                }
            }
            Kind::P2wpkh | Kind::P2tr | Kind::Inscription | Kind::P2wsh | Kind::P2a => {}
        }
    }

    /// Appends the input's witness: the number of items, and each with its length.
    pub(crate) fn witness(&self, sighash: &mut Sighash<'_>, rng: &mut Rng, out: &mut Vec<u8>) {
        match self.coin.script.kind() {
            Kind::P2wpkh | Kind::P2shWpkh => {
                out.push(2);
                push_short(out, |out| self.segwit_signature(0, sighash, rng, out));
                push_short(out, |out| self.public_key(rng, out));
            }
            Kind::P2tr => {
                out.extend_from_slice(&[1, 64]);
                match self.coin.script.key() {
                    Some(key) => {
                        let digest = sighash.taproot(self.index, None, self.keys);
                        self.keys.sign_taproot(key, digest, out);
                    }
                    None => rng.fill(64, out),
                }
            }
            Kind::Inscription => self.inscription(sighash, rng, out),
            Kind::P2wsh => {
                out.extend_from_slice(&[4, 0]);
                for offset in 0..2 {
                    push_short(out, |out| self.segwit_signature(offset, sighash, rng, out));
                }
                push_item(&self.multisig(rng), out);
            }
            Kind::P2pkh | Kind::P2pk | Kind::Multisig | Kind::P2shMultisig | Kind::P2a => {
                out.push(0);
            }
        }
    }

    fn inscription(&self, sighash: &mut Sighash<'_>, rng: &mut Rng, out: &mut Vec<u8>) {
        out.extend_from_slice(&[3, 64]);
        if let Some(key) = self.coin.script.key() {
            let inscription = self.keys.inscription(key);
            let digest = sighash.taproot(self.index, Some(&inscription.leaf_hash), self.keys);
            self.keys.sign_leaf(key, digest, out);
            push_item(&inscription.leaf, out);
            push_item(&inscription.control, out);
        } else {
            let program = self.coin.script.program(self.keys.seed());
            rng.fill(64, out);
            push_item(&self.keys.leaf(&program), out);
            out.extend_from_slice(&[33, 0xc0]);
            out.extend_from_slice(&program);
        }
    }

    fn legacy_signature(
        &self,
        offset: u32,
        sighash: &mut Sighash<'_>,
        rng: &mut Rng,
        out: &mut Vec<u8>,
    ) {
        let Some(key) = self.coin.script.key() else {
            return dummy_signature(rng, self.sighash_type(), out);
        };
        let mut code = Vec::with_capacity(110);
        if self.coin.script.kind() == Kind::P2shMultisig {
            code.extend_from_slice(&self.keys.scripts(key).multisig);
        } else {
            self.coin.script.write(self.keys, &mut code);
        }
        let digest = if self.bsv {
            sighash.segwit(self.index, &code, ALL_FORKID, self.keys)
        } else {
            sighash.legacy(self.index, &code)
        };
        self.keys.sign_ecdsa(key + offset, digest, self.sighash_type(), out);
    }

    fn segwit_signature(
        &self,
        offset: u32,
        sighash: &mut Sighash<'_>,
        rng: &mut Rng,
        out: &mut Vec<u8>,
    ) {
        let Some(key) = self.coin.script.key() else {
            return dummy_signature(rng, ALL, out);
        };
        let mut code = Vec::with_capacity(110);
        if self.coin.script.kind() == Kind::P2wsh {
            code.extend_from_slice(&self.keys.scripts(key).multisig);
        } else {
            code.extend_from_slice(&[0x76, 0xa9, 20]);
            code.extend_from_slice(&self.keys.key(key).hash);
            code.extend_from_slice(&[0x88, 0xac]);
        }
        let digest = sighash.segwit(self.index, &code, ALL, self.keys);
        self.keys.sign_ecdsa(key + offset, digest, ALL, out);
    }

    fn public_key(&self, rng: &mut Rng, out: &mut Vec<u8>) {
        match self.coin.script.key() {
            Some(key) => out.extend_from_slice(&self.keys.key(key).public),
            None => dummy_key(rng, out),
        }
    }

    fn multisig(&self, rng: &mut Rng) -> Vec<u8> {
        if let Some(key) = self.coin.script.key() {
            return self.keys.scripts(key).multisig.clone();
        }
        let mut script = vec![0x52];
        for _ in 0..3 {
            script.push(33);
            dummy_key(rng, &mut script);
        }
        script.extend_from_slice(&[0x53, 0xae]);
        script
    }

    const fn sighash_type(&self) -> u8 {
        if self.bsv { ALL_FORKID } else { ALL }
    }
}

/// Appends a length and what `write` appends. The length is one byte, and the same in a script and
/// in a witness, since signatures and keys are shorter than 76 bytes.
fn push_short(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.push(0);
    write(out);
    let length = u8::try_from(out.len() - at - 1).expect("signatures and keys are short");
    *out.get_mut(at).expect("the byte was just pushed") = length;
}

fn push_item(item: &[u8], out: &mut Vec<u8>) {
    compact_size::write(item.len() as u64, out);
    out.extend_from_slice(item);
}

/// A compressed key's shape: 2 or 3, and 32 bytes.
fn dummy_key(rng: &mut Rng, out: &mut Vec<u8>) {
    let start = out.len();
    rng.fill(33, out);
    if let Some(first) = out.get_mut(start) {
        *first = 2 + (*first & 1);
    }
}

/// A DER signature's shape. R has its top bit set in half of the real ones and is then 33 bytes
/// long; S is never high, so it is 32.
fn dummy_signature(rng: &mut Rng, sighash: u8, out: &mut Vec<u8>) {
    let start = out.len();
    rng.fill(64, out);
    let (_, random) = out.split_at_mut(start);
    let mut scalars = [0; 64];
    scalars.copy_from_slice(random);
    out.truncate(start);
    let (r, s) = scalars.split_at_mut(32);
    let high = r.first().is_some_and(|byte| byte & 0x80 != 0);
    if let (Some(first_r), Some(first_s)) = (r.first_mut(), s.first_mut()) {
        // Neither may start with a zero byte, which DER would have left out.
        *first_r |= 1;
        *first_s = (*first_s & 0x7f) | 1;
    }
    if high {
        out.extend_from_slice(&[0x30, 69, 0x02, 33, 0]);
    } else {
        out.extend_from_slice(&[0x30, 68, 0x02, 32]);
    }
    out.extend_from_slice(r);
    out.extend_from_slice(&[0x02, 32]);
    out.extend_from_slice(s);
    out.push(sighash);
}
