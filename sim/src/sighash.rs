//! What a signature signs: the legacy, BIP143 and BIP341 digests, with `SIGHASH_ALL`.
//!
//! They are computed from the serialised parts of a transaction that is still being built. The
//! hashes that all inputs share are computed once, when the first input is signed.

use bitcoin::hashes::{Hash as _, HashEngine as _, sha256, sha256d};
use varve_types::compact_size;

use crate::coins::Coin;
use crate::keys::Keys;

/// `SIGHASH_ALL`.
pub(crate) const ALL: u8 = 0x01;
/// `SIGHASH_ALL | SIGHASH_FORKID`: BSV's signatures, which sign the BIP143 digest.
pub(crate) const ALL_FORKID: u8 = 0x41;

pub(crate) const VERSION: [u8; 4] = [2, 0, 0, 0];
pub(crate) const SEQUENCE: [u8; 4] = [0xfd, 0xff, 0xff, 0xff];
pub(crate) const LOCK_TIME: [u8; 4] = [0; 4];

/// The parts of a transaction that its signatures commit to.
pub(crate) struct Sighash<'a> {
    inputs: &'a [Coin],
    /// The serialised outputs, without their number.
    outputs: &'a [u8],
    output_count: usize,
    shared: Option<Shared>,
}

/// Single SHA-256 of each part; BIP143 hashes them once more.
struct Shared {
    prevouts: [u8; 32],
    amounts: [u8; 32],
    scripts: [u8; 32],
    sequences: [u8; 32],
    outputs: [u8; 32],
}

impl<'a> Sighash<'a> {
    pub(crate) const fn new(inputs: &'a [Coin], outputs: &'a [u8], output_count: usize) -> Self {
        Self { inputs, outputs, output_count, shared: None }
    }

    /// The digest of inputs before segwit: the transaction itself, with the script code in the
    /// place of the signed input's script.
    pub(crate) fn legacy(&self, index: usize, script_code: &[u8]) -> [u8; 32] {
        let mut bytes = Vec::with_capacity(self.inputs.len() * 41 + self.outputs.len() + 200);
        bytes.extend_from_slice(&VERSION);
        compact_size::write(self.inputs.len() as u64, &mut bytes);
        for (position, coin) in self.inputs.iter().enumerate() {
            bytes.extend_from_slice(&coin.outpoint().to_bytes());
            let code = if position == index { script_code } else { &[] };
            compact_size::write(code.len() as u64, &mut bytes);
            bytes.extend_from_slice(code);
            bytes.extend_from_slice(&SEQUENCE);
        }
        compact_size::write(self.output_count as u64, &mut bytes);
        bytes.extend_from_slice(self.outputs);
        bytes.extend_from_slice(&LOCK_TIME);
        bytes.extend_from_slice(&[ALL, 0, 0, 0]);
        sha256d::Hash::hash(&bytes).to_byte_array()
    }

    /// The digest of BIP143, for segwit version 0 and for BSV.
    pub(crate) fn segwit(
        &mut self,
        index: usize,
        script_code: &[u8],
        sighash: u8,
        keys: &Keys,
    ) -> [u8; 32] {
        let coin = self.coin(index);
        let shared = self.shared(keys);
        let mut engine = sha256d::Hash::engine();
        engine.input(&VERSION);
        engine.input(sha256::Hash::hash(&shared.prevouts).as_ref());
        engine.input(sha256::Hash::hash(&shared.sequences).as_ref());
        engine.input(&coin.outpoint().to_bytes());
        let mut length = Vec::with_capacity(compact_size::MAX_LEN);
        compact_size::write(script_code.len() as u64, &mut length);
        engine.input(&length);
        engine.input(script_code);
        engine.input(&coin.value.to_le_bytes());
        engine.input(&SEQUENCE);
        engine.input(sha256::Hash::hash(&shared.outputs).as_ref());
        engine.input(&LOCK_TIME);
        engine.input(&[sighash, 0, 0, 0]);
        sha256d::Hash::from_engine(engine).to_byte_array()
    }

    /// The digest of BIP341 with `SIGHASH_DEFAULT`, for the key path or for a leaf.
    pub(crate) fn taproot(
        &mut self,
        index: usize,
        leaf_hash: Option<&[u8; 32]>,
        keys: &Keys,
    ) -> [u8; 32] {
        let shared = self.shared(keys);
        let tag = sha256::Hash::hash(b"TapSighash");
        let mut engine = sha256::Hash::engine();
        engine.input(tag.as_ref());
        engine.input(tag.as_ref());
        // Epoch 0 and sighash type 0.
        engine.input(&[0, 0]);
        engine.input(&VERSION);
        engine.input(&LOCK_TIME);
        engine.input(&shared.prevouts);
        engine.input(&shared.amounts);
        engine.input(&shared.scripts);
        engine.input(&shared.sequences);
        engine.input(&shared.outputs);
        engine.input(&[if leaf_hash.is_some() { 2 } else { 0 }]);
        let position = u32::try_from(index).expect("a transaction has fewer than 2^32 inputs");
        engine.input(&position.to_le_bytes());
        if let Some(leaf_hash) = leaf_hash {
            engine.input(leaf_hash);
            // Key version 0, and no OP_CODESEPARATOR.
            engine.input(&[0, 0xff, 0xff, 0xff, 0xff]);
        }
        sha256::Hash::from_engine(engine).to_byte_array()
    }

    fn coin(&self, index: usize) -> Coin {
        *self.inputs.get(index).expect("the caller signs an input of this transaction")
    }

    fn shared(&mut self, keys: &Keys) -> &Shared {
        let (inputs, outputs) = (self.inputs, self.outputs);
        self.shared.get_or_insert_with(|| Shared::new(inputs, outputs, keys))
    }
}

impl Shared {
    fn new(inputs: &[Coin], outputs: &[u8], keys: &Keys) -> Self {
        let mut prevouts = sha256::Hash::engine();
        let mut amounts = sha256::Hash::engine();
        let mut scripts = sha256::Hash::engine();
        let mut sequences = sha256::Hash::engine();
        let mut script = Vec::with_capacity(80);
        for coin in inputs {
            prevouts.input(&coin.outpoint().to_bytes());
            amounts.input(&coin.value.to_le_bytes());
            sequences.input(&SEQUENCE);
            script.clear();
            coin.script.write(keys, &mut script);
            let length = u8::try_from(script.len()).expect("the kinds' scripts are short");
            scripts.input(&[length]);
            scripts.input(&script);
        }
        Self {
            prevouts: sha256::Hash::from_engine(prevouts).to_byte_array(),
            amounts: sha256::Hash::from_engine(amounts).to_byte_array(),
            scripts: sha256::Hash::from_engine(scripts).to_byte_array(),
            sequences: sha256::Hash::from_engine(sequences).to_byte_array(),
            outputs: sha256::Hash::hash(outputs).to_byte_array(),
        }
    }
}
