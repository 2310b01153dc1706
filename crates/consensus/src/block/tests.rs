//! Heights in coinbases, and the limits of BSV. The other rules are broken one by one in the tests
//! on real data.

use proptest::prelude::*;
use varve_types::script::opcode::OP_CHECKSIG;
use varve_types::{Block, Height, Network};

use super::context::height_push;
use super::*;
use crate::contract::draft::{BlockDraft, OutputDraft, TxDraft};

#[test]
fn pushes_of_known_heights() {
    let cases: [(u32, &[u8]); 11] = [
        (0, &[0]),
        (1, &[0x51]),
        (16, &[0x60]),
        (17, &[1, 17]),
        (127, &[1, 127]),
        (128, &[2, 128, 0]),
        (255, &[2, 255, 0]),
        (32_768, &[3, 0, 128, 0]),
        (227_931, &[3, 0x5b, 0x7a, 0x03]),
        (8_388_608, &[4, 0, 0, 128, 0]),
        (u32::MAX, &[5, 255, 255, 255, 255, 0]),
    ];
    for (height, push) in cases {
        assert_eq!(height_push(Height::new(height)), push, "{height}");
    }
}

proptest! {
    #[test]
    fn pushes_are_those_of_the_bitcoin_crate(height: u32) {
        let theirs = bitcoin::ScriptBuf::builder().push_int(i64::from(height)).into_script();
        prop_assert_eq!(height_push(Height::new(height)), theirs.into_bytes());
    }
}

/// 64 bytes may be an inner node of the tree of another block with the same header: two txids that
/// read as a transaction. Nobody can make a node that reads as a coinbase.
#[test]
fn what_may_be_nodes_of_a_merkle_tree_does_not_condemn_the_block() {
    let check = |script: usize| {
        let mut tx = TxDraft::spending(&[varve_types::Outpoint::new(Txid::ZERO, 3)], 1);
        (tx.inputs[0].script, tx.outputs[0].script) = (Vec::new(), vec![0x51; script]);
        let bytes = BlockDraft::new(vec![tx]).bytes();
        let block = Block::parse(&bytes, Network::Regtest.format()).unwrap();
        let size = block.txs()[0].bytes().len();
        let block = BlockAt::new(Height::new(1), &block);
        let error = check_block(&Params::new(Network::Regtest), &block).unwrap_err();
        assert_eq!(error.reject_reason().unwrap(), "bad-cb-missing");
        (size, error.is_mutation())
    };
    assert_eq!(check(3), (63, false));
    assert_eq!(check(4), (64, true));
    assert_eq!(check(5), (65, false));
}

fn bsv(height: u32, max_block_size: u64, draft: &BlockDraft) -> Result<(), BlockError> {
    let bytes = draft.bytes();
    let block = Block::parse(&bytes, Network::Bsv.format()).unwrap();
    let mut params = Params::new(Network::Bsv);
    params.max_block_size = max_block_size;
    check_block(&params, &BlockAt::new(Height::new(height), &block))
}

#[test]
fn blocks_of_bsv_are_as_large_as_the_node_lets_them() {
    let upgrade = Network::Bsv.genesis_upgrade().unwrap().to_u32();
    let mut coinbase = TxDraft::coinbase(Height::new(1), 0);
    coinbase.outputs.push(OutputDraft::with_script(vec![0x51; 5_000_000]));
    let draft = BlockDraft::new(vec![coinbase]);
    let size = draft.bytes().len() as u64;
    assert_eq!(bsv(upgrade, size, &draft), Ok(()));
    let limit = size - 1;
    assert_eq!(bsv(upgrade, limit, &draft), Err(BlockError::TooLarge { size, limit }));
}

#[test]
fn signature_operations_of_bsv_are_limited_until_genesis() {
    let upgrade = Network::Bsv.genesis_upgrade().unwrap().to_u32();
    // 19,000 in each transaction; two of them in less than a million bytes are too many.
    let mut tx = TxDraft::coinbase(Height::new(1), 0);
    tx.outputs.push(OutputDraft::with_script(vec![OP_CHECKSIG; 19_000]));
    let mut second = TxDraft::spending(&[varve_types::Outpoint::new(tx.txid(), 0)], 1);
    second.outputs.extend(tx.outputs.iter().cloned());
    let mut draft = BlockDraft::new(vec![tx, second]);
    let error = bsv(upgrade - 1, u64::MAX, &draft).unwrap_err();
    assert_eq!(error, BlockError::Sigops { cost: 4 * 38_000, limit: 80_000 });
    assert_eq!(bsv(upgrade, u64::MAX, &draft), Ok(()));
    // The limit grows with the bytes.
    draft.txs[1].outputs.push(OutputDraft::with_script(vec![0x51; 970_000]));
    assert_eq!(bsv(upgrade - 1, u64::MAX, &draft), Ok(()));
}
