//! Rewinding below the undo log, with a source of spent coins.

use varve_consensus::{BlockAt, OwnedCoin};
use varve_testdata::Random;
use varve_types::{BlockHash, Height, Outpoint};
use varve_utxo::{Error, Options, SourceError, SourceFailure, SpentCoins, UndoConfig};

use crate::twin::{Archive, Twin, small, state};

/// Records are pruned on the way up; the set is rewound to the genesis block, and a rival chain
/// grows from there.
#[test]
fn to_the_genesis_block_and_up_another_branch() {
    let undo = UndoConfig { blocks: 64, segment_size: 1 << 12, cache: 0 };
    let mut twin = Twin::new(1, Options { undo, ..small() });
    let mut chance = Random::new(1);
    (0..300).for_each(|_| twin.append_draft(&mut chance).unwrap());
    twin.database().flush().unwrap();
    let below_records = loop {
        match twin.rewind() {
            Ok(()) => {}
            Err(Error::RewindTooDeep { height }) => break height,
            Err(other) => panic!("{other}"),
        }
    };
    assert!((2..240).contains(&below_records.to_u32()), "{below_records}");
    twin.check();
    while twin.chain.len() > 2 {
        twin.rewind_with_archive().unwrap();
        if twin.chain.len().is_multiple_of(9) {
            twin.check();
        }
        if twin.chain.len().is_multiple_of(50) {
            twin.reopen(None);
        }
    }
    twin.check();
    // A rival branch makes many of the same outputs again, spends restored coins, and has records.
    for _ in 0..30 {
        (0..4).for_each(|_| twin.append_draft(&mut chance).unwrap());
        (0..2).for_each(|_| twin.rewind().unwrap());
        twin.check();
    }
    twin.database().flush().unwrap();
    twin.reopen(None);
    let twin = &mut twin;
    let database = twin.database.as_mut().unwrap();
    while database.tip().is_some_and(|(height, _)| height > Height::GENESIS) {
        database.rewind_with(&twin.archive).unwrap();
    }
    assert_eq!(twin.database().tip().map(|(height, _)| height), Some(Height::GENESIS));
    assert!(state(&twin.database().snapshot()).is_empty());
    twin.database.as_mut().unwrap().rewind_with(&twin.archive).unwrap();
    assert_eq!(twin.database().tip(), None);
}

/// The same block over and over: every time its spent coins are created again.
#[test]
fn the_same_block_disconnected_many_times() {
    let mut twin = Twin::imported(3, Options { memory: 0, ..small() }, 20);
    for _ in 0..60 {
        let depth = 1 + twin.chain.len() % 4;
        let blocks: Vec<Vec<u8>> =
            twin.chain[twin.chain.len() - depth..].iter().map(|(bytes, _)| bytes.clone()).collect();
        (0..depth).for_each(|_| twin.rewind_with_archive().unwrap());
        twin.check();
        blocks.iter().for_each(|bytes| twin.append(bytes).unwrap());
        twin.check();
        // Without records again, as if the records had been pruned.
        let mut again = Twin::imported(3, twin.options, 20);
        assert_eq!(state(&again.database().snapshot()), state(&twin.database().snapshot()));
    }
}

/// What a source may get wrong.
struct Wrong<'a> {
    archive: &'a Archive,
    fault: Fault,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Fails,
    OtherBlock,
    NoBlock,
    NoCoin,
    YoungCoin,
}

impl SpentCoins for Wrong<'_> {
    fn block(&self, height: Height, hash: BlockHash) -> Result<Vec<u8>, SourceFailure> {
        match self.fault {
            Fault::Fails => Err("the disk is on fire".into()),
            Fault::OtherBlock => Ok(varve_types::Network::Regtest.genesis_block()),
            Fault::NoBlock => Ok(vec![1, 2, 3]),
            _ => self.archive.block(height, hash),
        }
    }

    fn coin_below(
        &self,
        block: &BlockAt<'_>,
        outpoint: &Outpoint,
    ) -> Result<Option<OwnedCoin>, SourceFailure> {
        let coin = self.archive.coin_below(block, outpoint)?;
        match self.fault {
            Fault::NoCoin => Ok(None),
            Fault::YoungCoin => Ok(coin.map(|coin| OwnedCoin { height: block.height(), ..coin })),
            _ => Ok(coin),
        }
    }
}

#[test]
fn a_source_that_is_wrong_changes_nothing() {
    let mut twin = Twin::imported(5, small(), 20);
    let faults = [Fault::Fails, Fault::OtherBlock, Fault::NoBlock, Fault::NoCoin, Fault::YoungCoin];
    for fault in faults {
        // A block that spends something.
        while twin.chain.last().unwrap().0.len() < 400 {
            twin.rewind_with_archive().unwrap();
        }
        let wrong = Wrong { archive: &twin.archive, fault };
        let error = twin.database.as_mut().unwrap().rewind_with(&wrong).unwrap_err();
        let Error::Source { error, .. } = &error else { panic!("{fault:?}: {error}") };
        let fits = match error {
            SourceError::Failed(_) => fault == Fault::Fails,
            SourceError::OtherBlock { .. } => fault == Fault::OtherBlock,
            SourceError::Decode(_) => fault == Fault::NoBlock,
            SourceError::NoCoin { .. } => matches!(fault, Fault::NoCoin | Fault::YoungCoin),
            _ => false,
        };
        assert!(fits, "{fault:?}: {error}");
        twin.check();
    }
    twin.rewind_with_archive().unwrap();
    twin.check();
}
