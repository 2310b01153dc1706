//! The outputs that a transaction spends, grouped by the transactions that made them.
//!
//! ```text
//! │ parents u32le │ parents × txid 32 │ for each parent: │ count u32le │ count × vout u32le │
//! ```
//!
//! Parents come in the order in which the inputs first name them, and the outputs of a parent in
//! the order of the inputs. No parents are four zero bytes.
//!
//! The grouping forgets which input spends which output, when parents alternate. So a record keeps
//! its outpoints in the order of its inputs, and this form is made from them when asked for.

use std::collections::HashMap;

use varve_types::{DecodeError, DecodeErrorKind, Outpoint, Reader, Txid};

/// What a transaction spends, by parent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TxInpoints {
    parents: Vec<(Txid, Vec<u32>)>,
}

impl TxInpoints {
    /// Groups the outpoints of a transaction, given in the order of its inputs.
    #[must_use]
    pub fn from_outpoints(outpoints: &[Outpoint]) -> Self {
        let mut places: HashMap<Txid, usize> = HashMap::new();
        let mut parents: Vec<(Txid, Vec<u32>)> = Vec::new();
        for outpoint in outpoints {
            let place = *places.entry(outpoint.txid).or_insert_with(|| {
                parents.push((outpoint.txid, Vec::new()));
                parents.len() - 1
            });
            let (_, vouts) = parents.get_mut(place).expect("every place was pushed");
            vouts.push(outpoint.vout);
        }
        Self { parents }
    }

    /// Each parent with the outputs of it that are spent.
    pub fn parents(&self) -> impl ExactSizeIterator<Item = (Txid, &[u32])> {
        self.parents.iter().map(|(txid, vouts)| (*txid, vouts.as_slice()))
    }

    /// All outpoints, parent by parent.
    pub fn outpoints(&self) -> impl Iterator<Item = Outpoint> {
        let of = |(txid, vouts): &(Txid, Vec<u32>)| {
            let txid = *txid;
            vouts.clone().into_iter().map(move |vout| Outpoint::new(txid, vout))
        };
        self.parents.iter().flat_map(of)
    }

    /// The number of outpoints.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parents.iter().map(|(_, vouts)| vouts.len()).sum()
    }

    /// Whether nothing is spent, as by a coinbase.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends the bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        write_count(self.parents.len(), out);
        for (txid, _) in &self.parents {
            out.extend_from_slice(txid.as_bytes());
        }
        for (_, vouts) in &self.parents {
            write_count(vouts.len(), out);
            for vout in vouts {
                out.extend_from_slice(&vout.to_le_bytes());
            }
        }
    }

    /// Reads the bytes at the front of `reader`. Memory is taken for what is there, not for what
    /// a count claims.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = read_count(reader, 36, "parents")?;
        let mut parents = Vec::with_capacity(count);
        for _ in 0..count {
            parents.push((Txid::from_bytes(*reader.array("a parent")?), Vec::new()));
        }
        for (_, vouts) in &mut parents {
            let count = read_count(reader, 4, "outputs of a parent")?;
            vouts.reserve_exact(count);
            for _ in 0..count {
                vouts.push(reader.u32("an output of a parent")?);
            }
        }
        Ok(Self { parents })
    }

    /// Decodes bytes that hold nothing else.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let inpoints = Self::read(&mut reader)?;
        reader.end()?;
        Ok(inpoints)
    }
}

/// Appends a count. A transaction has fewer than 2^32 inputs: each takes 41 bytes.
fn write_count(count: usize, out: &mut Vec<u8>) {
    let count = u32::try_from(count).expect("fewer than 2^32 inputs");
    out.extend_from_slice(&count.to_le_bytes());
}

/// Reads a count of things that take at least `smallest` bytes each.
fn read_count(
    reader: &mut Reader<'_>,
    smallest: usize,
    what: &'static str,
) -> Result<usize, DecodeError> {
    let at = reader.clone();
    let count = reader.u32(what)?;
    let fits = usize::try_from(count).ok().filter(|n| *n <= reader.rest().len() / smallest);
    let count = u64::from(count);
    fits.ok_or_else(|| at.error(DecodeErrorKind::CountTooLarge { what, count }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn txid(byte: u8) -> Txid {
        Txid::from_bytes([byte; 32])
    }

    /// The example of the original: outputs 0 and 2 of A, output 1 of B.
    #[test]
    fn two_outputs_of_one_parent_and_one_of_another() {
        let (a, b) = (txid(0xaa), txid(0xbb));
        let inputs = [Outpoint::new(a, 0), Outpoint::new(b, 1), Outpoint::new(a, 2)];
        let inpoints = TxInpoints::from_outpoints(&inputs);
        let parents: Vec<_> = inpoints.parents().collect();
        assert_eq!(parents, [(a, [0, 2].as_slice()), (b, [1].as_slice())]);
        let mut bytes = Vec::new();
        inpoints.encode(&mut bytes);
        let mut expected = vec![2, 0, 0, 0];
        expected.extend([0xaa; 32]);
        expected.extend([0xbb; 32]);
        expected.extend([2, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0]);
        expected.extend([1, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(bytes, expected);
        assert_eq!(TxInpoints::decode(&bytes), Ok(inpoints));
    }

    #[test]
    fn no_parents_are_four_zero_bytes() {
        let mut bytes = Vec::new();
        TxInpoints::default().encode(&mut bytes);
        assert_eq!(bytes, [0; 4]);
        assert!(TxInpoints::decode(&bytes).unwrap().is_empty());
    }

    #[test]
    fn a_count_that_cannot_be_true_takes_no_memory() {
        let error = TxInpoints::decode(&[0xff; 40]).unwrap_err();
        assert!(matches!(error.kind, DecodeErrorKind::CountTooLarge { .. }), "{error}");
        assert_eq!(error.offset, 0);
    }

    proptest! {
        #[test]
        fn round_trips(inputs in prop::collection::vec((0_u8..4, any::<u32>()), 0..20)) {
            let outpoint = |(parent, vout)| Outpoint::new(txid(parent), vout);
            let inputs: Vec<_> = inputs.into_iter().map(outpoint).collect();
            let inpoints = TxInpoints::from_outpoints(&inputs);
            prop_assert_eq!(inpoints.len(), inputs.len());
            let mut bytes = Vec::new();
            inpoints.encode(&mut bytes);
            prop_assert_eq!(TxInpoints::decode(&bytes), Ok(inpoints.clone()));
            let mut all: Vec<_> = inpoints.outpoints().collect();
            let mut expected = inputs;
            all.sort();
            expected.sort();
            prop_assert_eq!(all, expected);
            for end in 0..bytes.len() {
                prop_assert!(TxInpoints::decode(&bytes[..end]).is_err());
            }
        }
    }
}
