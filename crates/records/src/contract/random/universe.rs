//! A few transactions that fight for the same outputs.

use crate::contract::draft::{Coin, TxDraft};
use crate::extended::Transaction;
use crate::key::BatchSize;
use crate::operation::{NewRecord, SpendPart, SpendRules, Unit};
use crate::prepare::CreateOptions;
use crate::record::Body;
use crate::settings::Settings;
use varve_types::Height;

/// How many transactions there are.
const TXS: u32 = 24;
/// How many of them spend nothing of the others.
const ROOTS: u32 = 6;

/// Numbers that depend on the seed alone (splitmix64).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Begins with this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, which is not 0.
    pub const fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// A small number below `limit`.
    pub fn small(&mut self, limit: u32) -> u32 {
        u32::try_from(self.below(u64::from(limit))).expect("below a 32-bit limit")
    }

    /// Whether something happens that happens so often of a hundred times.
    pub const fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of these.
    ///
    /// # Panics
    ///
    /// When there are none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let index = self.below(items.len() as u64);
        &items[usize::try_from(index).expect("an index")]
    }

    /// Puts them in another order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            let other = usize::try_from(self.below(end as u64 + 1)).expect("an index");
            items.swap(end, other);
        }
    }
}

/// The transactions of a walk.
#[derive(Clone, Debug)]
pub struct Universe {
    txs: Vec<Transaction>,
    coins: Vec<Coin>,
    settings: Settings,
}

impl Universe {
    /// The universe of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x5eed);
        let batch = BatchSize::new(3).expect("not zero");
        let settings = Settings { batch, coinbase_maturity: 20, ..Settings::default() };
        let mut universe = Self { txs: Vec::new(), coins: Vec::new(), settings };
        for number in 0..TXS {
            let outputs = rng.small(7);
            let mut draft = match number {
                0 => TxDraft::coinbase(number, outputs + 1),
                number if number < ROOTS => TxDraft::root(number, outputs + 1),
                _ => TxDraft::spending(&universe.inputs(&mut rng), outputs).tag(number),
            };
            if outputs == 0 || rng.chance(20) {
                draft = draft.with_data();
            }
            universe.push(draft.build());
        }
        universe
    }

    /// Coins of others, now and then one twice.
    fn inputs(&self, rng: &mut Rng) -> Vec<Coin> {
        let count = 1 + rng.small(3);
        (0..count).map(|_| rng.pick(&self.coins).clone()).collect()
    }

    fn push(&mut self, tx: Transaction) {
        let outputs = u32::try_from(tx.view().outputs().len()).expect("a few");
        self.coins.extend((0..outputs).map(|vout| Coin::of(&tx, vout)));
        self.txs.push(tx);
    }

    /// The transactions, parents before children.
    #[must_use]
    pub fn txs(&self) -> &[Transaction] {
        &self.txs
    }

    /// All outputs.
    #[must_use]
    pub fn coins(&self) -> &[Coin] {
        &self.coins
    }

    /// The spends of a transaction; none of one that spends nothing of the others.
    #[must_use]
    pub fn spends(&self, index: usize, rules: SpendRules) -> SpendPart {
        let tx = &self.txs[index];
        if index < ROOTS as usize {
            return SpendPart { spends: Vec::new(), rules };
        }
        let part = SpendPart::new(tx, SpendRules { height: Height::new(1), ..rules });
        SpendPart { rules, ..part.expect("it is extended") }
    }

    /// The record of a transaction. Every third one is external.
    #[must_use]
    pub fn record(&self, index: usize, options: &CreateOptions) -> NewRecord {
        let record = NewRecord::new(&self.txs[index], options, &self.settings);
        let mut record = record.expect("it can be created");
        if index % 3 == 1 {
            record.body = Body::External;
        }
        record
    }

    /// Spends and creates a transaction in block 1 at height 100.
    #[must_use]
    pub fn unit(&self, index: usize) -> Unit {
        let options = CreateOptions { height: Height::new(50), ..CreateOptions::default() };
        let spend = Some(self.spends(index, SpendRules::at(Height::new(100))));
        let create = Some(self.record(index, &options));
        Unit { txid: self.txs[index].txid(), spend, create }
    }
}
