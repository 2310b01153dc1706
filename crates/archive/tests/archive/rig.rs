//! An archive beside the model, and the comparison of the two.

use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroUsize;

use varve_archive::contract::Disk;
use varve_archive::{
    Archive, ArchiveConfig, BlockSource, Chain, HeaderLink, Indexes, MemoryBlocks, Tables, TxLink,
    View,
};
use varve_consensus::BlockAt;
use varve_types::pushdata::PushdataRule;
use varve_types::{Amount, Block, BlockHash, Height, Network, Outpoint, PushdataHash};

use crate::model::Model;

/// Threads that make rows again.
pub(crate) const THREADS: NonZeroUsize = NonZeroUsize::new(2).unwrap();

/// Everything an archive can keep.
pub(crate) const ALL: Indexes = Indexes { pushdata: Some(RULE), filters: true };

/// The rule by which pushed items are indexed.
pub(crate) const RULE: PushdataRule = PushdataRule::Documented;

/// An archive, the bytes of its blocks, and the model of both.
pub(crate) struct Rig<D: Disk> {
    pub(crate) disk: D,
    pub(crate) archive: Option<Archive<D::Backend>>,
    pub(crate) blocks: MemoryBlocks,
    pub(crate) model: Model,
}

impl<D: Disk> Rig<D> {
    pub(crate) fn new(network: Network, disk: D) -> Self {
        let (blocks, model) = (MemoryBlocks::default(), Model::new(network));
        let mut rig = Self { disk, archive: None, blocks, model };
        rig.reopen();
        rig
    }

    /// Opens the archive as its last checkpoint left it.
    pub(crate) fn reopen(&mut self) {
        let config = ArchiveConfig { network: self.model.network, indexes: ALL };
        drop(self.archive.take());
        let mut archive = Archive::open(self.disk.open(), config).unwrap();
        archive.catch_up(&self.blocks, THREADS, &mut |_, _| {}).unwrap();
        self.archive = Some(archive);
    }

    pub(crate) fn archive(&mut self) -> &mut Archive<D::Backend> {
        self.archive.as_mut().unwrap()
    }

    pub(crate) fn view(
        &self,
    ) -> View<<D::Backend as varve_archive::Backend>::Tables, &MemoryBlocks> {
        View::new(self.archive.as_ref().unwrap().snapshot(), &self.blocks)
    }

    /// Takes blocks in whatever order they come.
    pub(crate) fn add_all(&mut self, blocks: &[Vec<u8>]) {
        let mut waiting: Vec<&Vec<u8>> = blocks.iter().collect();
        while !waiting.is_empty() {
            let before = waiting.len();
            waiting.retain(|bytes| {
                let block = Block::parse(bytes, self.model.network.format()).unwrap();
                let previous = block.header().previous();
                let ready = previous == BlockHash::ZERO || self.model.knows(&previous);
                if ready && !self.model.knows(&block.hash()) {
                    self.add(bytes);
                }
                !ready
            });
            assert!(waiting.len() < before, "some block has no parent");
        }
    }

    /// Takes a block whose parent is known, and moves both chains when it has the most work.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> HeaderLink {
        let changed = self.model.add(bytes);
        let number = self.blocks.push(bytes);
        let link = self.store(bytes, number);
        if changed {
            self.follow();
        }
        link
    }

    /// Archives a block without moving a chain.
    pub(crate) fn store(&mut self, bytes: &[u8], number: varve_archive::BlockNumber) -> HeaderLink {
        let format = self.model.network.format();
        let block = Block::parse(bytes, format).unwrap();
        let height = Height::new(self.model.get(&block.hash()).height);
        let archive = self.archive();
        archive.set_header(block.header()).unwrap();
        archive.set_block(&BlockAt::new(height, &block), number).unwrap()
    }

    /// Moves both chains to the model's best branch.
    pub(crate) fn follow(&mut self) {
        let tip = *self.model.active.last().unwrap();
        let archive = self.archive();
        let link = archive.now().to_header(tip).unwrap().unwrap();
        for chain in [Chain::Candidate, Chain::Confirmed] {
            let (fork, links) = archive.now().fork_from(chain, link).unwrap();
            let keep = fork.map_or(0, |fork| fork.to_u32() + 1);
            archive.set_chain(chain, keep, &links).unwrap();
        }
    }

    /// Makes all filters of the best branch.
    pub(crate) fn make_filters(&mut self) {
        for height in 0..self.model.active.len() {
            let height = Height::new(u32::try_from(height).unwrap());
            let view = self.view();
            let link = view.to_confirmed(height).unwrap();
            let row = view.compute_filter(link).unwrap().unwrap();
            drop(view);
            self.archive().set_filters(&[(link, row)]).unwrap();
        }
    }

    /// Asks for everything and compares it with a plain walk.
    pub(crate) fn check(&self) {
        check(&self.view(), &self.model);
    }
}

/// Asks a view for everything and compares it with a plain walk.
pub(crate) fn check<T: Tables, S: BlockSource>(view: &View<T, S>, model: &Model) {
    check_headers(view, model);
    check_txs(view, model);
    check_spends(view, model);
    if let Some(rule) = view.indexes().pushdata {
        check_pushes(view, model, rule);
    }
}

/// Every item that any block pushes, and one that none does, in pages of all sizes.
fn check_pushes<T: Tables, S: BlockSource>(view: &View<T, S>, model: &Model, rule: PushdataRule) {
    let pushes = model.pushes(rule);
    let nobody = (PushdataHash::of(b"nobody pushes this"), BTreeSet::new());
    for (number, (item, expected)) in (1..).zip(pushes.into_iter().chain([nobody])) {
        let (mut found, mut next) = (Vec::new(), Some(TxLink::new(0)));
        while let Some(from) = next {
            let page = view.pushed(item, from, number % 5 + 1).unwrap();
            assert!(page.next.is_none_or(|next| next > from && page.rows.len() > number % 5));
            found.extend(page.rows);
            next = page.next;
        }
        let rows: BTreeSet<_> = found
            .iter()
            .map(|row| {
                let block = view.header(row.tx.block).unwrap().hash;
                (block, row.tx.txid, row.index, row.flags)
            })
            .collect();
        assert_eq!((&rows, found.len()), (&expected, expected.len()), "{item}");
    }
}

fn check_headers<T: Tables, S: BlockSource>(view: &View<T, S>, model: &Model) {
    for block in &model.blocks {
        let link = view.to_header(block.hash).unwrap().expect("every header is known");
        let row = view.header(link).unwrap();
        assert_eq!(
            (row.hash, row.height.to_u32(), row.work),
            (block.hash, block.height, block.work)
        );
        assert_eq!(view.raw_header(link).unwrap()[..], block.bytes[..80]);
        assert_eq!(view.raw_block(link).unwrap().unwrap().as_ref(), block.bytes);
        assert_eq!(view.is_confirmed_block(link).unwrap(), model.is_active(&block.hash));
        let parent = row.parent.map(|parent| view.header(parent).unwrap().hash);
        assert_eq!(parent.unwrap_or(BlockHash::ZERO), block.previous);
    }
    let hashes = view.hashes_from(Chain::Confirmed, Height::GENESIS, u32::MAX / 2).unwrap();
    assert_eq!(hashes, model.active);
    assert!(view.to_header(BlockHash::from_bytes([9; 32])).unwrap().is_none());
}

fn check_txs<T: Tables, S: BlockSource>(view: &View<T, S>, model: &Model) {
    let (places, _) = model.walk();
    let hash = |link| view.header(link).unwrap().hash;
    for (txid, expected) in &places {
        let found = view.txs(*txid).unwrap();
        let blocks: BTreeSet<_> =
            found.iter().map(|place| (hash(place.block), place.position)).collect();
        assert_eq!((&blocks, found.len()), (expected, expected.len()), "{txid}");
        let confirmed = expected.iter().any(|(hash, _)| model.is_active(hash));
        assert_eq!(view.to_tx(*txid).unwrap().unwrap().confirmed, confirmed);
        for place in found {
            assert_eq!(place.confirmed, model.is_active(&hash(place.block)));
        }
    }
    for block in &model.blocks {
        let link = view.to_header(block.hash).unwrap().unwrap();
        let block = Block::parse(&block.bytes, model.network.format()).unwrap();
        assert_eq!(view.txids(link).unwrap(), Some(block.txids()));
        let rows = view.block_txs(link).unwrap().unwrap();
        let rows = (rows.start.to_u64()..rows.end.to_u64()).map(TxLink::new);
        for (link, tx) in rows.zip(block.txs()) {
            assert_eq!(view.raw_tx(link).unwrap().unwrap().as_ref(), tx.bytes());
        }
        let last = view.place(view.block_txs(link).unwrap().unwrap().start).unwrap().unwrap();
        let branch = view.tx_branch(&last).unwrap();
        assert_eq!(branch.root(last.txid.to_bytes()), Some(block.header().merkle_root()));
    }
}

fn check_spends<T: Tables, S: BlockSource>(view: &View<T, S>, model: &Model) {
    let (_, spenders) = model.walk();
    let hash = |link| view.header(link).unwrap().hash;
    let made = outputs(model);
    let mut branches: HashMap<BlockHash, BTreeSet<BlockHash>> = HashMap::new();
    for (point, (value, script)) in &made {
        let expected = spenders.get(point).cloned().unwrap_or_default();
        let found = view.spenders(*point).unwrap();
        let rows: BTreeSet<_> =
            found.iter().map(|s| (view.txid(&s.tx).unwrap(), s.vin, hash(s.tx.block))).collect();
        assert_eq!((&rows, found.len()), (&expected, expected.len()), "{point}");
        let txids: BTreeSet<_> = expected.iter().map(|(txid, ..)| *txid).collect();
        assert_eq!(view.get_spenders(*point).unwrap().len(), txids.len());
        let confirmed = expected.iter().filter(|(.., hash)| model.is_active(hash));
        let height = confirmed.map(|(.., hash)| model.get(hash).height).max();
        let answer = view.confirmed_spender(*point).unwrap();
        assert_eq!(answer.map(|spender| spender.tx.height.to_u32()), height, "{point}");
        for spender in found {
            let prevouts = view.tx_prevouts(spender.tx.link).unwrap();
            let prevout = prevouts[spender.vin as usize].as_ref().unwrap();
            assert_eq!((&prevout.value, &prevout.script), (value, script));
            assert_eq!(prevout.point(), *point);
            let tip = hash(spender.tx.block);
            let branch = branches.entry(tip);
            let branch = branch.or_insert_with(|| model.branch(tip).into_iter().collect());
            let from = hash(prevout.tx.block);
            assert!(branch.contains(&from), "the prevout is on the branch of its spender");
        }
    }
    let nobody = Outpoint::new(*made.keys().next().map(|point| &point.txid).unwrap(), 1 << 20);
    assert!(view.spenders(nobody).unwrap().is_empty());
}

/// Every output of all blocks.
fn outputs(model: &Model) -> HashMap<Outpoint, (Amount, Vec<u8>)> {
    let mut outputs = HashMap::new();
    for block in &model.blocks {
        let block = Block::parse(&block.bytes, model.network.format()).unwrap();
        for (txid, tx) in block.txids().into_iter().zip(block.txs()) {
            for (vout, output) in (0..).zip(tx.outputs()) {
                let made = (output.value, output.script.to_vec());
                outputs.insert(Outpoint::new(txid, vout), made);
            }
        }
    }
    outputs
}
