//! The threads with a verifier that fails where the test wants.

use proptest::prelude::*;
use varve_types::{Amount, Block, Format};

use super::*;
use crate::contract::draft::{BlockDraft, TxDraft};
use crate::memory::{MemorySet, OwnedCoin};
use crate::verifier::{PreparedTx, SpendingTx};

/// Fails where the spent amount is zero. Asserts that it gets the whole transaction.
struct ZeroFails;

/// The amounts that a transaction spends.
struct Amounts(Vec<Amount>);

impl ScriptVerifier for ZeroFails {
    type Prepared = Amounts;

    fn prepare(&self, tx: &SpendingTx<'_>) -> Result<Amounts, VerifyError> {
        assert_eq!(tx.tx.inputs().len(), tx.spent.len());
        Ok(Amounts(tx.spent.iter().map(|output| output.value).collect()))
    }
}

impl PreparedTx for Amounts {
    fn verify(&self, input: usize, _flags: ScriptFlags) -> Result<(), VerifyError> {
        if self.0[input] == Amount::ZERO { Err(VerifyError::Script) } else { Ok(()) }
    }
}

/// A verifier that could not run says nothing about the block.
#[test]
fn a_question_that_is_refused_is_no_verdict() {
    let failed = |error| ScriptError::Failed {
        txid: Txid::ZERO,
        vin: 0,
        outpoint: Outpoint::new(Txid::ZERO, 0),
        error,
    };
    assert_eq!(failed(VerifyError::Refused("a reason".to_owned())).reject_reason(), None);
    let reason = failed(VerifyError::Script).reject_reason();
    assert_eq!(reason.as_deref(), Some("block-script-verify-flag-failed"));
}

/// A block that spends, and a set in which the outputs that are to fail are worth nothing.
fn block_and_set(inputs: &[usize], failing: &[bool]) -> (Vec<u8>, MemorySet) {
    let mut set = MemorySet::new(Network::Regtest);
    let mut txs = vec![TxDraft::coinbase(Height::new(1), 0)];
    let mut outpoints = (0..).map(|vout| Outpoint::new(Txid::ZERO, vout));
    let mut fails = failing.iter().copied().chain(std::iter::repeat(false));
    for count in inputs {
        let outpoints: Vec<_> = outpoints.by_ref().take(*count).collect();
        for outpoint in &outpoints {
            let value = Amount::from_sat(u64::from(!fails.next().unwrap()));
            let coin = OwnedCoin { height: Height::new(1), coinbase: false, value, script: vec![] };
            set.insert(*outpoint, coin);
        }
        txs.push(TxDraft::spending(&outpoints, 1));
    }
    (BlockDraft::new(txs).bytes(), set)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_first_failure_in_block_order_is_named(
        inputs in prop::collection::vec(1_usize..60, 0..12),
        failing in prop::collection::vec(prop::bool::weighted(0.02), 0..400),
        threads in 1_usize..5,
    ) {
        let (bytes, set) = block_and_set(&inputs, &failing);
        let block = Block::parse(&bytes, Format::Segwit).unwrap();
        let block = BlockAt::new(Height::new(1), &block);
        let threads = NonZeroUsize::new(threads).unwrap();
        let params = Params::new(Network::Regtest);
        let result = check_scripts(&params, &block, &set, &ZeroFails, threads);
        let total: usize = inputs.iter().sum();
        let expected = failing.iter().take(total).position(|fails| *fails);
        match (result, expected) {
            (Ok(()), None) => {}
            (Err(CheckError::Invalid(ScriptError::Failed { outpoint, .. })), Some(at)) => {
                prop_assert_eq!(outpoint.vout as usize, at);
            }
            (result, expected) => prop_assert!(false, "{result:?}, not {expected:?}"),
        }
    }
}
