//! Scripts through the verifier: Core's script_tests.json, and the check of a block in parallel.

use std::num::NonZeroUsize;

use serde_json::Value;
use varve_consensus::contract::draft::{BlockDraft, InputDraft, OutputDraft, TxDraft};
use varve_consensus::{
    BlockAt, CoreVerifier, Params, PreparedTx as _, ScriptError, ScriptFlags, ScriptVerifier as _,
    SpendingTx, check_scripts,
};
use varve_types::{Amount, Block, Format, Height, Network, Outpoint, Tx, TxOut};

use crate::full_blocks::bcoin;
use crate::load;
use crate::replay::invalid;

/// The flags that a vector names and the verifier knows, and how many it does not know.
pub(crate) fn parse_flags(text: &str) -> (ScriptFlags, usize) {
    let names = text.split(',').filter(|name| !matches!(*name, "" | "NONE"));
    names.fold((ScriptFlags::NONE, 0), |(flags, unknown), name| match name {
        "P2SH" => (flags | ScriptFlags::P2SH, unknown),
        "DERSIG" => (flags | ScriptFlags::DERSIG, unknown),
        "NULLDUMMY" => (flags | ScriptFlags::NULLDUMMY, unknown),
        "CHECKLOCKTIMEVERIFY" => (flags | ScriptFlags::CHECKLOCKTIMEVERIFY, unknown),
        "CHECKSEQUENCEVERIFY" => (flags | ScriptFlags::CHECKSEQUENCEVERIFY, unknown),
        "WITNESS" => (flags | ScriptFlags::WITNESS, unknown),
        "TAPROOT" => (flags | ScriptFlags::TAPROOT, unknown),
        _ => (flags, unknown + 1),
    })
}

const KNOWN: [ScriptFlags; 7] = [
    ScriptFlags::P2SH,
    ScriptFlags::DERSIG,
    ScriptFlags::NULLDUMMY,
    ScriptFlags::CHECKLOCKTIMEVERIFY,
    ScriptFlags::CHECKSEQUENCEVERIFY,
    ScriptFlags::WITNESS,
    ScriptFlags::TAPROOT,
];

/// All known flags except these.
pub(crate) fn all_without(off: ScriptFlags) -> ScriptFlags {
    let left = KNOWN.into_iter().filter(|flag| !off.contains(*flag));
    left.fold(ScriptFlags::NONE, |all, flag| all | flag)
}

/// The flags with those that they need.
pub(crate) fn filled(flags: ScriptFlags) -> ScriptFlags {
    let needs_p2sh = flags.contains(ScriptFlags::WITNESS) || flags.contains(ScriptFlags::TAPROOT);
    if needs_p2sh { flags | ScriptFlags::P2SH } else { flags }
}

/// A script from Core's notation: opcodes by name, numbers, `0x` bytes as they are, `'text'`.
pub(crate) fn assemble(text: &str) -> Vec<u8> {
    let mut script = Vec::new();
    for word in text.split_whitespace() {
        if let Some(bytes) = word.strip_prefix("0x") {
            script.extend(load::hex(bytes));
        } else if let Some(quoted) = word.strip_prefix('\'') {
            push(quoted.strip_suffix('\'').unwrap().as_bytes(), &mut script);
        } else if let Ok(number) = word.parse::<i64>() {
            push_number(number, &mut script);
        } else {
            script.push(opcode(word));
        }
    }
    script
}

fn push(data: &[u8], script: &mut Vec<u8>) {
    let buffer: &bitcoin::script::PushBytes = data.try_into().unwrap();
    script.extend(bitcoin::ScriptBuf::builder().push_slice(buffer).into_script().into_bytes());
}

fn push_number(number: i64, script: &mut Vec<u8>) {
    script.extend(bitcoin::ScriptBuf::builder().push_int(number).into_script().into_bytes());
}

/// An opcode by the name that Core gives it, with or without `OP_`.
fn opcode(name: &str) -> u8 {
    let name = name.strip_prefix("OP_").unwrap_or(name);
    let alias = match name {
        "CHECKLOCKTIMEVERIFY" => "CLTV",
        "CHECKSEQUENCEVERIFY" => "CSV",
        "NOP2" => "CLTV",
        "NOP3" => "CSV",
        "1NEGATE" => "PUSHNUM_NEG1",
        same => same,
    };
    if let Some(number) = alias.strip_prefix("RESERVED") {
        return match number {
            "" => 0x50,
            "1" => 0x89,
            _ => 0x8a,
        };
    }
    let wanted = format!("OP_{alias}");
    let found = (0x4f..=0xff_u8).find(|byte| bitcoin::Opcode::from(*byte).to_string() == wanted);
    found.unwrap_or_else(|| panic!("{name} is no opcode"))
}

/// `[[witness item …, amount]?, signature script, script, flags, expected, comment?]`
struct Vector {
    witness: Vec<Vec<u8>>,
    amount: u64,
    script_sig: Vec<u8>,
    script: Vec<u8>,
    flags: String,
    expected: String,
}

impl Vector {
    /// `None` for comments, and for the few with placeholders for taproot trees.
    fn parse(test: &Value) -> Option<Self> {
        let test = test.as_array()?;
        let (witness, rest) = match test.first()?.as_array() {
            Some(witness) => (witness.as_slice(), &test[1..]),
            None => (&[][..], &test[..]),
        };
        let text = |at: usize| rest.get(at)?.as_str();
        let (amount, items) = witness
            .split_last()
            .map_or((0.0, witness), |(amount, items)| (amount.as_f64().unwrap(), items));
        let items: Vec<_> = items.iter().map(|item| item.as_str().unwrap()).collect();
        if rest.len() < 4 || items.iter().any(|item| item.starts_with('#')) {
            return None;
        }
        Some(Self {
            witness: items.iter().map(|item| load::hex(item)).collect(),
            amount: format!("{:.0}", amount * 1e8).parse().unwrap(),
            script_sig: assemble(text(0)?),
            script: assemble(text(1)?),
            flags: text(2)?.to_owned(),
            expected: text(3)?.to_owned(),
        })
    }

    /// Core's test spends an output of a first transaction with a second.
    fn passes(&self, flags: ScriptFlags) -> bool {
        let input = |outpoint, script: &[u8], witness: &[Vec<u8>]| InputDraft {
            outpoint,
            script: script.to_vec(),
            sequence: u32::MAX,
            witness: witness.to_vec(),
        };
        let credit = TxDraft {
            version: 1,
            inputs: vec![input(Outpoint::NULL, &[0, 0], &[])],
            outputs: vec![OutputDraft { value: self.amount, script: self.script.clone() }],
            lock_time: 0,
        };
        let spend = TxDraft {
            version: 1,
            inputs: vec![input(Outpoint::new(credit.txid(), 0), &self.script_sig, &self.witness)],
            outputs: vec![OutputDraft { value: self.amount, script: Vec::new() }],
            lock_time: 0,
        };
        let bytes = spend.bytes();
        let tx = Tx::parse(&bytes, Format::Segwit).unwrap();
        let spent = [TxOut { value: Amount::from_sat(self.amount), script: &self.script }];
        let prepared = CoreVerifier.prepare(&SpendingTx { tx: &tx, spent: &spent }).unwrap();
        prepared.verify(0, flags).is_ok()
    }
}

#[test]
fn script_vectors_of_core() {
    let Some(json) = load::json("vectors/core/script_tests.json") else { return };
    let (mut passed, mut failed, mut left_out) = (0, 0, 0);
    for (index, test) in json.as_array().unwrap().iter().enumerate() {
        let Some(vector) = Vector::parse(test) else { continue };
        let (flags, unknown) = parse_flags(&vector.flags);
        let flags = filled(flags);
        if vector.expected == "OK" {
            assert!(vector.passes(flags), "{index}: {test}");
            passed += 1;
        } else if unknown == 0 {
            assert!(!vector.passes(flags), "{index}: {test}");
            failed += 1;
        } else {
            left_out += 1;
        }
    }
    assert_eq!((passed, failed, left_out), (672, 92, 464));
}

#[test]
fn the_first_failure_does_not_depend_on_threads() {
    let Some((bytes, set)) = bcoin("block300025") else { return };
    let params = Params::new(Network::Mainnet);
    let check = |bytes: &[u8], threads: usize| {
        let block = load::parse(bytes);
        let block = BlockAt::new(Height::new(300_025), &block);
        let threads = NonZeroUsize::new(threads).unwrap();
        check_scripts(&params, &block, &set, &CoreVerifier, threads).map_err(invalid)
    };
    assert_eq!(check(&bytes, 1), Ok(()));
    // A byte of the signature of every tenth input is changed, from some transaction on.
    // Transactions that spend outputs of changed ones are left out, because those outputs no longer
    // exist.
    let block = load::parse(&bytes);
    let own: Vec<_> = block.txids();
    let mut draft = BlockDraft::from(&block);
    draft.txs.retain(|tx| tx.inputs.iter().all(|input| !own.contains(&input.outpoint.txid)));
    let good = draft.bytes();
    assert_eq!(check(&good, 2), Ok(()));
    let mut expected = None;
    for (index, tx) in draft.txs.iter_mut().enumerate().skip(40).step_by(10) {
        let last = tx.inputs.len() - 1;
        tx.inputs[last].script[9] ^= 1;
        expected.get_or_insert((index, last));
    }
    let (index, vin) = expected.unwrap();
    let changed = draft.bytes();
    let txid = Block::parse(&changed, Format::Segwit).unwrap().txids()[index];
    for threads in [1, 2, 3, 8, 64] {
        match check(&changed, threads) {
            Err(ScriptError::Failed { txid: found, vin: at, .. }) => {
                assert_eq!((found, at), (txid, vin), "with {threads} threads");
            }
            other => panic!("{other:?} with {threads} threads"),
        }
    }
}

#[test]
fn bsv_is_refused_with_a_sentence() {
    let Some((bytes, set)) = bcoin("block300025") else { return };
    let block = load::parse(&bytes);
    let block = BlockAt::new(Height::new(300_025), &block);
    for network in [Network::Bsv, Network::BsvRegtest] {
        let params = Params::new(network);
        let threads = NonZeroUsize::new(1).unwrap();
        let error = check_scripts(&params, &block, &set, &CoreVerifier, threads).map_err(invalid);
        let error = error.unwrap_err();
        assert_eq!(error, ScriptError::Unsupported { network });
        assert_eq!(error.reject_reason(), None, "it is no verdict");
        assert!(error.to_string().contains("scripts cannot be checked on bsv"), "{error}");
    }
}

#[test]
fn flags_by_height_and_by_exception() {
    let Some((bytes, _)) = bcoin("block300025") else { return };
    let block = load::parse(&bytes);
    let mut params = Params::new(Network::Mainnet);
    let at = |params: &Params, height| {
        ScriptFlags::of(params, &BlockAt::new(Height::new(height), &block))
    };
    let always = ScriptFlags::P2SH | ScriptFlags::WITNESS | ScriptFlags::TAPROOT;
    let mut expected = always;
    assert_eq!(at(&params, 1), expected);
    for (height, flag) in [
        (363_725, ScriptFlags::DERSIG),
        (388_381, ScriptFlags::CHECKLOCKTIMEVERIFY),
        (419_328, ScriptFlags::CHECKSEQUENCEVERIFY),
        (481_824, ScriptFlags::NULLDUMMY),
    ] {
        assert_eq!(at(&params, height - 1), expected);
        expected = expected | flag;
        assert_eq!(at(&params, height), expected);
    }
    let [none, no_taproot] = &mut params.script_exceptions[..] else { panic!("two exceptions") };
    assert_eq!(none.1, ScriptFlags::NONE);
    assert_eq!(no_taproot.1, ScriptFlags::P2SH | ScriptFlags::WITNESS);
    none.0 = block.hash();
    assert_eq!(at(&params, 1), ScriptFlags::NONE);
    assert_eq!(at(&params, 363_725), ScriptFlags::DERSIG);
}
