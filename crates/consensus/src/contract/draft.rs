//! Blocks and transactions made by hand.
//!
//! A draft is a plain struct that tests change freely; [`BlockDraft::bytes`] computes the merkle
//! root and serialises it. Nothing here makes a block valid: a test that needs a valid one builds
//! it step by step, and one that needs an invalid one changes a step.

use varve_types::merkle::merkle_root;
use varve_types::script::opcode::{OP_1, OP_RETURN};
use varve_types::{
    Amount, Block, BlockHash, Height, Outpoint, Tx, TxIn, TxOut, Txid, compact_size, sha256d,
};

use crate::work::Target;

/// An input of a draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputDraft {
    /// The output that it spends.
    pub outpoint: Outpoint,
    /// The script that satisfies the script of that output.
    pub script: Vec<u8>,
    /// The sequence number.
    pub sequence: u32,
    /// The items of the witness.
    pub witness: Vec<Vec<u8>>,
}

/// An output of a draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputDraft {
    /// In satoshi.
    pub value: u64,
    /// The locking script.
    pub script: Vec<u8>,
}

impl OutputDraft {
    /// An output of 1,000 satoshi that anyone can spend, with a script of `vout` + 1 bytes.
    #[must_use]
    pub fn nth(vout: usize) -> Self {
        Self::with_script(vec![OP_1; vout + 1])
    }

    /// An output of 1,000 satoshi.
    #[must_use]
    pub const fn with_script(script: Vec<u8>) -> Self {
        Self { value: 1000, script }
    }
}

/// A transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxDraft {
    /// The version.
    pub version: u32,
    /// The inputs.
    pub inputs: Vec<InputDraft>,
    /// The outputs.
    pub outputs: Vec<OutputDraft>,
    /// The lock time.
    pub lock_time: u32,
}

impl TxDraft {
    /// A coinbase whose script begins with the height and whose output is worth `value`.
    #[must_use]
    pub fn coinbase(height: Height, value: u64) -> Self {
        let mut script = crate::block::height_push(height);
        // At least two bytes.
        script.push(OP_1);
        let outpoint = Outpoint::NULL;
        let input = InputDraft { outpoint, script, sequence: u32::MAX, witness: Vec::new() };
        let output = OutputDraft { value, ..OutputDraft::nth(0) };
        Self { version: 2, inputs: vec![input], outputs: vec![output], lock_time: 0 }
    }

    /// A transaction that spends these outputs, which anyone can spend, and makes `outputs`
    /// outputs.
    #[must_use]
    pub fn spending(outpoints: &[Outpoint], outputs: usize) -> Self {
        let inputs = outpoints.iter().map(|outpoint| InputDraft {
            outpoint: *outpoint,
            script: Vec::new(),
            sequence: u32::MAX,
            witness: Vec::new(),
        });
        let outputs = (0..outputs).map(OutputDraft::nth).collect();
        Self { version: 2, inputs: inputs.collect(), outputs, lock_time: 0 }
    }

    /// The serialised transaction.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.serialize(self.inputs.iter().any(|input| !input.witness.is_empty()))
    }

    /// The txid.
    #[must_use]
    pub fn txid(&self) -> Txid {
        Txid::from_bytes(sha256d(&self.serialize(false)))
    }

    fn serialize(&self, segwit: bool) -> Vec<u8> {
        let mut bytes = self.version.to_le_bytes().to_vec();
        if segwit {
            bytes.extend_from_slice(&[0, 1]);
        }
        compact_size::write(self.inputs.len() as u64, &mut bytes);
        for InputDraft { outpoint, script, sequence, .. } in &self.inputs {
            let (outpoint, sequence) = (*outpoint, *sequence);
            TxIn { outpoint, script, sequence, spent: None }.write(&mut bytes);
        }
        compact_size::write(self.outputs.len() as u64, &mut bytes);
        for OutputDraft { value, script } in &self.outputs {
            TxOut { value: Amount::from_sat(*value), script }.write(&mut bytes);
        }
        for input in self.inputs.iter().filter(|_| segwit) {
            compact_size::write(input.witness.len() as u64, &mut bytes);
            for item in &input.witness {
                compact_size::write(item.len() as u64, &mut bytes);
                bytes.extend_from_slice(item);
            }
        }
        bytes.extend_from_slice(&self.lock_time.to_le_bytes());
        bytes
    }
}

impl From<&Tx<'_>> for TxDraft {
    fn from(tx: &Tx<'_>) -> Self {
        let inputs = tx.inputs().zip(tx.witnesses()).map(|(input, witness)| InputDraft {
            outpoint: input.outpoint,
            script: input.script.to_vec(),
            sequence: input.sequence,
            witness: witness.items().map(<[u8]>::to_vec).collect(),
        });
        let outputs = tx.outputs().map(|output| OutputDraft {
            value: output.value.to_sat(),
            script: output.script.to_vec(),
        });
        Self {
            version: tx.version(),
            inputs: inputs.collect(),
            outputs: outputs.collect(),
            lock_time: tx.lock_time(),
        }
    }
}

/// A block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDraft {
    /// The version.
    pub version: i32,
    /// The block below.
    pub previous: BlockHash,
    /// The time.
    pub time: u32,
    /// The target, in compact form.
    pub bits: u32,
    /// The nonce.
    pub nonce: u32,
    /// The transactions.
    pub txs: Vec<TxDraft>,
}

impl BlockDraft {
    /// A block of these transactions with the target of regtest and no parent.
    #[must_use]
    pub const fn new(txs: Vec<TxDraft>) -> Self {
        let previous = BlockHash::ZERO;
        Self { version: 4, previous, time: 0, bits: 0x207f_ffff, nonce: 0, txs }
    }

    /// The serialised block, with the merkle root of its transactions.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let leaves = self.txs.iter().map(|tx| tx.txid().to_bytes()).collect();
        let mut bytes = self.version.to_le_bytes().to_vec();
        bytes.extend_from_slice(self.previous.as_bytes());
        bytes.extend_from_slice(merkle_root(leaves).root.as_bytes());
        for field in [self.time, self.bits, self.nonce] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        compact_size::write(self.txs.len() as u64, &mut bytes);
        self.txs.iter().for_each(|tx| bytes.extend(tx.bytes()));
        bytes
    }

    /// Puts the commitment to the witnesses into the coinbase, in place of the last one or as a
    /// new output, with a reserved value of zeros.
    pub fn commit_to_witnesses(&mut self) {
        const PREFIX: [u8; 6] = [OP_RETURN, 0x24, 0xaa, 0x21, 0xa9, 0xed];
        let reserved = [0; 32];
        let others = self.txs.iter().skip(1).map(|tx| sha256d(&tx.bytes()));
        let root = merkle_root([[0; 32]].into_iter().chain(others).collect()).root;
        let commitment = sha256d([root.to_bytes(), reserved].as_flattened());
        let script = [&PREFIX[..], &commitment].concat();
        let Some(coinbase) = self.txs.first_mut() else { return };
        coinbase.inputs.iter_mut().for_each(|input| input.witness = vec![reserved.to_vec()]);
        let old = coinbase.outputs.iter_mut().rfind(|output| output.script.starts_with(&PREFIX));
        match old {
            Some(output) => output.script = script,
            None => coinbase.outputs.push(OutputDraft { value: 0, script }),
        }
    }

    /// Finds a nonce that gives the block the work that its bits require, which must be little.
    pub fn mine(&mut self) {
        let target = Target::from_bits(self.bits).expect("bits that are a target");
        let is_met = |draft: &Self| {
            let bytes = draft.bytes();
            let header = bytes.first_chunk::<80>().expect("a block begins with a header");
            target.is_met_by(&BlockHash::from_bytes(sha256d(header)))
        };
        while !is_met(self) {
            self.nonce += 1;
        }
    }
}

impl From<&Block<'_>> for BlockDraft {
    fn from(block: &Block<'_>) -> Self {
        let header = block.header();
        Self {
            version: header.version(),
            previous: header.previous(),
            time: header.time(),
            bits: header.bits(),
            nonce: header.nonce(),
            txs: block.txs().iter().map(TxDraft::from).collect(),
        }
    }
}
