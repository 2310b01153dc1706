//! The same blocks through records and through the oracle.

mod crash;

use std::collections::HashMap;

use varve_consensus::contract::draft::BlockDraft;
use varve_consensus::contract::{SetUnderTest, check, check_bsv};
use varve_consensus::{Ancestor, MemorySet, Params, SpendError, Undo, check_spends};
use varve_sim::{Chain, Config, Profile};
use varve_types::{Block, BlockHash, Height};

use super::*;
use crate::blob::{Blobs, Fanout, ObjectBucket};
use crate::fixture::{store_with, with_engines};
use crate::pruner::{PruneAt, prune};
use crate::record::BlockId;
use crate::settings::Settings;

fn new_store(engine: std::sync::Arc<dyn crate::Engine>, settings: Settings) -> Store {
    store_with(engine, Blobs::new(ObjectBucket::memory(), Fanout::None), settings)
}

/// A store that follows blocks, for the suite of the contract.
struct Records {
    store: Store,
    network: Network,
    undo: Vec<(BlockId, RecordsUndo)>,
}

impl SetUnderTest for Records {
    fn connect(&mut self, block: &BlockAt<'_>) -> Result<(), PrevoutError> {
        let id = BlockId(u32::try_from(self.undo.len()).unwrap());
        match connect(&self.store, self.network, block, id) {
            Ok(undo) => {
                self.undo.push((id, undo));
                Ok(())
            }
            Err(ConnectError::Prevout(error)) => Err(error),
            Err(error) => panic!("{error}"),
        }
    }

    fn disconnect(&mut self, block: &BlockAt<'_>) {
        let (id, undo) = self.undo.pop().unwrap();
        disconnect(&self.store, block, id, &undo).unwrap();
    }

    fn view(&self, block: &BlockAt<'_>) -> impl UnspentOutputsView<Error: std::fmt::Debug> {
        RecordsView::load(&self.store, self.network, block).unwrap()
    }
}

#[test]
fn keeps_the_contract() {
    with_engines(|new| {
        let records = |network: Network| {
            // The blocks of the suite spend young coinbases.
            let settings = Settings { coinbase_maturity: 0, ..Settings::new(network) };
            Records { store: new_store(new(), settings), network, undo: Vec::new() }
        };
        check(|| records(Network::Regtest));
        for height in [1, 9_999, 10_000] {
            check_bsv(records(Network::BsvRegtest), Height::new(height));
        }
    });
}

/// Both sets, with all they need to go back.
struct Twins {
    params: Params,
    store: Store,
    oracle: MemorySet,
    /// The connected blocks, genesis first.
    chain: Vec<Connected>,
    blocks: HashMap<BlockHash, (u32, Vec<u8>)>,
    verdicts: usize,
}

struct Connected {
    ancestor: Ancestor,
    bytes: Vec<u8>,
    id: BlockId,
    undo: Option<(RecordsUndo, Undo)>,
}

impl Twins {
    fn new(network: Network, engine: std::sync::Arc<dyn crate::Engine>) -> Self {
        Self {
            params: Params::new(network),
            store: new_store(engine, Settings { retention: 20, ..Settings::new(network) }),
            oracle: MemorySet::new(network),
            chain: Vec::new(),
            blocks: HashMap::new(),
            verdicts: 0,
        }
    }

    /// A block arrives. If it makes a longer branch, the chain goes there.
    fn arrive(&mut self, bytes: Vec<u8>) {
        let (hash, previous) = {
            let block = Block::parse(&bytes, self.params.network.format()).unwrap();
            (block.hash(), block.header().previous())
        };
        let height = self.blocks.get(&previous).map_or(0, |(height, _)| height + 1);
        self.blocks.insert(hash, (height, bytes.clone()));
        if (height as usize) < self.chain.len() {
            return;
        }
        let mut branch = vec![bytes];
        let mut below = previous;
        while self.chain.last().is_some_and(|tip| tip.ancestor.hash != below) {
            let (height, bytes) = self.blocks[&below].clone();
            if self.chain.get(height as usize).is_some_and(|found| found.ancestor.hash == below) {
                self.disconnect();
                continue;
            }
            let block = Block::parse(&bytes, self.params.network.format()).unwrap();
            below = block.header().previous();
            branch.push(bytes);
        }
        branch.into_iter().rev().for_each(|bytes| self.connect(bytes));
    }

    fn connect(&mut self, bytes: Vec<u8>) {
        let height = Height::new(u32::try_from(self.chain.len()).unwrap());
        let block = Block::parse(&bytes, self.params.network.format()).unwrap();
        let at = BlockAt::new(height, &block);
        // Simulated blocks of BSV have more signature operations than its rules allow this low.
        let verdict = self.verdict(&at);
        let many = matches!(verdict, Some(SpendError::Sigops { .. }));
        assert!(verdict.is_none() || (many && self.params.network == Network::BsvRegtest));
        let id = BlockId(u32::try_from(self.blocks.len()).unwrap());
        let network = self.params.network;
        let undo = connect(&self.store, network, &at, id).unwrap();
        let undo = Some((undo, self.oracle.connect(&at).unwrap()));
        let ancestor = Ancestor::from(block.header());
        self.chain.push(Connected { ancestor, bytes: bytes.clone(), id, undo });
        if height > Height::GENESIS {
            self.store.set_block_height(height).unwrap();
        }
    }

    fn disconnect(&mut self) {
        let height = Height::new(u32::try_from(self.chain.len() - 1).unwrap());
        let tip = self.chain.pop().unwrap();
        let block = Block::parse(&tip.bytes, self.params.network.format()).unwrap();
        let at = BlockAt::new(height, &block);
        let (records, oracle) = tip.undo.unwrap();
        disconnect(&self.store, &at, tip.id, &records).unwrap();
        self.oracle.disconnect(&at, oracle);
    }

    /// What both say of a block, which must be the same; `None` for "valid".
    fn verdict(&mut self, block: &BlockAt<'_>) -> Option<SpendError> {
        self.verdicts += 1;
        let below: Vec<Ancestor> = self.chain.iter().map(|found| found.ancestor).collect();
        let view = RecordsView::load(&self.store, self.params.network, block).unwrap();
        let records = check_spends(&self.params, block, &below, &view);
        let oracle = check_spends(&self.params, block, &below, &self.oracle);
        match (records, oracle) {
            (Ok(records), Ok(oracle)) => {
                assert_eq!(records, oracle);
                None
            }
            (Err(CheckError::Invalid(records)), Err(CheckError::Invalid(oracle))) => {
                assert_eq!(without_spender(&records), without_spender(&oracle));
                Some(records)
            }
            (records, oracle) => panic!("{records:?} and {oracle:?}"),
        }
    }

    /// A block made of the next good one that breaks a rule: both refuse it for the same reason,
    /// and nothing changes.
    fn refuse(&mut self, bytes: &[u8], spoil: impl FnOnce(&mut BlockDraft) -> bool) {
        let network = self.params.network;
        let mut draft = BlockDraft::from(&Block::parse(bytes, network.format()).unwrap());
        if !spoil(&mut draft) {
            return;
        }
        let bytes = draft.bytes();
        let block = Block::parse(&bytes, network.format()).unwrap();
        let height = Height::new(u32::try_from(self.chain.len()).unwrap());
        let at = BlockAt::new(height, &block);
        let verdict = self.verdict(&at);
        assert!(verdict.is_some(), "the block is spoiled");
        if let Some(SpendError::Prevout(_)) = verdict {
            let refused = connect(&self.store, network, &at, BlockId(u32::MAX));
            assert!(matches!(refused, Err(ConnectError::Prevout(_))));
            assert!(self.oracle.connect(&at).is_err());
        }
    }

    fn assert_same_set(&self) {
        let records = coins(&self.store, self.params.network).unwrap();
        assert_eq!(records.len(), self.oracle.len());
        for (outpoint, coin) in self.oracle.iter() {
            assert_eq!(records.get(outpoint).map(OwnedCoin::as_coin), Some(coin), "{outpoint}");
        }
    }

    /// Pruning takes records, never coins.
    fn prune_and_compare(&self) {
        self.assert_same_set();
        let height = self.store.block_state().height;
        let at = PruneAt { height, persisted: None, assembly_running: true };
        let report = prune(&self.store, at).unwrap();
        assert_eq!(report.kept, []);
        self.assert_same_set();
    }
}

/// The oracle remembers spenders of records that may be gone here.
fn without_spender(error: &SpendError) -> SpendError {
    match error {
        SpendError::Prevout(PrevoutError::Missing { outpoint, spender, .. }) => {
            let (outpoint, spender) = (*outpoint, *spender);
            SpendError::Prevout(PrevoutError::Missing { outpoint, spender, spent_by: None })
        }
        error => error.clone(),
    }
}

fn spoil_everything(twins: &mut Twins, bytes: &[u8]) {
    twins.refuse(bytes, |draft| {
        let Some(tx) = draft.txs.get(1).cloned() else { return false };
        draft.txs.push(tx);
        true
    });
    twins.refuse(bytes, |draft| {
        let Some(tx) = draft.txs.last_mut().filter(|tx| !tx.inputs.is_empty()) else {
            return false;
        };
        tx.inputs[0].outpoint = Outpoint::new(Txid::from_bytes([9; 32]), 3);
        draft.txs.len() > 1
    });
    twins.refuse(bytes, |draft| {
        // The first transaction that spends another of the block comes before it.
        let place = (1..draft.txs.len()).find(|place| {
            let inputs = &draft.txs[*place].inputs;
            let below: Vec<Txid> = draft.txs[1..*place].iter().map(|tx| tx.txid()).collect();
            inputs.iter().any(|input| below.contains(&input.outpoint.txid))
        });
        if let Some(place) = place {
            let tx = draft.txs.remove(place);
            draft.txs.insert(1, tx);
        }
        place.is_some()
    });
    twins.refuse(bytes, |draft| {
        let Some(output) = draft.txs.get_mut(1).and_then(|tx| tx.outputs.first_mut()) else {
            return false;
        };
        output.value += 100_000_000_000;
        // What spends it later in the block would not find it; leave the block short.
        draft.txs.truncate(2);
        true
    });
}

#[test]
fn simulated_chains_with_reorgs_and_bad_blocks_give_the_same_set() {
    with_engines(|new| {
        for (profile, seed) in [(Profile::Dense, 1), (Profile::Mainnet, 2), (Profile::Bsv, 3)] {
            let config = Config {
                reorg_depth: Some(6),
                transactions: Some(12),
                coins: Some(600),
                mempool: 0,
                signed_percent: 100,
                ..Config::new(profile, 170, seed)
            };
            let mut twins = Twins::new(config.network(), new());
            let mut reorgs = 0;
            for block in Chain::new(&config).unwrap() {
                let spoils = block.height > 110 && block.height % 7 == 0;
                if spoils && block.height as usize == twins.chain.len() {
                    spoil_everything(&mut twins, &block.bytes);
                }
                reorgs += usize::from(block.stale);
                twins.arrive(block.bytes);
            }
            assert!(reorgs > 0 && twins.chain.len() == 171);
            assert!(twins.verdicts > 180, "{}", twins.verdicts);
            twins.prune_and_compare();
        }
    });
}

#[test]
fn real_chains_give_the_same_set() {
    let genesis = || Network::Regtest.genesis_block();
    let chains = [
        (Network::Regtest, varve_testdata::chains::core31()),
        (Network::Regtest, varve_testdata::chains::kernel(genesis())),
        (Network::Signet, varve_testdata::chains::signet()),
        (Network::Mainnet, varve_testdata::chains::mainnet()),
    ];
    with_engines(|new| {
        for (network, blocks) in &chains {
            let Some(blocks) = blocks else { continue };
            let mut twins = Twins::new(*network, new());
            blocks.iter().for_each(|bytes| twins.arrive(bytes.clone()));
            assert!(twins.chain.len() > 100);
            twins.prune_and_compare();
        }
    });
}
