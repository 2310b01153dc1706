//! Real outputs, compressed and decompressed.
//!
//! Beside eight blocks of mainnet and testnet lie the outputs that they spend, one for each input
//! in block order, as plain outputs. It is checked that they match the blocks.

use std::collections::HashMap;
use std::fs;

use varve_types::{
    Amount, Block, Format, Height, Network, Outpoint, Reader, compact_size, compress,
};

#[test]
fn spent_outputs_fit_and_round_trip() {
    let Some(folder) = varve_testdata::data("blocks/bcoin") else { return };
    let (mut files, mut coins) = (0, 0);
    let mut kinds = [0; 7];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let Some(block) = path.to_str().unwrap().strip_suffix("-undo.raw") else { continue };
        let height: u32 = block.rsplit("block").next().unwrap().parse().unwrap();
        let spent = fs::read(&path).unwrap();
        let spent = outputs(&spent);
        let block = fs::read(format!("{block}.raw")).unwrap();
        let block = Block::parse(&block, Format::Segwit).unwrap();
        fits(&block, Height::new(height), &spent);
        for (value, script) in &spent {
            kinds[round_trip(*value, script).min(6)] += 1;
        }
        coins += spent.len();
        files += 1;
    }
    println!("{files} files, {coins} outputs, by type {kinds:?}");
    assert_eq!((files, coins), (8, 52_072));
    assert!(kinds[0] > 1000 && kinds[1] > 1000 && kinds[6] > 0, "{kinds:?}");
}

fn outputs(bytes: &[u8]) -> Vec<(Amount, &[u8])> {
    let mut reader = Reader::new(bytes);
    let mut outputs = Vec::new();
    while !reader.rest().is_empty() {
        let value = Amount::from_sat(reader.u64("a value").unwrap());
        let length = compact_size::read(&mut reader, u64::MAX, "a script").unwrap();
        outputs.push((value, reader.take(length, "a script").unwrap()));
    }
    outputs
}

/// One output for each input; those of the block itself are the same; and the coinbase claims no
/// more than subsidy and fees.
fn fits(block: &Block<'_>, height: Height, spent: &[(Amount, &[u8])]) {
    let mut spent = spent.iter();
    let mut created = HashMap::new();
    let (mut incoming, mut outgoing) = (0, 0);
    for (tx, txid) in block.txs().iter().zip(block.txids()) {
        if !tx.is_coinbase() {
            for input in tx.inputs() {
                let (value, script) = *spent.next().expect("an output for each input");
                incoming += value.to_sat();
                let here = created.get(&input.outpoint);
                assert!(here.is_none_or(|output| *output == (value, script)));
            }
        }
        for (vout, output) in tx.outputs().enumerate() {
            outgoing += output.value.to_sat();
            let outpoint = Outpoint::new(txid, vout as u32);
            created.insert(outpoint, (output.value, output.script));
        }
    }
    assert_eq!(spent.next(), None);
    assert!(outgoing <= incoming + Network::Mainnet.subsidy(height).to_sat());
}

/// Returns the type of the compressed script: 0 to 5, or more.
fn round_trip(value: Amount, script: &[u8]) -> usize {
    let mut bytes = Vec::new();
    compress::write_output(value, script, &mut bytes);
    let mut reader = Reader::new(&bytes);
    let mut back = Vec::new();
    assert_eq!(compress::read_output(&mut reader, &mut back), Ok(value));
    assert_eq!(back, script);
    reader.end().unwrap();
    bytes.clear();
    compress::write_script(script, &mut bytes);
    usize::from(bytes[0])
}
