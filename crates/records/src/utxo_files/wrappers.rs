//! Reading wrappers from a stream, one at a time, into one buffer.

use std::io::{self, Read};

use super::UtxoFileError;
use crate::utxo_wrapper::{UtxoWrapper, WRAPPED_OUTPUT_LEN, WRAPPER_HEAD_LEN};

/// How much a buffer grows at once: a length in a file is believed only as far as its bytes come.
const STEP: u64 = 1 << 16;

/// A stream that knows its place.
#[derive(Debug)]
pub(super) struct Input<R> {
    stream: R,
    offset: u64,
}

impl<R: Read> Input<R> {
    pub(super) const fn new(stream: R) -> Self {
        Self { stream, offset: 0 }
    }

    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn array<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<[u8; N], UtxoFileError> {
        let offset = self.offset;
        self.array_or_end(what)?.ok_or(UtxoFileError::Truncated { offset, what })
    }

    /// The next bytes; `None` when the stream ends before the first of them.
    pub(super) fn array_or_end<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<Option<[u8; N]>, UtxoFileError> {
        let mut bytes = [0; N];
        let mut rest = bytes.as_mut_slice();
        while !rest.is_empty() {
            match self.stream.read(rest) {
                Ok(0) => break,
                Ok(read) => rest = rest.get_mut(read..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        let left = rest.len();
        if left == N {
            return Ok(None);
        }
        if left > 0 {
            return Err(UtxoFileError::Truncated { offset: self.offset, what });
        }
        self.offset += N as u64;
        Ok(Some(bytes))
    }

    /// Appends the next bytes to `out`, which grows as they come.
    fn append(
        &mut self,
        length: u64,
        what: &'static str,
        out: &mut Vec<u8>,
    ) -> Result<(), UtxoFileError> {
        let offset = self.offset;
        let mut left = length;
        while left > 0 {
            let step = left.min(STEP);
            let read = self.stream.by_ref().take(step).read_to_end(out)? as u64;
            self.offset += read;
            if read < step {
                return Err(UtxoFileError::Truncated { offset, what });
            }
            left -= step;
        }
        Ok(())
    }
}

/// The bytes of one wrapper.
#[derive(Clone, Debug, Default)]
pub(super) struct WrapperBuf(Vec<u8>);

impl WrapperBuf {
    /// Reads the next wrapper; false when the stream ends before it.
    pub(super) fn fill(&mut self, input: &mut Input<impl Read>) -> Result<bool, UtxoFileError> {
        self.0.clear();
        let head = input.array_or_end::<WRAPPER_HEAD_LEN>("a wrapper")?;
        let Some(head) = head else { return Ok(false) };
        self.0.extend_from_slice(&head);
        let count = u32::from_le_bytes(*head.last_chunk().expect("40 bytes have a last four"));
        for _ in 0..count {
            let fixed: [u8; WRAPPED_OUTPUT_LEN] = input.array("an output")?;
            self.0.extend_from_slice(&fixed);
            let length =
                u32::from_le_bytes(*fixed.last_chunk().expect("16 bytes have a last four"));
            input.append(u64::from(length), "a script", &mut self.0)?;
        }
        Ok(true)
    }

    /// The wrapper that was read last.
    pub(super) fn wrapper(&self) -> UtxoWrapper<'_> {
        UtxoWrapper::parse(&self.0).expect("read field by field just now")
    }
}
