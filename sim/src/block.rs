//! Assembling a block: coinbase, witness commitment, merkle root, proof of work.
//!
//! ```text
//! header  │ version 4 │ previous 32 │ merkle root 32 │ time 4 │ bits 4 │ nonce 4 │
//! body    │ CompactSize transactions │ coinbase │ transaction │ … │
//! ```
//!
//! The coinbase's script is the height (BIP34) and eight bytes that make it unique. When a
//! transaction of the block has a witness, its second output commits to all wtxids (BIP141):
//! `OP_RETURN 36 aa21a9ed ‖ SHA256d(witness root ‖ 32 zero bytes)`.

use varve_types::{BlockHash, Height, Network, Txid, compact_size, sha256d};

use varve_types::merkle::merkle_root;

use crate::coins::Coin;
use crate::keys::Keys;
use crate::script::Script;
use crate::transaction::Transaction;

/// The proof-of-work limit of regression test networks, in compact form: every second hash.
const BITS: [u8; 4] = 0x207f_ffff_u32.to_le_bytes();
const BLOCK_VERSION: [u8; 4] = 0x2000_0000_u32.to_le_bytes();

/// A block of the simulated chain, as it would arrive.
#[derive(Clone, Debug)]
pub struct Block {
    /// Its height.
    pub height: u32,
    /// Its hash.
    pub hash: BlockHash,
    /// Its serialisation.
    pub bytes: Vec<u8>,
    /// It will lose to a longer branch.
    pub stale: bool,
}

/// The parts of a block besides its transactions.
pub(crate) struct Template<'a> {
    pub(crate) network: Network,
    pub(crate) height: u32,
    pub(crate) previous: BlockHash,
    pub(crate) time: u32,
    /// Where the coinbase pays to.
    pub(crate) miner: Script,
    /// Distinguishes coinbases of the same height.
    pub(crate) extra: u64,
    pub(crate) keys: &'a Keys,
}

impl Template<'_> {
    /// The block with these transactions, and the coin of its coinbase.
    pub(crate) fn assemble(&self, transactions: &[Transaction]) -> (Block, Coin) {
        let fees: u64 = transactions.iter().map(|transaction| transaction.fee).sum();
        let value = self.network.subsidy(Height::new(self.height)).to_sat() + fees;
        let commitment = self.commitment(transactions);
        let (coinbase, txid) = self.coinbase(value, commitment);
        let mut leaves = vec![txid.to_bytes()];
        leaves.extend(transactions.iter().map(|transaction| transaction.txid.to_bytes()));
        let root = merkle_root(leaves).root;

        let body: usize = transactions.iter().map(|transaction| transaction.bytes.len()).sum();
        let mut bytes = Vec::with_capacity(80 + 9 + coinbase.len() + body);
        bytes.extend_from_slice(&BLOCK_VERSION);
        bytes.extend_from_slice(self.previous.as_bytes());
        bytes.extend_from_slice(root.as_bytes());
        bytes.extend_from_slice(&self.time.to_le_bytes());
        bytes.extend_from_slice(&BITS);
        let hash = work(&mut bytes);
        compact_size::write(1 + transactions.len() as u64, &mut bytes);
        bytes.extend_from_slice(&coinbase);
        for transaction in transactions {
            bytes.extend_from_slice(&transaction.bytes);
        }
        let block = Block { height: self.height, hash, bytes, stale: false };
        let coin =
            Coin { txid, value, vout: 0, height: self.height, script: self.miner, coinbase: true };
        (block, coin)
    }

    /// The hash in the witness commitment; `None` when no transaction has a witness.
    fn commitment(&self, transactions: &[Transaction]) -> Option<[u8; 32]> {
        if transactions.iter().all(|t| t.wtxid == *t.txid.as_bytes()) {
            return None;
        }
        let mut leaves = vec![[0; 32]];
        leaves.extend(transactions.iter().map(|transaction| transaction.wtxid));
        let mut preimage = merkle_root(leaves).root.as_bytes().to_vec();
        preimage.extend_from_slice(&[0; 32]);
        Some(sha256d(&preimage))
    }

    fn coinbase(&self, value: u64, commitment: Option<[u8; 32]>) -> (Vec<u8>, Txid) {
        let mut script = Vec::with_capacity(16);
        push_height(self.height, &mut script);
        script.push(8);
        script.extend_from_slice(&self.extra.to_le_bytes());

        // What is between version and lock time, and the same in both serialisations.
        let mut body = Vec::with_capacity(200);
        body.push(1);
        body.extend_from_slice(&[0; 32]);
        body.extend_from_slice(&[0xff; 4]);
        compact_size::write(script.len() as u64, &mut body);
        body.extend_from_slice(&script);
        body.extend_from_slice(&[0xff; 4]);
        body.push(if commitment.is_some() { 2 } else { 1 });
        body.extend_from_slice(&value.to_le_bytes());
        let mut pay = Vec::with_capacity(40);
        self.miner.write(self.keys, &mut pay);
        compact_size::write(pay.len() as u64, &mut body);
        body.extend_from_slice(&pay);
        if let Some(hash) = commitment {
            body.extend_from_slice(&[0; 8]);
            body.extend_from_slice(&[38, 0x6a, 36, 0xaa, 0x21, 0xa9, 0xed]);
            body.extend_from_slice(&hash);
        }

        let serialise = |marker: &[u8], witness: &[u8]| {
            [&[2, 0, 0, 0], marker, &body, witness, &[0; 4]].concat()
        };
        let stripped = serialise(&[], &[]);
        let txid = Txid::from_bytes(sha256d(&stripped));
        if commitment.is_none() {
            return (stripped, txid);
        }
        let mut witness = vec![1, 32];
        witness.extend_from_slice(&[0; 32]);
        (serialise(&[0, 1], &witness), txid)
    }
}

/// Appends the height as BIP34 requires: as a script number.
fn push_height(height: u32, out: &mut Vec<u8>) {
    if let Ok(small @ 1..=16) = u8::try_from(height) {
        out.push(0x50 + small);
        return;
    }
    let mut bytes = height.to_le_bytes().to_vec();
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    // A set top bit would be the sign.
    if bytes.last().is_some_and(|byte| byte & 0x80 != 0) {
        bytes.push(0);
    }
    crate::script::push_data(&bytes, out);
}

/// Appends the first nonce whose hash is low enough, and returns the hash.
fn work(header: &mut Vec<u8>) -> BlockHash {
    let start = header.len();
    for nonce in 0_u32.. {
        header.truncate(start);
        header.extend_from_slice(&nonce.to_le_bytes());
        let hash = sha256d(header);
        // The target is 7fffff00…: the top byte decides, except in one case of 2^23.
        if hash.last().is_some_and(|top| *top < 0x7f) {
            return BlockHash::from_bytes(hash);
        }
    }
    unreachable!("every second nonce will do")
}
