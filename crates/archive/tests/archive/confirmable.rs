//! The archive as a view of unspent outputs: the contract of consensus, and the rules over real
//! chains.

use std::fmt::Debug;

use varve_archive::contract::Disk;
use varve_archive::{
    Archive, ArchiveConfig, BlockCoins, Chain, Indexes, MemoryBlocks, Output, View,
};
use varve_consensus::contract::draft::{BlockDraft, TxDraft};
use varve_consensus::contract::{SetUnderTest, check};
use varve_consensus::{BlockAt, Params, PrevoutError, SpendError, UnspentOutputsView};
use varve_types::{Block, BlockHash, Height, Network, Outpoint};

use crate::back_ends::on_every_back_end;
use crate::load;
use crate::rig::Rig;

/// An archive whose confirmed chain is the set's branch.
struct Set<D: Disk> {
    archive: Archive<D::Backend>,
    blocks: MemoryBlocks,
}

impl<D: Disk> Set<D> {
    fn new(disk: &D) -> Self {
        let config = ArchiveConfig { network: Network::Regtest, indexes: Indexes::default() };
        let archive = Archive::open(disk.open(), config).unwrap();
        Self { archive, blocks: MemoryBlocks::default() }
    }

    fn coins(&self, block: &BlockAt<'_>) -> BlockCoins {
        let view = View::new(self.archive.snapshot(), &self.blocks);
        let parent = view.to_header(block.block().header().previous()).unwrap();
        BlockCoins::load(&view, parent, block).unwrap()
    }
}

impl<D: Disk> SetUnderTest for Set<D> {
    fn connect(&mut self, block: &BlockAt<'_>) -> Result<(), PrevoutError> {
        use varve_consensus::CheckError;
        self.coins(block).query_prevouts_unspent(block).map_err(|error| match error {
            CheckError::Invalid(reason) => reason,
            CheckError::View(never) => match never {},
        })?;
        let number = self.blocks.push(block.block().bytes());
        self.archive.set_header(block.block().header()).unwrap();
        let link = self.archive.set_block(block, number).unwrap();
        self.archive.set_chain(Chain::Confirmed, block.height().to_u32(), &[link]).unwrap();
        Ok(())
    }

    fn disconnect(&mut self, block: &BlockAt<'_>) {
        let (height, top) = self.archive.now().top(Chain::Confirmed).unwrap();
        assert_eq!(self.archive.now().header(top).unwrap().hash, block.hash());
        self.archive.set_chain(Chain::Confirmed, height.to_u32(), &[]).unwrap();
    }

    fn view(&self, block: &BlockAt<'_>) -> impl UnspentOutputsView<Error: Debug> {
        self.coins(block)
    }
}

fn contract_of_consensus<D: Disk + Default>(_: D) {
    check(|| Set::new(&D::default()));
}

/// Every block of Core's chain is confirmable on its own branch, whichever branch is confirmed.
fn core31_holds<D: Disk>(disk: D) {
    let Some(blocks) = load::core31() else { return };
    let mut rig = Rig::new(Network::Regtest, disk);
    rig.add_all(&blocks);
    let params = Params::new(Network::Regtest);
    let view = rig.view();
    let mut stale = 0;
    for block in &rig.model.blocks {
        let link = view.to_header(block.hash).unwrap().unwrap();
        let verdict = view.block_confirmable(&params, link).unwrap().unwrap();
        let spending = verdict.unwrap_or_else(|error| panic!("{}: {error}", block.hash));
        let prevouts = view.block_prevouts(link).unwrap().unwrap();
        let spent: u64 = prevouts.iter().flatten().map(|output| output.value.to_sat()).sum();
        let parsed = Block::parse(&block.bytes, Network::Regtest.format()).unwrap();
        let made = parsed.txs().iter().skip(1).flat_map(|tx| tx.outputs());
        let made: u64 = made.map(|output| output.value.to_sat()).sum();
        assert_eq!(spending.fees.to_sat(), spent - made);
        let is_confirmed = |out: &Option<Output>| out.as_ref().is_some_and(|out| out.tx.confirmed);
        assert!(prevouts.iter().all(is_confirmed) || !rig.model.is_active(&block.hash));
        stale += usize::from(!rig.model.is_active(&block.hash));
    }
    assert!(stale > 5);
}

/// What is missing, spent, or immature is refused with its reason.
fn refusals<D: Disk>(disk: D) {
    let mut rig = Rig::new(Network::Regtest, disk);
    let genesis = Network::Regtest.genesis_block();
    rig.add(&genesis);
    let mut previous = Network::Regtest.genesis_hash();
    let mut coinbases = Vec::new();
    let mut add = |rig: &mut Rig<D>, txs: Vec<TxDraft>| {
        let height = Height::new(u32::try_from(rig.model.active.len()).unwrap());
        let coinbase = TxDraft::coinbase(height, 0);
        coinbases.push(coinbase.txid());
        let draft = BlockDraft::new([coinbase].into_iter().chain(txs).collect());
        let bytes = BlockDraft { previous, ..draft }.bytes();
        previous = Block::parse(&bytes, Network::Regtest.format()).unwrap().hash();
        (rig.add(&bytes), coinbases.clone())
    };
    let params = Params { coinbase_maturity: 3, ..Params::new(Network::Regtest) };
    let verdict =
        |rig: &Rig<D>, link| rig.view().block_confirmable(&params, link).unwrap().unwrap();
    for _ in 0..4 {
        let (link, _) = add(&mut rig, Vec::new());
        verdict(&rig, link).unwrap();
    }
    let (link, made) = add(&mut rig, vec![]);
    verdict(&rig, link).unwrap();
    let spend = |index: usize| {
        let mut tx = TxDraft::spending(&[Outpoint::new(made[index], 0)], 1);
        tx.outputs[0].value = 0;
        tx
    };
    let (link, _) = add(&mut rig, vec![spend(4)]);
    assert!(matches!(verdict(&rig, link), Err(SpendError::ImmatureCoinbase { .. })));
    let (link, _) = add(&mut rig, vec![spend(0)]);
    verdict(&rig, link).unwrap();
    // Another transaction, or it would be refused for being made twice.
    let (link, _) = add(&mut rig, vec![TxDraft { lock_time: 1, ..spend(0) }]);
    let error = verdict(&rig, link).unwrap_err();
    let SpendError::Prevout(PrevoutError::Missing { spent_by, .. }) = error else {
        panic!("{error}");
    };
    assert_eq!(spent_by, Some(spend(0).txid()), "the error names who spent it");
    let missing = TxDraft::spending(&[Outpoint::new(made[1], 9)], 1);
    let (link, _) = add(&mut rig, vec![missing]);
    assert!(matches!(verdict(&rig, link), Err(SpendError::Prevout(PrevoutError::Missing { .. }))));
}

/// BIP30: a coinbase that is made twice has two confirmed rows; the older coin is lost, and comes
/// back when the younger block goes.
fn repeated_coinbase<D: Disk>(disk: D) {
    let mut rig = Rig::new(Network::Regtest, disk);
    rig.add(&Network::Regtest.genesis_block());
    let coinbase = TxDraft::coinbase(Height::new(1), 50);
    let again = |previous: BlockHash, txs: Vec<TxDraft>| {
        BlockDraft { previous, ..BlockDraft::new(txs) }.bytes()
    };
    let hash = |bytes: &[u8]| Block::parse(bytes, Network::Regtest.format()).unwrap().hash();
    let one = again(Network::Regtest.genesis_hash(), vec![coinbase.clone()]);
    let two = again(hash(&one), vec![TxDraft::coinbase(Height::new(2), 50)]);
    let three = again(hash(&two), vec![coinbase.clone()]);
    for block in [&one, &two, &three] {
        rig.add(block);
    }
    rig.check();
    let txid = coinbase.txid();
    let heights = |rig: &Rig<D>| -> Vec<_> {
        let places = rig.view().txs(txid).unwrap();
        places.into_iter().map(|place| (place.height.to_u32(), place.confirmed)).collect()
    };
    assert_eq!(heights(&rig), [(3, true), (1, true)]);
    assert_eq!(rig.view().to_tx(txid).unwrap().unwrap().height, Height::new(3));
    let point = Outpoint::new(txid, 0);
    rig.model.activate(hash(&two));
    rig.follow();
    assert_eq!(heights(&rig), [(3, false), (1, true)]);
    assert_eq!(rig.view().to_tx(txid).unwrap().unwrap().height, Height::new(1));
    assert!(rig.view().output(point).unwrap().unwrap().tx.confirmed);
}

/// A coinbase that was spent and is made again is another coin: the old spender does not count.
fn made_again_after_spending<D: Disk>(disk: D) {
    let mut rig = Rig::new(Network::Regtest, disk);
    rig.add(&Network::Regtest.genesis_block());
    let coinbase = TxDraft::coinbase(Height::new(1), 0);
    let point = Outpoint::new(coinbase.txid(), 0);
    let mut previous = Network::Regtest.genesis_hash();
    let mut add = |rig: &mut Rig<D>, txs: Vec<TxDraft>| {
        let bytes = BlockDraft { previous, ..BlockDraft::new(txs) }.bytes();
        previous = Block::parse(&bytes, Network::Regtest.format()).unwrap().hash();
        rig.add(&bytes)
    };
    let spend = |height: u32| {
        let mut tx = TxDraft::spending(&[point], 1);
        (tx.outputs[0].value, tx.lock_time) = (0, height);
        vec![TxDraft::coinbase(Height::new(height), 0), tx]
    };
    let links = [
        add(&mut rig, vec![coinbase.clone()]),
        add(&mut rig, spend(2)),
        add(&mut rig, vec![coinbase.clone()]),
        add(&mut rig, spend(4)),
    ];
    rig.check();
    let params = Params { coinbase_maturity: 1, ..Params::new(Network::Regtest) };
    for link in links {
        rig.view().block_confirmable(&params, link).unwrap().unwrap().unwrap();
    }
    assert_eq!(rig.view().spenders(point).unwrap().len(), 2);
}

on_every_back_end!(
    contract_of_consensus,
    core31_holds,
    refusals,
    repeated_coinbase,
    made_again_after_spending
);
