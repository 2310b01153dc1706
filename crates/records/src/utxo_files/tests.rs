//! Files made by hand, read back, cut, and consolidated.

use varve_types::{Amount, TxOut, Txid};

use super::consolidate::Consolidator;
use super::*;
use crate::utxo_wrapper::{WrappedOutput, WrapperHead, write_wrapper};

fn head(number: u8) -> FileHead {
    FileHead { block: BlockHash::from_bytes([number; 32]), height: Height::new(u32::from(number)) }
}

fn txid(number: u8) -> Txid {
    Txid::from_bytes([number; 32])
}

/// A wrapper of these outputs.
fn wrapper(tx: u8, outputs: &[u32]) -> Vec<u8> {
    let head = WrapperHead { txid: txid(tx), height: Height::new(9), coinbase: tx == 1 };
    let script = [tx; 3];
    let outputs = outputs.iter().map(|index| WrappedOutput {
        index: *index,
        output: TxOut { value: Amount::from_sat(u64::from(*index)), script: &script },
    });
    let mut bytes = Vec::new();
    write_wrapper(&head, outputs, &mut bytes);
    bytes
}

fn additions(wrappers: &[Vec<u8>]) -> Vec<u8> {
    let mut writer = AdditionsWriter::new(Vec::new(), &head(1)).unwrap();
    wrappers.iter().for_each(|wrapper| writer.push(wrapper).unwrap());
    writer.into_inner()
}

fn deletions(outpoints: &[Outpoint]) -> Vec<u8> {
    let mut writer = DeletionsWriter::new(Vec::new(), &head(1)).unwrap();
    outpoints.iter().for_each(|outpoint| writer.push(outpoint).unwrap());
    writer.into_inner()
}

fn set(wrappers: &[Vec<u8>]) -> Vec<u8> {
    let mut writer = SetWriter::new(Vec::new(), &head(1), &BlockHash::ZERO).unwrap();
    wrappers.iter().for_each(|wrapper| writer.push(wrapper).unwrap());
    writer.finish().unwrap()
}

/// Transactions and output numbers of a set.
fn content(set: &[u8]) -> Vec<(Txid, Vec<u32>)> {
    let mut reader = SetReader::new(set, set.len() as u64).unwrap();
    let mut all = Vec::new();
    while let Some(wrapper) = reader.next_wrapper().unwrap() {
        all.push((wrapper.txid, wrapper.outputs().map(|output| output.index).collect()));
    }
    all
}

#[test]
fn additions_hold_transactions_without_outputs_too() {
    let wrappers = [wrapper(1, &[0, 2]), wrapper(2, &[])];
    let bytes = additions(&wrappers);
    assert_eq!(bytes[..8], *b"U-A-1.0 ");
    assert_eq!(bytes.len(), 8 + 32 + 4 + wrappers.concat().len());
    let mut reader = AdditionsReader::new(bytes.as_slice()).unwrap();
    assert_eq!(*reader.head(), head(1));
    assert_eq!(reader.next_wrapper().unwrap(), Some(UtxoWrapper::parse(&wrappers[0]).unwrap()));
    assert_eq!(reader.next_wrapper().unwrap().unwrap().outputs().len(), 0);
    assert_eq!(reader.next_wrapper().unwrap(), None);
}

#[test]
fn deletions_leave_out_coinbase_inputs() {
    let outpoint = Outpoint::new(txid(1), 5);
    let bytes = deletions(&[Outpoint::NULL, outpoint]);
    assert_eq!(bytes.len(), 8 + 32 + 4 + 36);
    let mut reader = DeletionsReader::new(bytes.as_slice()).unwrap();
    assert_eq!(*reader.head(), head(1));
    assert_eq!(reader.next_outpoint().unwrap(), Some(outpoint));
    assert_eq!(reader.next_outpoint().unwrap(), None);
}

#[test]
fn a_set_ends_with_its_counts() {
    let bytes = set(&[wrapper(1, &[0, 2]), wrapper(2, &[]), wrapper(3, &[7])]);
    assert_eq!(bytes[bytes.len() - 16..], [2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(content(&bytes), [(txid(1), vec![0, 2]), (txid(3), vec![7])]);
    assert!(content(&set(&[])).is_empty());
}

#[test]
fn a_cut_set_is_an_error_everywhere() {
    let bytes = set(&[wrapper(1, &[0, 2]), wrapper(3, &[7])]);
    for end in 0..bytes.len() {
        let cut = &bytes[..end];
        let read = || -> Result<(), UtxoFileError> {
            let mut reader = SetReader::new(cut, cut.len() as u64)?;
            while reader.next_wrapper()?.is_some() {}
            Ok(())
        };
        assert!(read().is_err(), "cut at byte {end}");
    }
    let mut wrong = bytes.clone();
    *wrong.last_mut().unwrap() = 1;
    let mut reader = SetReader::new(wrong.as_slice(), wrong.len() as u64).unwrap();
    while reader.next_wrapper().is_ok_and(|wrapper| wrapper.is_some()) {}
    assert!(reader.next_wrapper().is_err());
}

#[test]
fn a_cut_wrapper_is_an_error() {
    let bytes = additions(&[wrapper(1, &[0])]);
    let whole = [44, bytes.len()];
    for end in 0..=bytes.len() {
        let read = || -> Result<(), UtxoFileError> {
            let mut reader = AdditionsReader::new(&bytes[..end])?;
            while reader.next_wrapper()?.is_some() {}
            Ok(())
        };
        assert_eq!(read().is_ok(), whole.contains(&end), "cut at byte {end}");
    }
}

#[test]
fn another_kind_of_file_is_refused() {
    let error = DeletionsReader::new(additions(&[]).as_slice()).unwrap_err();
    let found = Some(FileType::UtxoAdditions);
    assert!(matches!(error, UtxoFileError::WrongType { found: f, .. } if f == found), "{error}");
}

#[test]
fn headers_round_trip() {
    let entry = HeaderEntry {
        hash: BlockHash::from_bytes([3; 32]),
        height: Height::new(4),
        txs: 5,
        header: [6; 80],
    };
    let mut bytes = Vec::new();
    write_headers_head(&mut bytes).unwrap();
    entry.write(&mut bytes).unwrap();
    assert_eq!(bytes.len(), 8 + HEADER_ENTRY_LEN);
    bytes[7] = 0;
    let mut reader = HeadersReader::new(bytes.as_slice()).unwrap();
    assert_eq!(reader.next_entry().unwrap(), Some(entry), "padded with a zero byte");
    assert_eq!(reader.next_entry().unwrap(), None);
    let mut cut = HeadersReader::new(&bytes[..100]).unwrap();
    assert!(cut.next_entry().is_err());
}

/// Block 2 spends an output of the old set and one of its own; block 3 one of block 2.
#[test]
fn a_range_of_blocks_becomes_a_set() {
    let old = set(&[wrapper(1, &[0, 1, 2]), wrapper(2, &[0])]);
    let at = |tx, vout| Outpoint::new(txid(tx), vout);
    let mut range = Consolidator::new();
    let mut push = |deleted: &[Outpoint], added: &[Vec<u8>]| {
        let (deleted, added) = (deletions(deleted), additions(added));
        let deletions = DeletionsReader::new(deleted.as_slice()).unwrap();
        let additions = AdditionsReader::new(added.as_slice()).unwrap();
        range.push_block(deletions, additions).unwrap();
    };
    push(&[at(1, 1), at(4, 0)], &[wrapper(5, &[3, 1]), wrapper(4, &[0, 1])]);
    push(&[at(5, 1), at(2, 0), at(4, 1)], &[wrapper(3, &[0]), wrapper(6, &[])]);
    let mut writer = SetWriter::new(Vec::new(), &head(3), &head(2).block).unwrap();
    let mut reader = SetReader::new(old.as_slice(), old.len() as u64).unwrap();
    range.finish(Some(&mut reader), &mut writer).unwrap();
    let new = writer.finish().unwrap();
    let expected = [(txid(1), vec![0, 2]), (txid(5), vec![3]), (txid(3), vec![0])];
    assert_eq!(content(&new), expected);
    let reader = SetReader::new(new.as_slice(), new.len() as u64).unwrap();
    assert_eq!((*reader.head(), *reader.previous()), (head(3), head(2).block));
}

/// What is taken away whole and comes again has its place by its second coming.
#[test]
fn additions_are_ordered_by_their_last_coming() {
    let mut range = Consolidator::new();
    let wrappers = [wrapper(7, &[0]), wrapper(3, &[0]), wrapper(7, &[1])];
    let [first, other, again] = wrappers.each_ref().map(|bytes| UtxoWrapper::parse(bytes).unwrap());
    range.add(&first);
    range.add(&other);
    range.delete(Outpoint::new(txid(7), 0));
    range.add(&again);
    let mut writer = SetWriter::new(Vec::new(), &head(3), &head(2).block).unwrap();
    range.finish(None::<&mut SetReader<&[u8]>>, &mut writer).unwrap();
    let expected = [(txid(3), vec![0]), (txid(7), vec![1])];
    assert_eq!(content(&writer.finish().unwrap()), expected);
}
