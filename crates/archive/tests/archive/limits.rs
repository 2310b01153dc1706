//! What the archive cannot know, and moments that do not move.

use std::sync::Arc;

use varve_archive::contract::Disk;
use varve_archive::{
    Archive, ArchiveConfig, ArchiveError, Backend, BlockNumber, BlockState, Chain, Indexes,
    MemoryBlocks, TxLink, TxState, View,
};
use varve_blocks::{BlockStore, Options, Synced};
use varve_consensus::BlockAt;
use varve_io::StoreId;
use varve_io::faulty::FaultyStorage;
use varve_types::pushdata::PushdataRule;
use varve_types::{Block, BlockHash, Height, Network, Outpoint, PushdataHash, Txid};

use crate::back_ends::on_every_back_end;
use crate::load;
use crate::rig::{Rig, THREADS, check};

/// A pruned block is distinguished from one that never was, in every question that needs its bytes.
fn pruned_blocks_say_so<D: Disk>(disk: D) {
    let Some(blocks) = load::core31() else { return };
    let mut rig = Rig::new(Network::Regtest, disk);
    rig.add_all(&blocks);
    let (_, spenders) = rig.model.walk();
    let (point, spends) = spenders.iter().find(|(_, spends)| spends.len() == 1).unwrap();
    let (txid, _, block) = *spends.first().unwrap();
    let height = Height::new(rig.model.get(&block).height);
    let place = rig.view().txs(txid).unwrap()[0];
    let number = rig.model.blocks.iter().position(|model| model.hash == block).unwrap();
    rig.blocks.prune(BlockNumber::new(u32::try_from(number).unwrap()));
    let view = rig.view();
    let is_pruned = |error: ArchiveError| match error {
        ArchiveError::Pruned { height: at } => assert_eq!(at, height),
        other => panic!("{other}"),
    };
    is_pruned(view.raw_tx(place.link).err().unwrap());
    is_pruned(view.raw_block(place.block).err().unwrap());
    is_pruned(view.spenders(*point).err().unwrap());
    is_pruned(view.confirmed_spender(*point).err().unwrap());
    is_pruned(view.tx_prevouts(place.link).err().unwrap());
    is_pruned(view.output(Outpoint::new(txid, 0)).err().unwrap());
    // Its txid is in its bytes: it may be there, and that is what is said.
    is_pruned(view.txs(txid).err().unwrap());
    is_pruned(view.to_tx(txid).err().unwrap());
    is_pruned(view.txids(place.block).err().unwrap());
    is_pruned(view.tx_branch(&place).err().unwrap());
    let nobody = Txid::from_bytes([9; 32]);
    if !cfg!(feature = "weak-hash") {
        assert_eq!(view.to_tx(nobody).unwrap(), None, "no row may be it");
    }
    // Whether its block is confirmed does not take its bytes.
    assert!(view.is_confirmed_block(place.block).unwrap());
}

/// The same answers over the block store itself.
fn over_the_block_store<D: Disk>(disk: D) {
    let Some(blocks) = load::kernel() else { return };
    let mut rig = Rig::new(Network::Regtest, disk);
    rig.add_all(&blocks);
    let format = Network::Regtest.format();
    let storage = Arc::new(FaultyStorage::new(1));
    let options = Options::new(StoreId([7; 16]), [8; 16], format);
    let mut store = BlockStore::open(storage, options, Synced::NEW).unwrap();
    for block in &blocks {
        store.append(&Block::parse(block, format).unwrap()).unwrap();
    }
    check(&View::new(rig.archive().snapshot(), store.reader()), &rig.model);
}

/// A store that began with a snapshot at height 100: what is below is not "not found".
fn below_the_base<D: Disk>(disk: D) {
    let Some(blocks) = load::kernel() else { return };
    let base = Height::new(100);
    let config = ArchiveConfig { network: Network::Regtest, indexes: Indexes::default() };
    let mut archive = Archive::open(disk.open(), config).unwrap();
    archive.set_base(base);
    let mut stored = MemoryBlocks::default();
    let mut links = Vec::new();
    for (height, bytes) in (0..).zip(&blocks) {
        let block = Block::parse(bytes, Network::Regtest.format()).unwrap();
        let link = archive.set_header(block.header()).unwrap();
        if height > base.to_u32() {
            let number = stored.push(bytes);
            archive.set_block(&BlockAt::new(Height::new(height), &block), number).unwrap();
        }
        archive.set_chain(Chain::Confirmed, height, &[link]).unwrap();
        links.push(link);
    }
    archive.checkpoint(1).unwrap();
    drop(archive);
    let mut archive = Archive::open(disk.open(), config).unwrap();
    archive.catch_up(&stored, THREADS, &mut |_, _| {}).unwrap();
    let view = View::new(archive.snapshot(), &stored);
    assert_eq!(view.base(), Some(base));
    let below = |error: ArchiveError, at: Height| match error {
        ArchiveError::BelowBase { height } => assert_eq!(height, at),
        other => panic!("{other}"),
    };
    below(view.raw_block(links[7]).err().unwrap(), Height::new(7));
    below(view.txids(links[100]).err().unwrap(), base);
    assert!(view.txids(links[101]).unwrap().is_some());
    below(view.to_tx(Txid::from_bytes([1; 32])).err().unwrap(), base);
    let old = Block::parse(&blocks[5], Network::Regtest.format()).unwrap().txids()[0];
    below(view.output(Outpoint::new(old, 0)).err().unwrap(), base);
    assert_eq!(view.header(links[7]).unwrap().height, Height::new(7), "headers are there");
}

/// A snapshot shows its moment while the archive grows and reorganises.
fn snapshots_do_not_move<D: Disk>(disk: D) {
    let Some(blocks) = load::core31() else { return };
    let mut rig = Rig::new(Network::Regtest, disk);
    let mut kept = Vec::new();
    for (number, block) in blocks.iter().enumerate() {
        let tip = rig.model.active.len();
        rig.add_all(std::slice::from_ref(block));
        if number % 250 == 5 || rig.model.active.len() < tip {
            kept.push((rig.archive().snapshot(), rig.model.clone()));
        }
    }
    assert!(kept.len() > 2);
    for (snapshot, model) in kept {
        check(&View::new(snapshot.clone(), &rig.blocks), &model);
        let later = rig.model.blocks.last().unwrap().hash;
        assert_eq!(snapshot.to_header(later).unwrap(), None, "it came later");
    }
}

/// Readers in other threads check whole moments while the writer runs.
fn readers_beside_the_writer<D: Disk>(disk: D) {
    let Some(blocks) = load::core31() else { return };
    let mut rig = Rig::new(Network::Regtest, disk);
    let mut stored = MemoryBlocks::default();
    for block in &blocks {
        stored.push(block);
    }
    std::thread::scope(|scope| {
        for (number, block) in blocks.iter().enumerate() {
            rig.add_all(std::slice::from_ref(block));
            if number % 150 == 149 {
                let (view, model) =
                    (View::new(rig.archive().snapshot(), &stored), rig.model.clone());
                scope.spawn(move || check(&view, &model));
            }
        }
    });
}

/// States of blocks and transactions, and the rule under which a verdict is used again.
fn states<D: Disk>(disk: D) {
    let Some(blocks) = load::kernel() else { return };
    let mut rig = Rig::new(Network::Regtest, disk);
    rig.add_all(&blocks[..20]);
    let before = rig.archive().snapshot();
    let link = before.to_confirmed(Height::new(9)).unwrap();
    let tx = before.block_txs(link).unwrap().unwrap().start;
    let (height, median_time) = (Height::new(9), 77);
    let state = TxState { flags: 5, height, median_time, connected: true, fee: 1, sigops: 2 };
    let archive = rig.archive();
    archive.set_block_states(&[(link, BlockState::Valid)]).unwrap();
    archive.set_tx_states(&[(tx, state)]).unwrap();
    archive.checkpoint(3).unwrap();
    rig.reopen();
    let now = rig.archive().snapshot();
    assert_eq!(before.block_state(link), BlockState::Unknown, "the older moment");
    assert_eq!(now.block_state(link), BlockState::Valid);
    assert_eq!(now.tx_state(tx).unwrap(), Some(state));
    let under = |flags, height, time| now.tx_state_under(tx, flags, Height::new(height), time);
    assert_eq!(under(5, 9, 77).unwrap(), Some(state));
    assert_eq!(under(5, 10, 80).unwrap(), Some(state));
    assert_eq!(under(4, 9, 77).unwrap(), None);
    assert_eq!(under(5, 8, 77).unwrap(), None);
    assert_eq!(under(5, 9, 76).unwrap(), None);
}

/// Headers first: candidates whose blocks are missing, then coming in any order.
fn headers_first<D: Disk>(disk: D) {
    let Some(blocks) = load::kernel() else { return };
    let network = Network::Regtest;
    let config = ArchiveConfig { network, indexes: Indexes::default() };
    let mut archive = Archive::open(disk.open(), config).unwrap();
    let mut stored = MemoryBlocks::default();
    let parsed: Vec<_> =
        blocks.iter().map(|bytes| Block::parse(bytes, network.format()).unwrap()).collect();
    archive
        .initialize(&BlockAt::new(Height::GENESIS, &parsed[0]), stored.push(&blocks[0]))
        .unwrap();
    let orphan = archive.set_header(parsed[7].header());
    assert!(matches!(orphan, Err(ArchiveError::UnknownParent { .. })));
    let mut set = |block: &Block<'_>| archive.set_header(block.header()).unwrap();
    let links: Vec<_> = parsed.iter().map(&mut set).collect();
    assert!(parsed.iter().map(&mut set).eq(links.iter().copied()), "known ones keep their rows");
    archive.set_chain(Chain::Candidate, 1, &links[1..]).unwrap();
    let confirm = archive.set_chain(Chain::Confirmed, 1, &links[1..2]);
    assert!(matches!(confirm, Err(ArchiveError::NotArchived { .. })));
    let gap = archive.set_chain(Chain::Confirmed, 1, &links[2..3]);
    assert!(matches!(gap, Err(ArchiveError::NotNext { .. })));
    for height in [5_u32, 3, 1, 2] {
        let index = height as usize;
        let block = BlockAt::new(Height::new(height), &parsed[index]);
        archive.set_block(&block, stored.push(&blocks[index])).unwrap();
        archive.set_block_states(&[(links[index], BlockState::Valid)]).unwrap();
    }
    let now = archive.now();
    let missing = (1..8).filter(|index| now.block(links[*index]).unwrap().is_none());
    assert_eq!(missing.collect::<Vec<_>>(), [4, 6, 7]);
    assert_eq!(now.fork_from(Chain::Candidate, links[7]).unwrap().1, []);
    archive.set_chain(Chain::Confirmed, 1, &links[1..4]).unwrap();
    let (fork, above) = archive.now().fork_from(Chain::Confirmed, links[7]).unwrap();
    assert_eq!((fork, above.as_slice()), (Some(Height::new(3)), &links[4..8]));
    let mut unknown = blocks[1].clone();
    unknown[68] ^= 1;
    let unknown = Block::parse(&unknown, network.format()).unwrap();
    let unknown = archive.set_block(&BlockAt::new(Height::new(1), &unknown), BlockNumber::new(0));
    assert!(matches!(unknown, Err(ArchiveError::UnknownHeader { .. })));
}

/// A store is refused when it was made for something else, and a missing index is said.
fn other_stores<D: Disk>(disk: D) {
    let config = ArchiveConfig { network: Network::Signet, indexes: Indexes::default() };
    let mut archive = Archive::open(disk.open(), config).unwrap();
    archive.checkpoint(0).unwrap();
    let view = View::new(archive.snapshot(), MemoryBlocks::default());
    let pushed = view.pushed(PushdataHash::of(b""), TxLink::new(0), 1);
    assert!(matches!(pushed, Err(ArchiveError::NoIndex { index: "pushdata" })));
    assert!(matches!(archive.set_filters(&[]), Err(ArchiveError::NoIndex { .. })));
    assert!(view.to_header(BlockHash::ZERO).unwrap().is_none());
    drop(archive);
    let other = ArchiveConfig { network: Network::Mainnet, ..config };
    let error = Archive::open(disk.open(), other).err().unwrap();
    assert!(error.to_string().contains("signet"), "{error}");
    let indexes = Indexes { pushdata: Some(PushdataRule::Conduit), filters: false };
    let added = Archive::open(disk.open(), ArchiveConfig { indexes, ..config });
    assert_eq!(added.is_ok(), <D::Backend as Backend>::ADDS_PUSHDATA);
    drop(added);
    assert!(Archive::open(disk.open(), config).is_ok());
}

on_every_back_end!(
    pruned_blocks_say_so,
    over_the_block_store,
    below_the_base,
    snapshots_do_not_move,
    readers_beside_the_writer,
    states,
    headers_first,
    other_stores
);
