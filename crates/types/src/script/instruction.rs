//! The walk over a script's opcodes.

use super::opcode::{OP_PUSHDATA1, OP_PUSHDATA2, OP_PUSHDATA4};
use crate::reader::Reader;

/// One opcode, with the data that it pushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction<'a> {
    /// The opcode.
    pub opcode: u8,
    /// The data of a push, possibly empty; `None` for every other opcode.
    pub data: Option<&'a [u8]>,
}

/// A push of more bytes than the script has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the push at byte {offset} goes beyond the end of the script")]
pub struct TruncatedPushError {
    /// The offset of the opcode.
    pub offset: usize,
}

/// Walks over the opcodes of a script. Ends after an error.
#[derive(Clone, Debug)]
pub struct Instructions<'a> {
    reader: Reader<'a>,
    ended: bool,
}

impl<'a> Instructions<'a> {
    /// Begins at the first opcode.
    #[must_use]
    pub const fn new(script: &'a [u8]) -> Self {
        Self { reader: Reader::new(script), ended: false }
    }

    /// The offset of the next opcode.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.reader.offset()
    }

    /// The data of a push whose opcode has been read, or `None` when it is truncated.
    fn data(&mut self, opcode: u8) -> Option<&'a [u8]> {
        let what = "a push";
        let length = match opcode {
            OP_PUSHDATA1 => u64::from(self.reader.u8(what).ok()?),
            OP_PUSHDATA2 => u64::from(self.reader.u16(what).ok()?),
            OP_PUSHDATA4 => u64::from(self.reader.u32(what).ok()?),
            length => u64::from(length),
        };
        self.reader.take(length, what).ok()
    }
}

impl<'a> Iterator for Instructions<'a> {
    type Item = Result<Instruction<'a>, TruncatedPushError>;

    fn next(&mut self) -> Option<Self::Item> {
        let offset = self.reader.offset();
        if self.ended {
            return None;
        }
        let opcode = self.reader.u8("an opcode").ok()?;
        if opcode > OP_PUSHDATA4 {
            return Some(Ok(Instruction { opcode, data: None }));
        }
        let data = self.data(opcode);
        self.ended = data.is_none();
        Some(
            data.map(|data| Instruction { opcode, data: Some(data) })
                .ok_or(TruncatedPushError { offset }),
        )
    }
}
