//! The blocks, as the `bitcoin` crate sees them: it shares no code with the generator or the model.

use std::collections::HashMap;

use bitcoin::consensus::deserialize;
use bitcoin::{Block, OutPoint, Target, Transaction, TxOut};
use varve_sim::{Chain, Config, Profile};

fn config(profile: Profile) -> Config {
    Config { transactions: Some(40), reorg_depth: Some(4), ..Config::new(profile, 150, 3) }
}

#[test]
fn every_block_is_well_formed() {
    for profile in [Profile::Mainnet, Profile::Dense] {
        // Outputs of every branch; txids are unique, so branches do not disturb each other.
        let mut outputs: HashMap<OutPoint, TxOut> = HashMap::new();
        let mut heights = HashMap::new();
        for generated in Chain::new(&config(profile)).unwrap() {
            let block: Block = deserialize(&generated.bytes).unwrap();
            let header = &block.header;
            assert_eq!(header.block_hash().to_string(), generated.hash.to_string());
            header.validate_pow(Target::MAX_ATTAINABLE_REGTEST).unwrap();
            assert!(block.check_merkle_root());
            assert!(block.weight().to_wu() <= 4_000_000);
            heights.insert(header.block_hash(), generated.height);
            remember(&block.txdata, &mut outputs);
            if generated.height == 0 {
                continue;
            }
            assert_eq!(heights[&header.prev_blockhash] + 1, generated.height);
            assert!(block.check_witness_commitment());
            // The crate does not read heights up to 16, which are opcodes.
            if generated.height > 16 {
                assert_eq!(block.bip34_block_height().unwrap(), u64::from(generated.height));
            }
            assert_eq!(header.version.to_consensus(), 0x2000_0000);
            let cost = |transaction: &Transaction| {
                transaction.total_sigop_cost(|outpoint| outputs.get(outpoint).cloned())
            };
            assert!(block.txdata.iter().map(cost).sum::<usize>() <= 80_000);
        }
    }
}

fn remember(transactions: &[Transaction], outputs: &mut HashMap<OutPoint, TxOut>) {
    for transaction in transactions {
        let txid = transaction.compute_txid();
        for (vout, output) in (0..).zip(&transaction.output) {
            outputs.insert(OutPoint { txid, vout }, output.clone());
        }
    }
}

#[test]
fn bsv_blocks_have_no_witness() {
    for generated in Chain::new(&config(Profile::Bsv)).unwrap() {
        let block: Block = deserialize(&generated.bytes).unwrap();
        assert!(block.check_merkle_root());
        let inputs = block.txdata.iter().flat_map(|transaction| &transaction.input);
        assert!(inputs.into_iter().all(|input| input.witness.is_empty()));
    }
}
