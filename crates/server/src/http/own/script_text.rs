//! Scripts for readers: their words, what they pay to, and the text that some carry.

use hex_conservative::DisplayHex as _;
use serde::Serialize;
use utoipa::ToSchema;
use varve::types::script::{Class, Instructions};
use varve::types::{Network, address};
use varve::{ScriptHash, types::script::opcode::OP_RETURN};

use crate::http::esplora::asm;

/// Bytes of a script or of a witness item that are shown. The whole is in the raw transaction.
pub(super) const SHOWN: usize = 10_000;
/// Characters of a text that are shown.
const TEXT: usize = 400;
/// Readable characters in a row that make a word of a coinbase.
const WORD: usize = 3;

/// An output script.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OutputScript {
    #[serde(flatten)]
    text: ScriptText,
    /// `P2WPKH` and so on; `nonstandard` when it is of no common form.
    r#type: String,
    /// Its address, where scripts of its kind have one.
    address: Option<String>,
    /// Its hash, as Electrum and `script/{id}` take it.
    #[schema(value_type = String)]
    #[serde(serialize_with = "crate::json::text")]
    hash: ScriptHash,
    /// What an `OP_RETURN` carries, where that is text.
    message: Option<String>,
}

impl OutputScript {
    pub(super) fn new(script: &[u8], network: Network) -> Self {
        Self {
            text: ScriptText::new(script),
            r#type: Class::of(script).to_string(),
            address: address::encode(script, network),
            hash: ScriptHash::of(script),
            message: message(script),
        }
    }
}

/// A script.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ScriptText {
    hex: String,
    asm: String,
    /// Bytes.
    size: usize,
    /// Whether `hex` and `asm` are of its beginning alone.
    cut: bool,
}

impl ScriptText {
    pub(super) fn new(script: &[u8]) -> Self {
        let shown = script.get(..SHOWN).unwrap_or(script);
        let (size, cut) = (script.len(), shown.len() < script.len());
        Self { hex: shown.to_lower_hex_string(), asm: asm(shown), size, cut }
    }
}

/// The last item that a script pushes.
pub(super) fn last_push(script: &[u8]) -> Option<&[u8]> {
    let mut last = None;
    for instruction in Instructions::new(script) {
        last = instruction.ok()?.data;
    }
    last
}

/// What an `OP_RETURN` carries, if all of it is text.
fn message(script: &[u8]) -> Option<String> {
    let script = script.strip_prefix(&[OP_RETURN])?;
    let mut bytes = Vec::new();
    for instruction in Instructions::new(script) {
        bytes.extend_from_slice(instruction.ok()?.data?);
    }
    let text = String::from_utf8(bytes).ok()?;
    let is_text = !text.is_empty() && !text.chars().any(char::is_control);
    is_text.then(|| text.chars().take(TEXT).collect())
}

/// The readable words of a coinbase, without the height that begins it.
pub(super) fn coinbase_text(script: &[u8]) -> String {
    let behind = match script {
        [length @ 1..=8, rest @ ..] => rest.get(usize::from(*length)..).unwrap_or_default(),
        other => other,
    };
    let words = behind.split(|byte| !(byte.is_ascii_graphic() || *byte == b' '));
    let words = words.map(|word| String::from_utf8_lossy(word).trim().to_owned());
    let words: Vec<String> = words.filter(|word| word.len() >= WORD).collect();
    words.join(" ").chars().take(TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coinbase_is_read_without_its_height() {
        assert_eq!(coinbase_text(b"\x03abc/slush/\x00\x01\xff<b>hi</b>\x02x"), "/slush/ <b>hi</b>");
        assert_eq!(coinbase_text(b""), "");
        assert_eq!(coinbase_text(b"\x08ab"), "");
    }

    #[test]
    fn a_message_is_text_or_nothing() {
        assert_eq!(message(b"\x6a\x02hi\x03 yo").as_deref(), Some("hi yo"));
        for none in
            [&b"\x6a"[..], b"\x6a\x02\xff\xfe", b"\x6a\x02h\n", b"\x76\x02hi", b"\x6a\x09hi"]
        {
            assert_eq!(message(none), None, "{none:?}");
        }
    }

    #[test]
    fn a_long_script_is_cut_and_says_so() {
        let long = vec![0x51; SHOWN + 1];
        let text = ScriptText::new(&long);
        assert!(text.cut && text.size == SHOWN + 1 && text.hex.len() == 2 * SHOWN);
        assert!(!ScriptText::new(&[0x51]).cut);
        assert_eq!(last_push(b"\x01a\x02bc"), Some(&b"bc"[..]));
        assert_eq!(last_push(b"\x05a"), None);
    }
}
