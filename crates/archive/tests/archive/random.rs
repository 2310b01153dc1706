//! Random reorganisations, checkpoints and crashes, beside the model.

use varve_archive::contract::Disk;
use varve_archive::contract::random::Dice;
use varve_consensus::contract::draft::{BlockDraft, TxDraft};
use varve_types::{Block, Height, Network, Outpoint};

use crate::back_ends::on_every_back_end;
use crate::model::Model;
use crate::rig::Rig;

/// A script that pushes `len` bytes of one kind.
fn pushing(len: u32, kind: u32) -> Vec<u8> {
    let [len, kind] = [len, kind].map(|number| u8::try_from(number).unwrap());
    [vec![len], vec![kind; len.into()]].concat()
}

/// A block on some block, which spends some outputs of its branch, or the same ones again.
pub(crate) fn block_on(model: &Model, parent: usize, dice: &mut Dice, number: u32) -> Vec<u8> {
    let parent = &model.blocks[parent];
    let height = Height::new(parent.height + 1);
    let mut coinbase = TxDraft::coinbase(height, 1000);
    coinbase.lock_time = number % 7;
    coinbase.outputs[0].script = pushing(20, number % 5);
    let branch = model.branch(parent.hash);
    let mut txs = vec![coinbase];
    for _ in 0..dice.roll(3) {
        let from = &branch[dice.roll(u32::try_from(branch.len()).unwrap()) as usize];
        let from = &model.get(from).bytes;
        let from = Block::parse(from, Network::Regtest.format()).unwrap();
        let txids = from.txids();
        let txid = txids[dice.roll(u32::try_from(txids.len()).unwrap()) as usize];
        let mut tx = TxDraft::spending(&[Outpoint::new(txid, 0)], 1 + dice.roll(2) as usize);
        tx.inputs[0].script = pushing(33, dice.roll(9));
        for output in &mut tx.outputs {
            let prefix: &[u8] = if dice.roll(4) == 0 { &[0x6a] } else { &[] };
            output.script = [prefix, &pushing(20 + dice.roll(3), dice.roll(9))].concat();
        }
        // The same transaction twice in a block is not a block.
        if !txs.contains(&tx) {
            txs.push(tx);
        }
    }
    BlockDraft { previous: parent.hash, ..BlockDraft::new(txs) }.bytes()
}

fn walk<D: Disk>(disk: D, seed: u64) {
    let mut dice = Dice(seed);
    let mut rig = Rig::new(Network::Regtest, disk);
    rig.add(&Network::Regtest.genesis_block());
    let mut saved = 0;
    for number in 0..150 {
        let last = u32::try_from(rig.model.blocks.len()).unwrap();
        let parent = (last - 1 - dice.roll(last.min(4))) as usize;
        let bytes = block_on(&rig.model, parent, &mut dice, number);
        let hash = Block::parse(&bytes, Network::Regtest.format()).unwrap().hash();
        if !rig.model.knows(&hash) {
            rig.add(&bytes);
        }
        match dice.roll(30) {
            0 => {
                rig.archive().checkpoint(u64::from(number)).unwrap();
                saved = rig.model.blocks.len();
            }
            // A crash: the blocks since the checkpoint come again, as replay brings them.
            1 => {
                rig.reopen();
                for index in saved..rig.model.blocks.len() {
                    let bytes = rig.model.blocks[index].bytes.clone();
                    let number = varve_archive::BlockNumber::new(u32::try_from(index).unwrap());
                    rig.store(&bytes, number);
                }
                rig.follow();
                rig.check();
            }
            2 => rig.check(),
            _ => {}
        }
    }
    rig.check();
    let stale = rig.model.blocks.iter().filter(|block| !rig.model.is_active(&block.hash));
    assert!(stale.count() > 5, "there were branches");
}

fn walks<D: Disk + Default>(_: D) {
    for seed in 0..4 {
        walk(D::default(), seed);
    }
}

on_every_back_end!(walks);
