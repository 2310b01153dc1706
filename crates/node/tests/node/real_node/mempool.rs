//! The mempool of a real node, followed by every way that has one. After every step ours has the
//! same transactions, fees and spends, at the same tip.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bitcoin::hex::DisplayHex as _;
use serde_json::{Value, json};
use tempfile::TempDir;
use varve_consensus::contract::draft::{InputDraft, OutputDraft, TxDraft};
use varve_node::NodeSnapshot;
use varve_node::source::rpc::Login;
use varve_testdata::bitcoind::Bitcoind;
use varve_types::{Block, Network, Outpoint, Txid};

use super::follower::Follower;
use super::{p2p, source};
use crate::rig::Dice;
use crate::rpc::rpc;

/// How long ours may take to agree.
const LIMIT: Duration = Duration::from_secs(40);
/// What a transaction pays.
const FEE: u64 = 5_000;
/// What a node relays at least: a satoshi a virtual byte of the transactions here.
const LEAST_FEE: u64 = 200;

/// A node, ours that follow it, and what can be spent.
struct Rig {
    node: Bitcoind,
    followers: Vec<Follower>,
    folder: TempDir,
    /// Every transaction that was made, and the coinbases.
    made: BTreeMap<Txid, TxDraft>,
    /// Outputs that nothing was made of yet.
    free: Vec<Outpoint>,
    dice: Dice,
    /// Transactions that were made, and those that the node took.
    sent: usize,
    taken: usize,
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Rig {
    /// A node with coins; `ways` of following it.
    fn start(ways: &[&'static str], seed: u64) -> Option<Self> {
        let publisher = format!("tcp://127.0.0.1:{}", free_port());
        let (sequence, raw) =
            (format!("-zmqpubsequence={publisher}"), format!("-zmqpubrawtx={publisher}"));
        let mut options = vec!["-whitelist=noban,mempool@127.0.0.0/8", "-persistmempool=1"];
        if ways.contains(&"zmq") {
            options.extend([sequence.as_str(), raw.as_str()]);
        }
        let node = Bitcoind::start(&options)?;
        let folder = tempfile::tempdir().unwrap();
        let mut rig = Self {
            node,
            followers: Vec::new(),
            folder,
            made: BTreeMap::new(),
            free: Vec::new(),
            dice: Dice(seed),
            sent: 0,
            taken: 0,
        };
        // Coins that anyone can spend, without data, of which some nodes want little.
        let output = rig.node.call("getdescriptorinfo", &json!(["raw(51)"]))["descriptor"].clone();
        let hashes = rig.node.call("generatetodescriptor", &json!([55, output]));
        for hash in hashes.as_array().unwrap() {
            rig.note_coinbase(hash.as_str().unwrap());
        }
        rig.node.mine(105);
        rig.followers = ways.iter().map(|way| rig.follow(way)).collect();
        Some(rig)
    }

    fn follow(&self, way: &str) -> Follower {
        let source = match way {
            "peer" => Box::new(p2p(&[&self.node])),
            "zmq" | "calls" => {
                let login = Login::Cookie(self.node.cookie_file());
                Box::new(rpc(self.node.rpc_address(), login, true).unwrap())
                    as Box<dyn varve_node::Source>
            }
            way => source(way, &self.node, true),
        };
        Follower::start_with(way, self.folder.path(), source, true)
    }

    fn note_coinbase(&mut self, hash: &str) {
        let bytes = self.node.block(hash);
        let block = Block::parse(&bytes, Network::Regtest.format()).unwrap();
        let coinbase = TxDraft::from(&block.txs()[0]);
        self.free.push(Outpoint::new(coinbase.txid(), 0));
        self.made.insert(coinbase.txid(), coinbase);
    }

    fn value(&self, outpoint: &Outpoint) -> u64 {
        self.made[&outpoint.txid].outputs[outpoint.vout as usize].value
    }

    /// A transaction that spends these outputs.
    fn pay(&mut self, spent: &[Outpoint], outputs: usize, fee: u64) -> TxDraft {
        let value: u64 = spent.iter().map(|outpoint| self.value(outpoint)).sum();
        let share = (value - fee) / outputs as u64;
        let rest = value - fee - share * outputs as u64;
        let input = |outpoint: &Outpoint| InputDraft {
            outpoint: *outpoint,
            script: Vec::new(),
            sequence: 0xffff_fffd,
            witness: Vec::new(),
        };
        // Scripts without data, of which some nodes want little.
        let output = |vout: usize| OutputDraft {
            value: share + if vout == 0 { rest } else { 0 },
            script: vec![0x51],
        };
        self.sent += 1;
        let inputs = spent.iter().map(input).collect();
        TxDraft { version: 2, inputs, outputs: (0..outputs).map(output).collect(), lock_time: 0 }
    }

    /// Notes that a transaction was made: its outputs can be spent.
    fn note(&mut self, tx: &TxDraft) {
        let outputs = (0..).take(tx.outputs.len());
        self.free.extend(outputs.map(|vout| Outpoint::new(tx.txid(), vout)));
        self.made.insert(tx.txid(), tx.clone());
    }

    /// Sends one to the node; whether it takes it.
    fn send(&mut self, tx: &TxDraft) -> bool {
        let sent = self.node.try_call("sendrawtransaction", &json!([hex(tx), 0]));
        if sent.is_ok() {
            self.note(tx);
            self.taken += 1;
        }
        sent.is_ok()
    }

    /// Takes some outputs that nothing spends; some are of transactions that the node has dropped.
    fn take_free(&mut self, count: usize) -> Vec<Outpoint> {
        let count = count.min(self.free.len());
        let mut taken = Vec::new();
        for _ in 0..count {
            let at = self.dice.below(self.free.len());
            taken.push(self.free.swap_remove(at));
        }
        taken.retain(|outpoint| self.value(outpoint) > 100 * FEE);
        taken
    }

    /// New transactions, chains among them.
    fn arrivals(&mut self, count: usize) {
        for _ in 0..count {
            let inputs = 1 + self.dice.below(2);
            let spent = self.take_free(inputs);
            if spent.is_empty() {
                continue;
            }
            // One input and one output would be too short for a node.
            let outputs = 2 + self.dice.below(2);
            let tx = self.pay(&spent, outputs, FEE);
            self.send(&tx);
        }
    }

    /// The unconfirmed transactions of the node.
    fn listed(&self) -> BTreeMap<Txid, Value> {
        let all = self.node.call("getrawmempool", &json!([true]));
        let all = all.as_object().unwrap().iter();
        all.map(|(txid, entry)| (txid.parse().unwrap(), entry.clone())).collect()
    }

    /// Replaces some transactions, with what builds on them, or fails to.
    fn replacements(&mut self, count: usize) {
        for _ in 0..count {
            let listed = self.listed();
            let Some(txid) = listed.keys().nth(self.dice.below(listed.len().max(1))) else {
                return;
            };
            let old = self.made[txid].clone();
            let spent: Vec<Outpoint> = old.inputs.iter().map(|input| input.outpoint).collect();
            let family = listed[txid]["descendantcount"].as_u64().unwrap();
            let fee = if self.dice.below(4) == 0 { FEE / 2 } else { FEE * 3 * (family + 1) };
            let tx = self.pay(&spent, 2, fee);
            self.send(&tx);
        }
    }

    /// A parent that pays the least that a node relays, with a child that pays for both.
    fn package(&mut self) {
        let spent = self.take_free(1);
        if spent.is_empty() {
            return;
        }
        let parent = self.pay(&spent, 2, LEAST_FEE);
        self.made.insert(parent.txid(), parent.clone());
        let child = self.pay(&[Outpoint::new(parent.txid(), 0)], 2, 4 * FEE);
        let answer = self.node.call("submitpackage", &json!([[hex(&parent), hex(&child)]]));
        assert_eq!(answer["package_msg"], "success", "{answer}");
        self.note(&child);
        self.free.push(Outpoint::new(parent.txid(), 1));
    }

    /// A block with a transaction that nobody has seen and that one in the mempool conflicts with.
    fn conflicting_block(&mut self) {
        let listed = self.listed();
        let has_parents = |txid: &Txid| !listed[txid]["depends"].as_array().unwrap().is_empty();
        let Some(txid) = listed.keys().find(|txid| !has_parents(txid)) else { return };
        let old = self.made[txid].clone();
        let spent: Vec<Outpoint> = old.inputs.iter().map(|input| input.outpoint).collect();
        let rival = self.pay(&spent, 2, FEE * 2);
        let script = "raw(51)";
        let descriptor = self.node.call("getdescriptorinfo", &json!([script]));
        let output = descriptor["descriptor"].clone();
        self.node.call("generateblock", &json!([output, [hex(&rival)]]));
        self.note(&rival);
    }

    /// Waits until all of ours agree with the node.
    fn agree(&self, step: &str) {
        let tip = self.node.tip();
        let listed = self.listed();
        for follower in &self.followers {
            let begin = Instant::now();
            let now = loop {
                let now = follower.reader().snapshot();
                let is_same = txids(&now) == listed.keys().copied().collect();
                if now.tip.1.to_string() == tip && now.mempool.is_some() && is_same {
                    break now;
                }
                if begin.elapsed() > LIMIT {
                    self.explain(follower, &now, &listed, step);
                }
                thread::sleep(Duration::from_millis(10));
            };
            compare(&now, &listed, &self.made, &format!("{step}, {}", follower.name));
        }
    }

    fn explain(
        &self,
        by: &Follower,
        now: &NodeSnapshot,
        listed: &BTreeMap<Txid, Value>,
        step: &str,
    ) {
        let ours = txids(now);
        let extra: Vec<_> = ours.iter().filter(|txid| !listed.contains_key(txid)).collect();
        let missing: Vec<_> = listed.iter().filter(|(txid, _)| !ours.contains(txid)).collect();
        let (name, told) = (&by.name, by.told());
        panic!(
            "{step}: {name} is at {:?}, the node at {}; extra {extra:?}, missing {missing:?}: \
             {told:#?}",
            now.tip,
            self.node.tip()
        );
    }

    /// A thousand transactions, with everything in between.
    fn play(&mut self) {
        self.agree("at the start");
        for round in 0..25 {
            self.arrivals(36);
            self.agree(&format!("arrivals of round {round}"));
            self.replacements(4);
            self.agree(&format!("replacements of round {round}"));
            if round % 3 == 0 {
                self.package();
                self.agree(&format!("package of round {round}"));
            }
            match round % 5 {
                1 => drop(self.node.mine(1)),
                2 => self.conflicting_block(),
                4 => {
                    let depth = 1 + u32::try_from(self.dice.below(3)).unwrap();
                    self.node.reorganize(depth);
                }
                _ => {}
            }
            self.agree(&format!("blocks of round {round}"));
        }
        let (sent, taken) = (self.sent, self.taken);
        assert!(sent >= 900 && taken >= 600, "{taken} of {sent} were taken");
    }
}

fn hex(tx: &TxDraft) -> String {
    tx.bytes().to_lower_hex_string()
}

fn txids(now: &NodeSnapshot) -> std::collections::BTreeSet<Txid> {
    let mempool = now.mempool.iter();
    mempool.flat_map(|mempool| mempool.entries().map(|entry| entry.txid())).collect()
}

/// Fees, sizes, relatives and spends are those of the node.
fn compare(
    now: &Arc<NodeSnapshot>,
    listed: &BTreeMap<Txid, Value>,
    made: &BTreeMap<Txid, TxDraft>,
    name: &str,
) {
    let mempool = now.mempool.as_ref().unwrap();
    for (txid, theirs) in listed {
        let ours = mempool.entry(txid).unwrap();
        let fee = theirs["fees"]["base"].as_f64().unwrap() * 100_000_000.0;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a fee")]
        let fee = fee.round() as u64;
        assert_eq!(ours.fee().to_sat(), fee, "{name}: {txid}");
        assert_eq!(theirs["vsize"], ours.vsize(), "{name}: {txid}");
        assert_eq!(theirs["ancestorcount"], ours.ancestors().count, "{name}: {txid}");
        assert_eq!(theirs["descendantcount"], ours.descendants().count, "{name}: {txid}");
        assert_eq!(theirs["ancestorsize"], ours.ancestors().vsize, "{name}: {txid}");
        for (vin, input) in made[txid].inputs.iter().enumerate() {
            let spender = mempool.spender(&input.outpoint).unwrap();
            assert_eq!((spender.txid, spender.vin as usize), (*txid, vin), "{name}");
        }
        let mut children: Vec<String> =
            mempool.spenders_of(*txid).iter().map(ToString::to_string).collect();
        children.sort();
        let mut theirs: Vec<String> = theirs["spentby"]
            .as_array()
            .unwrap()
            .iter()
            .map(|child| child.as_str().unwrap().to_owned())
            .collect();
        theirs.sort();
        assert_eq!(children, theirs, "{name}: {txid}");
    }
}

#[test]
fn a_thousand_transactions_by_peer_and_by_rpc_with_zmq() {
    let Some(mut rig) = Rig::start(&["peer", "zmq"], 7) else { return };
    rig.play();
}

#[test]
fn a_thousand_transactions_by_rpc_alone() {
    let Some(mut rig) = Rig::start(&["calls"], 11) else { return };
    rig.play();
}

/// Ours is away while the node goes on: its mempool is brought up to date by a listing.
#[test]
fn a_restart_of_ours_and_of_the_node_lose_nothing() {
    let Some(mut rig) = Rig::start(&["zmq"], 13) else { return };
    rig.agree("at the start");
    rig.arrivals(40);
    rig.agree("before");
    assert!(rig.listed().len() > 20);
    for follower in std::mem::take(&mut rig.followers) {
        drop(follower.stop());
    }
    rig.replacements(6);
    rig.arrivals(10);
    rig.node.mine(1);
    rig.arrivals(10);
    rig.followers = vec![rig.follow("zmq")];
    rig.agree("after ours was away");
    rig.node.stop();
    rig.node.start_again();
    rig.arrivals(5);
    rig.agree("after the node was away");
}

/// A transaction that a stale block confirmed comes back, and is confirmed elsewhere.
#[test]
fn a_transaction_of_a_stale_block_is_confirmed_by_another() {
    let Some(mut rig) = Rig::start(&["peer", "zmq"], 17) else { return };
    rig.agree("at the start");
    rig.arrivals(6);
    rig.agree("before");
    let txids: Vec<Txid> = rig.listed().into_keys().collect();
    assert!(txids.len() > 4, "{}", txids.len());
    let block = rig.node.mine(1).remove(0);
    rig.agree("mined");
    rig.node.call("invalidateblock", &json!([block]));
    let output = rig.node.call("getdescriptorinfo", &json!(["raw(5151)"]))["descriptor"].clone();
    rig.node.call("generateblock", &json!([output, []]));
    rig.node.call("generateblock", &json!([output, []]));
    rig.agree("back in the mempool");
    assert_eq!(rig.listed().into_keys().collect::<Vec<_>>(), txids);
    rig.node.mine(1);
    rig.agree("mined again");
    for follower in &rig.followers {
        let now = follower.reader().snapshot();
        for txid in &txids {
            assert!(now.view().to_tx(*txid).unwrap().unwrap().confirmed, "{}", follower.name);
        }
    }
}
