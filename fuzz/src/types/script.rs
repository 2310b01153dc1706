//! Scripts: the walk over their instructions, and their classes.

use crate::examples::Examples;
use bitcoin::consensus::encode::deserialize;
use bitcoin::script::{Instruction as Theirs, Script};
use bitcoin::{Transaction, WitnessVersion};
use varve_types::pushdata::PushdataRule;
use varve_types::script::{Class, Instruction, Instructions};

/// The walk, the class and the pushed items agree with `bitcoin`.
pub(super) fn script(bytes: &[u8]) {
    let script = Script::from_bytes(bytes);
    let mut walked = 0;
    let mut theirs = script.instructions();
    for ours in Instructions::new(bytes) {
        let theirs = theirs.next();
        let Ok(Instruction { opcode, data }) = ours else {
            assert!(matches!(theirs, Some(Err(_))), "only we refuse");
            break;
        };
        match theirs {
            Some(Ok(Theirs::PushBytes(pushed))) => assert_eq!(data, Some(pushed.as_bytes())),
            Some(Ok(Theirs::Op(theirs))) => {
                assert_eq!((opcode, data), (theirs.to_u8(), None));
            }
            other => panic!("we walk over {opcode}, they give {other:?}"),
        }
        walked += 1;
    }
    assert!(walked <= bytes.len());
    assert!(theirs.next().is_none_or(|next| next.is_err()), "they walk further");
    class(bytes, script);
    pushes(bytes, script);
}

/// The pushed items are those of their walk that have the length of the rule. A push that is cut
/// off, where their walk ends, may follow.
fn pushes(bytes: &[u8], script: &Script) {
    let whole = |listed: fn(&usize) -> bool| {
        let theirs = script.instructions().map_while(Result::ok);
        theirs.filter_map(move |instruction| match instruction {
            Theirs::PushBytes(data) if listed(&data.len()) => Some(data.as_bytes()),
            Theirs::PushBytes(_) | Theirs::Op(_) => None,
        })
    };
    let cut = usize::from(script.instructions().any(|instruction| instruction.is_err()));
    let rule = PushdataRule::Documented;
    let outputs: Vec<_> = rule.of_output(bytes).map(|item| item.data).collect();
    let theirs: Vec<_> = whole(|length| *length >= 20).collect();
    assert!(outputs.starts_with(&theirs) && outputs.len() <= theirs.len() + cut);
    let inputs: Vec<_> = rule.of_input(bytes).map(|item| item.data).collect();
    let theirs: Vec<_> = whole(|length| [20, 33, 65].contains(length)).collect();
    assert!(inputs.starts_with(&theirs) && inputs.len() <= theirs.len() + cut);
    let mut keys = PushdataRule::Conduit.of_output(bytes).map(|item| item.data);
    assert!(keys.all(|key| outputs.contains(&key)));
}

fn class(bytes: &[u8], script: &Script) {
    let ours = Class::of(bytes);
    let pairs = [
        (Class::P2pk, script.is_p2pk()),
        (Class::P2pkh, script.is_p2pkh()),
        (Class::P2sh, script.is_p2sh()),
        (Class::P2wpkh, script.is_p2wpkh()),
        (Class::P2wsh, script.is_p2wsh()),
        (Class::P2tr, script.is_p2tr()),
        (Class::OpReturn, script.is_op_return()),
    ];
    for (class, theirs) in pairs {
        // They look only at the length of a key; we, like Core, also at its first byte.
        if class == Class::P2pk {
            assert!(theirs || ours != class, "{class:?}");
        } else {
            assert_eq!(ours == class, theirs, "{class:?}");
        }
    }
    let program = matches!(
        ours,
        Class::P2wpkh | Class::P2wsh | Class::P2tr | Class::P2a | Class::OtherWitness
    );
    // Version 0 of another length is a witness program that nothing can spend: no class of ours.
    let unspendable =
        ours == Class::Nonstandard && script.witness_version() == Some(WitnessVersion::V0);
    assert_eq!(program || unspendable, script.is_witness_program());
    if ours == Class::Multisig {
        assert_eq!(bytes.last(), Some(&0xae));
    }
}

/// The scripts of the example transactions.
pub(super) fn seeds(examples: &Examples) -> Vec<Vec<u8>> {
    let transactions = examples.transactions.iter();
    let decoded = transactions.filter_map(|bytes| deserialize::<Transaction>(bytes).ok());
    let scripts = decoded.flat_map(|transaction| {
        let inputs = transaction.input.into_iter().map(|input| input.script_sig.into_bytes());
        let outputs = transaction.output.into_iter().map(|out| out.script_pubkey.into_bytes());
        inputs.chain(outputs).collect::<Vec<_>>()
    });
    let mut scripts: Vec<Vec<u8>> = scripts.collect();
    let key = [[0x21, 0x03].as_slice(), &[7; 32]].concat();
    scripts.push([[0x51].as_slice(), &key, &key, &[0x52, 0xae]].concat());
    scripts.push(vec![0x51, 0x02, 0x4e, 0x73]);
    scripts.sort();
    scripts.dedup();
    scripts
}
