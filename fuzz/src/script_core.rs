//! The boundary to Core's C++ code: whatever is asked, it answers or refuses, and does not end the
//! process.

use varve_script_core::{SpentOutput, Transaction, TransactionError, VerifyError};
use varve_types::{Format, Reader, Tx};

use crate::Target;
use crate::examples::Examples;

pub(crate) const TARGETS: &[Target] =
    &[Target { name: "script_inputs", run: inputs, seeds: |examples: &Examples| seeds(examples) }];

/// All consensus rules.
const ALL: u32 = 1 | 1 << 2 | 1 << 4 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 17;
/// More inputs than that take long and find nothing new.
const MANY: usize = 64;

/// `flags 4 │ outputs 1 │ (amount 8 │ length 1 │ script) … │ transaction`
///
/// Core takes the same transactions as our own parser, and an answer does not change when the
/// question is repeated.
fn inputs(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    let Some((flags, spent)) = question(&mut reader) else { return };
    let Some(transaction) = bytes.get(reader.offset()..) else { return };
    let parsed = Tx::parse(transaction, Format::Segwit).ok().filter(|tx| tx.inputs().len() > 0);
    let (prepared, parsed) = match (Transaction::new(transaction, &spent), parsed) {
        (Ok(prepared), Some(parsed)) => (prepared, parsed),
        (Err(TransactionError::Spent), Some(parsed)) => {
            return assert_ne!(parsed.inputs().len(), spent.len());
        }
        (Err(TransactionError::Malformed), None) => return,
        (prepared, parsed) => panic!("{prepared:?}, but by our parser {parsed:?}"),
    };
    assert_eq!(parsed.inputs().len(), spent.len());
    for input in 0..spent.len().min(MANY) {
        let answer = prepared.verify(input, flags);
        assert_eq!(prepared.verify(input, flags), answer);
        let refused = flags & !ALL != 0 || flags & (1 << 11 | 1) == 1 << 11;
        assert_eq!(answer == Err(VerifyError::Flags), refused, "{flags:x}");
        assert_ne!(answer, Err(VerifyError::Input));
    }
    assert!(prepared.verify(spent.len(), ALL).is_err());
}

fn question<'a>(reader: &mut Reader<'a>) -> Option<(u32, Vec<SpentOutput<'a>>)> {
    let mut take = |length: u64| reader.take(length, "a question").ok();
    let flags = u32::from_le_bytes(take(4)?.try_into().ok()?);
    let count = *take(1)?.first()?;
    let mut spent = Vec::new();
    for _ in 0..count {
        let value = i64::from_le_bytes(take(8)?.try_into().ok()?);
        let length = *take(1)?.first()?;
        spent.push(SpentOutput { value, script: take(u64::from(length))? });
    }
    Some((flags, spent))
}

/// Every example with outputs of several kinds below it.
fn seeds(examples: &Examples) -> Vec<Vec<u8>> {
    let scripts: [&[u8]; 4] = [
        &[0x51],
        &[&[0, 20][..], &[7; 20]].concat(),
        &[&[0x51, 32][..], &[2; 32]].concat(),
        &[&[0xa9, 20][..], &[7; 20], &[0x87]].concat(),
    ];
    let mut seeds = Vec::new();
    for transaction in &examples.transactions {
        let Ok(tx) = Tx::parse(transaction, Format::Segwit) else { continue };
        let Ok(count) = u8::try_from(tx.inputs().len()) else { continue };
        for script in scripts {
            let mut seed = ALL.to_le_bytes().to_vec();
            seed.push(count);
            for _ in 0..count {
                seed.extend_from_slice(&50_000_i64.to_le_bytes());
                seed.extend(u8::try_from(script.len()));
                seed.extend_from_slice(script);
            }
            seed.extend_from_slice(transaction);
            seeds.push(seed);
        }
    }
    seeds
}
