//! What a pushdata index holds for a script: the items it pushes, by one of two rules.
//!
//! A wallet finds its transactions by what scripts push: key hashes, keys, script hashes, data. The
//! index maps the SHA-256 of such an item to the place where it is pushed. The Conduit indexer and
//! its documentation disagree about which items count, so the caller chooses the rule:
//!
//! | rule | of an output | of an input |
//! |---|---|---|
//! | `Conduit` | pushes by the opcodes 20, 33 and 65 that are not after an `OP_RETURN` | nothing |
//! | `Documented` | pushes of 20 bytes or more | pushes of 20, 33 or 65 bytes |
//!
//! Items of the documented rule after an `OP_RETURN` have the flag [`DATA`](PushdataFlags::DATA).
//!
//! An `OP_ELSE` ends the part after an `OP_RETURN`: execution can reach what follows. A push that
//! is truncated by the end of the script yields the bytes that are there and counts with the length
//! it claims; the walk ends there. An empty item is never listed.
//!
//! A script that pushes an item twice lists it twice; rows of an index are a set.

use std::fmt;
use std::str::FromStr;

use crate::hash::PushdataHash;
use crate::reader::Reader;
use crate::script::opcode::{OP_ELSE, OP_PUSHDATA1, OP_PUSHDATA2, OP_PUSHDATA4, OP_RETURN};

/// Which pushed items are indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PushdataRule {
    /// What the code of Conduit does.
    Conduit,
    /// What the documents of Conduit say.
    Documented,
}

/// Where an item is pushed: the flags of Conduit's answers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PushdataFlags(u8);

/// An item that a script pushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushedItem<'a> {
    /// The bytes, at least one.
    pub data: &'a [u8],
    /// Where they are pushed.
    pub flags: PushdataFlags,
}

/// A text that names no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a pushdata rule: expected conduit or documented")]
pub struct ParseRuleError {
    text: String,
}

impl PushdataRule {
    const ALL: [Self; 2] = [Self::Conduit, Self::Documented];

    /// The items of an output script, in order.
    pub fn of_output(self, script: &[u8]) -> impl Iterator<Item = PushedItem<'_>> {
        Pushes::new(script).filter_map(move |push| {
            let listed = match self {
                Self::Conduit => matches!(push.opcode, 20 | 33 | 65) && !push.after_return,
                Self::Documented => push.claimed >= 20,
            };
            let data_flag = if push.after_return { PushdataFlags::DATA.0 } else { 0 };
            push.item(listed, PushdataFlags(PushdataFlags::OUTPUT.0 | data_flag))
        })
    }

    /// The items of an input script, in order. Coinbase scripts are arbitrary data: leave them out.
    pub fn of_input(self, script: &[u8]) -> impl Iterator<Item = PushedItem<'_>> {
        let script = match self {
            Self::Conduit => &[],
            Self::Documented => script,
        };
        Pushes::new(script).filter_map(|push| {
            push.item(matches!(push.claimed, 20 | 33 | 65), PushdataFlags::INPUT)
        })
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Conduit => "conduit",
            Self::Documented => "documented",
        }
    }
}

impl PushdataFlags {
    /// In an output script.
    pub const OUTPUT: Self = Self(1);
    /// In an input script.
    pub const INPUT: Self = Self(2);
    /// After an `OP_RETURN`.
    pub const DATA: Self = Self(4);

    /// The byte in Conduit's binary answers.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }
}

impl PushedItem<'_> {
    /// The key of the item in the index.
    #[must_use]
    pub fn hash(&self) -> PushdataHash {
        PushdataHash::of(self.data)
    }
}

impl fmt::Debug for PushdataFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PushdataFlags({})", self.0)
    }
}

impl fmt::Display for PushdataRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PushdataRule {
    type Err = ParseRuleError;

    fn from_str(text: &str) -> Result<Self, ParseRuleError> {
        let mut rules = Self::ALL.into_iter();
        let rule = rules.find(|rule| rule.name() == text);
        rule.ok_or_else(|| ParseRuleError { text: text.to_owned() })
    }
}

/// One push, complete or truncated by the end of the script.
struct Push<'a> {
    opcode: u8,
    /// The length that the push announces; more than `data` has when it is truncated.
    claimed: u32,
    data: &'a [u8],
    after_return: bool,
}

impl<'a> Push<'a> {
    fn item(&self, listed: bool, flags: PushdataFlags) -> Option<PushedItem<'a>> {
        (listed && !self.data.is_empty()).then_some(PushedItem { data: self.data, flags })
    }
}

/// Walks over the pushes of a script. Unlike `Instructions` it yields a truncated push.
struct Pushes<'a> {
    reader: Reader<'a>,
    after_return: bool,
}

impl<'a> Pushes<'a> {
    const fn new(script: &'a [u8]) -> Self {
        Self { reader: Reader::new(script), after_return: false }
    }

    /// The announced length of a push whose opcode has been read; `None` when it is truncated.
    fn claimed(&mut self, opcode: u8) -> Option<u32> {
        let what = "the length of a push";
        match opcode {
            OP_PUSHDATA1 => self.reader.u8(what).map(u32::from).ok(),
            OP_PUSHDATA2 => self.reader.u16(what).map(u32::from).ok(),
            OP_PUSHDATA4 => self.reader.u32(what).ok(),
            length => Some(u32::from(length)),
        }
    }
}

impl<'a> Iterator for Pushes<'a> {
    type Item = Push<'a>;

    fn next(&mut self) -> Option<Push<'a>> {
        loop {
            let opcode = self.reader.u8("an opcode").ok()?;
            match opcode {
                OP_RETURN => self.after_return = true,
                OP_ELSE => self.after_return = false,
                0..=OP_PUSHDATA4 => {
                    let claimed = self.claimed(opcode)?;
                    let rest = self.reader.rest().len() as u64;
                    let data = self.reader.take(u64::from(claimed).min(rest), "a push").ok()?;
                    return Some(Push { opcode, claimed, data, after_return: self.after_return });
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
