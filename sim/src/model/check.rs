//! The rules that need neither coins nor scripts: work, time, merkle root, commitment, size and
//! height.

use varve_types::merkle::merkle_root;
use varve_types::{Block, Header, Height, Network, Tx, Txid, compact_size};

use super::ModelError;

/// BIP141's limit.
const MAX_WEIGHT: usize = 4_000_000;
const REGTEST_BITS: u32 = 0x207f_ffff;

/// What the transactions of a block add up to.
#[derive(Default)]
pub(crate) struct Totals {
    /// The outputs of the coinbase.
    pub(crate) coinbase: u64,
    pub(crate) fees: u64,
}

impl Totals {
    pub(crate) fn check_subsidy(&self, network: Network, height: u32) -> Result<(), ModelError> {
        let allowed = network.subsidy(Height::new(height)).to_sat() + self.fees;
        rule(height, self.coinbase <= allowed, "the coinbase takes more than subsidy and fees")
    }
}

/// Proof of work, and a time after the median of the eleven blocks before.
pub(crate) fn check_header(
    header: &Header<'_>,
    height: u32,
    median_time: u32,
) -> Result<(), ModelError> {
    let hash = header.hash();
    // The target is 7fffff followed by zeros, most significant byte first.
    let top: Vec<u8> = hash.as_bytes().iter().rev().take(3).copied().collect();
    let enough = top.as_slice() < [0x7f, 0xff, 0xff].as_slice();
    rule(height, header.bits() == REGTEST_BITS && enough, "the proof of work is not enough")?;
    rule(height, header.time() > median_time, "the time is not after the median of eleven blocks")
}

/// The form of a block.
pub(crate) fn check_block(
    network: Network,
    block: &Block<'_>,
    txids: &[Txid],
    height: u32,
) -> Result<(), ModelError> {
    let tree = merkle_root(txids.iter().map(|txid| txid.to_bytes()).collect());
    let right = tree.root == block.header().merkle_root() && !tree.mutated;
    rule(height, right, "the merkle root is wrong")?;

    let mut transactions = block.txs().iter();
    let coinbase = transactions.next().filter(|first| first.is_coinbase());
    let only_one = transactions.all(|transaction| !transaction.is_coinbase());
    rule(height, coinbase.is_some() && only_one, "the first transaction alone must be a coinbase")?;
    let script = coinbase.and_then(|coinbase| coinbase.inputs().next()).map(|input| input.script);
    let expected = bitcoin::script::Builder::new().push_int(i64::from(height)).into_script();
    let starts = script.is_some_and(|script| script.starts_with(expected.as_bytes()));
    rule(height, starts, "the coinbase does not begin with the height")?;

    let witness = block.txs().iter().any(Tx::has_witness);
    if network.is_bsv() {
        return rule(height, !witness, "there is a witness on a network without");
    }
    if witness {
        let commitment = block.witness_commitment();
        let right = commitment.is_some() && commitment == block.compute_witness_commitment();
        rule(height, right, "the witness commitment is wrong")?;
    }
    rule(height, weight(block) <= MAX_WEIGHT, "the block weighs more than 4,000,000")
}

/// Three times the size without witnesses, and once the size with them.
fn weight(block: &Block<'_>) -> usize {
    let stripped: usize = block.txs().iter().map(stripped_size).sum();
    let with_witness: usize = block.txs().iter().map(|transaction| transaction.bytes().len()).sum();
    let head = block.bytes().len() - with_witness;
    4 * head + 3 * stripped + with_witness
}

fn stripped_size(transaction: &Tx<'_>) -> usize {
    let script = |script: &[u8]| compact_size::len(script.len() as u64) + script.len();
    // Version and lock time; then 36 of outpoint and 4 of sequence, or 8 of value.
    let (mut size, mut inputs, mut outputs) = (8, 0, 0);
    for input in transaction.inputs() {
        size += 40 + script(input.script);
        inputs += 1;
    }
    for output in transaction.outputs() {
        size += 8 + script(output.script);
        outputs += 1;
    }
    size + compact_size::len(inputs) + compact_size::len(outputs)
}

fn rule(height: u32, holds: bool, broken: &str) -> Result<(), ModelError> {
    if holds { Ok(()) } else { Err(ModelError::Rule { height, rule: broken.to_owned() }) }
}
