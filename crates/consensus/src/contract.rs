//! The contract of [`UnspentOutputsView`], as tests for its implementations.
//!
//! An engine wraps itself in [`SetUnderTest`] and calls [`check`] from a test. The blocks are made
//! by hand ([`draft`]); what they hold is plain enough to be followed on paper. Every case begins
//! with an empty set and a genesis block. The blocks are not valid in other ways: they have no
//! work, and coinbases are spent young.

#![expect(clippy::indexing_slicing, reason = "a test of a contract may panic")]

pub mod draft;

use std::convert::Infallible;
use std::fmt::Debug;
use std::ops::ControlFlow;

use varve_types::{Amount, Block, BlockHash, Height, Network, Outpoint, Txid};

use crate::block_at::BlockAt;
use crate::view::{CheckError, PrevoutError, UnspentOutputsView};
use draft::{BlockDraft, OutputDraft, TxDraft};

/// A set of unspent outputs whose view is to be tested.
pub trait SetUnderTest {
    /// Connects a block on top of the last one; a refused block changes nothing.
    fn connect(&mut self, block: &BlockAt<'_>) -> Result<(), PrevoutError>;

    /// Disconnects the block that was connected last.
    fn disconnect(&mut self, block: &BlockAt<'_>);

    /// The view of the set as it is now, for this block, which is not connected.
    fn view(&self, block: &BlockAt<'_>) -> impl UnspentOutputsView<Error: Debug>;
}

/// Runs every case on empty regtest sets that `new` makes. Blocks are linked and connected from
/// height 0 on, without gaps.
///
/// # Panics
///
/// When the set does not keep the contract.
pub fn check<S: SetUnderTest>(new: impl Fn() -> S) {
    let chain = || Chain::from_genesis(new());
    spends_come_in_block_order(chain());
    same_block_spends_work_in_order(chain());
    same_block_spends_fail_out_of_order(chain());
    two_spends_in_a_block_name_both(chain());
    a_spent_output_is_missing(chain());
    unspendable_outputs_never_enter(chain());
    the_genesis_coinbase_never_enters(chain());
    a_repeated_transaction_replaces(chain());
    disconnecting_brings_back(chain());
}

/// Checks what never enters a set of BSV's regtest: `set` is empty, and its next block is at
/// `next`, below the Genesis upgrade or above it.
///
/// # Panics
///
/// When the set does not keep the contract.
pub fn check_bsv<S: SetUnderTest>(set: S, next: Height) {
    let network = Network::BsvRegtest;
    let mut chain = Chain { network, set, next, hashes: vec![BlockHash::ZERO] };
    let upgraded = network.genesis_upgrade().is_some_and(|upgrade| next >= upgrade);
    let mut coinbase = TxDraft::coinbase(next, 1);
    coinbase.outputs.push(OutputDraft::with_script(vec![0x6a]));
    coinbase.outputs.push(OutputDraft::with_script(vec![0x00, 0x6a]));
    coinbase.outputs.push(OutputDraft::with_script(vec![0x51; 10_001]));
    chain.connect(&BlockDraft::new(vec![coinbase.clone()]));
    let present = [1, 2, 3].map(|vout| chain.has(Outpoint::new(coinbase.txid(), vout)));
    assert_eq!(present, [upgraded, false, upgraded], "at {next}");
}

/// A set with the blocks that it is made of.
struct Chain<S> {
    network: Network,
    set: S,
    /// The height of the next block, and the hashes of those below.
    next: Height,
    hashes: Vec<BlockHash>,
}

impl<S: SetUnderTest> Chain<S> {
    fn from_genesis(mut set: S) -> Self {
        let network = Network::Regtest;
        let genesis = network.genesis_block();
        let block = Block::parse(&genesis, network.format()).expect("a genesis block parses");
        set.connect(&BlockAt::new(Height::GENESIS, &block)).expect("genesis connects");
        Self { network, set, next: Height::new(1), hashes: vec![block.hash()] }
    }

    /// A block of these transactions.
    fn draft(&self, txs: impl IntoIterator<Item = TxDraft>) -> BlockDraft {
        let coinbase = TxDraft::coinbase(self.next, Amount::COIN.to_sat());
        BlockDraft::new([coinbase].into_iter().chain(txs).collect())
    }

    /// Runs a closure with a block above the last one.
    fn with<T>(&mut self, draft: &BlockDraft, run: impl FnOnce(&mut S, &BlockAt<'_>) -> T) -> T {
        let previous = *self.hashes.last().expect("there is a first block");
        let bytes = BlockDraft { previous, ..draft.clone() }.bytes();
        let block = Block::parse(&bytes, self.network.format()).expect("a draft parses");
        let block = BlockAt::new(self.next, &block);
        run(&mut self.set, &block)
    }

    /// Connects the block, which must succeed. Returns the txids.
    fn connect(&mut self, draft: &BlockDraft) -> Vec<Txid> {
        let (hash, txids) = self.with(draft, |set, block| {
            set.view(block).query_prevouts_unspent(block).expect("the view has every prevout");
            set.connect(block).expect("every prevout is there");
            (block.hash(), block.txids().to_vec())
        });
        self.next = self.next.checked_add(1).expect("a short chain");
        self.hashes.push(hash);
        txids
    }

    /// Disconnects the block, which was connected last.
    fn disconnect(&mut self, draft: &BlockDraft) {
        self.next = self.next.checked_sub(1).expect("a block was connected");
        self.hashes.pop();
        self.with(draft, |set, block| set.disconnect(block));
    }

    /// The view's error, which must be the same for every query.
    fn refusal(&mut self, draft: &BlockDraft) -> PrevoutError {
        self.with(draft, |set, block| {
            let by_query = verdict(set.view(block).query_prevouts_unspent(block).err());
            let view = set.view(block);
            let walk = view.for_each_spend(block, |_| ControlFlow::<Infallible>::Continue(()));
            let by_walk = verdict(walk.err());
            drop(view);
            assert_eq!(by_query, by_walk, "the query and the walk give the same reason");
            assert_eq!(set.connect(block), Err(by_query), "and connecting gives it too");
            by_query
        })
    }

    /// Whether the output can be spent now.
    fn has(&mut self, outpoint: Outpoint) -> bool {
        // Its coinbase is unique, so that the block does not make the output itself.
        let coinbase = TxDraft::coinbase(self.next, 0);
        let draft = BlockDraft::new(vec![coinbase, TxDraft::spending(&[outpoint], 1)]);
        self.with(&draft, |set, block| set.view(block).query_prevouts_unspent(block).is_ok())
    }
}

fn verdict<E: Debug>(error: Option<CheckError<PrevoutError, E>>) -> PrevoutError {
    match error {
        Some(CheckError::Invalid(error)) => error,
        other => panic!("the block must be refused, and the view says {other:?}"),
    }
}

fn spends_come_in_block_order<S: SetUnderTest>(mut chain: Chain<S>) {
    let first = chain.connect(&chain.draft([]));
    let split = TxDraft::spending(&[Outpoint::new(first[0], 0)], 3);
    let second = chain.connect(&chain.draft([split]));
    let at = |vout| Outpoint::new(second[1], vout);
    // Against the order of keys, so that an engine that sorts them must sort back.
    let spends = [vec![at(2)], vec![at(1), Outpoint::new(second[0], 0), at(0)]];
    let draft = chain.draft(spends.iter().map(|inputs| TxDraft::spending(inputs, 1)));
    chain.with(&draft, |set, block| {
        let view = set.view(block);
        let mut seen = Vec::new();
        let walk = view.for_each_spend(block, |spend| {
            let Outpoint { txid, vout } = spend.input.outpoint;
            let (tx, vin) = (spend.tx, spend.vin);
            assert_eq!(spend.input.outpoint, spends[tx - 1][vin]);
            assert_eq!(spend.coin.height, Height::new(2));
            assert_eq!(spend.coin.coinbase, txid == second[0]);
            let value = if spend.coin.coinbase { Amount::COIN.to_sat() } else { 1000 };
            assert_eq!(spend.coin.value.to_sat(), value);
            assert_eq!(spend.coin.script, OutputDraft::nth(vout as usize).script);
            seen.push((tx, vin));
            ControlFlow::<Infallible>::Continue(())
        });
        assert!(walk.is_ok());
        assert_eq!(seen, [(1, 0), (2, 0), (2, 1), (2, 2)]);
        let stopped = view.for_each_spend(block, |spend| match spend.tx {
            2 => ControlFlow::Break(spend.input.outpoint),
            _ => ControlFlow::Continue(()),
        });
        assert_eq!(stopped.expect("all are there"), ControlFlow::Break(at(1)));
    });
}

/// Hornet's query asked for outputs below the height of the block, and so refused every spend
/// within a block: a quarter of mainnet's.
fn same_block_spends_work_in_order<S: SetUnderTest>(mut chain: Chain<S>) {
    let first = chain.connect(&chain.draft([]));
    let one = TxDraft::spending(&[Outpoint::new(first[0], 0)], 2);
    let two = TxDraft::spending(&[Outpoint::new(one.txid(), 1)], 1);
    let draft = chain.draft([one.clone(), two.clone()]);
    chain.with(&draft, |set, block| {
        let view = set.view(block);
        let mut heights = Vec::new();
        let walk = view.for_each_spend(block, |spend| {
            heights.push(spend.coin.height.to_u32());
            ControlFlow::<Infallible>::Continue(())
        });
        assert!(walk.is_ok());
        assert_eq!(heights, [1, 2], "an output of the block has the height of the block");
    });
    chain.connect(&draft);
    assert!(chain.has(Outpoint::new(one.txid(), 0)));
    assert!(!chain.has(Outpoint::new(one.txid(), 1)), "made and spent within the block");
    assert!(chain.has(Outpoint::new(two.txid(), 0)));
}

fn same_block_spends_fail_out_of_order<S: SetUnderTest>(mut chain: Chain<S>) {
    let first = chain.connect(&chain.draft([]));
    let one = TxDraft::spending(&[Outpoint::new(first[0], 0)], 2);
    let outpoint = Outpoint::new(one.txid(), 1);
    let two = TxDraft::spending(&[outpoint], 1);
    let refusal = chain.refusal(&chain.draft([two.clone(), one]));
    let spender = two.txid();
    assert_eq!(refusal, PrevoutError::Missing { outpoint, spender, spent_by: None });
    assert!(chain.has(Outpoint::new(first[0], 0)), "a refused block changes nothing");
}

/// Hornet looked up each input by itself, and so let two transactions of a block spend one output.
fn two_spends_in_a_block_name_both<S: SetUnderTest>(mut chain: Chain<S>) {
    let coinbase = chain.connect(&chain.draft([]));
    let outpoint = Outpoint::new(coinbase[0], 0);
    let one = TxDraft::spending(&[outpoint], 1);
    let two = TxDraft::spending(&[outpoint], 2);
    let refusal = chain.refusal(&chain.draft([one.clone(), two.clone()]));
    let (first, second) = (one.txid(), two.txid());
    assert_eq!(refusal, PrevoutError::SpentTwice { outpoint, first, second });
    // The same for an output of the block itself.
    let outpoint = Outpoint::new(one.txid(), 0);
    let three = TxDraft::spending(&[outpoint], 1);
    let four = TxDraft::spending(&[outpoint], 2);
    let refusal = chain.refusal(&chain.draft([one, three.clone(), four.clone()]));
    let (first, second) = (three.txid(), four.txid());
    assert_eq!(refusal, PrevoutError::SpentTwice { outpoint, first, second });
}

fn a_spent_output_is_missing<S: SetUnderTest>(mut chain: Chain<S>) {
    let coinbase = chain.connect(&chain.draft([]));
    let outpoint = Outpoint::new(coinbase[0], 0);
    let before = TxDraft::spending(&[outpoint], 1);
    chain.connect(&chain.draft([before.clone()]));
    let again = TxDraft::spending(&[outpoint], 2);
    match chain.refusal(&chain.draft([again.clone()])) {
        PrevoutError::Missing { outpoint: missing, spender, spent_by } => {
            assert_eq!((missing, spender), (outpoint, again.txid()));
            assert!(spent_by.is_none_or(|txid| txid == before.txid()), "the right one or none");
        }
        other => panic!("it is missing, not {other:?}"),
    }
    // An output number that its transaction does not have, and a transaction that never was.
    for outpoint in [Outpoint::new(coinbase[0], 1), Outpoint::new(Txid::ZERO, 0)] {
        let spend = TxDraft::spending(&[outpoint], 1);
        let refusal = chain.refusal(&chain.draft([spend.clone()]));
        let spender = spend.txid();
        assert_eq!(refusal, PrevoutError::Missing { outpoint, spender, spent_by: None });
    }
}

/// Hornet kept `OP_RETURN` outputs, a sixth of all that are made now, for ever.
fn unspendable_outputs_never_enter<S: SetUnderTest>(mut chain: Chain<S>) {
    let coinbase = chain.connect(&chain.draft([]));
    let mut tx = TxDraft::spending(&[Outpoint::new(coinbase[0], 0)], 1);
    tx.outputs.push(OutputDraft::with_script(vec![0x6a]));
    tx.outputs.push(OutputDraft::with_script(vec![0x51; 10_001]));
    tx.outputs.push(OutputDraft::with_script(vec![0x51; 10_000]));
    let outpoint = Outpoint::new(tx.txid(), 1);
    let same_block = TxDraft::spending(&[outpoint], 1);
    let refusal = chain.refusal(&chain.draft([tx.clone(), same_block.clone()]));
    let spender = same_block.txid();
    assert_eq!(refusal, PrevoutError::Missing { outpoint, spender, spent_by: None });
    chain.connect(&chain.draft([tx.clone()]));
    let present = [0, 1, 2, 3].map(|vout| chain.has(Outpoint::new(tx.txid(), vout)));
    assert_eq!(present, [true, false, false, true]);
}

fn the_genesis_coinbase_never_enters<S: SetUnderTest>(mut chain: Chain<S>) {
    let genesis = chain.network.genesis_block();
    let block = Block::parse(&genesis, chain.network.format()).expect("a genesis block parses");
    let outpoint = Outpoint::new(block.txids()[0], 0);
    assert!(!chain.has(outpoint));
}

/// As the blocks 91842 and 91880 of mainnet did. Heights do not matter to a set.
fn a_repeated_transaction_replaces<S: SetUnderTest>(mut chain: Chain<S>) {
    let coinbase = TxDraft::coinbase(Height::new(7), 5);
    let draft = BlockDraft::new(vec![coinbase.clone()]);
    let outpoint = Outpoint::new(coinbase.txid(), 0);
    let repeated = |chain: &mut Chain<S>| {
        chain.with(&draft, |set, block| {
            set.view(block).find_repeated_output(block).expect("the set answers")
        })
    };
    assert_eq!(repeated(&mut chain), None);
    chain.connect(&draft);
    assert_eq!(repeated(&mut chain), Some(outpoint));
    assert_eq!(funding_height(&mut chain, outpoint), 1);
    chain.connect(&draft);
    assert_eq!(funding_height(&mut chain, outpoint), 2);
    chain.disconnect(&draft);
    assert_eq!(funding_height(&mut chain, outpoint), 1, "the replaced coin comes back");
}

fn funding_height<S: SetUnderTest>(chain: &mut Chain<S>, outpoint: Outpoint) -> u32 {
    let draft = chain.draft([TxDraft::spending(&[outpoint], 1)]);
    chain.with(&draft, |set, block| {
        let view = set.view(block);
        let walk = view.for_each_spend(block, |spend| ControlFlow::Break(spend.coin.height));
        match walk.expect("the coin is there") {
            ControlFlow::Break(height) => height.to_u32(),
            ControlFlow::Continue(()) => panic!("the block has a spend"),
        }
    })
}

fn disconnecting_brings_back<S: SetUnderTest>(mut chain: Chain<S>) {
    let coinbase = chain.connect(&chain.draft([]));
    let outpoint = Outpoint::new(coinbase[0], 0);
    let one = TxDraft::spending(&[outpoint], 2);
    let two = TxDraft::spending(&[Outpoint::new(one.txid(), 0)], 1);
    let draft = chain.draft([one.clone(), two.clone()]);
    chain.connect(&draft);
    chain.disconnect(&draft);
    assert!(chain.has(outpoint));
    for txid in [one.txid(), two.txid(), draft.txs[0].txid()] {
        assert!(!chain.has(Outpoint::new(txid, 0)), "{txid} is gone");
    }
    // A rival block spends the same coin at the same height.
    let rival = TxDraft::spending(&[outpoint], 3);
    chain.connect(&chain.draft([rival.clone()]));
    assert!(chain.has(Outpoint::new(rival.txid(), 2)));
    assert!(!chain.has(outpoint));
}
