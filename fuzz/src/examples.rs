//! Inputs that decode, for mutations to begin with.
//!
//! The built-in ones are made here, so that the short form runs the same on every machine. For the
//! long form real ones are added where the data is available: the older blocks and transactions of
//! several chains, small ones, because mutations of a megabyte find nothing.

use bitcoin::absolute::LockTime;
use bitcoin::consensus::encode::{deserialize, serialize};
use bitcoin::constants::genesis_block;
use bitcoin::hashes::Hash as _;
use bitcoin::hex::FromHex as _;
use bitcoin::transaction::Version;
use bitcoin::{
    Amount, Block, Network, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Txid, Witness,
};

/// The largest real input that is taken, in bytes.
const LARGEST: usize = 4096;

/// Encoded blocks and transactions.
pub struct Examples {
    /// Legacy and segwit.
    pub transactions: Vec<Vec<u8>>,
    /// With their transactions.
    pub blocks: Vec<Vec<u8>>,
}

impl Examples {
    /// The same on every machine.
    #[must_use]
    pub fn built_in() -> Self {
        let genesis = genesis_block(Network::Bitcoin);
        let mut transactions = genesis.txdata.clone();
        transactions.extend([legacy(), segwit()]);
        let full = Block { header: genesis.header, txdata: transactions.clone() };
        Self {
            transactions: transactions.iter().map(serialize).collect(),
            blocks: vec![serialize(&genesis), serialize(&full)],
        }
    }

    /// With the real ones that are available.
    #[must_use]
    pub fn with_data() -> Self {
        let mut examples = Self::built_in();
        let real = "chains/regtest-kernel-1-206.hexlines.txt";
        let Some(path) = varve_testdata::data(real) else { return examples };
        let lines = std::fs::read_to_string(path).unwrap_or_default();
        let blocks = lines.lines().filter_map(|line| Vec::<u8>::from_hex(line.trim()).ok());
        for block in blocks.filter(|block| block.len() <= LARGEST) {
            if let Ok(decoded) = deserialize::<Block>(&block) {
                examples.transactions.extend(decoded.txdata.iter().map(serialize));
            }
            examples.blocks.push(block);
        }
        examples
    }
}

/// Two inputs with scripts, and the outputs of each class.
fn legacy() -> Transaction {
    let input = |index: u8| TxIn {
        previous_output: OutPoint::new(Txid::from_byte_array([index; 32]), u32::from(index)),
        script_sig: ScriptBuf::from_bytes([[0x47; 72].as_slice(), &[0x21; 34]].concat()),
        sequence: Sequence::MAX,
        witness: Witness::new(),
    };
    let scripts = [
        [[0x76, 0xa9, 0x14].as_slice(), &[7; 20], &[0x88, 0xac]].concat(),
        [[0xa9, 0x14].as_slice(), &[7; 20], &[0x87]].concat(),
        [[0x21, 0x02].as_slice(), &[7; 32], &[0xac]].concat(),
        [[0x6a, 0x4c, 0x50].as_slice(), &[7; 80]].concat(),
        Vec::new(),
    ];
    let output =
        |script| TxOut { value: Amount::from_sat(5_000), script_pubkey: ScriptBuf::from(script) };
    Transaction {
        version: Version::ONE,
        lock_time: LockTime::ZERO,
        input: vec![input(1), input(2)],
        output: scripts.into_iter().map(output).collect(),
    }
}

/// The same with witnesses, one of them empty.
fn segwit() -> Transaction {
    let mut transaction = legacy();
    transaction.version = Version::TWO;
    if let Some(input) = transaction.input.first_mut() {
        input.script_sig = ScriptBuf::new();
        input.witness = Witness::from_slice(&[[0x30; 71].as_slice(), &[0x02; 33], &[]]);
    }
    transaction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_examples_decode() {
        let examples = Examples::built_in();
        for bytes in &examples.transactions {
            deserialize::<Transaction>(bytes).unwrap();
        }
        for bytes in &examples.blocks {
            deserialize::<Block>(bytes).unwrap();
        }
        let segwit = examples.transactions.last().unwrap();
        assert_eq!(segwit[4..6], [0, 1]);
    }
}
