//! New blocks and branches, followed by every way at once. After every step all of ours are at the
//! tip of the node, with its set.

use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use varve_node::Organizer;
use varve_testdata::bitcoind::Bitcoind;
use varve_types::{BlockHash, Outpoint};
use varve_utxo::SetHash;

use super::follower::Follower;
use super::{WAYS, source};
use crate::rig::{chain_tips, expected_tips};

const WALLET: &str = "w";
/// What ours is given to see that there is nothing for it to do.
const WHILE: Duration = Duration::from_millis(700);

struct Rig {
    node: Bitcoind,
    followers: Vec<Follower>,
    folder: TempDir,
}

impl Rig {
    /// A node with a wallet that has coins, and three of ours that follow it.
    fn start() -> Option<Self> {
        let node = Bitcoind::start(&["-rest", "-fallbackfee=0.0002"])?;
        node.call("createwallet", &json!([WALLET]));
        let address = node.wallet(WALLET, "getnewaddress", &json!([]));
        node.call("generatetoaddress", &json!([120, address]));
        let folder = tempfile::tempdir().unwrap();
        let follow = |way| Follower::start(way, folder.path(), source(way, &node, true));
        let followers = WAYS.into_iter().map(follow).collect();
        let rig = Self { node, followers, folder };
        rig.all_follow();
        Some(rig)
    }

    /// Waits for ours, and compares their sets with that of the node.
    fn all_follow(&self) {
        let tip = self.node.tip();
        let answer = self.node.call("gettxoutsetinfo", &json!(["muhash", Value::Null, false]));
        assert_eq!(answer["bestblock"], tip);
        for follower in &self.followers {
            let utxo = &follower.reaches(&tip).utxo;
            let found = utxo.statistics(SetHash::Muhash, NonZeroUsize::MIN, &mut |_, _| {});
            let found = found.unwrap();
            let hash = BlockHash::from_bytes(found.hash.unwrap()).to_string();
            assert_eq!(answer["muhash"], hash, "{} at {tip}", follower.name);
            assert_eq!(answer["txouts"], found.txouts);
        }
    }

    /// Pays to the wallet itself, so that the next block has transactions.
    fn pay(&self) {
        for amount in ["0.5", "1.25"] {
            let address = self.node.wallet(WALLET, "getnewaddress", &json!([]));
            self.node.wallet(WALLET, "sendtoaddress", &json!([address, amount]));
        }
    }

    fn hash_below_tip(&self, depth: u32) -> Value {
        self.node.call("getblockhash", &json!([self.node.height() + 1 - depth]))
    }

    /// Ends ours, and gives them with their folder.
    fn stop(self) -> (Vec<(String, Organizer)>, TempDir) {
        let stop = |follower: Follower| (follower.name.clone(), follower.stop());
        (self.followers.into_iter().map(stop).collect(), self.folder)
    }
}

#[test]
fn new_blocks_and_branches_up_to_ten_deep() {
    let Some(rig) = Rig::start() else { return };
    let node = &rig.node;
    for count in 1..=3 {
        rig.pay();
        node.mine(count);
        rig.all_follow();
    }
    for depth in 1..=10 {
        rig.pay();
        node.mine(depth);
        rig.all_follow();
        // What was in these blocks goes into the others.
        node.reorganize(depth);
        rig.all_follow();
    }
    let tips = node.call("getchaintips", &json!([]));
    assert_eq!(tips.as_array().unwrap().len(), 11, "{tips}");
    let verified = |ours: &Organizer| ours.verify(&mut |_, _| {}).unwrap().coins;
    let coins = node.call("gettxoutsetinfo", &json!(["none"]))["txouts"].clone();
    let (all, _folder) = rig.stop();
    for (name, ours) in all {
        assert_eq!(chain_tips(&ours), expected_tips(&tips), "{name}");
        assert_eq!(coins, verified(&ours), "{name}");
    }
}

/// Two transactions that spend the same coin of the wallet, and the coin.
fn rivals(node: &Bitcoind) -> ([Value; 2], Outpoint) {
    let coin = &node.wallet(WALLET, "listunspent", &json!([1]))[0];
    let make = |fee: f64| {
        let address = node.wallet(WALLET, "getnewaddress", &json!([]));
        let value = format!("{:.8}", coin["amount"].as_f64().unwrap() - fee);
        let inputs = json!([{ "txid": coin["txid"], "vout": coin["vout"] }]);
        let raw = node
            .call("createrawtransaction", &json!([inputs, [{ address.as_str().unwrap(): value }]]));
        node.wallet(WALLET, "signrawtransactionwithwallet", &json!([raw]))["hex"].clone()
    };
    let point = format!("{}:{}", coin["txid"].as_str().unwrap(), coin["vout"]);
    ([make(0.001), make(0.002)], point.parse().unwrap())
}

#[test]
fn branches_that_spend_a_coin_in_two_ways_and_win_by_turns() {
    let Some(rig) = Rig::start() else { return };
    let node = &rig.node;
    let (rivals, coin) = rivals(node);
    let txid = |raw: &Value| node.call("decoderawtransaction", &json!([raw]))["txid"].clone();
    let txids = [txid(&rivals[0]), txid(&rivals[1])];
    let mine_with = |raw: &Value| {
        let address = node.wallet(WALLET, "getnewaddress", &json!([]));
        node.call("generateblock", &json!([address, [raw]]));
    };
    let spender_is = |txid: &Value| {
        for follower in &rig.followers {
            let view = follower.reaches(&node.tip()).view();
            let spender = view.confirmed_spender(coin).unwrap().unwrap();
            let spender = view.txid(&spender.tx).unwrap();
            assert_eq!(*txid, spender.to_string(), "{}", follower.name);
        }
    };
    // The first branch: one of them and a block.
    mine_with(&rivals[0]);
    node.mine(1);
    rig.all_follow();
    spender_is(&txids[0]);
    let (first, tip) = (rig.hash_below_tip(2), node.tip());
    // The second has the other, and does not win yet.
    node.call("invalidateblock", &json!([first]));
    mine_with(&rivals[1]);
    let second = rig.hash_below_tip(1);
    thread::sleep(WHILE);
    assert!(rig.followers.iter().all(|follower| follower.tip() == tip), "less work");
    // It does with two blocks more; then the first again, which the node takes up by itself.
    node.mine(2);
    rig.all_follow();
    spender_is(&txids[1]);
    node.call("reconsiderblock", &json!([first]));
    node.call("invalidateblock", &json!([second]));
    assert_eq!(node.tip(), tip);
    node.mine(2);
    rig.all_follow();
    spender_is(&txids[0]);
    node.call("reconsiderblock", &json!([second]));
    let tips = node.call("getchaintips", &json!([]));
    let (all, _folder) = rig.stop();
    for (name, ours) in all {
        assert_eq!(chain_tips(&ours), expected_tips(&tips), "{name}");
        let view = ours.snapshot().view();
        for (txid, confirmed) in txids.iter().zip([true, false]) {
            let place = view.to_tx(txid.as_str().unwrap().parse().unwrap()).unwrap().unwrap();
            assert_eq!(place.confirmed, confirmed, "{name}");
        }
    }
}

#[test]
fn a_node_that_is_away_for_a_while_and_one_that_forgets_its_last_blocks() {
    let Some(mut rig) = Rig::start() else { return };
    rig.node.stop();
    // So long that an interface that does not answer is worth a warning.
    thread::sleep(Duration::from_secs(5));
    rig.node.start_again();
    rig.node.mine(2);
    rig.all_follow();
    let lost = |follower: &&Follower| follower.told().iter().any(|told| told.contains("Warning"));
    assert_eq!(rig.followers.iter().filter(lost).count(), 2, "files are there all the time");
    // What was not flushed is lost, and the next blocks are written over it. A question for the set
    // would flush it.
    rig.node.mine(4);
    let (height, tip) = (rig.node.height(), rig.node.tip());
    rig.followers.iter().for_each(|follower| drop(follower.reaches(&tip)));
    rig.node.kill();
    rig.node.start_again();
    assert!(rig.node.height() < height, "the node has forgotten something");
    let forgotten = height - rig.node.height();
    rig.node.mine(forgotten);
    thread::sleep(WHILE);
    assert!(rig.followers.iter().all(|follower| follower.tip() == tip), "no more work");
    rig.node.mine(3);
    rig.all_follow();
    let (all, _folder) = rig.stop();
    for (name, ours) in all {
        let stale = chain_tips(&ours).into_iter().find(|(_, hash, _)| *hash == tip);
        let length = stale.map(|(_, _, length)| length);
        assert_eq!(length, Some(u64::from(forgotten)), "{name}");
    }
}
