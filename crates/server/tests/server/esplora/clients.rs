//! Real clients: `esplora-client` and `bdk_esplora`.

use std::collections::BTreeSet;

use bdk_electrum::bdk_core::spk_client::FullScanRequest;
use bdk_esplora::EsploraExt as _;
use bitcoin::{OutPoint, ScriptBuf, Txid};
use esplora_client::{BlockingClient, Builder};

use super::{served, simulated};
use crate::http::Server;

fn client(server: &Server) -> BlockingClient {
    Builder::new(&format!("http://{}/api", server.address)).build_blocking()
}

#[test]
fn a_wallet_of_bdk_finds_what_a_walk_over_all_blocks_finds() {
    let (server, model) = served(&simulated(135, 31));
    let mut scripts: Vec<ScriptBuf> = model.scripts.keys().cloned().collect();
    scripts.sort_by_key(|script| std::cmp::Reverse(model.scripts[script].len()));
    scripts.truncate(40);
    let expected: BTreeSet<Txid> = scripts
        .iter()
        .flat_map(|script| model.scripts[script].values().map(|(txid, _)| *txid))
        .collect();
    let wallet: Vec<(u32, ScriptBuf)> = (0..).zip(scripts.clone()).collect();
    let request = FullScanRequest::builder().spks_for_keychain("wallet", wallet).build();
    let update = client(&server).full_scan(request, 5, 4).unwrap();
    let found: BTreeSet<Txid> = update.tx_update.txs.iter().map(|tx| tx.compute_txid()).collect();
    assert_eq!(found, expected);
    assert_eq!(update.last_active_indices["wallet"], 39);
    for (anchor, txid) in &update.tx_update.anchors {
        let confirmed = &model.txs[txid];
        let block = &model.blocks[confirmed.height];
        assert_eq!(anchor.block_id.height as usize, confirmed.height);
        assert_eq!(anchor.block_id.hash, block.block_hash());
        assert_eq!(anchor.confirmation_time, u64::from(block.header.time));
    }
    // What the wallet holds, from the transactions it was given.
    let spent: BTreeSet<OutPoint> = update
        .tx_update
        .txs
        .iter()
        .flat_map(|tx| tx.input.iter().map(|input| input.previous_output))
        .collect();
    let is_mine = |script: &ScriptBuf| scripts.contains(script);
    let held: u64 = update
        .tx_update
        .txs
        .iter()
        .flat_map(|tx| {
            let txid = tx.compute_txid();
            (0..).zip(&tx.output).map(move |(vout, output)| (OutPoint::new(txid, vout), output))
        })
        .filter(|(outpoint, output)| is_mine(&output.script_pubkey) && !spent.contains(outpoint))
        .map(|(_, output)| output.value.to_sat())
        .sum();
    let moves = scripts.iter().flat_map(|script| model.scripts[script].values());
    let balance: i64 =
        moves.map(|(_, moved)| moved.funded.1.cast_signed() - moved.spent.1.cast_signed()).sum();
    assert_eq!(held.cast_signed(), balance);
}

#[test]
fn every_call_of_esplora_client() {
    let (server, model) = served(&simulated(125, 32));
    let client = client(&server);
    let tip = model.blocks.len() - 1;
    assert_eq!(client.get_height().unwrap() as usize, tip);
    assert_eq!(client.get_tip_hash().unwrap(), model.blocks[tip].block_hash());
    for (height, block) in model.blocks.iter().enumerate().skip(100) {
        let hash = block.block_hash();
        assert_eq!(client.get_block_hash(u32::try_from(height).unwrap()).unwrap(), hash);
        assert_eq!(client.get_block_by_hash(&hash).unwrap().as_ref(), Some(block));
        assert_eq!(client.get_header_by_hash(&hash).unwrap(), block.header);
        assert!(client.get_block_status(&hash).unwrap().in_best_chain);
        let first = block.txdata[0].compute_txid();
        assert_eq!(client.get_txid_at_block_index(&hash, 0).unwrap(), Some(first));
        assert_eq!(client.get_block_txids(&hash).unwrap().len(), block.txdata.len());
        assert_eq!(client.get_block_info(&hash).unwrap().tx_count, block.txdata.len() as u64);
    }
    for (txid, confirmed) in model.txs.iter().take(60) {
        assert_eq!(client.get_tx(txid).unwrap().as_ref(), Some(&confirmed.tx));
        let info = client.get_tx_info(txid).unwrap().unwrap();
        assert_eq!(info.to_tx(), confirmed.tx);
        let status = client.get_tx_status(txid).unwrap();
        assert_eq!(status.block_height.unwrap() as usize, confirmed.height);
        let proof = client.get_merkle_proof(txid).unwrap().unwrap();
        assert_eq!(proof.pos, confirmed.position);
        assert!(client.get_merkle_block(txid).unwrap().is_some());
        let spend = client.get_output_status(txid, 0).unwrap().unwrap();
        let spender = model.spenders.get(&OutPoint::new(*txid, 0)).map(|(txid, _)| *txid);
        assert_eq!(spend.txid, spender);
        assert_eq!(client.get_tx_outspends(txid).unwrap().len(), confirmed.tx.output.len());
    }
    for (script, history) in model.scripts.iter().take(40) {
        let stats = client.get_scripthash_stats(script).unwrap();
        assert_eq!(stats.chain_stats.tx_count as usize, history.len());
        let txs = client.scripthash_txs(script, None).unwrap();
        assert_eq!(txs.len(), history.len().min(25));
        assert!(client.get_mempool_scripthash_txs(script).unwrap().is_empty());
        client.get_scripthash_utxos(script).unwrap();
    }
    assert_eq!(client.get_block_infos(None).unwrap().len(), 10);
    assert_eq!(client.get_mempool_stats().unwrap().count, 0);
    assert!(client.get_mempool_txids().unwrap().is_empty());
    assert!(client.get_mempool_recent_txs().unwrap().is_empty());
    assert!(client.get_fee_estimates().unwrap().is_empty());
    let unknown = Txid::from_raw_hash(bitcoin::hashes::Hash::all_zeros());
    assert!(client.get_tx(&unknown).unwrap().is_none());
}
