//! Who checks what, with a verifier that waits for company.

use std::time::{Duration, Instant};

use varve_consensus::contract::draft::{BlockDraft, TxDraft};
use varve_consensus::{
    BlockAt, MemorySet, OwnedCoin, Params, ScriptFlags, ScriptVerifier, SpendingTx, VerifyError,
};
use varve_types::{Amount, Block, Format, Network, Outpoint, Txid};

use super::*;

/// Inputs of the one transaction: many chunks.
const INPUTS: u32 = 400;
/// Long enough for a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Counts the threads that verify at the same time.
#[derive(Default)]
struct Crowd {
    inside: AtomicUsize,
    most: AtomicUsize,
    verified: AtomicUsize,
    /// A thread waits inside until so many have been there together.
    wanted: usize,
}

struct Meeting(Arc<Crowd>);

impl ScriptVerifier for Meeting {
    type Prepared = Self;

    fn prepare(&self, _tx: &SpendingTx<'_>) -> Result<Self, VerifyError> {
        Ok(Self(Arc::clone(&self.0)))
    }
}

impl PreparedTx for Meeting {
    fn verify(&self, _input: usize, _flags: ScriptFlags) -> Result<(), VerifyError> {
        let crowd = &self.0;
        let inside = crowd.inside.fetch_add(1, Ordering::SeqCst) + 1;
        crowd.most.fetch_max(inside, Ordering::SeqCst);
        let start = Instant::now();
        while crowd.most.load(Ordering::SeqCst) < crowd.wanted && start.elapsed() < PATIENCE {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_micros(20));
        crowd.verified.fetch_add(1, Ordering::SeqCst);
        crowd.inside.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }
}

/// The checks of a block with one transaction of many inputs, and the block.
fn checks(crowd: &Arc<Crowd>) -> (Vec<u8>, Arc<ScriptChecks<Meeting>>) {
    let mut set = MemorySet::new(Network::Regtest);
    let outpoints: Vec<_> = (0..INPUTS).map(|vout| Outpoint::new(Txid::ZERO, vout)).collect();
    for outpoint in &outpoints {
        let value = Amount::COIN;
        let coin = OwnedCoin { height: Height::new(1), coinbase: false, value, script: vec![] };
        set.insert(*outpoint, coin);
    }
    let txs = vec![TxDraft::coinbase(Height::new(2), 0), TxDraft::spending(&outpoints, 1)];
    let bytes = BlockDraft::new(txs).bytes();
    let block = Block::parse(&bytes, Format::Segwit).unwrap();
    let block = BlockAt::new(Height::new(2), &block);
    let params = Params::new(Network::Regtest);
    let checks = ScriptChecks::new(&params, &block, &set, &Meeting(Arc::clone(crowd))).unwrap();
    (bytes, Arc::new(checks))
}

/// Checks a block by the board, which must then know a verdict.
fn run(board: &ScriptBoard<Meeting>, height: u32, crowd: &Arc<Crowd>) {
    let (bytes, checks) = checks(crowd);
    board.run(Height::new(height), &checks);
    let block = Block::parse(&bytes, Format::Segwit).unwrap();
    checks.verdict(&BlockAt::new(Height::new(2), &block)).unwrap();
    assert!(board.lock().find(&checks).is_none(), "it is off the board");
}

fn threads(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

#[test]
fn a_block_that_is_checked_alone_gets_all_threads() {
    for count in [1, 2, 4] {
        let crowd = Arc::new(Crowd { wanted: count, ..Crowd::default() });
        let board = ScriptBoard::new(threads(count));
        board.with_helpers(|| {
            // Two blocks one after another: the helpers stay.
            for height in [7, 8] {
                run(&board, height, &crowd);
            }
        });
        assert_eq!(crowd.most.load(Ordering::SeqCst), count, "all at once, and no more");
        assert_eq!(crowd.verified.load(Ordering::SeqCst), 2 * INPUTS as usize);
    }
}

#[test]
fn blocks_side_by_side_take_no_more_threads_than_there_are() {
    let crowd = Arc::new(Crowd::default());
    let board = ScriptBoard::new(threads(3));
    board.with_helpers(|| {
        scope(|scope| {
            for worker in 0..3 {
                let (board, crowd) = (&board, &crowd);
                scope.spawn(move || {
                    for turn in 0..6 {
                        run(board, turn * 3 + worker, crowd);
                    }
                });
            }
        });
    });
    // A helper that was at a chunk when a worker came ends that chunk first.
    assert!(crowd.most.load(Ordering::SeqCst) <= 5, "{:?}", crowd.most);
    assert_eq!(crowd.verified.load(Ordering::SeqCst), 18 * INPUTS as usize);
}

#[test]
fn helpers_take_the_lowest_block_that_has_work() {
    let crowd = Arc::new(Crowd::default());
    let post =
        |height| Posted { height: Height::new(height), checks: checks(&crowd).1, helpers: 0 };
    let mut state = State { posted: [9, 4, 6].map(post).into(), ending: false };
    let lowest = state.lowest().unwrap();
    assert_eq!(lowest.height, Height::new(4));
    lowest.checks.run(|| true);
    assert_eq!(state.lowest().map(|posted| posted.height), Some(Height::new(6)));
}
