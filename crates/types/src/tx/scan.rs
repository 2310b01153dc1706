//! One pass over a transaction that checks everything and records where the parts are.
//!
//! ```text
//! │ version │ 00 01 │ inputs │ outputs │ witness of each input │ lock time │
//!             └──── segwit only ────────┴───────────────────────┘
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
/// The smallest input in extended format: also the value and the empty script of the spent output.
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

/// The pass over one transaction.
struct Scan<'a> {
    reader: Reader<'a>,
    /// The largest length that the format allows.
    limit: u64,
}

impl Layout {
    /// Checks the transaction at the front of `bytes`. More bytes may follow it.
    #[inline]
    pub(crate) fn scan(bytes: &[u8], format: Format) -> Result<Self, DecodeError> {
        let mut scan = Scan { reader: Reader::new(bytes), limit: format.size_limit() };
        let Some((format, input_count)) = scan.head(format)? else { return scan.empty() };
        let inputs = scan.reader.offset();
        scan.inputs(input_count, format == Format::Extended)?;
        let output_count = scan.count(MIN_OUTPUT, "outputs")?;
        let outputs = scan.reader.offset();
        scan.outputs(output_count)?;
        let witness = scan.reader.offset();
        if format == Format::Segwit {
            scan.witness(input_count)?;
        }
        let end = scan.lock_time()?;
        Ok(Self { format, input_count, inputs, output_count, outputs, witness, end })
    }
}

impl Scan<'_> {
    /// Everything up to the first input: the format that the transaction really has, and how many
    /// inputs it has. `None` for a transaction with neither inputs nor outputs whose output count
    /// stands where a segwit flag would.
    fn head(&mut self, format: Format) -> Result<Option<(Format, usize)>, DecodeError> {
        self.reader.array::<4>("a version")?;
        if format == Format::Extended {
            let error = self.reader.error(DecodeErrorKind::NotExtended);
            if *self.reader.array("the extended format marker")? != EXTENDED_MARKER {
                return Err(error);
            }
            let count = self.count(MIN_EXTENDED_INPUT, "inputs")?;
            return Ok(Some((Format::Extended, count)));
        }
        let count = self.count(MIN_INPUT, "inputs")?;
        if count > 0 || format == Format::Legacy {
            return Ok(Some((Format::Legacy, count)));
        }
        let start = self.reader.offset();
        match self.reader.u8("a segwit flag")? {
            0 => Ok(None),
            1 => Ok(Some((Format::Segwit, self.count(MIN_INPUT, "inputs")?))),
            flag => Err(DecodeErrorKind::UnknownFlag { flag }.at(start)),
        }
    }

    /// Core's reading of a segwit flag of zero: no inputs, and no separate count of outputs,
    /// because the flag is that count.
    fn empty(mut self) -> Result<Layout, DecodeError> {
        let at = self.reader.offset();
        let end = self.lock_time()?;
        Ok(Layout {
            format: Format::Legacy,
            input_count: 0,
            inputs: at - 1,
            output_count: 0,
            outputs: at,
            witness: at,
            end,
        })
    }

    #[inline]
    fn inputs(&mut self, count: usize, extended: bool) -> Result<(), DecodeError> {
        for _ in 0..count {
            self.reader.array::<36>("an outpoint")?;
            self.bytes("an input script")?;
            self.reader.array::<4>("a sequence")?;
            if extended {
                self.reader.array::<8>("the value of a spent output")?;
                self.bytes("the script of a spent output")?;
            }
        }
        Ok(())
    }

    #[inline]
    fn outputs(&mut self, count: usize) -> Result<(), DecodeError> {
        for _ in 0..count {
            self.reader.array::<8>("a value")?;
            self.bytes("an output script")?;
        }
        Ok(())
    }

    #[inline]
    fn witness(&mut self, inputs: usize) -> Result<(), DecodeError> {
        let start = self.reader.offset();
        let mut has_witness = false;
        for _ in 0..inputs {
            let items = self.count(1, "witness items")?;
            has_witness |= items > 0;
            for _ in 0..items {
                self.bytes("a witness item")?;
            }
        }
        if has_witness { Ok(()) } else { Err(DecodeErrorKind::SuperfluousWitness.at(start)) }
    }

    /// The last field. Returns the end of the transaction.
    fn lock_time(&mut self) -> Result<usize, DecodeError> {
        self.reader.array::<4>("a lock time")?;
        Ok(self.reader.offset())
    }

    /// A length and that many bytes.
    #[inline]
    fn bytes(&mut self, what: &'static str) -> Result<(), DecodeError> {
        let length = compact_size::read(&mut self.reader, self.limit, what)?;
        self.reader.take(length, what).map(|_| ())
    }

    /// A count of items of at least `smallest` bytes each. A count that the remaining bytes cannot
    /// hold is refused here, before the number is used.
    #[inline]
    fn count(&mut self, smallest: u64, what: &'static str) -> Result<usize, DecodeError> {
        let start = self.reader.offset();
        let count = compact_size::read(&mut self.reader, self.limit, what)?;
        if count > self.reader.rest().len() as u64 / smallest {
            return Err(DecodeErrorKind::CountTooLarge { what, count }.at(start));
        }
        Ok(usize::try_from(count).expect("not more than the bytes in memory"))
    }
}
