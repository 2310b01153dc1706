//! The outputs of one transaction without the rest of it.
//!
//! ```text
//! │ txid 32 │ height·2 + coinbase u32le │ n u32le │
//! │ n × { index u32le │ value u64le │ script length u32le │ script } │
//! ```
//!
//! Some outputs may be missing: those that are spent, or that can never be. This is the form of
//! outputs-only blobs, and of the files that carry a set of unspent outputs from one node to
//! another. [`UtxoWrapper`] reads it in place.

use varve_types::{Amount, DecodeError, DecodeErrorKind, Height, Reader, TxOut, Txid};

/// The length of what comes before the outputs.
pub(crate) const WRAPPER_HEAD_LEN: usize = 32 + 4 + 4;
/// The length of an output without its script.
pub(crate) const WRAPPED_OUTPUT_LEN: usize = 4 + 8 + 4;

const _: () = assert!(WRAPPER_HEAD_LEN == 40 && WRAPPED_OUTPUT_LEN == 16);

/// Some outputs of one transaction, in borrowed bytes that have been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UtxoWrapper<'a> {
    /// The transaction.
    pub txid: Txid,
    /// The height of its block.
    pub height: Height,
    /// Whether it is a coinbase.
    pub coinbase: bool,
    count: usize,
    outputs: &'a [u8],
}

/// One output with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrappedOutput<'a> {
    /// Its place in the transaction.
    pub index: u32,
    /// The output.
    pub output: TxOut<'a>,
}

impl<'a> UtxoWrapper<'a> {
    /// Parses a wrapper that fills the bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let wrapper = Self::read(&mut reader)?;
        reader.end()?;
        Ok(wrapper)
    }

    /// Reads the wrapper at the front of `reader`.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let txid = Txid::from_bytes(*reader.array("a txid")?);
        let code = reader.u32("a height and coinbase flag")?;
        let at = reader.clone();
        let count = reader.u32("a count of outputs")?;
        let left = reader.rest().len() / WRAPPED_OUTPUT_LEN;
        let Some(outputs) = usize::try_from(count).ok().filter(|count| *count <= left) else {
            let count = u64::from(count);
            return Err(at.error(DecodeErrorKind::CountTooLarge { what: "outputs", count }));
        };
        let start = reader.offset();
        for _ in 0..outputs {
            WrappedOutput::read(reader)?;
        }
        Ok(Self {
            txid,
            height: Height::new(code >> 1),
            coinbase: code & 1 == 1,
            count: outputs,
            outputs: reader.since(start),
        })
    }

    /// The outputs, in the order of the bytes.
    #[must_use]
    pub fn outputs(&self) -> WrappedOutputs<'a> {
        WrappedOutputs { reader: Reader::new(self.outputs), left: self.count }
    }
}

impl<'a> WrappedOutput<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let index = reader.u32("an output number")?;
        let value = Amount::from_sat(reader.u64("a value")?);
        let length = u64::from(reader.u32("a script length")?);
        let script = reader.take(length, "a script")?;
        Ok(Self { index, output: TxOut { value, script } })
    }
}

/// The outputs of a wrapper.
#[derive(Clone, Debug)]
pub struct WrappedOutputs<'a> {
    reader: Reader<'a>,
    left: usize,
}

impl<'a> Iterator for WrappedOutputs<'a> {
    type Item = WrappedOutput<'a>;

    fn next(&mut self) -> Option<WrappedOutput<'a>> {
        self.left = self.left.checked_sub(1)?;
        Some(WrappedOutput::read(&mut self.reader).expect("checked when the wrapper was parsed"))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for WrappedOutputs<'_> {}

/// What is known of the transaction of a wrapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrapperHead {
    /// The transaction.
    pub txid: Txid,
    /// The height of its block. The format has 31 bits for it; the topmost bit is dropped.
    pub height: Height,
    /// Whether it is a coinbase.
    pub coinbase: bool,
}

/// Appends a wrapper of these outputs.
///
/// # Panics
///
/// When there are 2^32 outputs or a script has 2^32 bytes: no transaction has.
pub fn write_wrapper<'a>(
    head: &WrapperHead,
    outputs: impl ExactSizeIterator<Item = WrappedOutput<'a>>,
    out: &mut Vec<u8>,
) {
    let code = head.height.to_u32().wrapping_shl(1) | u32::from(head.coinbase);
    let count = u32::try_from(outputs.len()).expect("fewer than 2^32 outputs");
    out.extend_from_slice(head.txid.as_bytes());
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(&count.to_le_bytes());
    for WrappedOutput { index, output } in outputs {
        let length = u32::try_from(output.script.len()).expect("a script below 4 GiB");
        out.extend_from_slice(&index.to_le_bytes());
        out.extend_from_slice(&output.value.to_sat().to_le_bytes());
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(output.script);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(coinbase: bool) -> WrapperHead {
        WrapperHead { txid: Txid::from_bytes([3; 32]), height: Height::new(77), coinbase }
    }

    fn output(index: u32, script: &[u8]) -> WrappedOutput<'_> {
        let value = Amount::from_sat(1_000 + u64::from(index));
        WrappedOutput { index, output: TxOut { value, script } }
    }

    #[test]
    fn the_length_is_32_8_and_16_with_the_script() {
        for coinbase in [false, true] {
            let mut bytes = Vec::new();
            write_wrapper(&head(coinbase), [output(5, &[0x51; 25])].into_iter(), &mut bytes);
            assert_eq!(bytes.len(), 32 + 8 + 16 + 25);
            assert_eq!(bytes[32..36], (77_u32 * 2 + u32::from(coinbase)).to_le_bytes());
            let wrapper = UtxoWrapper::parse(&bytes).unwrap();
            assert_eq!((wrapper.height, wrapper.coinbase), (Height::new(77), coinbase));
            assert_eq!(wrapper.outputs().collect::<Vec<_>>(), [output(5, &[0x51; 25])]);
        }
    }

    #[test]
    fn gaps_stay_gaps() {
        let kept = |i: &u32| i * 476 / 1_000 != (i + 1) * 476 / 1_000;
        let outputs: Vec<_> = (0..1_000).filter(kept).map(|i| output(i, &[7])).collect();
        assert_eq!(outputs.len(), 476);
        let mut bytes = Vec::new();
        write_wrapper(&head(false), outputs.iter().copied(), &mut bytes);
        let wrapper = UtxoWrapper::parse(&bytes).unwrap();
        assert!(wrapper.outputs().eq(outputs));
    }

    #[test]
    fn hostile_lengths_take_no_memory() {
        let mut bytes = Vec::new();
        write_wrapper(&head(false), [output(0, &[1])].into_iter(), &mut bytes);
        for end in 0..bytes.len() {
            assert!(UtxoWrapper::parse(&bytes[..end]).is_err());
        }
        bytes[36..40].copy_from_slice(&u32::MAX.to_le_bytes());
        let error = UtxoWrapper::parse(&bytes).unwrap_err();
        assert!(matches!(error.kind, DecodeErrorKind::CountTooLarge { .. }), "{error}");
    }
}
