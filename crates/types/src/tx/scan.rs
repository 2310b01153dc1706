//! One pass over a transaction that checks everything and notes where the parts are.
//!
//! The pass stops where the bytes end and can go on when there are more, at the field where it
//! stopped. So a transaction that arrives in small pieces is looked at once, not once a piece.
//!
//! ```text
//! Head ─► Inputs ─► OutputCount ─► Outputs ─► Witness ─► LockTime ─► done
//!   └─ 00 00: neither inputs nor outputs ─────────────────▲
//! ```
//!
//! The rules are those of Core's deserialiser. In particular, `Segwit` reads an input count of
//! zero as the marker of BIP144: the flag after it must be 1, and some input must have a witness.
//! A flag of 0 is a transaction without inputs and outputs.

use crate::compact_size;
use crate::error::{DecodeError, DecodeErrorKind};
use crate::format::Format;
use crate::reader::Reader;

/// The smallest input: outpoint, empty script, sequence.
const MIN_INPUT: u64 = 36 + 1 + 4;
/// The smallest input in extended format: and the value and the empty script that it spends.
const MIN_EXTENDED_INPUT: u64 = MIN_INPUT + 8 + 1;
/// The smallest output: value, empty script.
const MIN_OUTPUT: u64 = 8 + 1;

/// What comes after the version in extended format.
pub(crate) const EXTENDED_MARKER: [u8; 6] = [0, 0, 0, 0, 0, 0xef];

/// Where the parts of a transaction are, from its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The format that the transaction really has: `Segwit` only with a witness.
    pub(crate) format: Format,
    /// The count of inputs, and the first of them.
    pub(crate) input_count: usize,
    pub(crate) inputs: usize,
    /// The count of outputs, and the first of them.
    pub(crate) output_count: usize,
    pub(crate) outputs: usize,
    /// The witness of the first input; the lock time when there is no witness.
    pub(crate) witness: usize,
    /// The end of the transaction.
    pub(crate) end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Head,
    Inputs,
    OutputCount,
    Outputs,
    Witness,
    LockTime,
}

/// The state of the pass.
#[derive(Clone, Debug)]
pub(crate) struct Scan {
    limit: u64,
    phase: Phase,
    /// Everything before this offset has been checked.
    at: usize,
    /// Inputs, outputs or witnesses still to come in this phase.
    left: usize,
    /// Items still to come of the current witness, when its count has been read.
    items: Option<u64>,
    has_witness: bool,
    layout: Layout,
}

impl Scan {
    pub(crate) const fn new(format: Format) -> Self {
        Self {
            limit: format.size_limit(),
            phase: Phase::Head,
            at: 0,
            left: 0,
            items: None,
            has_witness: false,
            layout: Layout {
                format,
                input_count: 0,
                inputs: 0,
                output_count: 0,
                outputs: 0,
                witness: 0,
                end: 0,
            },
        }
    }

    /// Goes on over `bytes`, which begin with the first byte of the transaction.
    ///
    /// After an error for which [`DecodeError::is_incomplete`] holds, it can be called again with
    /// the same bytes and more behind them.
    #[inline]
    pub(crate) fn run(&mut self, bytes: &[u8]) -> Result<Layout, DecodeError> {
        let reader = &mut Reader::at(bytes, self.at);
        loop {
            match self.phase {
                Phase::Head => self.head(reader)?,
                Phase::Inputs => self.inputs(reader)?,
                Phase::OutputCount => self.output_count(reader)?,
                Phase::Outputs => self.outputs(reader)?,
                Phase::Witness => self.witness(reader)?,
                Phase::LockTime => {
                    reader.array::<4>("a lock time")?;
                    self.layout.end = reader.offset();
                    return Ok(self.layout);
                }
            }
        }
    }

    /// All before `reader` has been checked.
    #[inline]
    fn pass(&mut self, reader: &Reader<'_>) {
        self.at = reader.offset();
    }

    fn head(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let mut format = Format::Legacy;
        let mut smallest = MIN_INPUT;
        reader.array::<4>("a version")?;
        if self.layout.format == Format::Extended {
            let error = reader.error(DecodeErrorKind::NotExtended);
            if *reader.array("the extended format marker")? != EXTENDED_MARKER {
                return Err(error);
            }
            format = Format::Extended;
            smallest = MIN_EXTENDED_INPUT;
        }
        let mut count = self.count(reader, smallest, "inputs")?;
        if count == 0 && self.layout.format == Format::Segwit {
            let error = |flag| reader.error(DecodeErrorKind::UnknownFlag { flag });
            match reader.clone().u8("a segwit flag")? {
                0 => {
                    reader.u8("a segwit flag")?;
                    return self.empty(reader);
                }
                1 => reader.u8("a segwit flag")?,
                flag => return Err(error(flag)),
            };
            format = Format::Segwit;
            count = self.count(reader, smallest, "inputs")?;
        }
        self.layout.format = format;
        self.layout.input_count = count;
        self.layout.inputs = reader.offset();
        self.left = count;
        self.phase = Phase::Inputs;
        self.pass(reader);
        Ok(())
    }

    /// Core's reading of a segwit flag of zero: no inputs, and no count of outputs either, for
    /// the flag is that count.
    fn empty(&mut self, reader: &Reader<'_>) -> Result<(), DecodeError> {
        self.pass(reader);
        self.layout = Layout {
            format: Format::Legacy,
            inputs: self.at - 1,
            outputs: self.at,
            witness: self.at,
            ..self.layout
        };
        self.phase = Phase::LockTime;
        Ok(())
    }

    #[inline]
    fn inputs(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let extended = self.layout.format == Format::Extended;
        while self.left > 0 {
            reader.array::<36>("an outpoint")?;
            self.bytes(reader, "an input script")?;
            reader.array::<4>("a sequence")?;
            if extended {
                reader.array::<8>("the value of a spent output")?;
                self.bytes(reader, "the script of a spent output")?;
            }
            self.left -= 1;
            self.pass(reader);
        }
        self.phase = Phase::OutputCount;
        Ok(())
    }

    fn output_count(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        self.left = self.count(reader, MIN_OUTPUT, "outputs")?;
        self.layout.output_count = self.left;
        self.layout.outputs = reader.offset();
        self.phase = Phase::Outputs;
        self.pass(reader);
        Ok(())
    }

    #[inline]
    fn outputs(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        while self.left > 0 {
            reader.array::<8>("a value")?;
            self.bytes(reader, "an output script")?;
            self.left -= 1;
            self.pass(reader);
        }
        self.layout.witness = reader.offset();
        self.left = self.layout.input_count;
        self.phase = match self.layout.format {
            Format::Segwit => Phase::Witness,
            Format::Legacy | Format::Extended => Phase::LockTime,
        };
        Ok(())
    }

    #[inline]
    fn witness(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        while self.left > 0 {
            let mut items = match self.items {
                Some(items) => items,
                None => self.count(reader, 1, "witness items")? as u64,
            };
            self.has_witness |= items > 0;
            self.items = Some(items);
            self.pass(reader);
            while items > 0 {
                self.bytes(reader, "a witness item")?;
                items -= 1;
                self.items = Some(items);
                self.pass(reader);
            }
            self.items = None;
            self.left -= 1;
        }
        if !self.has_witness {
            return Err(DecodeErrorKind::SuperfluousWitness.at(self.layout.witness));
        }
        self.phase = Phase::LockTime;
        Ok(())
    }

    /// A length and that many bytes.
    #[inline]
    fn bytes(&self, reader: &mut Reader<'_>, what: &'static str) -> Result<(), DecodeError> {
        let length = compact_size::read(reader, self.limit, what)?;
        reader.take(length, what).map(|_| ())
    }

    /// A count of things that take at least `smallest` bytes each. Any more than the bytes can
    /// hold is refused here, before anything is done with the number.
    #[inline]
    fn count(
        &self,
        reader: &mut Reader<'_>,
        smallest: u64,
        what: &'static str,
    ) -> Result<usize, DecodeError> {
        let start = reader.offset();
        let count = compact_size::read(reader, self.limit, what)?;
        if count > reader.rest().len() as u64 / smallest {
            return Err(DecodeErrorKind::CountTooLarge { what, count }.at(start));
        }
        Ok(usize::try_from(count).expect("not more than the bytes in memory"))
    }
}
