//! Searches that give every row there is: the bytes decide, and where they are pruned nothing is
//! said that may be wrong.

use varve_archive::contract::Disk;
use varve_archive::contract::random::Dice;
use varve_archive::{
    ArchiveError, Backend, BlockNumber, BlockRow, BlockState, Bounds, Chain, FilterRow, HeaderLink,
    HeaderRow, Mark, Match, MemoryBackend, MemoryDisk, MemoryTables, NewBlock, RowsOf, Saved,
    TableSize, Tables, TxLink, TxRow, TxState, Unindexed,
};
use varve_consensus::Params;
use varve_types::{Block, BlockHash, Height, Network, Outpoint, PushdataHash, Txid};

use crate::random::block_on;
use crate::rig::Rig;

type Result<T> = std::result::Result<T, varve_archive::BackendError>;

/// The tables in memory, whose searches give all rows for every key.
#[derive(Clone)]
struct Noisy(MemoryTables);

struct NoisyBackend(MemoryBackend);

#[derive(Default)]
struct NoisyDisk(MemoryDisk);

impl Disk for NoisyDisk {
    type Backend = NoisyBackend;

    fn open(&self) -> NoisyBackend {
        NoisyBackend(MemoryBackend::open(self.0.clone()))
    }
}

impl Noisy {
    /// All rows of each key, newest first.
    fn all(&self, keys: usize, out: &mut Vec<Match>) -> Result<()> {
        let mut count = 0;
        while self.0.txs(&[TxLink::new(count)], &mut Vec::new()).is_ok() {
            count += 1;
        }
        let rows = |key| (0..count).rev().map(move |number| (key, TxLink::new(number)));
        out.extend((0..keys).flat_map(rows));
        Ok(())
    }
}

impl Tables for Noisy {
    fn headers(&self, links: &[HeaderLink], out: &mut Vec<HeaderRow>) -> Result<()> {
        self.0.headers(links, out)
    }

    fn find_headers(&self, hashes: &[BlockHash], out: &mut Vec<Option<HeaderLink>>) -> Result<()> {
        self.0.find_headers(hashes, out)
    }

    fn blocks(&self, links: &[HeaderLink], out: &mut Vec<Option<BlockRow>>) -> Result<()> {
        self.0.blocks(links, out)
    }

    fn txs(&self, links: &[TxLink], out: &mut Vec<TxRow>) -> Result<()> {
        self.0.txs(links, out)
    }

    fn find_txs(&self, txids: &[Txid], out: &mut Vec<Match>) -> Result<()> {
        self.all(txids.len(), out)
    }

    fn find_spenders(&self, points: &[Outpoint], out: &mut Vec<Match>) -> Result<()> {
        self.all(points.len(), out)
    }

    fn find_pushes(
        &self,
        _: PushdataHash,
        from: TxLink,
        limit: usize,
        out: &mut Vec<TxLink>,
    ) -> Result<()> {
        let mut all = Vec::new();
        self.all(1, &mut all)?;
        let links = all.into_iter().rev().map(|(_, link)| link);
        out.extend(links.filter(|link| *link >= from).take(limit));
        Ok(())
    }

    fn filters(&self, links: &[HeaderLink], out: &mut Vec<Option<FilterRow>>) -> Result<()> {
        self.0.filters(links, out)
    }

    fn tx_states(&self, links: &[TxLink], out: &mut Vec<Option<TxState>>) -> Result<()> {
        self.0.tx_states(links, out)
    }
}

impl Backend for NoisyBackend {
    type Tables = Noisy;
    type Maker = <MemoryBackend as Backend>::Maker;

    const ADDS_PUSHDATA: bool = false;

    fn tables(&self) -> Noisy {
        Noisy(self.0.tables())
    }

    fn saved(&self) -> Result<Saved> {
        self.0.saved()
    }

    fn bounds(&self) -> Bounds {
        self.0.bounds()
    }

    fn verify(&self) -> Result<()> {
        self.0.verify()
    }

    fn append_headers(&mut self, rows: &[HeaderRow]) -> Result<HeaderLink> {
        self.0.append_headers(rows)
    }

    fn maker(&self) -> <MemoryBackend as Backend>::Maker {
        self.0.maker()
    }

    fn unindexed(&self, most: usize) -> Result<Unindexed> {
        self.0.unindexed(most)
    }

    fn index_block(&mut self, rows: RowsOf<MemoryBackend>) -> Result<()> {
        self.0.index_block(rows)
    }

    fn append_block(
        &mut self,
        block: &NewBlock<'_>,
        rows: RowsOf<MemoryBackend>,
    ) -> Result<BlockRow> {
        self.0.append_block(block, rows)
    }

    fn set_chain(&mut self, chain: Chain, keep: u32, links: &[HeaderLink]) -> Result<()> {
        self.0.set_chain(chain, keep, links)
    }

    fn set_block_states(&mut self, states: &[(HeaderLink, BlockState)]) -> Result<()> {
        self.0.set_block_states(states)
    }

    fn set_tx_states(&mut self, states: &[(TxLink, TxState)]) -> Result<()> {
        self.0.set_tx_states(states)
    }

    fn set_filters(&mut self, filters: &[(HeaderLink, FilterRow)]) -> Result<()> {
        self.0.set_filters(filters)
    }

    fn checkpoint(&mut self, mark: &Mark) -> Result<()> {
        self.0.checkpoint(mark)
    }

    fn rest(&mut self, mark: &Mark) -> Result<()> {
        self.0.rest(mark)
    }

    fn sizes(&self) -> Result<Vec<TableSize>> {
        self.0.sizes()
    }
}

/// Forty blocks with branches.
fn chain() -> Rig<NoisyDisk> {
    let mut rig = Rig::new(Network::Regtest, NoisyDisk::default());
    let mut dice = Dice(3);
    rig.add(&Network::Regtest.genesis_block());
    for number in 0..40 {
        let last = u32::try_from(rig.model.blocks.len()).unwrap();
        let parent = (last - 1 - dice.roll(last.min(3))) as usize;
        let bytes = block_on(&rig.model, parent, &mut dice, number);
        let hash = Block::parse(&bytes, Network::Regtest.format()).unwrap().hash();
        if !rig.model.knows(&hash) {
            rig.add(&bytes);
        }
    }
    rig
}

#[test]
fn every_answer_stays_the_same() {
    let mut rig = chain();
    rig.check();
    rig.make_filters();
    let params = Params { coinbase_maturity: 1, ..Params::new(Network::Regtest) };
    let view = rig.view();
    for hash in &rig.model.active {
        let link = view.to_header(*hash).unwrap().unwrap();
        let txids = view.txids(link).unwrap().unwrap();
        let found = view.txs_in(link, &txids).unwrap();
        for (position, (txid, place)) in (0..).zip(txids.iter().zip(found)) {
            let place = place.unwrap();
            assert_eq!((place.txid, place.block, place.position), (*txid, link, position));
        }
        let points = view.block_points(link).unwrap().unwrap();
        let spenders = view.spenders_in(link, &points).unwrap();
        assert!(spenders.iter().all(|spender| spender.unwrap().tx.block == link));
        view.block_confirmable(&params, link).unwrap().unwrap().ok();
    }
}

/// One block is pruned. Rows that lie above it on the chain are found all the same; what may be in
/// it is pruned, never absent.
#[test]
fn what_may_be_in_a_pruned_block_is_pruned() {
    let mut rig = chain();
    let pruned = rig.model.active[rig.model.active.len() / 2];
    let number = rig.model.blocks.iter().position(|block| block.hash == pruned).unwrap();
    rig.blocks.prune(BlockNumber::new(u32::try_from(number).unwrap()));
    let height = rig.model.get(&pruned).height;
    let view = rig.view();
    let is_pruned = |error: ArchiveError| {
        assert!(matches!(error, ArchiveError::Pruned { height: at } if at.to_u32() == height));
    };
    let (places, _) = rig.model.walk();
    let (mut known, mut unknown) = (0, 0);
    for (txid, blocks) in places {
        let confirmed = blocks.iter().filter(|(hash, _)| rig.model.is_active(hash));
        let highest = confirmed.map(|(hash, _)| rig.model.get(hash).height).max();
        if highest.is_some_and(|highest| highest > height) {
            let place = view.to_tx(txid).unwrap().unwrap();
            assert_eq!((place.txid, Some(place.height.to_u32())), (txid, highest));
            known += 1;
        } else {
            is_pruned(view.to_tx(txid).unwrap_err());
            unknown += 1;
        }
        is_pruned(view.txs(txid).unwrap_err());
    }
    assert!(known > 5 && unknown > 5);
    is_pruned(view.to_tx(Txid::from_bytes([9; 32])).unwrap_err());
    is_pruned(view.to_tx(Txid::from_bytes([9; 32])).unwrap_err());
    is_pruned(view.confirmed_spender(Outpoint::new(Txid::from_bytes([9; 32]), 0)).unwrap_err());
    is_pruned(view.pushed(PushdataHash::of(b"?"), TxLink::new(0), 1).unwrap_err());
    // A branch that does not hold the block is not touched by it.
    let below = view.to_confirmed(Height::new(height - 1)).unwrap();
    let branch = view.branch(below).unwrap();
    assert_eq!(view.tx_on(&branch, Txid::from_bytes([9; 32])).unwrap(), None);
    let coinbase = view.txids(below).unwrap().unwrap()[0];
    assert_eq!(view.tx_on(&branch, coinbase).unwrap().unwrap().block, below);
    let point = Outpoint::new(coinbase, 0);
    assert_eq!(view.spender_on(&branch, Height::GENESIS, point).unwrap(), None);
}
