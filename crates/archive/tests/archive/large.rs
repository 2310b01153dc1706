//! A transaction as large as a block is read once, however many of its outputs or inputs are asked
//! for at once. To read it for each was quadratic: minutes for the block below.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use varve_archive::contract::Disk;
use varve_archive::{BlockNumber, BlockSource, MemoryBlocks, SourceError, View};
use varve_consensus::Params;
use varve_consensus::contract::draft::{BlockDraft, OutputDraft, TxDraft};
use varve_types::script::opcode::OP_1;
use varve_types::{Block, Height, Network, Outpoint};

use crate::back_ends::on_every_back_end;
use crate::rig::Rig;

const COUNT: u32 = 20_000;

/// Blocks in memory that count how often they are read.
struct Counting<'a> {
    blocks: &'a MemoryBlocks,
    reads: AtomicUsize,
}

impl Counting<'_> {
    /// Checks the number of reads since the last call. With weak hashes the few other transactions
    /// of the chain may be candidates too.
    fn assert_reads(&self, expected: usize, why: &str) {
        let reads = self.reads.swap(0, Ordering::Relaxed);
        let others = if cfg!(feature = "weak-hash") { 6 } else { 0 };
        assert!((expected..=expected + others).contains(&reads), "{reads} reads: {why}");
    }
}

impl BlockSource for Counting<'_> {
    type Bytes<'a>
        = &'a [u8]
    where
        Self: 'a;

    fn bytes(&self, number: BlockNumber, range: Range<u32>) -> Result<&[u8], SourceError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.blocks.bytes(number, range)
    }
}

/// One transaction makes all outputs, another spends them from the last to the first.
fn is_read_once<D: Disk>(disk: D) {
    let mut rig = Rig::new(Network::Regtest, disk);
    rig.add(&Network::Regtest.genesis_block());
    let mut previous = Network::Regtest.genesis_hash();
    let mut add = |rig: &mut Rig<D>, height: u32, txs: &[TxDraft]| {
        let coinbase = TxDraft::coinbase(Height::new(height), u64::from(COUNT));
        let draft = BlockDraft::new([&[coinbase], txs].concat());
        let bytes = BlockDraft { previous, ..draft }.bytes();
        previous = Block::parse(&bytes, Network::Regtest.format()).unwrap().hash();
        rig.add(&bytes)
    };
    add(&mut rig, 1, &[]);
    let coin = Outpoint::new(TxDraft::coinbase(Height::new(1), u64::from(COUNT)).txid(), 0);
    let mut fan = TxDraft::spending(&[coin], COUNT as usize);
    let anyone = OutputDraft { value: 1, script: vec![OP_1] };
    fan.outputs.iter_mut().for_each(|output| *output = anyone.clone());
    let made = fan.txid();
    let points: Vec<_> = (0..COUNT).rev().map(|vout| Outpoint::new(made, vout)).collect();
    let mut spend = TxDraft::spending(&points, 1);
    spend.outputs[0].value = 0;
    add(&mut rig, 2, std::slice::from_ref(&fan));
    let link = add(&mut rig, 3, std::slice::from_ref(&spend));

    let source = Counting { blocks: &rig.blocks, reads: AtomicUsize::new(0) };
    let view = View::new(rig.archive.as_ref().unwrap().snapshot(), &source);
    let spenders = view.spenders_of(&points).unwrap();
    source.assert_reads(1, "the spender");
    for (vin, spenders) in (0..).zip(&spenders) {
        let found: Vec<_> = spenders.iter().map(|found| (found.tx.block, found.vin)).collect();
        assert_eq!(found, [(link, vin)]);
    }
    assert_eq!(view.txid(&spenders[0][0].tx).unwrap(), spend.txid());
    source.assert_reads(1, "the txid takes a read");
    let prevouts = view.block_prevouts(link).unwrap().unwrap();
    source.assert_reads(2, "the block, and the transaction that it spends");
    let found: Vec<_> = prevouts.into_iter().map(|output| output.unwrap().point()).collect();
    assert_eq!(found, points);
    let params = Params { coinbase_maturity: 1, ..Params::new(Network::Regtest) };
    view.block_confirmable(&params, link).unwrap().unwrap().unwrap();
    source.assert_reads(2, "the block and the outputs; its own inputs are above them");

    spend.lock_time += 1;
    let again = add(&mut rig, 4, std::slice::from_ref(&spend));
    let source = Counting { blocks: &rig.blocks, reads: AtomicUsize::new(0) };
    let view = View::new(rig.archive.as_ref().unwrap().snapshot(), &source);
    let verdict = view.block_confirmable(&params, again).unwrap().unwrap();
    assert!(verdict.is_err(), "everything is spent");
    source.assert_reads(4, "the block, the outputs, their spender, and its txid once");
}

/// A point that is asked for twice is answered twice; one that is not there, not at all.
fn answers_are_in_order<D: Disk>(disk: D) {
    let mut rig = Rig::new(Network::Regtest, disk);
    rig.add(&Network::Regtest.genesis_block());
    let first = TxDraft::coinbase(Height::new(1), 0);
    let previous = Network::Regtest.genesis_hash();
    let one = BlockDraft { previous, ..BlockDraft::new(vec![first.clone()]) }.bytes();
    rig.add(&one);
    let point = |vout| Outpoint::new(first.txid(), vout);
    let (there, absent) = (point(0), point(7));
    let mut spend = TxDraft::spending(&[there], 1);
    spend.outputs[0].value = 0;
    let previous = Block::parse(&one, Network::Regtest.format()).unwrap().hash();
    let draft = BlockDraft::new(vec![TxDraft::coinbase(Height::new(2), 0), spend]);
    rig.add(&BlockDraft { previous, ..draft }.bytes());
    let spenders = rig.view().spenders_of(&[there, absent, there]).unwrap();
    let counts: Vec<_> = spenders.iter().map(Vec::len).collect();
    assert_eq!(counts, [1, 0, 1]);
}

on_every_back_end!(is_read_once, answers_are_in_order);
