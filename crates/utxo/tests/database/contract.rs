//! The contract of `UnspentOutputsView`.

use std::fmt::Debug;
use std::sync::Arc;

use varve_consensus::contract::{SetUnderTest, check, check_bsv};
use varve_consensus::{BlockAt, PrevoutError, UnspentOutputsView};
use varve_io::faulty::FaultyStorage;
use varve_types::{Height, Network};
use varve_utxo::{Database, Error, Options};

use crate::twin::{KEY, small, threaded};

struct Set(Database);

impl Set {
    fn new(options: Options) -> Self {
        Self(Database::open(Arc::new(FaultyStorage::new(1)), options).unwrap())
    }
}

impl SetUnderTest for Set {
    fn connect(&mut self, block: &BlockAt<'_>) -> Result<(), PrevoutError> {
        match self.0.append(block) {
            Ok(()) => Ok(()),
            Err(Error::Prevout(reason)) => Err(reason),
            Err(other) => panic!("{other}"),
        }
    }

    fn disconnect(&mut self, block: &BlockAt<'_>) {
        assert_eq!(self.0.tip(), Some((block.height(), block.hash())));
        self.0.rewind().unwrap();
    }

    fn view(&self, block: &BlockAt<'_>) -> impl UnspentOutputsView<Error: Debug> {
        self.0.view(block).unwrap()
    }
}

#[test]
fn holds_with_the_default_parameters() {
    check(|| Set::new(Options::new(Network::Regtest, KEY)));
}

#[test]
fn holds_with_a_window_of_four() {
    check(|| Set::new(small()));
}

/// Every block goes through a run at once.
#[test]
fn holds_without_memory_for_a_window() {
    check(|| Set::new(Options { memory: 0, ..small() }));
    check(|| Set::new(Options { memory: 0, ..threaded() }));
}

#[test]
fn holds_on_the_other_chain() {
    for height in [1, 9_999, 10_000] {
        let set = Set::new(Options { network: Network::BsvRegtest, ..small() });
        check_bsv(set, Height::new(height));
    }
}
