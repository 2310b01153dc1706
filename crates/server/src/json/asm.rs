//! Scripts in words, as Core's RPC writes them.
//!
//! A push of up to four bytes is a number, a longer one is hex; `[error]` ends a script that ends
//! within a push. In the script of an input, the last byte of a signature is written as the name of
//! its hash type: `…[ALL]`.

use std::fmt::Write as _;

use hex_conservative::DisplayHex as _;
use varve::types::script::Instructions;
use varve::types::script::opcode::OP_RETURN;

/// An output script in words.
#[must_use]
pub(super) fn of_output(script: &[u8]) -> String {
    words(script, false)
}

/// An input script in words.
#[must_use]
pub(super) fn of_input(script: &[u8]) -> String {
    words(script, true)
}

fn words(script: &[u8], signatures: bool) -> String {
    // A script that cannot be spent holds data, and data is no signature.
    let signatures = signatures && script.first() != Some(&OP_RETURN);
    let mut text = String::with_capacity(script.len() * 2);
    for step in Instructions::new(script) {
        if !text.is_empty() {
            text.push(' ');
        }
        match step {
            Err(_) => text.push_str("[error]"),
            Ok(step) => match step.data {
                None => text.push_str(name(step.opcode)),
                Some(data) if data.len() <= 4 => {
                    write!(text, "{}", number(data)).expect("a string takes any text");
                }
                Some(data) => push_data(&mut text, data, signatures),
            },
        }
    }
    text
}

fn push_data(text: &mut String, data: &[u8], signatures: bool) {
    let kind = if signatures { signature_kind(data) } else { None };
    let written = match (kind, data) {
        (Some(kind), [signature @ .., _]) => write!(text, "{}[{kind}]", signature.as_hex()),
        _ => write!(text, "{}", data.as_hex()),
    };
    written.expect("a string takes any text");
}

/// A number in the encoding of scripts: little-endian, the highest bit is the sign.
fn number(bytes: &[u8]) -> i64 {
    let Some((last, low)) = bytes.split_last() else { return 0 };
    let magnitude = i64::from(last & 0x7f);
    let magnitude = low.iter().rev().fold(magnitude, |sum, byte| sum << 8 | i64::from(*byte));
    if last & 0x80 == 0 { magnitude } else { -magnitude }
}

/// The hash type of data that is a signature in strict DER (BIP66) with a defined hash type.
fn signature_kind(data: &[u8]) -> Option<&'static str> {
    const KINDS: [(u8, &str); 6] = [
        (0x01, "ALL"),
        (0x02, "NONE"),
        (0x03, "SINGLE"),
        (0x81, "ALL|ANYONECANPAY"),
        (0x82, "NONE|ANYONECANPAY"),
        (0x83, "SINGLE|ANYONECANPAY"),
    ];
    let (kind, der) = data.split_last()?;
    if !(9..=73).contains(&data.len()) {
        return None;
    }
    let [0x30, length, rest @ ..] = der else { return None };
    if usize::from(*length) != rest.len() {
        return None;
    }
    let rest = integer(integer(rest)?)?;
    let named = KINDS.iter().find(|(byte, _)| byte == kind);
    named.filter(|_| rest.is_empty()).map(|(_, name)| *name)
}

/// What follows a positive integer in its shortest form.
fn integer(der: &[u8]) -> Option<&[u8]> {
    let [0x02, length, rest @ ..] = der else { return None };
    let (value, rest) = rest.split_at_checked(usize::from(*length))?;
    let first = *value.first()?;
    let padded = first == 0 && value.get(1).is_some_and(|second| second & 0x80 == 0);
    (first & 0x80 == 0 && !padded).then_some(rest)
}

/// Core's name of an opcode that pushes nothing.
fn name(opcode: u8) -> &'static str {
    let listed = |first: u8, names: &[&'static str]| {
        let name = opcode.checked_sub(first).and_then(|place| names.get(usize::from(place)));
        name.copied().unwrap_or("OP_UNKNOWN")
    };
    match opcode {
        0x4f => "-1",
        0x50 => "OP_RESERVED",
        0x51..=0x60 => listed(0x51, &SMALL),
        0xff => "OP_INVALIDOPCODE",
        _ => listed(0x61, &NAMES),
    }
}

#[rustfmt::skip]
const SMALL: [&str; 16] =
    ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16"];

/// The names from `OP_NOP` on.
#[rustfmt::skip]
const NAMES: [&str; 0xba - 0x61 + 1] = [
    "OP_NOP", "OP_VER", "OP_IF", "OP_NOTIF", "OP_VERIF", "OP_VERNOTIF", "OP_ELSE", "OP_ENDIF",
    "OP_VERIFY", "OP_RETURN", "OP_TOALTSTACK", "OP_FROMALTSTACK", "OP_2DROP", "OP_2DUP", "OP_3DUP",
    "OP_2OVER", "OP_2ROT", "OP_2SWAP", "OP_IFDUP", "OP_DEPTH", "OP_DROP", "OP_DUP", "OP_NIP",
    "OP_OVER", "OP_PICK", "OP_ROLL", "OP_ROT", "OP_SWAP", "OP_TUCK", "OP_CAT", "OP_SUBSTR",
    "OP_LEFT", "OP_RIGHT", "OP_SIZE", "OP_INVERT", "OP_AND", "OP_OR", "OP_XOR", "OP_EQUAL",
    "OP_EQUALVERIFY", "OP_RESERVED1", "OP_RESERVED2", "OP_1ADD", "OP_1SUB", "OP_2MUL", "OP_2DIV",
    "OP_NEGATE", "OP_ABS", "OP_NOT", "OP_0NOTEQUAL", "OP_ADD", "OP_SUB", "OP_MUL", "OP_DIV",
    "OP_MOD", "OP_LSHIFT", "OP_RSHIFT", "OP_BOOLAND", "OP_BOOLOR", "OP_NUMEQUAL",
    "OP_NUMEQUALVERIFY", "OP_NUMNOTEQUAL", "OP_LESSTHAN", "OP_GREATERTHAN", "OP_LESSTHANOREQUAL",
    "OP_GREATERTHANOREQUAL", "OP_MIN", "OP_MAX", "OP_WITHIN", "OP_RIPEMD160", "OP_SHA1",
    "OP_SHA256", "OP_HASH160", "OP_HASH256", "OP_CODESEPARATOR", "OP_CHECKSIG",
    "OP_CHECKSIGVERIFY", "OP_CHECKMULTISIG", "OP_CHECKMULTISIGVERIFY", "OP_NOP1",
    "OP_CHECKLOCKTIMEVERIFY", "OP_CHECKSEQUENCEVERIFY", "OP_NOP4", "OP_NOP5", "OP_NOP6", "OP_NOP7",
    "OP_NOP8", "OP_NOP9", "OP_NOP10", "OP_CHECKSIGADD",
];

#[cfg(test)]
mod tests {
    use hex_conservative::FromHex as _;

    use super::*;

    fn output(hex: &str) -> String {
        of_output(&Vec::from_hex(hex).unwrap())
    }

    /// Scripts and words as Core's `decodescript` gives them.
    #[test]
    fn words_as_core_writes_them() {
        let hash = "00112233445566778899aabbccddeeff00112233";
        assert_eq!(
            output(&format!("76a914{hash}88ac")),
            format!("OP_DUP OP_HASH160 {hash} OP_EQUALVERIFY OP_CHECKSIG")
        );
        assert_eq!(output(&format!("0014{hash}")), format!("0 {hash}"));
        assert_eq!(output("51024e73"), "1 29518");
        assert_eq!(output("6a0401020384"), "OP_RETURN -67305985");
        assert_eq!(output("6a04ffffff7f"), "OP_RETURN 2147483647");
        assert_eq!(output("4f0060b1ba"), "-1 0 16 OP_CHECKLOCKTIMEVERIFY OP_CHECKSIGADD");
        assert_eq!(output("ac05aabb"), "OP_CHECKSIG [error]");
        assert_eq!(output("bbffba50"), "OP_UNKNOWN OP_INVALIDOPCODE OP_CHECKSIGADD OP_RESERVED");
        assert_eq!(output(""), "");
    }

    #[test]
    fn signatures_of_inputs_name_their_hash_type() {
        let der = "3006020101020101";
        let input = |tail: &str| of_input(&Vec::from_hex(&format!("09{der}{tail}")).unwrap());
        assert_eq!(input("01"), format!("{der}[ALL]"));
        assert_eq!(input("83"), format!("{der}[SINGLE|ANYONECANPAY]"));
        assert_eq!(input("04"), format!("{der}04"), "no defined hash type");
        assert_eq!(output(&format!("09{der}01")), format!("{der}01"), "not in an output");
        let padded = "300702020001020101";
        assert_eq!(
            of_input(&Vec::from_hex(&format!("0a{padded}01")).unwrap()),
            format!("{padded}01")
        );
    }
}
