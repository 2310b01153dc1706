//! The model refuses blocks that were corrupted in one place each.

use bitcoin::consensus::{deserialize, serialize};
use bitcoin::{Block as Parsed, OutPoint};

use super::*;
use crate::{Chain, Config, Profile};

/// A chain up to height 110, and its next block for a test to corrupt.
fn chain() -> (Model, Parsed) {
    let config = Config { transactions: Some(20), ..Config::new(Profile::Mainnet, 111, 4) };
    let mut model = Model::new(config.network(), 3, 25, &[]);
    let mut blocks: Vec<crate::Block> = Chain::new(&config).unwrap().collect();
    let last = blocks.pop().unwrap();
    for block in blocks {
        model.add(block.bytes).unwrap();
    }
    (model, deserialize(&last.bytes).unwrap())
}

/// The model's verdict, after merkle root, commitment and work are corrected.
fn verdict(mut model: Model, mut block: Parsed) -> String {
    let root = block.witness_root().unwrap();
    let commitment = Parsed::compute_witness_commitment(&root, &[0; 32]);
    let output = block.txdata[0].output.last_mut().unwrap();
    let mut script = output.script_pubkey.to_bytes();
    script[6..38].copy_from_slice(commitment.as_ref());
    output.script_pubkey = script.into();
    block.header.merkle_root = block.compute_merkle_root().unwrap();
    verdict_as_is(&mut model, block)
}

fn verdict_as_is(model: &mut Model, mut block: Parsed) -> String {
    while block.header.validate_pow(block.header.target()).is_err() {
        block.header.nonce += 1;
    }
    match model.add(serialize(&block)) {
        Ok(()) => "accepted".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn an_unspoilt_block_is_accepted() {
    let (model, block) = chain();
    assert_eq!(verdict(model, block), "accepted");
}

#[test]
fn a_double_spend_is_refused() {
    let (model, mut block) = chain();
    let again = block.txdata[1].input[0].clone();
    block.txdata.last_mut().unwrap().input.push(again);
    assert!(verdict(model, block).contains("which is not there"));
}

#[test]
fn an_immature_coinbase_is_refused() {
    let (mut model, block) = chain();
    let config = Config { transactions: Some(20), ..Config::new(Profile::Mainnet, 50, 4) };
    let young = Chain::new(&config).unwrap().last().unwrap();
    let young: Parsed = deserialize(&young.bytes).unwrap();
    let mut spender = block.txdata[1].clone();
    spender.input.truncate(1);
    spender.input[0].previous_output = OutPoint { txid: young.txdata[0].compute_txid(), vout: 0 };
    let error = model.add_unconfirmed(&serialize(&spender)).unwrap_err();
    assert!(error.to_string().contains("before it is mature"), "{error}");
}

#[test]
fn too_much_subsidy_is_refused() {
    let (model, mut block) = chain();
    block.txdata[0].output[0].value += bitcoin::Amount::ONE_SAT;
    assert!(verdict(model, block).contains("more than subsidy and fees"));
}

#[test]
fn money_from_nothing_is_refused() {
    let (model, mut block) = chain();
    block.txdata[1].output[0].value += bitcoin::Amount::ONE_BTC;
    assert!(verdict(model, block).contains("makes money"));
}

#[test]
fn a_wrong_merkle_root_or_commitment_is_refused() {
    let (mut model, mut block) = chain();
    block.txdata[1].lock_time = bitcoin::absolute::LockTime::from_consensus(1);
    assert!(verdict_as_is(&mut model, block).contains("merkle root"));
    let (mut model, mut block) = chain();
    let witness = &mut block.txdata.iter_mut().skip(1).find(|t| !t.input[0].witness.is_empty());
    let mut items = witness.as_ref().unwrap().input[0].witness.to_vec();
    items[0][5] ^= 1;
    witness.as_mut().unwrap().input[0].witness = items.into();
    assert!(verdict_as_is(&mut model, block).contains("commitment"));
}

#[test]
fn a_wrong_height_or_time_is_refused() {
    let (model, mut block) = chain();
    let mut script = block.txdata[0].input[0].script_sig.to_bytes();
    script[1] ^= 1;
    block.txdata[0].input[0].script_sig = script.into();
    assert!(verdict(model, block).contains("begin with the height"));
    let (model, mut block) = chain();
    block.header.time -= 7 * 600;
    assert!(verdict(model, block).contains("median"));
}

#[test]
fn a_block_without_parent_is_refused() {
    let (model, mut block) = chain();
    block.header.prev_blockhash = bitcoin::hashes::Hash::all_zeros();
    assert!(verdict(model, block).contains("unknown parent"));
}

#[test]
fn bytes_that_are_no_block_are_refused() {
    let (mut model, block) = chain();
    let bytes = serialize(&block);
    for length in [0, 79, 80, 81, bytes.len() - 1] {
        assert!(matches!(model.add(bytes[..length].to_vec()), Err(ModelError::Decode(_))));
    }
}
