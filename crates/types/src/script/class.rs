//! The kinds of output script that wallets make.
//!
//! ```text
//! P2PK       <key 33|65> CHECKSIG
//! P2PKH      DUP HASH160 <20> EQUALVERIFY CHECKSIG
//! P2SH       HASH160 <20> EQUAL
//! P2WPKH     0 <20>
//! P2WSH      0 <32>
//! P2TR       1 <32>
//! P2A        1 <4e73>
//! witness    1..16 <2..40>, none of the above
//! multisig   m <key> … <key> n CHECKMULTISIG
//! OP_RETURN  RETURN …
//! ```
//!
//! The patterns are those of Core's `Solver`, except that `OP_RETURN` is the class of everything
//! that begins with that opcode, also of what Core would not relay. A class is a pattern only: BSV
//! has the same patterns, but after its Genesis upgrade P2SH is a plain hash comparison there, and
//! witness programs are ordinary scripts.

use std::fmt;

use super::instruction::{Instruction, Instructions};
use super::opcode::{
    OP_0, OP_1, OP_16, OP_CHECKMULTISIG, OP_CHECKSIG, OP_DUP, OP_EQUAL, OP_EQUALVERIFY, OP_HASH160,
    OP_RETURN,
};

/// What kind of output script this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Pay to a public key, compressed or not.
    P2pk,
    /// Pay to the hash of a public key.
    P2pkh,
    /// Pay to the hash of a script (BIP16).
    P2sh,
    /// Pay to the hash of a public key, witness version 0 (BIP141).
    P2wpkh,
    /// Pay to the hash of a script, witness version 0 (BIP141).
    P2wsh,
    /// Pay to taproot, witness version 1 (BIP341).
    P2tr,
    /// Pay to anchor: anyone can spend it.
    P2a,
    /// A witness program of a version or length that has no meaning yet.
    OtherWitness,
    /// Begins with `OP_RETURN`.
    OpReturn,
    /// m of n public keys, in the open.
    Multisig,
    /// Anything else.
    Nonstandard,
}

impl Class {
    /// Every class.
    pub const ALL: [Self; 11] = [
        Self::P2pk,
        Self::P2pkh,
        Self::P2sh,
        Self::P2wpkh,
        Self::P2wsh,
        Self::P2tr,
        Self::P2a,
        Self::OtherWitness,
        Self::OpReturn,
        Self::Multisig,
        Self::Nonstandard,
    ];

    /// The class of an output script.
    #[must_use]
    pub fn of(script: &[u8]) -> Self {
        match script {
            [OP_HASH160, 20, _hash @ .., OP_EQUAL] if script.len() == 23 => Self::P2sh,
            [OP_DUP, OP_HASH160, 20, _hash @ .., OP_EQUALVERIFY, OP_CHECKSIG]
                if script.len() == 25 =>
            {
                Self::P2pkh
            }
            [OP_RETURN, ..] => Self::OpReturn,
            [OP_0, length, program @ ..] if is_program(*length, program) => match program.len() {
                20 => Self::P2wpkh,
                32 => Self::P2wsh,
                _ => Self::Nonstandard,
            },
            [version @ OP_1..=OP_16, length, program @ ..] if is_program(*length, program) => {
                match (*version, program) {
                    (OP_1, [0x4e, 0x73]) => Self::P2a,
                    (OP_1, program) if program.len() == 32 => Self::P2tr,
                    _ => Self::OtherWitness,
                }
            }
            [length, key @ .., OP_CHECKSIG] if usize::from(*length) == key.len() && is_key(key) => {
                Self::P2pk
            }
            _ if is_multisig(script) => Self::Multisig,
            _ => Self::Nonstandard,
        }
    }
}

/// The rest of a script of the form `version <2..40 bytes>`.
fn is_program(length: u8, program: &[u8]) -> bool {
    (2..=40).contains(&length) && program.len() == usize::from(length)
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::P2pk => "P2PK",
            Self::P2pkh => "P2PKH",
            Self::P2sh => "P2SH",
            Self::P2wpkh => "P2WPKH",
            Self::P2wsh => "P2WSH",
            Self::P2tr => "P2TR",
            Self::P2a => "P2A",
            Self::OtherWitness => "other witness",
            Self::OpReturn => "OP_RETURN",
            Self::Multisig => "multisig",
            Self::Nonstandard => "nonstandard",
        })
    }
}

/// Whether the first byte of a public key fits its length. Not whether it is on the curve.
fn is_key(key: &[u8]) -> bool {
    match key {
        [2 | 3, rest @ ..] => rest.len() == 32,
        [4 | 6 | 7, rest @ ..] => rest.len() == 64,
        _ => false,
    }
}

/// `m key … key n CHECKMULTISIG` with n keys and 1 ≤ m ≤ n ≤ 20.
fn is_multisig(script: &[u8]) -> bool {
    // Few scripts end like this, and only those are walked.
    if script.last() != Some(&OP_CHECKMULTISIG) {
        return false;
    }
    let mut walk = Instructions::new(script).map_while(Result::ok);
    let Some(required) = walk.next().and_then(small_number) else { return false };
    let mut keys = 0_u8;
    for instruction in walk.by_ref() {
        if instruction.data.is_some_and(is_key) && keys < 20 {
            keys += 1;
            continue;
        }
        let last = walk.next().map(|instruction| instruction.opcode);
        return small_number(instruction) == Some(keys)
            && required <= keys
            && last == Some(OP_CHECKMULTISIG)
            && walk.next().is_none();
    }
    false
}

/// A number from 1 to 20 in its shortest form.
fn small_number(instruction: Instruction<'_>) -> Option<u8> {
    match (instruction.opcode, instruction.data) {
        (OP_1..=OP_16, _) => Some(instruction.opcode - OP_1 + 1),
        (1, Some([number @ 17..=20])) => Some(*number),
        _ => None,
    }
}
