//! Transactions that spend every kind of output, signed.

use bitcoin::absolute::LockTime;
use bitcoin::hashes::Hash as _;
use bitcoin::opcodes::all::{
    OP_CHECKMULTISIG, OP_CHECKSIG, OP_CODESEPARATOR, OP_DROP, OP_PUSHNUM_1,
};
use bitcoin::secp256k1::{Keypair, Message, Secp256k1, SecretKey};
use bitcoin::sighash::{Annex, Prevouts, SighashCache, TapSighashType};
use bitcoin::taproot::{LeafVersion, TapLeafHash, TaprootBuilder, TaprootSpendInfo};
use bitcoin::transaction::Version;
use bitcoin::{
    Amount, OutPoint, PublicKey, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Txid, Witness,
    consensus,
};

/// What kind of output is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Pkh,
    /// Bare 2 of 3.
    Multisig,
    Wpkh,
    ShWpkh,
    /// 2 of 3 in a witness script.
    Wsh,
    /// A witness script with OP_CODESEPARATOR before the signature check.
    WshSeparator,
    TaprootKey,
    /// A leaf with a signature check, and OP_CODESEPARATOR before it.
    TaprootLeaf,
    /// A leaf with an opcode that makes it succeed.
    TaprootSuccess,
    /// A leaf of a version that is unknown.
    TaprootUnknown,
    /// OP_TRUE.
    Anyone,
}

impl Kind {
    pub(crate) const ALL: [Self; 11] = [
        Self::Pkh,
        Self::Multisig,
        Self::Wpkh,
        Self::ShWpkh,
        Self::Wsh,
        Self::WshSeparator,
        Self::TaprootKey,
        Self::TaprootLeaf,
        Self::TaprootSuccess,
        Self::TaprootUnknown,
        Self::Anyone,
    ];
}

/// One input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spend {
    pub(crate) kind: Kind,
    pub(crate) sighash: u8,
    pub(crate) key: u8,
    pub(crate) annex: bool,
    pub(crate) sequence: u32,
    pub(crate) value: i64,
}

const ANNEX: [u8; 3] = [0x50, 1, 2];

fn keypair(number: u8) -> Keypair {
    let secret = SecretKey::from_slice(&[number + 1; 32]).unwrap();
    Keypair::from_secret_key(&Secp256k1::new(), &secret)
}

fn public(number: u8) -> PublicKey {
    PublicKey::new(keypair(number).public_key())
}

fn multisig(key: u8) -> ScriptBuf {
    let builder = ScriptBuf::builder().push_int(2);
    let builder = (0..3).fold(builder, |builder, offset| builder.push_key(&public(key + offset)));
    builder.push_int(3).push_opcode(OP_CHECKMULTISIG).into_script()
}

fn separated(key: u8) -> ScriptBuf {
    ScriptBuf::builder()
        .push_int(7)
        .push_opcode(OP_DROP)
        .push_opcode(OP_CODESEPARATOR)
        .push_key(&public(key))
        .push_opcode(OP_CHECKSIG)
        .into_script()
}

/// The leaf of a kind, and its version.
fn leaf(kind: Kind, key: u8) -> (ScriptBuf, LeafVersion) {
    let (internal, _) = keypair(key).x_only_public_key();
    let tapscript = LeafVersion::TapScript;
    match kind {
        Kind::TaprootSuccess => (ScriptBuf::from_bytes(vec![0x50, 0xff]), tapscript),
        Kind::TaprootUnknown => {
            (ScriptBuf::from_bytes(vec![0xff]), LeafVersion::from_consensus(0xc2).unwrap())
        }
        _ => {
            let script = ScriptBuf::builder()
                .push_opcode(OP_CODESEPARATOR)
                .push_x_only_key(&internal)
                .push_opcode(OP_CHECKSIG);
            (script.into_script(), tapscript)
        }
    }
}

fn tree(kind: Kind, key: u8) -> TaprootSpendInfo {
    let (script, version) = leaf(kind, key);
    let builder = TaprootBuilder::new().add_leaf_with_ver(0, script, version).unwrap();
    builder.finalize(&Secp256k1::new(), keypair(key).x_only_public_key().0).unwrap()
}

fn locking(kind: Kind, key: u8) -> ScriptBuf {
    let wpkh = || ScriptBuf::new_p2wpkh(&public(key).wpubkey_hash().unwrap());
    match kind {
        Kind::Pkh => ScriptBuf::new_p2pkh(&public(key).pubkey_hash()),
        Kind::Multisig => multisig(key),
        Kind::Wpkh => wpkh(),
        Kind::ShWpkh => ScriptBuf::new_p2sh(&wpkh().script_hash()),
        Kind::Wsh => ScriptBuf::new_p2wsh(&multisig(key).wscript_hash()),
        Kind::WshSeparator => ScriptBuf::new_p2wsh(&separated(key).wscript_hash()),
        Kind::TaprootKey | Kind::TaprootLeaf | Kind::TaprootSuccess | Kind::TaprootUnknown => {
            ScriptBuf::new_p2tr_tweaked(tree(kind, key).output_key())
        }
        Kind::Anyone => ScriptBuf::builder().push_opcode(OP_PUSHNUM_1).into_script(),
    }
}

/// The transaction in bytes, and the amounts and scripts that it spends.
pub(crate) fn sign(
    spends: &[Spend],
    outputs: usize,
    lock_time: u32,
) -> (Vec<u8>, Vec<(i64, Vec<u8>)>) {
    let prevouts: Vec<TxOut> = spends
        .iter()
        .map(|spend| TxOut {
            value: Amount::from_sat(spend.value.unsigned_abs()),
            script_pubkey: locking(spend.kind, spend.key),
        })
        .collect();
    let input = |(number, spend): (usize, &Spend)| TxIn {
        previous_output: OutPoint::new(
            Txid::from_byte_array([9; 32]),
            u32::try_from(number).unwrap(),
        ),
        sequence: Sequence(spend.sequence),
        ..TxIn::default()
    };
    let output = |number| TxOut {
        value: Amount::from_sat(number as u64 + 1),
        script_pubkey: ScriptBuf::from_bytes(vec![0x51; number + 1]),
    };
    let mut tx = Transaction {
        version: Version::TWO,
        lock_time: LockTime::from_consensus(lock_time),
        input: spends.iter().enumerate().map(input).collect(),
        output: (0..outputs).map(output).collect(),
    };
    let unsigned = tx.clone();
    for (number, spend) in spends.iter().enumerate() {
        let answer = Signer { tx: &unsigned, prevouts: &prevouts, number, spend }.answer();
        (tx.input[number].script_sig, tx.input[number].witness) = answer;
    }
    let spent = spends.iter().zip(prevouts);
    let spent = spent.map(|(spend, out)| (spend.value, out.script_pubkey.into_bytes())).collect();
    (consensus::serialize(&tx), spent)
}

struct Signer<'a> {
    tx: &'a Transaction,
    prevouts: &'a [TxOut],
    number: usize,
    spend: &'a Spend,
}

impl Signer<'_> {
    fn answer(&self) -> (ScriptBuf, Witness) {
        let key = self.spend.key;
        let script = &self.prevouts[self.number].script_pubkey;
        let pushes = |items: &[Vec<u8>]| {
            let push = |builder: bitcoin::script::Builder, item: &Vec<u8>| {
                builder.push_slice(<&bitcoin::script::PushBytes>::try_from(&item[..]).unwrap())
            };
            items.iter().fold(ScriptBuf::builder(), push).into_script()
        };
        let wpkh = || {
            let code = ScriptBuf::new_p2pkh(&public(key).pubkey_hash());
            Witness::from_slice(&[self.segwit(&code, key), public(key).to_bytes()])
        };
        match self.spend.kind {
            Kind::Anyone => Default::default(),
            Kind::Pkh => {
                let items = [self.legacy(script, key), public(key).to_bytes()];
                (pushes(&items), Witness::new())
            }
            Kind::Multisig => {
                let items = [vec![], self.legacy(script, key), self.legacy(script, key + 1)];
                (pushes(&items), Witness::new())
            }
            Kind::Wpkh => (ScriptBuf::new(), wpkh()),
            Kind::ShWpkh => {
                let redeem = ScriptBuf::new_p2wpkh(&public(key).wpubkey_hash().unwrap());
                (pushes(&[redeem.into_bytes()]), wpkh())
            }
            Kind::Wsh => {
                let code = multisig(key);
                let signatures = [self.segwit(&code, key), self.segwit(&code, key + 1)];
                let [first, second] = signatures;
                let items = [vec![], first, second, code.into_bytes()];
                (ScriptBuf::new(), Witness::from_slice(&items))
            }
            Kind::WshSeparator => {
                let code = separated(key);
                // The signed script begins after the separator.
                let signed = ScriptBuf::from_bytes(code.as_bytes()[3..].to_vec());
                let items = [self.segwit(&signed, key), code.into_bytes()];
                (ScriptBuf::new(), Witness::from_slice(&items))
            }
            taproot => (ScriptBuf::new(), self.taproot(taproot)),
        }
    }

    fn ecdsa(&self, digest: [u8; 32], key: u8) -> Vec<u8> {
        let message = Message::from_digest(digest);
        let signature = Secp256k1::new().sign_ecdsa(&message, &keypair(key).secret_key());
        [&signature.serialize_der()[..], &[self.spend.sighash]].concat()
    }

    fn legacy(&self, code: &ScriptBuf, key: u8) -> Vec<u8> {
        let cache = SighashCache::new(self.tx);
        let sighash = u32::from(self.spend.sighash);
        let digest = cache.legacy_signature_hash(self.number, code, sighash).unwrap();
        self.ecdsa(digest.to_byte_array(), key)
    }

    fn segwit(&self, code: &ScriptBuf, key: u8) -> Vec<u8> {
        let mut cache = SighashCache::new(self.tx);
        let value = self.prevouts[self.number].value;
        let sighash = bitcoin::EcdsaSighashType::from_consensus(u32::from(self.spend.sighash));
        let digest = cache.p2wsh_signature_hash(self.number, code, value, sighash).unwrap();
        self.ecdsa(digest.to_byte_array(), key)
    }

    fn taproot(&self, kind: Kind) -> Witness {
        let info = tree(kind, self.spend.key);
        let (script, version) = leaf(kind, self.spend.key);
        let annex = self.spend.annex.then(|| Annex::new(&ANNEX).unwrap());
        let hash = TapLeafHash::from_script(&script, version);
        let separator = if kind == Kind::TaprootLeaf { 0 } else { u32::MAX };
        let leaf = (kind == Kind::TaprootLeaf).then_some((hash, separator));
        let signature = self.schnorr(&info, annex, leaf);
        let mut items = match kind {
            Kind::TaprootKey => vec![signature],
            Kind::TaprootLeaf => vec![signature, script.to_bytes()],
            _ => vec![script.to_bytes()],
        };
        if kind != Kind::TaprootKey {
            items.push(info.control_block(&(script, version)).unwrap().serialize());
        }
        items.extend(self.spend.annex.then(|| ANNEX.to_vec()));
        Witness::from_slice(&items)
    }

    /// Nothing but zeros where there is no such signature.
    fn schnorr(
        &self,
        info: &TaprootSpendInfo,
        annex: Option<Annex<'_>>,
        leaf: Option<(TapLeafHash, u32)>,
    ) -> Vec<u8> {
        let zeros = vec![0; 64];
        let Ok(sighash) = TapSighashType::from_consensus_u8(self.spend.sighash) else {
            return zeros;
        };
        let prevouts = Prevouts::All(self.prevouts);
        let in_leaf = leaf.is_some();
        let digest = SighashCache::new(self.tx).taproot_signature_hash(
            self.number,
            &prevouts,
            annex,
            leaf,
            sighash,
        );
        let Ok(digest) = digest else { return zeros };
        let secp = Secp256k1::new();
        let pair = keypair(self.spend.key);
        let tweak = bitcoin::TapTweakHash::from_key_and_tweak(
            pair.x_only_public_key().0,
            info.merkle_root(),
        );
        let pair = match in_leaf {
            true => pair,
            false => pair.add_xonly_tweak(&secp, &tweak.to_scalar()).unwrap(),
        };
        let message = Message::from_digest(digest.to_byte_array());
        let signature = secp.sign_schnorr_no_aux_rand(&message, &pair);
        let mut bytes = signature.as_ref().to_vec();
        bytes.extend((sighash != TapSighashType::Default).then_some(self.spend.sighash));
        bytes
    }
}
