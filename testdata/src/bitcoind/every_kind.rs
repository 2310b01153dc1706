//! A chain with outputs and spends of every kind, made by a node and its wallet.
//!
//! | what | how it is made | how it is spent |
//! |---|---|---|
//! | P2PKH, P2SH-P2WPKH, P2WPKH, P2TR | sent to addresses of the wallet | by the wallet |
//! | P2WSH | 1-of-2 multisignature, raw | signed by the node with a key |
//! | bare multisig, P2PK compressed and uncompressed | raw | signed by the node with a key |
//! | P2PK with keys that are not on the curve | raw | never |
//! | scripts of 10,000 and 10,001 bytes | raw | the first by anyone, the second never |
//! | zero values, `OP_RETURN` | raw | – |
//! | 20,000 outputs of one transaction | raw | some of them |
//! | P2SH, P2WSH and P2TR with scripts, P2A | raw | by anyone who shows the script |
//! | lock times: height, time, relative height, relative time | raw | when due |
//! | the same, enforced by `OP_CHECKLOCKTIMEVERIFY` or `OP_CHECKSEQUENCEVERIFY` | raw | when due |
//!
//! Raw transactions spend a coin of the wallet, which signs them, and go into a block by
//! `generateblock`, which bypasses the policy of the mempool. Then follow three reorgs of depth 1,
//! 3 and 6.

mod keyless;

use bitcoin::consensus::encode::{deserialize_hex, serialize_hex};
use bitcoin::hex::FromHex as _;
use bitcoin::script::Builder;
use bitcoin::secp256k1::{PublicKey, Secp256k1, SecretKey};
use bitcoin::{
    Amount, NetworkKind, OutPoint, PrivateKey, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Txid,
    Witness, absolute, opcodes::all as op, script::PushBytesBuf, transaction::Version,
};
use serde_json::{Value, json};

use self::keyless::{DUE, Keyless};
use super::Bitcoind;

/// When the chain begins, and how much later each block is.
const BEGIN: u64 = 1_700_000_000;
const SPACING: u64 = 600;
const FEE: Amount = Amount::from_sat(100_000);
const MANY: usize = 20_000;
/// The longest script that can be spent.
const LONGEST: usize = 10_000;

/// The maker of the chain.
pub struct EveryKind<'a> {
    node: &'a Bitcoind,
    time: u64,
    key: PrivateKey,
}

impl<'a> EveryKind<'a> {
    /// The wallet that the chain pays to.
    pub const WALLET: &'static str = "kinds";

    /// Makes the chain on an empty node: about 180 blocks.
    pub fn make(node: &'a Bitcoind) {
        let key = SecretKey::from_slice(&[7; 32]).unwrap();
        let mut maker = Self { node, time: BEGIN, key: PrivateKey::new(key, NetworkKind::Test) };
        // First the time: a wallet ignores blocks from before its creation.
        maker.tick();
        node.call("createwallet", &json!([Self::WALLET]));
        maker.mine_to_wallet(110);
        maker.addresses();
        maker.raw_outputs();
        maker.many_outputs();
        maker.keyless();
        for depth in [1, 3, 6] {
            maker.mine_to_wallet(depth + 1);
            maker.tick();
            node.reorganize(depth);
        }
        maker.mine_to_wallet(3);
    }

    /// Advances the time of the next block.
    fn tick(&mut self) {
        self.time += SPACING;
        self.node.call("setmocktime", &json!([self.time]));
    }

    fn wallet(&self, method: &str, params: &Value) -> Value {
        self.node.wallet(Self::WALLET, method, params)
    }

    fn address(&self, kind: &str) -> Value {
        self.wallet("getnewaddress", &json!(["", kind]))
    }

    /// Blocks with what is in the mempool.
    fn mine_to_wallet(&mut self, count: u32) {
        let address = self.address("bech32");
        for _ in 0..count {
            self.tick();
            self.node.call("generatetoaddress", &json!([1, address]));
        }
    }

    /// A block with these transactions.
    fn mine(&mut self, transactions: &[&Transaction]) {
        self.tick();
        let hex: Vec<String> = transactions.iter().map(|tx| serialize_hex(*tx)).collect();
        self.node.call("generateblock", &json!([self.address("bech32"), hex]));
    }

    /// One output of each kind that the wallet has, spent by the wallet in the next block.
    fn addresses(&mut self) {
        for kind in ["legacy", "p2sh-segwit", "bech32", "bech32m"] {
            let output = |value| TxOut { value, script_pubkey: script(&self.address_script(kind)) };
            let made = self.pay(vec![output(Amount::ONE_BTC)]);
            let back = output(Amount::ONE_BTC - FEE);
            self.mine(&[&made]);
            let coin = OutPoint::new(made.compute_txid(), 0);
            let spend = self.sign_by_wallet(&spend(&[coin], vec![back]));
            self.mine(&[&spend]);
        }
    }

    fn address_script(&self, kind: &str) -> Value {
        self.wallet("getaddressinfo", &json!([self.address(kind)]))["scriptPubKey"].clone()
    }

    /// The coins of the wallet that can be spent, the largest first.
    fn coins(&self) -> Vec<Value> {
        let mut coins = self.wallet("listunspent", &json!([1])).as_array().unwrap().clone();
        coins.sort_by_key(|coin| std::cmp::Reverse(satoshi(coin)));
        coins
    }

    fn sign_by_wallet(&self, transaction: &Transaction) -> Transaction {
        let hex = serialize_hex(transaction);
        signed(&self.wallet("signrawtransactionwithwallet", &json!([hex])))
    }

    /// A transaction from the wallet's largest coin to these outputs, the rest back.
    fn pay(&self, mut outputs: Vec<TxOut>) -> Transaction {
        let coin = self.coins().swap_remove(0);
        let paid: Amount = outputs.iter().map(|output| output.value).sum();
        let rest = Amount::from_sat(satoshi(&coin)) - paid - FEE;
        let back = script(&self.address_script("bech32m"));
        outputs.push(TxOut { value: rest, script_pubkey: back });
        self.sign_by_wallet(&spend(&[outpoint(&coin)], outputs))
    }

    /// Everything that has no address, and the spends of what can be spent.
    fn raw_outputs(&mut self) {
        let key = PublicKey::from_secret_key(&Secp256k1::new(), &self.key.inner);
        let (short, long) = (key.serialize(), key.serialize_uncompressed());
        let multisig = multisig(&short);
        let witness = ScriptBuf::new_p2wsh(&multisig.wscript_hash());
        let scripts = [
            p2pk(&short),
            p2pk(&long),
            multisig.clone(),
            witness,
            long_script(LONGEST),
            long_script(LONGEST + 1),
            p2pk(&[&[2][..], &[0xff; 32]].concat()),
            p2pk(&[&[4][..], &[0xff; 64]].concat()),
            p2pk(&[&[4][..], &short[1..], &[1; 32]].concat()),
            Builder::new().push_opcode(op::OP_RETURN).push_slice([9; 40]).into_script(),
        ];
        let value = Amount::from_sat(1_000_000);
        let mut outputs: Vec<TxOut> =
            scripts.iter().map(|script| TxOut { value, script_pubkey: script.clone() }).collect();
        for script in [&scripts[0], &scripts[9], &ScriptBuf::new()] {
            outputs.push(TxOut { value: Amount::ZERO, script_pubkey: script.clone() });
        }
        let made = self.pay(outputs);
        self.mine(&[&made]);
        let txid = made.compute_txid();
        for vout in 0..4 {
            let spend = self.sign_by_key(&made, vout, &multisig);
            self.mine(&[&spend]);
        }
        // Nobody needs to sign for the long script, nor for zero satoshi at an empty one.
        let anybody = anyone();
        let freely = spend(
            &[OutPoint::new(txid, 4)],
            vec![TxOut { value: value - FEE, script_pubkey: anybody }],
        );
        self.mine(&[&freely]);
    }

    /// Spends an output of `made` to anyone, signed by the node with the one key.
    fn sign_by_key(&self, made: &Transaction, vout: u32, script: &ScriptBuf) -> Transaction {
        let txid = made.compute_txid();
        let output = &made.output[vout as usize];
        let to = TxOut { value: output.value - FEE, script_pubkey: anyone() };
        let spend = spend(&[OutPoint::new(txid, vout)], vec![to]);
        let mut previous = json!({
            "txid": txid.to_string(),
            "vout": vout,
            "scriptPubKey": output.script_pubkey.to_hex_string(),
            "amount": output.value.to_btc(),
        });
        if output.script_pubkey.is_p2wsh() {
            previous["witnessScript"] = json!(script.to_hex_string());
        }
        let mut keys = vec![self.key.to_wif()];
        if output.script_pubkey.len() == 67 {
            let long = PrivateKey::new_uncompressed(self.key.inner, NetworkKind::Test);
            keys = vec![long.to_wif()];
        }
        let params = json!([serialize_hex(&spend), keys, [previous]]);
        signed(&self.node.call("signrawtransactionwithkey", &params))
    }

    /// One transaction of very many outputs, of which the next one spends a few.
    fn many_outputs(&mut self) {
        let output = TxOut { value: Amount::from_sat(1_000), script_pubkey: anyone() };
        let made = self.pay(vec![output; MANY]);
        self.mine(&[&made]);
        let txid = made.compute_txid();
        let some: Vec<OutPoint> = (0..300).map(|number| OutPoint::new(txid, number * 66)).collect();
        let value = Amount::from_sat(100_000);
        self.mine(&[&spend(&some, vec![TxOut { value, script_pubkey: anyone() }])]);
    }

    /// Outputs that need no signature, each spent in a separate block when it is due.
    fn keyless(&mut self) {
        let (key, _) = self.key.inner.x_only_public_key(&Secp256k1::new());
        let kinds = Keyless::all(key, self.node.height(), self.time);
        let value = Amount::from_sat(50_000);
        let output = |kind: &Keyless| TxOut { value, script_pubkey: kind.script_pubkey.clone() };
        let made = self.pay(kinds.iter().map(output).collect());
        self.mine(&[&made]);
        self.mine_to_wallet(DUE);
        let txid = made.compute_txid();
        let out = vec![TxOut { value: value - Amount::from_sat(1_000), script_pubkey: anyone() }];
        for (vout, kind) in (0..).zip(kinds) {
            let mut spend = spend(&[OutPoint::new(txid, vout)], out.clone());
            let input = &mut spend.input[0];
            (input.script_sig, input.witness) = (kind.script_sig, kind.witness);
            (input.sequence, spend.lock_time) = (kind.sequence, kind.lock_time);
            self.mine(&[&spend]);
        }
    }
}

/// A transaction of version 2 that is final only by its lock time.
fn spend(coins: &[OutPoint], output: Vec<TxOut>) -> Transaction {
    let input = |coin: &OutPoint| TxIn {
        previous_output: *coin,
        script_sig: ScriptBuf::new(),
        sequence: Sequence::ENABLE_LOCKTIME_NO_RBF,
        witness: Witness::new(),
    };
    let input = coins.iter().map(input).collect();
    Transaction { version: Version::TWO, lock_time: absolute::LockTime::ZERO, input, output }
}

/// A script that anyone can spend.
fn anyone() -> ScriptBuf {
    ScriptBuf::from_bytes(vec![0x51])
}

fn p2pk(key: &[u8]) -> ScriptBuf {
    let key = PushBytesBuf::try_from(key.to_vec()).unwrap();
    Builder::new().push_slice(key).push_opcode(op::OP_CHECKSIG).into_script()
}

/// One signature of two keys, both the same.
fn multisig(key: &[u8; 33]) -> ScriptBuf {
    let keys = Builder::new().push_int(1).push_slice(key).push_slice(key);
    keys.push_int(2).push_opcode(op::OP_CHECKMULTISIG).into_script()
}

/// A script of this length that anyone can spend, if it is not too long: pushes that are dropped,
/// and a one.
fn long_script(length: usize) -> ScriptBuf {
    let mut bytes = Vec::new();
    // The last push fills the rest, including its four bytes of opcodes and the one.
    while length - bytes.len() > 700 {
        bytes.extend_from_slice(&[0x4d, 0x08, 0x02]);
        bytes.extend_from_slice(&[7; 520]);
        bytes.push(0x75);
    }
    let half = (length - bytes.len() - 1) / 2;
    for size in [half, length - bytes.len() - 1 - half] {
        let data = u16::try_from(size - 4).unwrap();
        bytes.push(0x4d);
        bytes.extend_from_slice(&data.to_le_bytes());
        bytes.extend(std::iter::repeat_n(7, size - 4));
        bytes.push(0x75);
    }
    bytes.push(0x51);
    assert_eq!(bytes.len(), length);
    ScriptBuf::from_bytes(bytes)
}

fn outpoint(coin: &Value) -> OutPoint {
    let txid: Txid = coin["txid"].as_str().unwrap().parse().unwrap();
    OutPoint::new(txid, u32::try_from(coin["vout"].as_u64().unwrap()).unwrap())
}

fn satoshi(coin: &Value) -> u64 {
    Amount::from_btc(coin["amount"].as_f64().unwrap()).unwrap().to_sat()
}

fn script(hex: &Value) -> ScriptBuf {
    ScriptBuf::from_bytes(Vec::from_hex(hex.as_str().unwrap()).unwrap())
}

fn signed(answer: &Value) -> Transaction {
    assert_eq!(answer["complete"], true, "{answer}");
    deserialize_hex(answer["hex"].as_str().unwrap()).unwrap()
}
