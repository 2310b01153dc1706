//! Random transactions, whole and damaged, against the interface of `bitcoinconsensus`, which
//! parses and hashes everything in each call. It is linked beside our copy of Core and shares
//! nothing with it.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failed test may panic")]

mod signed;

use bitcoinconsensus::{Error as Theirs, Utxo, verify_with_flags};
use proptest::prelude::*;
use signed::{Kind, Spend, sign};
use varve_script_core::{SpentOutput, Transaction, VerifyError};

const P2SH: u32 = 1;
const DERSIG: u32 = 1 << 2;
const NULLDUMMY: u32 = 1 << 4;
const CLTV: u32 = 1 << 9;
const CSV: u32 = 1 << 10;
const WITNESS: u32 = 1 << 11;
const TAPROOT: u32 = 1 << 17;
const ALL: u32 = P2SH | DERSIG | NULLDUMMY | CLTV | CSV | WITNESS | TAPROOT;

/// What a verifier says: `None` is no verdict.
type Verdict = Option<bool>;

fn ours(bytes: &[u8], spent: &[(i64, Vec<u8>)], flags: u32) -> Vec<Verdict> {
    let outputs: Vec<_> =
        spent.iter().map(|(value, script)| SpentOutput { value: *value, script }).collect();
    let Ok(tx) = Transaction::new(bytes, &outputs) else { return vec![None; spent.len()] };
    let verify = |input| match tx.verify(input, flags) {
        Ok(()) => Some(true),
        Err(VerifyError::Script) => Some(false),
        Err(_) => None,
    };
    (0..spent.len()).map(verify).collect()
}

fn theirs(bytes: &[u8], spent: &[(i64, Vec<u8>)], flags: u32) -> Vec<Verdict> {
    let utxo = |(value, script): &(i64, Vec<u8>)| Utxo {
        script_pubkey: script.as_ptr(),
        script_pubkey_len: u32::try_from(script.len()).unwrap(),
        value: *value,
    };
    let utxos: Vec<Utxo> = spent.iter().map(utxo).collect();
    let verify = |(input, (value, script)): (usize, &(i64, Vec<u8>))| {
        let value = u64::from_le_bytes(value.to_le_bytes());
        match verify_with_flags(script, value, bytes, Some(&utxos), input, flags) {
            Ok(()) => Some(true),
            Err(Theirs::ERR_SCRIPT) => Some(false),
            Err(_) => None,
        }
    };
    spent.iter().enumerate().map(verify).collect()
}

fn kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(Kind::ALL.to_vec())
}

fn spend() -> impl Strategy<Value = Spend> {
    let types = prop::sample::select(vec![0x01_u8, 0x02, 0x03, 0x81, 0x82, 0x83, 0x00, 0x04]);
    let sequence = prop_oneof![Just(u32::MAX), Just(0), Just(3), any::<u32>()];
    (kind(), types, 0_u8..4, any::<bool>(), sequence, 1_i64..1_000_000).prop_map(
        |(kind, sighash, key, annex, sequence, value)| Spend {
            kind,
            sighash,
            key,
            annex,
            sequence,
            value,
        },
    )
}

fn flags() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![ALL, ALL, ALL & !TAPROOT, P2SH | WITNESS, P2SH, 0, DERSIG | CLTV])
}

/// What is damaged before the transaction is verified.
#[derive(Clone, Debug)]
enum Damage {
    Nothing,
    /// A bit of the serialised transaction.
    Bit(prop::sample::Index, u8),
    /// The bytes end early.
    End(prop::sample::Index),
    Amount(prop::sample::Index),
    Script(prop::sample::Index, prop::sample::Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        3 => Just(Damage::Nothing),
        6 => (index(), 0_u8..8).prop_map(|(at, bit)| Damage::Bit(at, bit)),
        1 => index().prop_map(Damage::End),
        2 => index().prop_map(Damage::Amount),
        2 => (index(), index()).prop_map(|(output, byte)| Damage::Script(output, byte)),
    ]
}

fn apply(damage: &Damage, bytes: &mut Vec<u8>, spent: &mut [(i64, Vec<u8>)]) {
    match damage {
        Damage::Nothing => {}
        Damage::Bit(at, bit) => *at.get_mut(bytes) ^= 1 << bit,
        Damage::End(at) => bytes.truncate(at.index(bytes.len())),
        Damage::Amount(output) => output.get_mut(spent).0 += 1,
        Damage::Script(output, byte) => {
            let script = &mut output.get_mut(spent).1;
            if !script.is_empty() {
                *byte.get_mut(script) ^= 1;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn every_input_gets_the_verdict_of_one_call_an_input(
        spends in prop::collection::vec(spend(), 1..6),
        outputs in 1_usize..4,
        lock_time in prop_oneof![Just(0_u32), any::<u32>()],
        flags in flags(),
        damage in damage(),
    ) {
        let (mut bytes, mut spent) = sign(&spends, outputs, lock_time);
        apply(&damage, &mut bytes, &mut spent);
        prop_assert_eq!(ours(&bytes, &spent, flags), theirs(&bytes, &spent, flags));
    }
}

/// The generator makes what it says: each kind passes as it was signed, and fails when the amount
/// of a segwit output or one bit of the signature differs.
#[test]
fn what_is_signed_passes() {
    for kind in Kind::ALL {
        for sighash in [0x01, 0x02, 0x03, 0x81, 0x82, 0x83] {
            for annex in [false, true] {
                let one =
                    |key| Spend { kind, sighash, key, annex, sequence: u32::MAX, value: 5_000 };
                let (bytes, spent) = sign(&[one(0), one(1), one(2)], 3, 0);
                assert_eq!(ours(&bytes, &spent, ALL), [Some(true); 3], "{kind:?} {sighash}");
            }
        }
    }
}

/// A signature with SIGHASH_SINGLE of an input that has no output of the same number signs the
/// number one, before segwit; taproot refuses it.
#[test]
fn single_without_an_output() {
    let of = |kind| {
        let one = |key| Spend { kind, sighash: 3, key, annex: false, sequence: 0, value: 5_000 };
        let (bytes, spent) = sign(&[one(0), one(1)], 1, 0);
        ours(&bytes, &spent, ALL)
    };
    assert_eq!(of(Kind::Pkh), [Some(true), Some(true)]);
    assert_eq!(of(Kind::Wpkh), [Some(true), Some(true)]);
    assert_eq!(of(Kind::TaprootKey), [Some(true), Some(false)]);
}

/// Threads share one handle.
#[test]
fn threads_get_the_same_answers() {
    let spends: Vec<Spend> = (0..60)
        .map(|number| Spend {
            kind: Kind::ALL[number % Kind::ALL.len()],
            sighash: 1,
            key: 1,
            annex: false,
            sequence: 0,
            value: 9,
        })
        .collect();
    let (bytes, mut spent) = sign(&spends, 2, 0);
    spent[17].0 += 1;
    let expected = ours(&bytes, &spent, ALL);
    assert!(expected.contains(&Some(true)) && expected.contains(&Some(false)));
    let outputs: Vec<_> =
        spent.iter().map(|(value, script)| SpentOutput { value: *value, script }).collect();
    let tx = Transaction::new(&bytes, &outputs).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for (input, expected) in expected.iter().enumerate() {
                    assert_eq!(Some(tx.verify(input, ALL).is_ok()), *expected, "{input}");
                }
            });
        }
    });
}

#[test]
fn questions_that_are_none() {
    let one =
        Spend { kind: Kind::Wpkh, sighash: 1, key: 0, annex: false, sequence: 0, value: 5_000 };
    let (bytes, spent) = sign(&[one], 1, 0);
    let outputs = [SpentOutput { value: spent[0].0, script: &spent[0].1 }; 2];
    let tx = Transaction::new(&bytes, &outputs[..1]).unwrap();
    assert_eq!(tx.verify(0, ALL), Ok(()));
    assert_eq!(tx.verify(1, ALL), Err(VerifyError::Input));
    assert_eq!(tx.verify(usize::MAX, ALL), Err(VerifyError::Input));
    assert_eq!(tx.verify(0, WITNESS), Err(VerifyError::Flags));
    assert_eq!(tx.verify(0, u32::MAX), Err(VerifyError::Flags));
    for count in [0, 2] {
        assert!(Transaction::new(&bytes, &outputs[..count]).is_err());
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(Transaction::new(&longer, &outputs[..1]).is_err());
    assert!(Transaction::new(&[], &[]).is_err());
    // An input count of four thousand million with nothing after it.
    assert!(Transaction::new(&[1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0xff], &[]).is_err());
}
