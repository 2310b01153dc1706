//! Debian's Electrum, a real wallet without a window, on `varve serve` beside a real node: it sees
//! a payment, sees it through a reorganisation, and spends it.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use varve_testdata::bitcoind::Bitcoind;

use crate::served::{LIMIT, Served};

/// A wallet whose daemon runs until this is dropped.
struct Wallet {
    folder: TempDir,
    daemon: Child,
}

/// Runs the wallet's program in its folder.
fn electrum(folder: &Path, args: &[&str]) -> Command {
    let mut electrum = Command::new("electrum");
    electrum.args(args).arg("--regtest").arg("--dir").arg(folder);
    electrum
}

impl Wallet {
    /// Makes a wallet that asks one server.
    fn new(server: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let create = electrum(folder.path(), &["create", "--offline"]).output().unwrap();
        assert!(create.status.success(), "{create:?}");
        let server = format!("{server}:t");
        let daemon = electrum(folder.path(), &["daemon", "--oneserver", "--server", &server])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let wallet = Self { folder, daemon };
        let begin = Instant::now();
        while wallet.try_ask(&["load_wallet"]).is_none() {
            assert!(begin.elapsed() < LIMIT, "the daemon does not start");
            std::thread::sleep(Duration::from_millis(100));
        }
        wallet
    }

    fn try_ask(&self, args: &[&str]) -> Option<String> {
        let output = electrum(self.folder.path(), args).output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
    }

    /// What the program answers.
    fn ask(&self, args: &[&str]) -> String {
        self.try_ask(args).unwrap_or_else(|| panic!("electrum {args:?}"))
    }

    /// Confirmed and unconfirmed, in satoshi.
    fn balance(&self) -> (i64, i64) {
        let balance: Value = serde_json::from_str(&self.ask(&["getbalance"])).unwrap();
        let satoshi = |field: &str| {
            let coins: f64 = balance[field].as_str().unwrap_or("0").parse().unwrap();
            #[expect(clippy::cast_possible_truncation, reason = "no balance here has 53 bits")]
            let satoshi = (coins * 1e8).round() as i64;
            satoshi
        };
        (satoshi("confirmed"), satoshi("unconfirmed"))
    }

    fn until_balance(&self, wanted: (i64, i64), served: &Served) {
        let begin = Instant::now();
        loop {
            let balance = self.balance();
            if balance == wanted {
                return;
            }
            let log = served.log();
            assert!(begin.elapsed() < LIMIT, "{balance:?}, not {wanted:?}\n{log}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for Wallet {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

#[test]
fn a_wallet_receives_survives_a_reorganisation_and_spends() {
    if Command::new("electrum").arg("--help").stdout(Stdio::null()).status().is_err() {
        return varve_testdata::skip("no electrum: install Debian's package of that name");
    }
    let Some(node) = Bitcoind::start(&["-fallbackfee=0.0001"]) else { return };
    node.call("createwallet", &json!(["miner"]));
    let miner = node.wallet("miner", "getnewaddress", &json!([]));
    node.call("generatetoaddress", &json!([101, miner]));
    let data = tempfile::tempdir().unwrap();
    let rpc = format!("http://{}@{}", node.cookie_file().display(), node.rpc_address());
    let served = Served::start(&data.path().join("data"), &["--rpc", &rpc]);
    served.until_tip(&node.tip());
    let wallet = Wallet::new(served.places["electrum"].as_str().unwrap());

    // A payment is seen before and after it is confirmed.
    let address = wallet.ask(&["getunusedaddress"]);
    let payment = node.wallet("miner", "sendtoaddress", &json!([address, 1.5]));
    wallet.until_balance((0, 150_000_000), &served);
    let paid = node.call("generatetoaddress", &json!([1, miner]));
    wallet.until_balance((150_000_000, 0), &served);

    // The chain leaves its block for two that do not have it; then it is confirmed again.
    node.call("invalidateblock", &json!([paid[0]]));
    for _ in 0..2 {
        node.call("generateblock", &json!([miner, []]));
    }
    wallet.until_balance((0, 150_000_000), &served);
    node.call("generatetoaddress", &json!([1, miner]));
    wallet.until_balance((150_000_000, 0), &served);
    let confirmed = node.wallet("miner", "gettransaction", &json!([payment]));
    assert_ne!(confirmed["blockhash"], paid[0], "it is in another block");

    // The wallet builds a spend, and the server hands it to the node.
    let back = node.wallet("miner", "getnewaddress", &json!([]));
    let spend = wallet.ask(&["payto", back.as_str().unwrap(), "0.4", "--feerate", "3"]);
    let txid = wallet.ask(&["broadcast", &spend]);
    let entry = node.call("getmempoolentry", &json!([txid]));
    let fee = entry["fees"]["base"].as_f64().unwrap() * 1e8;
    #[expect(clippy::cast_possible_truncation, reason = "a fee is small")]
    let left = 110_000_000 - fee.round() as i64;
    node.call("generatetoaddress", &json!([1, miner]));
    wallet.until_balance((left, 0), &served);
    served.stop();
}
