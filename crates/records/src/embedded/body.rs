//! The body of a record: what never changes.
//!
//! ```text
//!  │ inputs VARINT │ txid 32, output u32 │ … │ form u8 │ bytes │
//!
//!  form   0 external: no bytes   1 legacy   2 segwit   3 extended   4 outputs only
//! ```
//!
//! The inputs are kept apart from the transaction, because that may lie in a blob outside.

use bytes::Bytes;
use varve_types::{DecodeError, DecodeErrorKind, Format, Outpoint, Reader, Txid, varint};

use super::number::{read_count, varint_len};
use crate::extended::Transaction;
use crate::record::Body;

const EXTERNAL: u8 = 0;
const OUTPUTS: u8 = 4;

/// The forms of transactions in a record, and their codes.
const FORMS: [(Format, u8); 3] = [(Format::Legacy, 1), (Format::Segwit, 2), (Format::Extended, 3)];

/// Appends a body.
pub(crate) fn encode(inputs: &[Outpoint], body: &Body, out: &mut Vec<u8>) {
    varint::write(inputs.len() as u64, out);
    inputs.iter().for_each(|input| out.extend_from_slice(&input.to_bytes()));
    match body {
        Body::External => out.push(EXTERNAL),
        Body::Outputs(bytes) => {
            out.push(OUTPUTS);
            out.extend_from_slice(bytes);
        }
        Body::Transaction(tx) => {
            let form = FORMS.iter().find(|(format, _)| *format == tx.format());
            let (_, code) = form.expect("every form has a code");
            out.push(*code);
            out.extend_from_slice(tx.bytes());
        }
    }
}

/// The length of what [`encode`] appends.
pub(crate) fn encoded_len(inputs: &[Outpoint], body: &Body) -> usize {
    let bytes = match body {
        Body::External => 0,
        Body::Outputs(bytes) => bytes.len(),
        Body::Transaction(tx) => tx.bytes().len(),
    };
    varint_len(inputs.len() as u64) + inputs.len() * Outpoint::LEN + 1 + bytes
}

/// The inputs in a body.
pub(crate) fn inputs(body: &[u8]) -> Result<Vec<Outpoint>, DecodeError> {
    read_inputs(&mut Reader::new(body))
}

/// The inputs in a body, and the transaction.
pub(crate) fn decode(body: &[u8], txid: Txid) -> Result<(Vec<Outpoint>, Body), DecodeError> {
    let mut reader = Reader::new(body);
    let inputs = read_inputs(&mut reader)?;
    let at = reader.clone();
    let code = reader.u8("the form of a transaction")?;
    let bytes = Bytes::copy_from_slice(reader.rest());
    let body = match code {
        EXTERNAL => Body::External,
        OUTPUTS => Body::Outputs(bytes),
        code => {
            let unknown = || {
                let what = "a form of a transaction";
                at.error(DecodeErrorKind::CountTooLarge { what, count: u64::from(code) })
            };
            let form = FORMS.iter().find(|(_, known)| *known == code);
            let (format, _) = form.ok_or_else(unknown)?;
            Body::Transaction(Transaction::parse_with_txid(bytes, *format, txid)?)
        }
    };
    Ok((inputs, body))
}

fn read_inputs(reader: &mut Reader<'_>) -> Result<Vec<Outpoint>, DecodeError> {
    let count = read_count(reader, Outpoint::LEN, "inputs")?;
    let mut inputs = Vec::with_capacity(count);
    for _ in 0..count {
        inputs.push(Outpoint::from_bytes(reader.array("an input")?));
    }
    Ok(inputs)
}
