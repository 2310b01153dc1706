//! Scripts as text, word by word as rust-bitcoin prints them, which Esplora's clients read.
//!
//! ```text
//! OP_DUP OP_HASH160 OP_PUSHBYTES_20 <40 digits> OP_EQUALVERIFY OP_CHECKSIG
//! ```
//!
//! A push that goes beyond the end of the script ends the text with `<push past end>`; one whose
//! length is cut off, with `<unexpected end>`.

use std::fmt::Write as _;

use hex_conservative::DisplayHex as _;

const PUSHDATA1: u8 = 0x4c;
const PUSHDATA2: u8 = 0x4d;
const PUSHDATA4: u8 = 0x4e;
const NEGATIVE_ONE: u8 = 0x4f;
const RESERVED: u8 = 0x50;
const FIRST_NUMBER: u8 = 0x51;
const LAST_NUMBER: u8 = 0x60;
/// The first opcode of [`NAMES`].
const FIRST_NAMED: u8 = 0x61;

/// The opcodes from `61` to `ba`, without `OP_`.
const NAMES: &[&str] = &[
    "NOP",
    "VER",
    "IF",
    "NOTIF",
    "VERIF",
    "VERNOTIF",
    "ELSE",
    "ENDIF",
    "VERIFY",
    "RETURN",
    "TOALTSTACK",
    "FROMALTSTACK",
    "2DROP",
    "2DUP",
    "3DUP",
    "2OVER",
    "2ROT",
    "2SWAP",
    "IFDUP",
    "DEPTH",
    "DROP",
    "DUP",
    "NIP",
    "OVER",
    "PICK",
    "ROLL",
    "ROT",
    "SWAP",
    "TUCK",
    "CAT",
    "SUBSTR",
    "LEFT",
    "RIGHT",
    "SIZE",
    "INVERT",
    "AND",
    "OR",
    "XOR",
    "EQUAL",
    "EQUALVERIFY",
    "RESERVED1",
    "RESERVED2",
    "1ADD",
    "1SUB",
    "2MUL",
    "2DIV",
    "NEGATE",
    "ABS",
    "NOT",
    "0NOTEQUAL",
    "ADD",
    "SUB",
    "MUL",
    "DIV",
    "MOD",
    "LSHIFT",
    "RSHIFT",
    "BOOLAND",
    "BOOLOR",
    "NUMEQUAL",
    "NUMEQUALVERIFY",
    "NUMNOTEQUAL",
    "LESSTHAN",
    "GREATERTHAN",
    "LESSTHANOREQUAL",
    "GREATERTHANOREQUAL",
    "MIN",
    "MAX",
    "WITHIN",
    "RIPEMD160",
    "SHA1",
    "SHA256",
    "HASH160",
    "HASH256",
    "CODESEPARATOR",
    "CHECKSIG",
    "CHECKSIGVERIFY",
    "CHECKMULTISIG",
    "CHECKMULTISIGVERIFY",
    "NOP1",
    "CLTV",
    "CSV",
    "NOP4",
    "NOP5",
    "NOP6",
    "NOP7",
    "NOP8",
    "NOP9",
    "NOP10",
    "CHECKSIGADD",
];

/// A script as text.
pub(crate) fn asm(script: &[u8]) -> String {
    let mut text = String::with_capacity(script.len() * 2 + 32);
    let mut rest = script;
    while let Some((opcode, behind)) = rest.split_first() {
        rest = behind;
        let Some(length) = push_length(*opcode, &mut rest) else {
            text.push_str("<unexpected end>");
            break;
        };
        if !text.is_empty() {
            text.push(' ');
        }
        name(*opcode, &mut text);
        if length == 0 {
            continue;
        }
        let Some((data, behind)) = rest.split_at_checked(length) else {
            text.push_str(" <push past end>");
            break;
        };
        rest = behind;
        // Writing to a string does not fail.
        let _ = write!(text, " {}", data.as_hex());
    }
    text
}

/// How many bytes an opcode pushes; `None` when the script ends within that number.
fn push_length(opcode: u8, rest: &mut &[u8]) -> Option<usize> {
    let width = match opcode {
        PUSHDATA1 => 1,
        PUSHDATA2 => 2,
        PUSHDATA4 => 4,
        length if length < PUSHDATA1 => return Some(usize::from(length)),
        _ => return Some(0),
    };
    let (length, behind) = rest.split_at_checked(width)?;
    *rest = behind;
    Some(length.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
}

fn name(opcode: u8, text: &mut String) {
    let named = opcode.checked_sub(FIRST_NAMED).and_then(|at| NAMES.get(usize::from(at)));
    // Writing to a string does not fail.
    let _ = match (opcode, named) {
        (_, Some(name)) => write!(text, "OP_{name}"),
        (0, _) => write!(text, "OP_0"),
        (PUSHDATA1, _) => write!(text, "OP_PUSHDATA1"),
        (PUSHDATA2, _) => write!(text, "OP_PUSHDATA2"),
        (PUSHDATA4, _) => write!(text, "OP_PUSHDATA4"),
        (NEGATIVE_ONE, _) => write!(text, "OP_PUSHNUM_NEG1"),
        (RESERVED, _) => write!(text, "OP_RESERVED"),
        (FIRST_NUMBER..=LAST_NUMBER, _) => write!(text, "OP_PUSHNUM_{}", opcode - RESERVED),
        (u8::MAX, _) => write!(text, "OP_INVALIDOPCODE"),
        (length, _) if length < PUSHDATA1 => write!(text, "OP_PUSHBYTES_{length}"),
        (unknown, _) => write!(text, "OP_RETURN_{unknown}"),
    };
}

#[cfg(test)]
mod tests {
    use bitcoin::Script;
    use varve_testdata::Random;

    use super::*;

    #[test]
    fn every_opcode_has_the_name_of_rust_bitcoin() {
        for opcode in 0..=u8::MAX {
            for script in [vec![opcode], [&[opcode][..], &[2, 0, 0, 0], &[7; 80]].concat()] {
                let expected = Script::from_bytes(&script).to_asm_string();
                assert_eq!(asm(&script), expected, "{script:02x?}");
            }
        }
    }

    #[test]
    fn scripts_by_chance_read_as_rust_bitcoin_prints_them() {
        let mut random = Random::new(8);
        for _ in 0..20_000 {
            let length = random.index(60);
            let script = random.bytes(length);
            assert_eq!(asm(&script), Script::from_bytes(&script).to_asm_string(), "{script:02x?}");
        }
    }
}
