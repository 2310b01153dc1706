//! Wallet libraries that others wrote: what they learn from the server is what a scan of all blocks
//! finds.

use bdk_electrum::BdkElectrumClient;
use bdk_electrum::bdk_core::bitcoin::{BlockHash, ScriptBuf, hashes::Hash as _};
use bdk_electrum::bdk_core::spk_client::{FullScanRequest, SyncRequest};
use bdk_electrum::bdk_core::{BlockId, CheckPoint};
use electrum_client::{Client, ElectrumApi as _};

use super::chain::{NETWORK, branch, bytes, of_core, simulated};
use super::ledger::{Account, Ledger};
use super::server::Server;

/// Accounts in a fixed order.
fn accounts(ledger: &Ledger) -> Vec<Account> {
    let mut accounts: Vec<Account> = ledger.accounts.values().cloned().collect();
    accounts.sort_by(|one, other| one.script.cmp(&other.script));
    accounts
}

fn connect(server: &Server) -> Client {
    Client::new(&format!("tcp://{}", server.tcp)).unwrap()
}

#[test]
fn electrum_client_finds_what_a_scan_finds() {
    let Some((blocks, tip)) = of_core() else { return };
    let server = Server::with(NETWORK, &blocks);
    let accounts = accounts(&Ledger::of(NETWORK, &branch(&blocks, tip)));
    let client = connect(&server);
    let scripts: Vec<ScriptBuf> =
        accounts.iter().map(|account| ScriptBuf::from(account.script.clone())).collect();
    let scripts = || scripts.iter().map(|script| script.as_script());
    let balances = client.batch_script_get_balance(scripts()).unwrap();
    let histories = client.batch_script_get_history(scripts()).unwrap();
    let coins = client.batch_script_list_unspent(scripts()).unwrap();
    for (place, account) in accounts.iter().enumerate() {
        assert_eq!(balances[place].confirmed, account.balance());
        let found: Vec<_> =
            histories[place].iter().map(|tx| (tx.tx_hash.to_string(), tx.height)).collect();
        let wanted = account.history.iter();
        let wanted: Vec<_> =
            wanted.map(|(txid, height)| (txid.to_string(), *height as i32)).collect();
        assert_eq!(found, wanted);
        let found: Vec<_> = coins[place]
            .iter()
            .map(|coin| (coin.tx_hash.to_string(), coin.tx_pos, coin.value))
            .collect();
        let wanted = account.coins.values();
        let wanted: Vec<_> =
            wanted.map(|(out, value)| (out.txid.to_string(), out.vout as usize, *value)).collect();
        assert_eq!(found, wanted);
    }
    let header = client.block_headers_subscribe().unwrap();
    assert_eq!(header.height, 600);
    assert_eq!(header.header.block_hash().to_string(), tip.to_string());
    let row = client.block_headers(590, 20).unwrap();
    assert_eq!((row.count, row.headers.len()), (11, 11));
    let (txid, height) = accounts[0].history[0];
    let txid = txid.to_string().parse().unwrap();
    let proof = client.transaction_get_merkle(&txid, height as usize).unwrap();
    let root = client.block_header(height as usize).unwrap().merkle_root;
    assert!(electrum_client::utils::validate_merkle_proof(&txid, &root, &proof));
    assert_eq!(client.transaction_get(&txid).unwrap().compute_txid(), txid);
    assert!(client.relay_fee().unwrap() > 0.0);
    client.ping().unwrap();
    assert_eq!(client.server_features().unwrap().genesis_hash.len(), 32);
}

/// A wallet that scans keychains until it meets unused scripts, and one that syncs known scripts.
#[test]
fn bdk_syncs_what_a_scan_finds() {
    let blocks = simulated(160, 77, Some(4));
    let tip = blocks.iter().rfind(|block| !block.stale).unwrap().hash;
    let all = bytes(&blocks);
    let server = Server::with(NETWORK, &all);
    let accounts = accounts(&Ledger::of(NETWORK, &branch(&all, tip)));
    let client = BdkElectrumClient::new(connect(&server));
    let genesis = BlockHash::from_byte_array(NETWORK.genesis_hash().to_bytes());
    let start = CheckPoint::new(BlockId { height: 0, hash: genesis });
    let scripts: Vec<ScriptBuf> =
        accounts.iter().map(|account| ScriptBuf::from(account.script.clone())).collect();
    let spks = scripts.clone().into_iter();
    let request = SyncRequest::builder().chain_tip(start.clone()).spks(spks).build();
    let synced = client.sync(request, 20, true).unwrap();
    check(&synced.tx_update, &accounts);
    let update = synced.chain_update.unwrap();
    assert_eq!(update.hash().to_string(), tip.to_string());
    assert!(update.height() == 160, "{:?}", BlockId::from((update.height(), update.hash())));
    // One keychain has every script, and then unused ones.
    let unused = (0..25_u8).map(|number| ScriptBuf::from(vec![0x51, 0x51, number]));
    let keychain = scripts.into_iter().chain(unused).zip(0_u32..).map(|(spk, at)| (at, spk));
    let request =
        FullScanRequest::builder().chain_tip(start).spks_for_keychain(0_u8, keychain).build();
    let scanned = client.full_scan(request, 10, 7, false).unwrap();
    check(&scanned.tx_update, &accounts);
    assert_eq!(scanned.last_active_indices[&0] as usize, accounts.len() - 1);
}

/// Exactly the transactions of these accounts, each proven at its block.
fn check(
    update: &bdk_electrum::bdk_core::TxUpdate<bdk_electrum::bdk_core::ConfirmationBlockTime>,
    accounts: &[Account],
) {
    let wanted = accounts.iter().flat_map(|account| &account.history);
    let mut wanted: Vec<_> = wanted.map(|(txid, height)| (txid.to_string(), *height)).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let anchors = update.anchors.iter();
    let mut found: Vec<_> =
        anchors.map(|(anchor, txid)| (txid.to_string(), anchor.block_id.height)).collect();
    found.sort_unstable();
    assert_eq!(found, wanted);
    let mut txids: Vec<_> = update.txs.iter().map(|tx| tx.compute_txid().to_string()).collect();
    txids.sort_unstable();
    txids.dedup();
    let mut wanted: Vec<_> = wanted.into_iter().map(|(txid, _)| txid).collect();
    wanted.dedup();
    assert_eq!(txids, wanted);
}
