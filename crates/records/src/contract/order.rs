//! Of two faults of a spend the earlier one is reported: all pairs.
//!
//! There are thirteen faults, in the order of [`SlotError`]. For each pair a record is made that
//! has both, and one spend is tried. Some pairs cannot exist; `impossible` says why.

use std::collections::BTreeSet;
use std::sync::Arc;

use varve_types::{Height, Outpoint};

use super::draft::{Coin, TxDraft};
use super::{Disk, World, errors};
use crate::engine::Engine;
use crate::error::SlotError;
use crate::extended::Transaction;
use crate::freeze_window::{FreezeWindow, Tier};
use crate::operation::{Operation, SpendRules, Unit};
use crate::outcome::Pruned;
use crate::spending_data::SpendingData;
use crate::utxo_hash::UtxoHash;

/// The height of the spend that is tried.
const TRIED: Height = Height::new(500);
/// A height at which nothing rests any more, for the spends that come before.
const LATE: Height = Height::new(2_000);

/// What can be wrong, in the order in which a spend looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Missing,
    Creating,
    Conflicting,
    Locked,
    Immature,
    NoSlots,
    NoSuchOutput,
    OtherHash,
    Resting,
    PrunedSpender,
    Marked,
    Spent,
    InWindow,
}

use Fault::{
    Conflicting, Creating, Immature, InWindow, Locked, Marked, Missing, NoSlots, NoSuchOutput,
    OtherHash, PrunedSpender, Resting, Spent,
};

const FAULTS: [Fault; 13] = [
    Missing,
    Creating,
    Conflicting,
    Locked,
    Immature,
    NoSlots,
    NoSuchOutput,
    OtherHash,
    Resting,
    PrunedSpender,
    Marked,
    Spent,
    InWindow,
];

/// Every pair of faults, and every fault alone.
pub fn of_two_faults_the_earlier_is_told<D: Disk>(disk: &D) {
    let world = World::new(disk.open());
    let mut pairs = 0;
    for (index, first) in FAULTS.into_iter().enumerate() {
        for second in FAULTS.into_iter().skip(index) {
            if impossible(first, second) {
                continue;
            }
            let mut case = Case::new(pairs, [first, second].into());
            let error = case.run(&world);
            assert_eq!(error, case.expected(first), "{first:?} and {second:?}");
            pairs += 1;
        }
    }
    assert_eq!(pairs, 13 * 14 / 2 - 5 - 3 - 2, "those that can exist");
}

/// Whether no record can have both.
fn impossible(first: Fault, second: Fault) -> bool {
    // What concerns a slot needs one.
    let no_slot = first == NoSlots && second >= Resting;
    // A slot is spent by one, or by another, or marked.
    let one_state = first != second && first >= PrunedSpender && second <= Spent;
    // Nobody can have spent what is being created.
    let too_early = first == Creating && matches!(second, PrunedSpender | Spent);
    no_slot || one_state || too_early
}

/// One record with some faults, and who tries to spend it.
struct Case {
    faults: BTreeSet<Fault>,
    parent: Transaction,
    coin: Coin,
    spender: Transaction,
    rival: Transaction,
}

impl Case {
    fn new(tag: u32, faults: BTreeSet<Fault>) -> Self {
        let draft = if faults.contains(&Immature) {
            TxDraft::coinbase(tag, 1)
        } else {
            TxDraft::root(tag, 1)
        };
        let parent = draft.build();
        let mut coin = Coin::of(&parent, 0);
        if faults.contains(&Resting) {
            coin.script = vec![0x52];
        }
        let spender = TxDraft::spending(std::slice::from_ref(&coin), 0).with_data().build();
        let rival = TxDraft::spending(std::slice::from_ref(&coin), 1).build();
        Self { faults, parent, coin, spender, rival }
    }

    fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    /// Makes the record with its faults, tries, and returns what is wrong.
    fn run(&mut self, world: &World<impl Engine>) -> SlotError {
        self.make(world);
        let txid = self.parent.txid();
        if self.has(Conflicting) {
            world.ok(Operation::SetConflicting { txid, conflicting: true });
        }
        if self.has(Locked) {
            world.ok(Operation::SetLocked { txid, locked: true });
        }
        if self.has(Missing) {
            world.ok(Operation::Delete { txid });
        }
        let mut unit = spend_at(&self.spender, TRIED);
        let spend = &mut unit.spend.as_mut().expect("it spends").spends[0];
        if self.has(NoSuchOutput) {
            spend.outpoint = Outpoint::new(txid, 7);
        }
        if self.has(OtherHash) {
            spend.hash = UtxoHash::from_bytes([1; 32]);
        }
        errors(&world.refusal(unit))[0].expect("the one input is at fault")
    }

    /// Creates the record and does to its slot what the faults ask for.
    fn make(&self, world: &World<impl Engine>) {
        let mut options = world.mined();
        options.height = Height::new(TRIED.to_u32() - 50);
        let mut unit = world.create(&self.parent, &options);
        let new = unit.create.as_mut().expect("it creates");
        new.creating = self.has(Creating);
        if self.has(NoSlots) {
            new.utxos = Arc::default();
        }
        world.ok(unit);
        if self.has(Resting) {
            let old = Coin::of(&self.parent, 0).slot();
            world.ok(Operation::Freeze(old));
            world.ok(Operation::Reassign { slot: old, to: self.coin.hash() });
        }
        let slot = self.coin.slot();
        if self.has(InWindow) {
            let until = TRIED.to_u32() + 1;
            let window = FreezeWindow::from_interval(500, Some(u64::from(until)), false);
            world.ok(Operation::FreezeWindow { slot, window });
        }
        if self.has(Marked) {
            world.ok(Operation::Freeze(slot));
        }
        if self.has(Spent) {
            world.ok(spend_at(&self.rival, LATE));
        }
        if self.has(PrunedSpender) {
            let txid = self.spender.txid();
            let create = world.create(&self.spender, &world.options()).create;
            world.ok(Unit { create, ..spend_at(&self.spender, LATE) });
            world.set_mined(txid, 9, 101);
            assert_eq!(world.prune(txid, 200), Pruned::Removed);
        }
    }

    fn expected(&self, fault: Fault) -> SlotError {
        match fault {
            Missing => SlotError::TxNotFound,
            Creating => SlotError::Creating,
            Conflicting => SlotError::Conflicting,
            Locked => SlotError::Locked,
            Immature => SlotError::CoinbaseImmature { spendable: Height::new(550) },
            NoSlots => SlotError::UtxosNotFound,
            NoSuchOutput => SlotError::UtxoNotFound,
            OtherHash => SlotError::HashMismatch,
            Resting => SlotError::FrozenUntil { spendable: Height::new(1_100) },
            PrunedSpender => SlotError::InvalidSpend,
            Marked | InWindow => SlotError::Frozen,
            Spent => SlotError::Spent { by: SpendingData::new(self.rival.txid(), 0) },
        }
    }
}

fn spend_at(tx: &Transaction, height: Height) -> Unit {
    let rules = SpendRules { tier: Tier::Consensus, ..SpendRules::at(height) };
    Unit::spend(tx, rules).expect("it is extended")
}
